"""The labelled pages are valid, varied and sufficient."""

import codecs
import itertools
import re
from collections import Counter
from datetime import UTC
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest

from tests.quality.examples import (
    BAD,
    FOLDER,
    GOOD,
    LABELS,
    ROLES,
    Example,
    Page,
    examples,
    examples_with_labels,
    held_out,
)

# Pages whose n-grams overlap by more than this share have nearly the same wording.
MAX_OVERLAP = 0.7
NGRAM_LENGTH = 6

LANGUAGES = {"en", "de", "fr", "es", "pt", "it", "nl", "pl", "ru", "ja", "zh", "ko", "ar", "tr", "cs", "sv"}


class VisibleTextParser(HTMLParser):
    """Collects the visible words and the title."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Enter an invisible element."""
        del attrs
        self.hidden += tag in {"script", "style"}

    def handle_endtag(self, tag: str) -> None:
        """Leave an invisible element."""
        self.hidden -= tag in {"script", "style"}

    def handle_data(self, data: str) -> None:
        """Collect visible text."""
        if not self.hidden:
            self.parts.append(data)


def visible_text(page: Page) -> str:
    """Return the visible text in lower case without white space."""
    parser = VisibleTextParser()
    parser.feed(page.body.decode(page.charset))
    parser.close()
    return re.sub(r"\s+", "", "".join(parser.parts)).lower()


def ngrams(example: Example) -> frozenset[str]:
    """Return all character n-grams of the visible text."""
    visible = visible_text(example)
    return frozenset(visible[start : start + NGRAM_LENGTH] for start in range(len(visible) - NGRAM_LENGTH + 1))


def all_pages() -> list[Page]:
    """Return the pages of all examples and their contexts."""
    return [page for example in examples() for page in (example, *example.context)]


def test_labels_have_enough_examples() -> None:
    """At least 120 bad pages, a dozen of each kind, and 60 good ones."""
    counts = Counter(example.label for example in examples())
    assert set(counts) == set(LABELS)
    assert sum(counts[label] for label in BAD) >= 120
    assert all(counts[label] >= 12 for label in BAD)
    assert counts[GOOD] >= 60


def test_example_labels_and_roles_are_valid() -> None:
    """Alternative labels are bad ones, and context pages have known roles."""
    for example in examples():
        assert set(example.also) <= set(BAD) - {example.label}, example.name
        assert not example.also or example.label in BAD, example.name
        assert {page.role for page in example.context} <= set(ROLES), example.name


def test_example_names_are_unique() -> None:
    """Names consist of lower-case words with hyphens."""
    names = [example.name for example in examples()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


def test_examples_describe_their_origin() -> None:
    """The origin has at least two words."""
    assert [example.name for example in examples() if len(example.origin.split()) < 2] == []


def test_example_bodies_are_unique() -> None:
    """Every example has the same weight."""
    bodies = Counter(example.body for example in examples())
    assert [body for body, count in bodies.items() if count > 1] == []


def test_example_texts_are_distinct() -> None:
    """Detecting one example does not imply detecting another."""
    visible = [(example.name, ngrams(example)) for example in examples()]
    close = [
        (first, second)
        for (first, left), (second, right) in itertools.combinations(visible, 2)
        if min(len(left), len(right)) > max(20, MAX_OVERLAP * max(len(left), len(right)))
        and len(left & right) > MAX_OVERLAP * len(left | right)
    ]
    assert close == []


def test_example_bodies_match_declared_charset() -> None:
    """A charset in `<meta>` equals the served one."""
    for page in all_pages():
        decoded = page.body.decode(page.charset)
        declared = re.search(r"<meta[^>]{0,120}charset=[\"']?([\w-]+)", decoded, re.IGNORECASE)
        assert (
            declared is None or decoded.isascii() or normalize_charset(declared[1]) == normalize_charset(page.charset)
        ), page.uri


def normalize_charset(name: str) -> str:
    """Return the canonical name of a charset, with browsers' supersets."""
    canonical = codecs.lookup(name).name
    return {"iso8859-1": "cp1252", "gb2312": "gbk"}.get(canonical, canonical)


def test_example_content_type_matches_body() -> None:
    """Pages are HTML, and a charset in Content-Type equals the served one."""
    for page in all_pages():
        kind = dict(page.headers)["Content-Type"]
        assert kind.startswith("text/html"), page.uri
        if "charset=" in kind:
            assert normalize_charset(kind.partition("charset=")[2]) == normalize_charset(page.charset), page.uri


def test_only_archive_errors_have_other_status() -> None:
    """All other examples have status 200."""
    assert [e.name for e in examples() if e.status != 200 and e.label != "archive-error"] == []
    assert sum(e.status == 200 for e in examples_with_labels("archive-error")) >= 12


def test_context_pages_are_of_same_site() -> None:
    """Earlier pages were captured earlier."""
    for example in examples():
        for page in example.context:
            assert urlsplit(page.uri).hostname == urlsplit(example.uri).hostname, example.name
            assert page.status == 200, example.name
            assert page.role != "earlier" or page.when < example.when, example.name


def test_hijacked_examples_have_two_earlier_pages() -> None:
    """A takeover is only visible in comparison with earlier pages."""
    for example in examples_with_labels("hijacked"):
        assert sum(page.role == "earlier" for page in example.context) >= 2, example.name


def test_good_examples_have_contexts() -> None:
    """A context must not imply a bad label."""
    assert sum(bool(example.context) for example in examples_with_labels(GOOD)) >= 10


def test_example_hosts_are_reserved() -> None:
    """Every host is below `.example`."""
    assert {page.uri for page in all_pages() if not (urlsplit(page.uri).hostname or "").endswith(".example")} == set()


def test_example_times_are_utc_since_1996() -> None:
    """Captures are from 1996 to 2025."""
    for page in all_pages():
        assert page.when.tzinfo == UTC, page.uri
        assert 1996 <= page.when.year <= 2025, page.uri


@pytest.mark.parametrize(("label", "minimum"), [("soft-404", 16), ("parked", 12), (GOOD, 12)])
def test_examples_cover_many_languages(label: str, minimum: int) -> None:
    """Bad and good pages are in many languages."""
    assert len({example.language for example in examples_with_labels(label)} & LANGUAGES) >= minimum


def test_examples_cover_legacy_charsets() -> None:
    """Bad and good pages use legacy charsets."""
    assert len({example.charset for example in examples_with_labels(*BAD)} - {"utf-8"}) >= 10
    assert len({example.charset for example in examples_with_labels(GOOD)} - {"utf-8"}) >= 6


def test_example_sizes_vary() -> None:
    """Sizes range from one line to a modern page template around three sentences."""
    sizes = sorted(len(example.body) for example in examples())
    assert sizes[0] < 300
    assert sizes[-1] > 12_000
    assert sizes[len(sizes) // 2] > 1_000


def test_all_example_files_are_indexed() -> None:
    """Every file is listed in an index."""
    files = {path for label in LABELS for path in (FOLDER / label).glob("*.html")}
    assert len(files) == len(all_pages())


def test_held_out_pages_are_valid() -> None:
    """Twenty bad and twenty good pages, with reserved hosts, all indexed."""
    counts = Counter(example.label for example in held_out())
    assert set(counts) == {*BAD, GOOD}
    assert counts[GOOD] == 20
    assert sum(counts[label] for label in BAD) == 20
    page = [page for example in held_out() for page in (example, *example.context)]
    assert {page.uri for page in page if not (urlsplit(page.uri).hostname or "").endswith(".example")} == set()
    assert len(list((FOLDER / "held-out").glob("*.html"))) == len(page)
    assert len({example.language for example in held_out()}) >= 12
    assert not {visible_text(example) for example in held_out()} & {visible_text(example) for example in examples()}
