"""Learned statistics: hit rates, accuracy, saving and restoring."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.aggregate.maps import archive, archive_with_hit_rate
from unlost.aggregate import Evidence, HitRates, HitShare, LearnedStats, RoutingAccuracy, read_recent_responses
from unlost.errors import InputError
from unlost.logs import UpstreamLogEntry, format_log_entry
from unlost.problems import Problems

ARCHIVES = [archive_with_hit_rate("a", 0.2), archive("b")]


def test_initial_rates_come_from_the_registry() -> None:
    """Without one, the rate is 0.5."""
    rates = HitRates(ARCHIVES)
    assert (rates.rate("a"), rates.rate("b")) == (0.2, 0.5)
    order = [
        Evidence.BOTH,
        Evidence.LISTED,
        Evidence.LISTED_ONLY,
        Evidence.WILDCARD,
        Evidence.OLD_FILTER,
        Evidence.DENIED,
    ]
    first = [rates.rate("a", ground) for ground in order]
    assert first == sorted(first, reverse=True)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_rates_converge_to_the_responses(share: float) -> None:
    """When an archive changes, its rate follows within some thousand responses."""
    rates = HitRates(ARCHIVES)
    for period, now in enumerate((share, 1 - share)):
        for number in range(5_000):
            is_hit = int((number + 1) * now) > int(number * now)
            rates.learn("a", Evidence.ANY, is_hit=is_hit)
        assert rates.rate("a") == pytest.approx(now, abs=0.03), period  # the prior of the registry has 2 %


def test_rates_stay_within_bounds() -> None:
    """And the state does not grow."""
    rates = HitRates(ARCHIVES)
    rates.learn("a", Evidence.ANY, is_hit=True)
    assert 0.2 < rates.rate("a") < 0.25
    for _ in range(20_000):
        rates.learn("a", Evidence.BOTH, is_hit=True)
    hits, total = rates.export_counts()["a"]["map and filter"]
    assert hits == total <= 1_000
    rates.learn("nobody", Evidence.ANY, is_hit=True)
    assert set(rates.export_counts()) == {"a", "b"}


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_interval_contains_the_proportion(one: int, other: int) -> None:
    """It is within 0 and 1, and narrower with more observations."""
    share = HitShare(min(one, other), max(one, other))
    low, high = share.bounds
    if share.rate is None:
        assert (low, high) == (0.0, 1.0)
    else:
        assert 0 <= low <= share.rate <= high <= 1
        wider = HitShare(share.hits, share.total).bounds
        tenfold = HitShare(share.hits * 10, share.total * 10).bounds
        assert tenfold[1] - tenfold[0] < wider[1] - wider[0]


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"), [(0, 10, 0.0, 0.2775), (1, 10, 0.0179, 0.4042), (81, 263, 0.2553, 0.3662)]
)
def test_intervals_match_published_values(hits: int, total: int, low: float, high: float) -> None:
    """Of Wilson."""
    assert HitShare(hits, total).bounds == pytest.approx((low, high), abs=0.0001)


def learned_stats() -> LearnedStats:
    """Return statistics of some responses."""
    stats = LearnedStats(ARCHIVES)
    stats.learn("a", "routed", "hit", Evidence.BOTH)
    stats.learn("a", "routed", "miss", Evidence.WILDCARD)
    stats.learn("a", "explored", "hit", Evidence.DENIED)
    stats.learn("b", "learned", "miss")
    stats.learn("b", "broadcast", "hit")
    stats.record_passed_over(["a", "a", "b"])
    return stats


def test_only_hits_and_misses_are_learned() -> None:
    """Not failures, requested archives or unknown archives."""
    stats = learned_stats()
    before = stats.rates.export_counts(), stats.accuracy("a")
    for outcome in ("timeout", "refused", "http-5xx", "limited", "dormant", "not-now", "excluded", "incomplete"):
        stats.learn("a", "routed", outcome, Evidence.BOTH)
    stats.learn("a", "requested", "hit")
    stats.learn("gone", "learned", "hit")
    assert (stats.rates.export_counts(), stats.accuracy("a")) == before
    assert stats.accuracy("a") == RoutingAccuracy(1, 1, 1, 0, 0, 0, 2)
    assert stats.accuracy("b") == RoutingAccuracy(0, 0, 0, 0, 0, 1, 1)


def test_saved_statistics_are_restored(tmp_path: Path) -> None:
    """Exactly; unknown archives are ignored, and new ones start with their prior."""
    path = tmp_path / "state" / "rates.json"
    learned_stats().save(path)
    again = LearnedStats(ARCHIVES)
    assert again.restore(path)
    assert again.rates.export_counts() == learned_stats().rates.export_counts()
    assert [again.accuracy(name) for name in "ab"] == [learned_stats().accuracy(name) for name in "ab"]
    other = LearnedStats([archive("b"), archive("new")])
    assert other.restore(path)
    assert set(other.rates.export_counts()) == {"b", "new"}
    assert not LearnedStats(ARCHIVES).restore(tmp_path / "none")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"version": 2}',
        '{"version": 1}',
        '{"version": 1, "rates": {"a": 7}, "counts": {}}',
        '{"version": 1, "rates": {"a": {"any": [1]}}, "counts": {}}',
        '{"version": 1, "rates": {"a": {"any": [2, 1]}}, "counts": {}}',
        '{"version": 1, "rates": {"a": {"any": [0, Infinity]}}, "counts": {}}',
        '{"version": 1, "rates": {"a": {"any": [NaN, NaN]}}, "counts": {}}',
        '{"version": 1, "rates": {}, "counts": {"a": {"routed_hits": -1}}}',
        '{"version": 1, "rates": {}, "counts": {"a": {"routed_hits": true}}}',
        "[" * 100_000,
    ],
)
def test_invalid_file_is_reported(text: str, tmp_path: Path) -> None:
    """And nothing of it is used."""
    path = tmp_path / "rates.json"
    path.write_text(text)
    warnings: list[str] = []
    stats = LearnedStats(ARCHIVES)
    assert not stats.restore(path, warnings.append)
    assert len(warnings) == 1
    assert (stats.rates.rate("a"), stats.accuracy("a")) == (0.2, RoutingAccuracy())


def test_unknown_members_are_ignored(tmp_path: Path) -> None:
    """If the version is the same."""
    path = tmp_path / "rates.json"
    learned_stats().save(path)
    table = json.loads(path.read_text())
    table["rates"]["a"]["by moonlight"] = [1, 2]
    table["more"] = 1
    path.write_text(json.dumps(table))
    assert LearnedStats(ARCHIVES).restore(path)


def test_only_the_end_of_a_log_is_read(tmp_path: Path) -> None:
    """In bounded time, whole lines only; a missing log has no entries."""
    path = tmp_path / "upstream.ndjson"
    responses = [
        UpstreamLogEntry("2026-01-31T12:00:00Z", "a", f"http://a.com/{number}", "timemap", "hit", "learned")
        for number in range(1_000)
    ]
    path.write_bytes(b"".join(map(format_log_entry, responses)))
    problems = Problems()
    assert list(read_recent_responses(path, problems)) == responses
    some = list(read_recent_responses(path, problems, 10_000))
    assert 50 < len(some) < 100
    assert some == responses[-len(some) :]
    assert problems.total == 0
    assert list(read_recent_responses(tmp_path / "none", problems)) == []
    with pytest.raises(InputError):
        list(read_recent_responses(tmp_path, problems))
