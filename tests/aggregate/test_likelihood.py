"""Who is likely to have a page: by hit rates, by what was learnt, and by what is explored."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.aggregate.maps import Knowing, archive, rated, rows
from tests.aggregate.routers import PAGE, asked, router
from unlost.aggregate import Evidence, RoutingOptions
from unlost.errors import UsageError
from unlost.logs import RoutingReason, UpstreamLogEntry, UpstreamOutcome
from unlost.mementomap import ArchiveHoldings


def test_top_k_selects_the_likeliest_archives(tmp_path: Path) -> None:
    """Explored archives are added and not counted."""
    known = Knowing(
        {
            "listed": ArchiveHoldings(rows(tmp_path, "com,example)/a 2\n", "l")),
            "wild": ArchiveHoldings(rows(tmp_path, "com,example)/* 2\n", "w")),
            "denied": ArchiveHoldings(rows(tmp_path, "org,other)/* 2\n", "d")),
        }
    )
    archives = [rated("low", 0.05), archive("wild"), rated("high", 0.6), archive("denied"), archive("listed")]
    router_ = router(archives, known)
    expected = [{"listed"}, {"listed", "high"}, {"listed", "high", "wild"}, {"listed", "high", "wild", "low"}]
    for count, names in enumerate(expected, 1):
        found = router_.route(PAGE, RoutingOptions(top_k=count))
        assert {name for name, _ in asked(found)} == names
        assert set(found.passed_over) == {each.id for each in archives} - names
    assert len(router_.route(PAGE, RoutingOptions(top_k=99)).targets) == 4
    exploring = router(archives, known, exploring=1.0).route(PAGE, RoutingOptions(top_k=1))
    assert asked(exploring) == [("denied", "explored"), ("listed", "routed")]
    assert asked(router_.route(PAGE, RoutingOptions(broadcast=True, top_k=1))) == [("high", "broadcast")]


def test_min_probability_selects_likely_archives(tmp_path: Path) -> None:
    """A least probability leaves out wildcards before listed pages, and few copies before many; without one, nobody."""
    known = Knowing(
        {
            "listed": ArchiveHoldings(rows(tmp_path, "com,example)/a 2\n", "l")),
            "few": ArchiveHoldings(rows(tmp_path, "com,example)/* 99\n", "f")),
            "some": ArchiveHoldings(rows(tmp_path, "com,example)/* 100\n", "s")),
            "many": ArchiveHoldings(rows(tmp_path, "com,example)/* 10000+\n", "m")),
            "unknown": ArchiveHoldings(rows(tmp_path, "com,example)/* /\n", "u")),
        }
    )
    archives = [*map(archive, known.holdings()), rated("low", 0.05)]
    router_ = router(archives, known)

    def names(least: float) -> set[str]:
        return {name for name, _ in asked(router_.route(PAGE, RoutingOptions(min_probability=least)))}

    everybody = {each.id for each in archives}
    assert names(0.0) == {name for name, _ in asked(router_.route(PAGE))} == everybody
    assert names(0.1) == everybody - {"low"}
    assert names(0.25) == {"listed", "some", "many", "unknown"}
    assert names(0.35) == {"listed", "many"}
    assert names(0.7) == {"listed"}
    assert names(1.0) == set()
    assert set(router_.route(PAGE, RoutingOptions(min_probability=0.7)).passed_over) == everybody - {"listed"}
    # Whoever is named, and everybody in a broadcast, is asked all the same.
    assert len(router_.route(PAGE, RoutingOptions(broadcast=True, min_probability=1.0)).targets) == len(everybody)
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(UsageError, match="min_probability: expected"):
            router_.route(PAGE, RoutingOptions(min_probability=wrong))


def test_preferred_archives_are_queried_alone(tmp_path: Path) -> None:
    """If none of them may hold the page, all that may are queried."""
    known = Knowing({"no": ArchiveHoldings(rows(tmp_path, "org,other)/* 2\n", "n"))})
    router_ = router([archive("a"), archive("b"), archive("no")], known)
    found = router_.route(PAGE, RoutingOptions(preferred=frozenset({"b"})))
    assert (asked(found), found.passed_over) == ([("b", "learned")], ("a", "no"))
    for nobody in ({"no"}, {"unknown"}):
        assert [name for name, _ in asked(router_.route(PAGE, RoutingOptions(preferred=frozenset(nobody))))] == [
            "a",
            "b",
        ]


def test_evidence_of_few_mementos_learns_its_own_rate(tmp_path: Path) -> None:
    """And, a little, the rate of all wildcards."""
    known = Knowing({"few": ArchiveHoldings(rows(tmp_path, "com,example)/* 3\n", "f"))})
    router_ = router([archive("few")], known)
    wish = RoutingOptions(min_probability=0.01)
    (before,) = router_.route(PAGE, wish).targets
    assert before.evidence is Evidence.WILDCARD_FEW
    for _ in range(30):
        router_.learn(router_.route(PAGE, wish).targets[0], "hit")
    (after,) = router_.route(PAGE, wish).targets
    assert before.likelihood < 0.25
    assert 0.8 < after.likelihood < 1.0


def test_likelihood_follows_learned_rates(tmp_path: Path) -> None:
    """A map whose wildcards are always right ranks before one whose listed pages never are."""
    known = Knowing(
        {
            "listed": ArchiveHoldings(rows(tmp_path, "com,example)/a 2\n", "l")),
            "wild": ArchiveHoldings(rows(tmp_path, "com,example)/* 2\n", "w")),
        }
    )
    router_ = router([archive("listed"), archive("wild")], known)
    assert asked(router_.route(PAGE, RoutingOptions(top_k=1))) == [("listed", "routed")]
    for _ in range(50):
        listed, wild = router_.route(PAGE).targets
        router_.learn(listed, "miss")
        router_.learn(wild, "hit")
        router_.learn(wild, "timeout")
    assert asked(router_.route(PAGE, RoutingOptions(top_k=1))) == [("wild", "routed")]
    listed, wild = router_.route(PAGE).targets
    assert (listed.likelihood < 0.1, wild.likelihood > 0.9) == (True, True)
    accuracy = router_.stats.accuracy("wild")
    assert (accuracy.routed_hits, accuracy.routed_misses, accuracy.precision.rate) == (50, 0, 1.0)


def test_min_hit_rate_excludes_archives() -> None:
    """Until exploration finds hits."""
    router_ = router([rated("often", 0.3), rated("seldom", 0.001)], least_rate=0.05, exploring=0.02)
    reasons = Counter(pair for _ in range(5_000) for pair in asked(router_.route(PAGE)))
    assert reasons["often", "learned"] == 5_000
    assert 60 <= reasons["seldom", "explored"] <= 140
    assert ("seldom", "learned") not in reasons
    while ("seldom", "learned") not in asked(found := router_.route(PAGE)):
        for choice in found.targets:
            router_.learn(choice, "hit")
    assert router_.stats.rates.rate("seldom") >= 0.05


def test_exploration_share(tmp_path: Path) -> None:
    """Each passed-over archive is explored equally often (within four deviations)."""
    names = [f"a{number}" for number in range(5)]
    known = Knowing({name: ArchiveHoldings(rows(tmp_path, "org,other)/* 2\n", name)) for name in names})
    router_ = router([archive(name) for name in names], known, exploring=0.02)
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
    again = router([archive(name) for name in names], known, exploring=0.02)
    assert again.route(PAGE) == router([archive(name) for name in names], known, exploring=0.02).route(PAGE)


def test_exploration_estimates_false_negatives(tmp_path: Path) -> None:
    """A map that misses every tenth page is detected, within the confidence interval."""
    known = Knowing({"a": ArchiveHoldings(rows(tmp_path, "org,other)/* 2\n"))})
    router_ = router([archive("a")], known, exploring=0.1)
    holds = Random(3)  # noqa: S311
    for _ in range(10_000):
        for choice in router_.route(PAGE).targets:
            router_.learn(choice, "hit" if holds.random() < 0.1 else "miss")
    share = router_.stats.accuracy("a").false_negatives
    low, high = share.bounds
    assert low < 0.1 < high
    assert high - low < 0.05
    assert share.total > 800
    # What is explored where a map says no tells nothing about pages in general.
    assert router_.stats.rates.rate("a") == 0.5


def answer(name: str, reason: RoutingReason, outcome: UpstreamOutcome, **fields: Any) -> UpstreamLogEntry:  # noqa: ANN401  those of Answer
    """Return an answer for the page."""
    return UpstreamLogEntry("2026-01-31T12:00:00Z", name, PAGE, "timemap", outcome, reason, **fields)


def test_learning_from_the_log_equals_learning_from_responses(tmp_path: Path) -> None:
    """Except for passed-over archives; requested, failed and cached ones do not count."""
    known = Knowing(
        {
            "a": ArchiveHoldings(rows(tmp_path, "com,example)/* 2\n")),
            "d": ArchiveHoldings(rows(tmp_path, "org,o)/ 2", "d")),
        }
    )
    archives = [archive("a"), rated("b", 0.2), archive("d")]
    live, later = router(archives, known, exploring=1.0), router(archives, known)
    log = []
    outcomes: list[UpstreamOutcome] = ["hit", "miss", "miss", "timeout", "http-5xx"]
    for outcome in outcomes:
        for choice in live.route(PAGE).targets:
            live.learn(choice, outcome)
            log.append(answer(choice.archive.id, choice.reason, outcome))
        for choice in live.route(PAGE, RoutingOptions(broadcast=True)).targets:
            live.learn(choice, outcome)
            log.append(answer(choice.archive.id, choice.reason, outcome))
    log += [
        answer("a", "requested", "hit"),
        answer("b", "learned", "hit", from_cache=True),
        answer("gone", "routed", "hit"),
    ]
    assert later.learn_from_log(log) == len(log)
    assert later.stats.rates.export_counts() == live.stats.rates.export_counts()
    for each in archives:
        assert later.stats.accuracy(each.id) == live.stats.accuracy(each.id)
    accuracy = later.stats.accuracy("d")
    assert (accuracy.explored_hits, accuracy.explored_misses, accuracy.routed_hits) == (1, 2, 0)
