"""Comparison of two sites, matched by name: outcomes, levels and difference."""

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


def half_similar(_: SiteResource, __: SiteResource) -> TextSimilarity:
    """Return a similarity of 0.5 for every pair."""
    return TextSimilarity(0.5)


def site(contents: dict[str, bytes]) -> MemorySite:
    """Return a site with these bodies by name."""
    return MemorySite(resource(name, content) for name, content in contents.items())


def outcomes(found: Comparison) -> dict[str, str]:
    """Return each outcome by the last part of the name."""
    return {each.name.rpartition("/")[2]: each.outcome.value for each in found.resources()}


def test_outcomes_of_the_published_example() -> None:
    """A and E are identical, B and C changed, D and F missing, G added."""
    original = {f"a.example/{letter}": letter.encode() for letter in "ABCDEF"}
    recovered = {f"a.example/{letter}": letter.encode() for letter in "AEG"}
    recovered |= {"a.example/B": b"older", "a.example/C": b"older"}
    found = compare_sites(site(original), site(recovered), half_similar)
    words = ("identical", "changed", "changed", "missing", "identical", "missing", "added")
    assert outcomes(found) == dict(zip("ABCDEFG", words, strict=True))
    assert (found.difference.changed, found.difference.missing, found.difference.added) == (2 / 6, 2 / 6, 1 / 5)


@pytest.mark.parametrize(
    ("share", "at", "is_similar"),
    [(0.75, 0.75, True), (0.7499, 0.75, False), (1.0, 0.75, True), (0.5, 0.5, True), (0.0, 0.0, True)],
)
def test_almost_identical_starts_at_the_threshold(share: float, at: float, is_similar: bool) -> None:
    """And counts as unchanged from s3 on."""
    first, second = site({"a.example/A": b"one"}), site({"a.example/A": b"two"})
    found = compare_sites(first, second, lambda _, __: TextSimilarity(share), similar_at=at)
    assert next(found.resources()).similar is is_similar
    assert found.almost_identical == (1.0 if is_similar else 0.0)
    assert [level.success for level in found.levels][1:3] == [1.0, 0.0 if is_similar else 1.0]


def test_only_changed_texts_are_compared() -> None:
    """Not identical ones, images, or one-sided ones; but a PDF recovered as HTML."""
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
    compared: list[str] = []

    def similarity(first: SiteResource, second: SiteResource) -> TextSimilarity:
        assert first.name == second.name
        compared.append(first.name.partition("/")[2])
        return TextSimilarity(None, "no-text")

    found = compare_sites(original, recovered, similarity)
    assert sorted(compared) == ["file.doc", "page", "paper", "untold"]
    assert found.changed_texts == 4
    assert found.almost_identical == 0.0
    assert found.unread == {"no-text": (4, "http://a.example/file.doc")}


def test_migrated_by_site_information_or_media_type() -> None:
    """Identical bytes are never migrated."""
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
        each.name.partition("/")[2]: each.migrated
        for each in compare_sites(original, recovered, half_similar).resources()
    }
    assert found == {row[0]: row[5] for row in rows}


def test_listed_missing_resources_count_from_s5() -> None:
    """They are in an archive, but were not fetched."""
    original = site({"a.example/A": b"", "a.example/B": b"", "a.example/C": b"", "a.example/D": b""})
    recovered = MemorySite([resource("a.example/A")], listed=["a.example/A", "a.example/B", "a.example/Z"])
    found = compare_sites(original, recovered, half_similar)
    assert [each.name for each in found.resources() if each.held] == ["a.example/B"]
    assert [level.success for level in found.levels][3:] == [0.75, 0.5]


def test_efficiency_is_recovered_resources_per_request() -> None:
    """With and without added ones; None without requests."""
    original = site({"a.example/A": b"1", "a.example/B": b"1"})
    recovered = [resource("a.example/A", b"1"), resource("a.example/Y"), resource("a.example/Z")]
    found = compare_sites(original, MemorySite(recovered, requests=10), half_similar)
    assert (found.efficiency, found.efficiency_without_added) == (0.3, 0.1)
    for requests in (None, 0):
        found = compare_sites(original, MemorySite(recovered, requests=requests), half_similar)
        assert (found.efficiency, found.efficiency_without_added) == (None, None)


def test_penalties_apply_to_single_resources() -> None:
    """By type and URL of the original, or of the added resource."""
    original = MemorySite([resource("a.example/A", b"1", "application/pdf"), resource("a.example/B", b"1")])
    recovered = MemorySite([resource("a.example/A", b"2"), resource("a.example/old/C", b"1", "image/png")])
    found = compare_sites(original, recovered, half_similar)
    rules = PenaltyRules().with_type_rule("application/pdf=0.5,1,1").with_uri_rule("/old/=1,1,0.2")
    weighed = found.weigh(rules)
    assert (weighed.changed, weighed.missing, weighed.added) == (0.25, 0.5, 0.1)
    assert found.weigh(PenaltyRules()) == found.difference


def test_share_without_changed_texts_is_none() -> None:
    """Neither 0 nor 1."""
    assert compare_sites(site({}), site({}), half_similar).almost_identical is None
    assert compare_sites(site({}), site({}), half_similar).difference.success == 0


@given(CONTENTS, CONTENTS)
def test_swapping_the_sites_swaps_missing_and_added(first: dict[str, bytes], second: dict[str, bytes]) -> None:
    """Other outcomes are the same."""
    forward, backward = (
        compare_sites(site(first), site(second), half_similar),
        compare_sites(site(second), site(first), half_similar),
    )
    assert (forward.counts.missing, forward.counts.added) == (backward.counts.added, backward.counts.missing)
    assert (forward.counts.identical, forward.counts.changed) == (backward.counts.identical, backward.counts.changed)
    swapped = {"missing": "added", "added": "missing"}
    assert outcomes(backward) == {name: swapped.get(word, word) for name, word in outcomes(forward).items()}
    assert forward.counts.original == len(first)
    assert forward.counts.recovered == len(second)


@given(CONTENTS, CONTENTS)
def test_each_name_is_compared_once(first: dict[str, bytes], second: dict[str, bytes]) -> None:
    """In order."""
    found = compare_sites(site(first), site(second), half_similar)
    assert [each.name for each in found.resources()] == sorted({*first, *second})


def test_results_do_not_depend_on_threads() -> None:
    """Several threads compare pairs."""
    names = [f"a.example/{number:04d}" for number in range(500)]
    original = MemorySite(resource(name, b"one") for name in names)
    recovered = MemorySite(resource(name, b"two") for name in reversed(names))
    threads: set[str] = set()

    def similarity(first: SiteResource, _: SiteResource) -> TextSimilarity:
        threads.add(threading.current_thread().name)
        return TextSimilarity(int(first.name[-4:]) / 500)

    progress: list[tuple[int, int]] = []
    found = compare_sites(original, recovered, similarity, on_pair=lambda done, of: progress.append((done, of)))
    shares = [each.similarity.share for each in found.resources() if each.similarity]
    assert shares == [number / 500 for number in range(500)]
    assert found.similar == 125
    assert progress == [(number, 500) for number in range(1, 501)]
    assert threading.current_thread().name not in threads


def test_interruption_stops_the_comparison() -> None:
    """Queued pairs are not compared."""
    names = [f"a.example/{number:04d}" for number in range(5_000)]
    compared: list[str] = []

    def similarity(first: SiteResource, _: SiteResource) -> TextSimilarity:
        compared.append(first.name)
        return TextSimilarity(1.0)

    def interrupt(_: int, __: int) -> None:
        raise KeyboardInterrupt

    original = MemorySite(resource(name, b"one") for name in names)
    recovered = MemorySite(resource(name, b"two") for name in names)
    with pytest.raises((KeyboardInterrupt, CancelledError)):
        compare_sites(original, recovered, similarity, on_pair=interrupt)
    assert len(compared) < 200


def test_interruption_does_not_wait_for_running_pairs() -> None:
    """Reading a document may take long."""
    release = threading.Event()
    names = [f"a.example/{number}" for number in range(3)]

    def similarity(first: SiteResource, _: SiteResource) -> TextSimilarity:
        if first.name == names[0]:
            raise KeyboardInterrupt  # propagates to the main thread, like a signal
        return TextSimilarity(1.0 if release.wait(60) else None)

    original = MemorySite(resource(name, b"one") for name in names)
    recovered = MemorySite(resource(name, b"two") for name in names)
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            compare_sites(original, recovered, similarity)
        assert time.monotonic() - start < 30
    finally:
        release.set()


def test_equal_digests_with_other_sizes_are_changed() -> None:
    """Digests may come from a file."""
    one = resource("a.example/A", b"one")
    other = SiteResource(one.name, one.uri, None, None, one.mime, one.digest, 4, None, b"four")
    found = compare_sites(MemorySite([one]), MemorySite([other]), half_similar)
    assert next(found.resources()).outcome is ComparisonOutcome.CHANGED
