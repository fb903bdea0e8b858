"""The labelled pages are well-formed, varied and enough."""

import codecs
import itertools
import re
from collections import Counter
from datetime import UTC
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest

from tests.quality.examples import BAD, FOLDER, GOOD, LABELS, ROLES, Example, Page, examples, held_out, labelled

# Two pages whose runs of six characters overlap by this much would count one wording twice.
NEARLY_IDENTICAL = 0.7
RUN = 6

LANGUAGES = {"en", "de", "fr", "es", "pt", "it", "nl", "pl", "ru", "ja", "zh", "ko", "ar", "tr", "cs", "sv"}


class Text(HTMLParser):
    """Collects the words that a reader sees, and the title."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Enter what is not shown."""
        del attrs
        self.hidden += tag in {"script", "style"}

    def handle_endtag(self, tag: str) -> None:
        """Leave it."""
        self.hidden -= tag in {"script", "style"}

    def handle_data(self, data: str) -> None:
        """Keep what is shown."""
        if not self.hidden:
            self.parts.append(data)


def text(page: Page) -> str:
    """Return what a reader sees, in lower case and without white space."""
    parser = Text()
    parser.feed(page.body.decode(page.charset))
    parser.close()
    return re.sub(r"\s+", "", "".join(parser.parts)).lower()


def runs(example: Example) -> frozenset[str]:
    """Return all runs of `RUN` characters of what a reader sees."""
    shown = text(example)
    return frozenset(shown[start : start + RUN] for start in range(len(shown) - RUN + 1))


def pages() -> list[Page]:
    """Return all pages, of examples and their contexts."""
    return [page for example in examples() for page in (example, *example.context)]


def test_there_are_enough_of_each_label() -> None:
    """At least 120 bad pages, a dozen of each kind, and 60 good ones."""
    counts = Counter(example.label for example in examples())
    assert set(counts) == set(LABELS)
    assert sum(counts[label] for label in BAD) >= 120
    assert all(counts[label] >= 12 for label in BAD)
    assert counts[GOOD] >= 60


def test_labels_and_roles_are_known() -> None:
    """Other labels that are just as right are bad ones, and every page of a context has a known role."""
    for example in examples():
        assert set(example.also) <= set(BAD) - {example.label}, example.name
        assert not example.also or example.label in BAD, example.name
        assert {known.role for known in example.context} <= set(ROLES), example.name


def test_names_are_unique() -> None:
    """A name stands for one example, whatever its label, and says so in lower case and hyphens."""
    names = [example.name for example in examples()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


def test_every_example_says_where_such_pages_are_met() -> None:
    """The origin is a sentence's worth of words, not a stub."""
    assert [example.name for example in examples() if len(example.origin.split()) < 2] == []


def test_bodies_are_unique() -> None:
    """No body is counted twice, so that every example weighs the same."""
    bodies = Counter(example.body for example in examples())
    assert [body for body, count in bodies.items() if count > 1] == []


def test_no_two_examples_say_nearly_the_same() -> None:
    """The texts differ by more than a name: a rule that finds one has not thereby found another."""
    shown = [(example.name, runs(example)) for example in examples()]
    close = [
        (one, other)
        for (one, left), (other, right) in itertools.combinations(shown, 2)
        if min(len(left), len(right)) > max(20, NEARLY_IDENTICAL * max(len(left), len(right)))
        and len(left & right) > NEARLY_IDENTICAL * len(left | right)
    ]
    assert close == []


def test_bodies_decode_in_their_charset() -> None:
    """What is served can be read back, and a `<meta>` that names a charset names the one that is used."""
    for page in pages():
        decoded = page.body.decode(page.charset)
        declared = re.search(r"<meta[^>]{0,120}charset=[\"']?([\w-]+)", decoded, re.IGNORECASE)
        assert declared is None or decoded.isascii() or charset(declared[1]) == charset(page.charset), page.uri


def charset(name: str) -> str:
    """Return the one name of a charset, as browsers take it: two of them for their larger relatives."""
    found = codecs.lookup(name).name
    return {"iso8859-1": "cp1252", "gb2312": "gbk"}.get(found, found)


def test_headers_agree_with_the_body() -> None:
    """Each page is served as HTML, and a charset in its type is the one that is used."""
    for page in pages():
        kind = dict(page.headers)["Content-Type"]
        assert kind.startswith("text/html"), page.uri
        if "charset=" in kind:
            assert charset(kind.partition("charset=")[2]) == charset(page.charset), page.uri


def test_only_archives_own_pages_may_have_another_status() -> None:
    """All that a crawl would take for a good answer has the status of one."""
    assert [e.name for e in examples() if e.status != 200 and e.label != "archive-error"] == []
    assert sum(e.status == 200 for e in labelled("archive-error")) >= 12


def test_contexts_are_of_the_same_site() -> None:
    """A context has pages of the example's host, and earlier ones are earlier."""
    for example in examples():
        for known in example.context:
            assert urlsplit(known.uri).hostname == urlsplit(example.uri).hostname, example.name
            assert known.status == 200, example.name
            assert known.role != "earlier" or known.when < example.when, example.name


def test_hijacked_sites_have_a_past() -> None:
    """Whether a site was taken over can only be told from at least two pages before."""
    for example in labelled("hijacked"):
        assert sum(known.role == "earlier" for known in example.context) >= 2, example.name


def test_good_pages_have_pasts_too() -> None:
    """That a context is given must not give the verdict away."""
    assert sum(bool(example.context) for example in labelled(GOOD)) >= 10


def test_hosts_cannot_exist() -> None:
    """Every site is of a domain that is reserved for examples."""
    assert {page.uri for page in pages() if not (urlsplit(page.uri).hostname or "").endswith(".example")} == set()


def test_times_are_utc_and_of_the_web() -> None:
    """Captures lie between 1996 and 2025."""
    for page in pages():
        assert page.when.tzinfo == UTC, page.uri
        assert 1996 <= page.when.year <= 2025, page.uri


@pytest.mark.parametrize(("label", "least"), [("soft-404", 16), ("parked", 12), (GOOD, 12)])
def test_many_languages(label: str, least: int) -> None:
    """Wordings come in many languages, and so do good pages."""
    assert len({example.language for example in labelled(label)} & LANGUAGES) >= least


def test_many_charsets() -> None:
    """Legacy charsets are there for bad and for good pages."""
    assert len({example.charset for example in labelled(*BAD)} - {"utf-8"}) >= 10
    assert len({example.charset for example in labelled(GOOD)} - {"utf-8"}) >= 6


def test_sizes_vary() -> None:
    """Pages are as small as a line and as large as a modern frame around three sentences."""
    sizes = sorted(len(example.body) for example in examples())
    assert sizes[0] < 300
    assert sizes[-1] > 12_000
    assert sizes[len(sizes) // 2] > 1_000


def test_every_file_is_used() -> None:
    """No page lies in a folder that no index names."""
    files = {path for label in LABELS for path in (FOLDER / label).glob("*.html")}
    assert len(files) == len(pages())


def test_the_pages_that_were_held_out_are_as_well_formed() -> None:
    """Twenty bad ones of all kinds and twenty good ones, of reserved domains, each file named by the index."""
    counts = Counter(example.label for example in held_out())
    assert set(counts) == {*BAD, GOOD}
    assert counts[GOOD] == 20
    assert sum(counts[label] for label in BAD) == 20
    known = [page for example in held_out() for page in (example, *example.context)]
    assert {page.uri for page in known if not (urlsplit(page.uri).hostname or "").endswith(".example")} == set()
    assert len(list((FOLDER / "held-out").glob("*.html"))) == len(known)
    assert len({example.language for example in held_out()}) >= 12
    assert not {text(example) for example in held_out()} & {text(example) for example in examples()}
