"""Two sites matched by name: what became of each resource, and what it adds up to."""

import threading
import time
from concurrent.futures import CancelledError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.comparison.memory_sites import MemorySite, resource
from unlost.comparison import Comparison, ComparisonOutcome, PenaltyRules, SiteResource, TextSimilarity, compare_sites

NAMES = st.sampled_from([f"a.example/{letter}" for letter in "ABCDEFG"])
CONTENTS = st.dictionaries(NAMES, st.sampled_from([b"one", b"two", b"three"]))


def halves(_: SiteResource, __: SiteResource) -> TextSimilarity:
    """Find every pair half alike."""
    return TextSimilarity(0.5)


def site(contents: dict[str, bytes]) -> MemorySite:
    """Return a site with these contents, by name."""
    return MemorySite(resource(name, content) for name, content in contents.items())


def outcomes(found: Comparison) -> dict[str, str]:
    """Return what became of each, by the last part of its name."""
    return {each.name.rpartition("/")[2]: each.outcome.value for each in found.resources()}


def test_the_small_site() -> None:
    """The figure's site: A and E came back, B and C changed, D and F did not, G is new."""
    original = {f"a.example/{letter}": letter.encode() for letter in "ABCDEF"}
    recovered = {f"a.example/{letter}": letter.encode() for letter in "AEG"}
    recovered |= {"a.example/B": b"older", "a.example/C": b"older"}
    found = compare_sites(site(original), site(recovered), halves)
    words = ("identical", "changed", "changed", "missing", "identical", "missing", "added")
    assert outcomes(found) == dict(zip("ABCDEFG", words, strict=True))
    assert (found.difference.changed, found.difference.missing, found.difference.added) == (2 / 6, 2 / 6, 1 / 5)


@pytest.mark.parametrize(
    ("share", "at", "is_similar"),
    [(0.75, 0.75, True), (0.7499, 0.75, False), (1.0, 0.75, True), (0.5, 0.5, True), (0.0, 0.0, True)],
)
def test_what_is_almost_identical(share: float, at: float, is_similar: bool) -> None:
    """From the given share on; and it counts as unchanged from s3 on."""
    first, second = site({"a.example/A": b"one"}), site({"a.example/A": b"two"})
    found = compare_sites(first, second, lambda _, __: TextSimilarity(share), similar_at=at)
    assert next(found.resources()).similar is is_similar
    assert found.almost_identical == (1.0 if is_similar else 0.0)
    assert [level.success for level in found.levels][1:3] == [1.0, 0.0 if is_similar else 1.0]


def test_only_changed_texts_are_looked_at() -> None:
    """Not identical ones, nor pictures, nor what is only on one side; a PDF that came back as HTML is."""
    original = MemorySite(
        [
            resource("a.example/same", b"same"),
            resource("a.example/picture", b"one", "image/png"),
            resource("a.example/data", b"one", "application/json"),
            resource("a.example/gone", b"one"),
            resource("a.example/paper", b"%PDF", "application/pdf"),
            resource("a.example/page", b"one", "text/html"),
            resource("a.example/file.doc", b"one", "application/octet-stream"),
            resource("a.example/untold", b"one", None),
        ]
    )
    recovered = MemorySite(
        [
            resource("a.example/same", b"same"),
            resource("a.example/picture", b"two", "image/png"),
            resource("a.example/data", b"two", "application/json"),
            resource("a.example/new", b"one"),
            resource("a.example/paper", b"<p>", "text/html"),
            resource("a.example/page", b"two", "image/png"),
            resource("a.example/file.doc", b"two", "application/octet-stream"),
            resource("a.example/untold", b"two", "text/plain"),
        ]
    )
    looked_at: list[str] = []

    def likeness(first: SiteResource, second: SiteResource) -> TextSimilarity:
        assert first.name == second.name
        looked_at.append(first.name.partition("/")[2])
        return TextSimilarity(None, "no-text")

    found = compare_sites(original, recovered, likeness)
    assert sorted(looked_at) == ["file.doc", "page", "paper", "untold"]
    assert found.changed_texts == 4
    assert found.almost_identical == 0.0
    assert found.unread == {"no-text": (4, "http://a.example/file.doc")}


def test_formats() -> None:
    """As the site says; else by the types; identical bytes are in their own format whatever is said."""
    rows = [
        ("said", "application/pdf", b"2", "application/pdf", True, True),
        ("kept", "application/pdf", b"2", "text/html", False, False),
        ("other", "application/pdf", b"2", "text/html", None, True),
        ("spelled", "image/pjpeg", b"2", "image/jpeg", None, False),
        ("smaller", "image/gif", b"2", "image/jpeg", None, True),
        ("untold", "image/gif", b"2", None, None, None),
        ("identical", "image/gif", b"1", "text/plain", True, False),
    ]
    original = MemorySite(resource(f"a.example/{row[0]}", b"1", row[1]) for row in rows)
    recovered = MemorySite(resource(f"a.example/{row[0]}", row[2], row[3], migrated=row[4]) for row in rows)
    found = {
        each.name.partition("/")[2]: each.migrated for each in compare_sites(original, recovered, halves).resources()
    }
    assert found == {row[0]: row[5] for row in rows}


def test_what_an_archive_holds() -> None:
    """Missing, listed by an archive and never fetched: from s5 on it counts as recovered."""
    original = site({"a.example/A": b"", "a.example/B": b"", "a.example/C": b"", "a.example/D": b""})
    recovered = MemorySite([resource("a.example/A")], listed=["a.example/A", "a.example/B", "a.example/Z"])
    found = compare_sites(original, recovered, halves)
    assert [each.name for each in found.resources() if each.held] == ["a.example/B"]
    assert [level.success for level in found.levels][3:] == [0.75, 0.5]


def test_efficiency() -> None:
    """Recovered resources for each request, with and without added ones; nothing without requests."""
    original = site({"a.example/A": b"1", "a.example/B": b"1"})
    recovered = [resource("a.example/A", b"1"), resource("a.example/Y"), resource("a.example/Z")]
    found = compare_sites(original, MemorySite(recovered, requests=10), halves)
    assert (found.efficiency, found.efficiency_without_added) == (0.3, 0.1)
    for requests in (None, 0):
        found = compare_sites(original, MemorySite(recovered, requests=requests), halves)
        assert (found.efficiency, found.efficiency_without_added) == (None, None)


def test_penalties_for_single_resources() -> None:
    """The original's type and address count; of what was added, its own."""
    original = MemorySite([resource("a.example/A", b"1", "application/pdf"), resource("a.example/B", b"1")])
    recovered = MemorySite([resource("a.example/A", b"2"), resource("a.example/old/C", b"1", "image/png")])
    found = compare_sites(original, recovered, halves)
    rules = PenaltyRules().with_type_rule("application/pdf=0.5,1,1").with_uri_rule("/old/=1,1,0.2")
    weighed = found.weigh(rules)
    assert (weighed.changed, weighed.missing, weighed.added) == (0.25, 0.5, 0.1)
    assert found.weigh(PenaltyRules()) == found.difference


def test_no_texts_at_all() -> None:
    """The share of almost identical ones is not known, rather than 0 or 1."""
    assert compare_sites(site({}), site({}), halves).almost_identical is None
    assert compare_sites(site({}), site({}), halves).difference.success == 0


@given(CONTENTS, CONTENTS)
def test_roles(first: dict[str, bytes], second: dict[str, bytes]) -> None:
    """Whichever is the original: what is missing one way is added the other way; the rest stays what it is."""
    there, back = compare_sites(site(first), site(second), halves), compare_sites(site(second), site(first), halves)
    assert (there.counts.missing, there.counts.added) == (back.counts.added, back.counts.missing)
    assert (there.counts.identical, there.counts.changed) == (back.counts.identical, back.counts.changed)
    swapped = {"missing": "added", "added": "missing"}
    assert outcomes(back) == {name: swapped.get(word, word) for name, word in outcomes(there).items()}
    assert there.counts.original == len(first)
    assert there.counts.recovered == len(second)


@given(CONTENTS, CONTENTS)
def test_everything_is_somewhere(first: dict[str, bytes], second: dict[str, bytes]) -> None:
    """Each name of either site comes up once, in order."""
    found = compare_sites(site(first), site(second), halves)
    assert [each.name for each in found.resources()] == sorted({*first, *second})


def test_order_does_not_depend_on_threads() -> None:
    """Pairs are looked at by several threads at once; each finds its own resource all the same."""
    names = [f"a.example/{number:04d}" for number in range(500)]
    original = MemorySite(resource(name, b"one") for name in names)
    recovered = MemorySite(resource(name, b"two") for name in reversed(names))
    threads: set[str] = set()

    def likeness(first: SiteResource, _: SiteResource) -> TextSimilarity:
        threads.add(threading.current_thread().name)
        return TextSimilarity(int(first.name[-4:]) / 500)

    told: list[tuple[int, int]] = []
    found = compare_sites(original, recovered, likeness, on_pair=lambda done, of: told.append((done, of)))
    shares = [each.similarity.share for each in found.resources() if each.similarity]
    assert shares == [number / 500 for number in range(500)]
    assert found.similar == 125
    assert told == [(number, 500) for number in range(1, 501)]
    assert threading.current_thread().name not in threads


def test_an_interrupt_ends_it() -> None:
    """What waits is not looked at any more."""
    names = [f"a.example/{number:04d}" for number in range(5_000)]
    looked_at: list[str] = []

    def likeness(first: SiteResource, _: SiteResource) -> TextSimilarity:
        looked_at.append(first.name)
        return TextSimilarity(1.0)

    def interrupt(_: int, __: int) -> None:
        raise KeyboardInterrupt

    original = MemorySite(resource(name, b"one") for name in names)
    recovered = MemorySite(resource(name, b"two") for name in names)
    with pytest.raises((KeyboardInterrupt, CancelledError)):
        compare_sites(original, recovered, likeness, on_pair=interrupt)
    assert len(looked_at) < 200


def test_an_interrupt_waits_for_nothing() -> None:
    """Who reads a document may take long, and is only told to stop once the comparison has ended."""
    go_on = threading.Event()
    names = [f"a.example/{number}" for number in range(3)]

    def likeness(first: SiteResource, _: SiteResource) -> TextSimilarity:
        if first.name == names[0]:
            raise KeyboardInterrupt  # reaches whoever waits for it, as that of a user does
        return TextSimilarity(1.0 if go_on.wait(60) else None)

    original = MemorySite(resource(name, b"one") for name in names)
    recovered = MemorySite(resource(name, b"two") for name in names)
    begun = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            compare_sites(original, recovered, likeness)
        assert time.monotonic() - begun < 30
    finally:
        go_on.set()


def test_sizes_count() -> None:
    """Two bodies with one digest and different sizes are no match, whatever a file says of its digests."""
    one = resource("a.example/A", b"one")
    other = SiteResource(one.name, one.uri, None, None, one.mime, one.digest, 4, None, b"four")
    found = compare_sites(MemorySite([one]), MemorySite([other]), halves)
    assert next(found.resources()).outcome is ComparisonOutcome.CHANGED
