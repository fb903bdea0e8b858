"""Selection of likely archives: by hit rates, learned statistics and exploration."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.aggregate.maps import MemoryHoldings, archive, archive_with_hit_rate, map_of_rows
from tests.aggregate.routers import PAGE, router, targets_of
from unlost.aggregate import Evidence, RoutingOptions
from unlost.errors import UsageError
from unlost.logs import RoutingReason, UpstreamLogEntry, UpstreamOutcome
from unlost.mementomap import ArchiveHoldings


def test_top_k_selects_the_likeliest_archives(tmp_path: Path) -> None:
    """Explored archives are added and not counted."""
    holdings = MemoryHoldings(
        {
            "listed": ArchiveHoldings(map_of_rows(tmp_path, "com,example)/a 2\n", "l")),
            "wild": ArchiveHoldings(map_of_rows(tmp_path, "com,example)/* 2\n", "w")),
            "denied": ArchiveHoldings(map_of_rows(tmp_path, "org,other)/* 2\n", "d")),
        }
    )
    archives = [
        archive_with_hit_rate("low", 0.05),
        archive("wild"),
        archive_with_hit_rate("high", 0.6),
        archive("denied"),
        archive("listed"),
    ]
    router_ = router(archives, holdings)
    expected = [{"listed"}, {"listed", "high"}, {"listed", "high", "wild"}, {"listed", "high", "wild", "low"}]
    for count, names in enumerate(expected, 1):
        found = router_.route(PAGE, RoutingOptions(top_k=count))
        assert {name for name, _ in targets_of(found)} == names
        assert set(found.passed_over) == {each.id for each in archives} - names
    assert len(router_.route(PAGE, RoutingOptions(top_k=99)).targets) == 4
    exploring = router(archives, holdings, exploration_share=1.0).route(PAGE, RoutingOptions(top_k=1))
    assert targets_of(exploring) == [("denied", "explored"), ("listed", "routed")]
    assert targets_of(router_.route(PAGE, RoutingOptions(broadcast=True, top_k=1))) == [("high", "broadcast")]


def test_min_probability_selects_likely_archives(tmp_path: Path) -> None:
    """It excludes wildcards before listed pages, and few mementos before many; without it, no archive."""
    holdings = MemoryHoldings(
        {
            "listed": ArchiveHoldings(map_of_rows(tmp_path, "com,example)/a 2\n", "l")),
            "few": ArchiveHoldings(map_of_rows(tmp_path, "com,example)/* 99\n", "f")),
            "some": ArchiveHoldings(map_of_rows(tmp_path, "com,example)/* 100\n", "s")),
            "many": ArchiveHoldings(map_of_rows(tmp_path, "com,example)/* 10000+\n", "m")),
            "unknown": ArchiveHoldings(map_of_rows(tmp_path, "com,example)/* /\n", "u")),
        }
    )
    archives = [*map(archive, holdings.holdings()), archive_with_hit_rate("low", 0.05)]
    router_ = router(archives, holdings)

    def names(minimum: float) -> set[str]:
        return {name for name, _ in targets_of(router_.route(PAGE, RoutingOptions(min_probability=minimum)))}

    all_ids = {each.id for each in archives}
    assert names(0.0) == {name for name, _ in targets_of(router_.route(PAGE))} == all_ids
    assert names(0.1) == all_ids - {"low"}
    assert names(0.25) == {"listed", "some", "many", "unknown"}
    assert names(0.35) == {"listed", "many"}
    assert names(0.7) == {"listed"}
    assert names(1.0) == set()
    assert set(router_.route(PAGE, RoutingOptions(min_probability=0.7)).passed_over) == all_ids - {"listed"}
    # Requested archives, and all in a broadcast, are queried anyway.
    assert len(router_.route(PAGE, RoutingOptions(broadcast=True, min_probability=1.0)).targets) == len(all_ids)
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(UsageError, match="min_probability: expected"):
            router_.route(PAGE, RoutingOptions(min_probability=wrong))


def test_preferred_archives_are_queried_alone(tmp_path: Path) -> None:
    """If none of them may hold the page, all that may are queried."""
    holdings = MemoryHoldings({"no": ArchiveHoldings(map_of_rows(tmp_path, "org,other)/* 2\n", "n"))})
    router_ = router([archive("a"), archive("b"), archive("no")], holdings)
    found = router_.route(PAGE, RoutingOptions(preferred=frozenset({"b"})))
    assert (targets_of(found), found.passed_over) == ([("b", "learned")], ("a", "no"))
    for useless in ({"no"}, {"unknown"}):
        assert [name for name, _ in targets_of(router_.route(PAGE, RoutingOptions(preferred=frozenset(useless))))] == [
            "a",
            "b",
        ]


def test_evidence_of_few_mementos_learns_its_own_rate(tmp_path: Path) -> None:
    """And, a little, the rate of all wildcards."""
    holdings = MemoryHoldings({"few": ArchiveHoldings(map_of_rows(tmp_path, "com,example)/* 3\n", "f"))})
    router_ = router([archive("few")], holdings)
    options = RoutingOptions(min_probability=0.01)
    (before,) = router_.route(PAGE, options).targets
    assert before.evidence is Evidence.WILDCARD_FEW
    for _ in range(30):
        router_.learn(router_.route(PAGE, options).targets[0], "hit")
    (after,) = router_.route(PAGE, options).targets
    assert before.likelihood < 0.25
    assert 0.8 < after.likelihood < 1.0


def test_likelihood_follows_learned_rates(tmp_path: Path) -> None:
    """A map whose wildcards are always right ranks before one whose listed pages never are."""
    holdings = MemoryHoldings(
        {
            "listed": ArchiveHoldings(map_of_rows(tmp_path, "com,example)/a 2\n", "l")),
            "wild": ArchiveHoldings(map_of_rows(tmp_path, "com,example)/* 2\n", "w")),
        }
    )
    router_ = router([archive("listed"), archive("wild")], holdings)
    assert targets_of(router_.route(PAGE, RoutingOptions(top_k=1))) == [("listed", "routed")]
    for _ in range(50):
        listed, wild = router_.route(PAGE).targets
        router_.learn(listed, "miss")
        router_.learn(wild, "hit")
        router_.learn(wild, "timeout")
    assert targets_of(router_.route(PAGE, RoutingOptions(top_k=1))) == [("wild", "routed")]
    listed, wild = router_.route(PAGE).targets
    assert (listed.likelihood < 0.1, wild.likelihood > 0.9) == (True, True)
    accuracy = router_.stats.accuracy("wild")
    assert (accuracy.routed_hits, accuracy.routed_misses, accuracy.precision.rate) == (50, 0, 1.0)


def test_min_hit_rate_excludes_archives() -> None:
    """Until exploration finds hits."""
    router_ = router(
        [archive_with_hit_rate("often", 0.3), archive_with_hit_rate("seldom", 0.001)],
        min_hit_rate=0.05,
        exploration_share=0.02,
    )
    reasons = Counter(pair for _ in range(5_000) for pair in targets_of(router_.route(PAGE)))
    assert reasons["often", "learned"] == 5_000
    assert 60 <= reasons["seldom", "explored"] <= 140
    assert ("seldom", "learned") not in reasons
    while ("seldom", "learned") not in targets_of(found := router_.route(PAGE)):
        for choice in found.targets:
            router_.learn(choice, "hit")
    assert router_.stats.rates.rate("seldom") >= 0.05


def test_exploration_share(tmp_path: Path) -> None:
    """Each passed-over archive is explored equally often (within four deviations)."""
    names = [f"a{number}" for number in range(5)]
    holdings = MemoryHoldings(
        {name: ArchiveHoldings(map_of_rows(tmp_path, "org,other)/* 2\n", name)) for name in names}
    )
    router_ = router([archive(name) for name in names], holdings, exploration_share=0.02)
    explored: Counter[str] = Counter()
    total = 20_000
    for _ in range(total):
        found = router_.route(PAGE)
        assert [choice.reason for choice in found.targets] in ([], ["explored"])
        explored.update(choice.archive.id for choice in found.targets)
    deviation = (total * 0.004 * 0.996) ** 0.5
    for name in names:
        assert abs(explored[name] - total * 0.004) < 4 * deviation
        assert router_.stats.accuracy(name).passed_over == total - explored[name]
    again = router([archive(name) for name in names], holdings, exploration_share=0.02)
    assert again.route(PAGE) == router([archive(name) for name in names], holdings, exploration_share=0.02).route(PAGE)


def test_exploration_estimates_false_negatives(tmp_path: Path) -> None:
    """A map that misses every tenth page is detected, within the confidence interval."""
    holdings = MemoryHoldings({"a": ArchiveHoldings(map_of_rows(tmp_path, "org,other)/* 2\n"))})
    router_ = router([archive("a")], holdings, exploration_share=0.1)
    holds = Random(3)  # noqa: S311
    for _ in range(10_000):
        for choice in router_.route(PAGE).targets:
            router_.learn(choice, "hit" if holds.random() < 0.1 else "miss")
    share = router_.stats.accuracy("a").false_negatives
    low, high = share.bounds
    assert low < 0.1 < high
    assert high - low < 0.05
    assert share.total > 800
    # Exploration of denied pages does not change the general rate.
    assert router_.stats.rates.rate("a") == 0.5


def log_entry(name: str, reason: RoutingReason, outcome: UpstreamOutcome, **fields: Any) -> UpstreamLogEntry:  # noqa: ANN401  those of Answer
    """Return a log entry for the page."""
    return UpstreamLogEntry("2026-01-31T12:00:00Z", name, PAGE, "timemap", outcome, reason, **fields)


def test_learning_from_the_log_equals_learning_from_responses(tmp_path: Path) -> None:
    """Except for passed-over archives; requested, failed and cached ones do not count."""
    holdings = MemoryHoldings(
        {
            "a": ArchiveHoldings(map_of_rows(tmp_path, "com,example)/* 2\n")),
            "d": ArchiveHoldings(map_of_rows(tmp_path, "org,o)/ 2", "d")),
        }
    )
    archives = [archive("a"), archive_with_hit_rate("b", 0.2), archive("d")]
    live, later = router(archives, holdings, exploration_share=1.0), router(archives, holdings)
    log = []
    outcomes: list[UpstreamOutcome] = ["hit", "miss", "miss", "timeout", "http-5xx"]
    for outcome in outcomes:
        for choice in live.route(PAGE).targets:
            live.learn(choice, outcome)
            log.append(log_entry(choice.archive.id, choice.reason, outcome))
        for choice in live.route(PAGE, RoutingOptions(broadcast=True)).targets:
            live.learn(choice, outcome)
            log.append(log_entry(choice.archive.id, choice.reason, outcome))
    log += [
        log_entry("a", "requested", "hit"),
        log_entry("b", "learned", "hit", from_cache=True),
        log_entry("gone", "routed", "hit"),
    ]
    assert later.learn_from_log(log) == len(log)
    assert later.stats.rates.export_counts() == live.stats.rates.export_counts()
    for each in archives:
        assert later.stats.accuracy(each.id) == live.stats.accuracy(each.id)
    accuracy = later.stats.accuracy("d")
    assert (accuracy.explored_hits, accuracy.explored_misses, accuracy.routed_hits) == (1, 2, 0)
