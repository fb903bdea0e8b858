"""Statistics of a check, and its advice."""

from typing import Any

import pytest

from tests.check.availability.resources import NOW, archive_captures, availability, live_resource
from unlost.check import (
    AvailabilityScore,
    AvailabilityState,
    CheckStats,
    Hindrance,
    ResourceAvailability,
    check_headline,
    check_remarks,
    compute_check_stats,
    describe_advice,
)
from unlost.crawl import CrawlOutcome


def test_states_and_score() -> None:
    """Live resources count for the score; missing ones are separate; unanswered ones are unknown."""
    found = compute_check_stats(
        [
            availability("a", "x"),
            availability("b"),
            availability("c", is_settled=False),
            availability("d", "x", status=404),
            availability("e", status=404),
            availability("f", outcome=CrawlOutcome.FORBIDDEN, status=None),
            availability("g", outcome=CrawlOutcome.FAILED, status=None),
        ],
        NOW,
    )
    assert found.states == {
        AvailabilityState.REPLICATED: 1,
        AvailabilityState.VULNERABLE: 2,
        AvailabilityState.UNKNOWN: 1,
        AvailabilityState.ENDANGERED: 1,
        AvailabilityState.UNRECOVERABLE: 2,
    }
    assert found.score == AvailabilityScore(live=4, held=1, absent=2, sampled=0, hits=0)


def test_staleness_and_formats() -> None:
    """By the last capture; one in the original format suffices."""
    changed: dict[str, Any] = {"last_modified": "20250111000000", "digest": "sha1:A"}
    found = compute_check_stats(
        [
            ResourceAvailability(
                live_resource("a", **changed),
                (archive_captures("x", "20250101000000", migrated=True), archive_captures("y", "20250109000000")),
            ),
            ResourceAvailability(
                live_resource("b", **changed),
                (archive_captures("x", "20260101000000", migrated=True, digest="sha1:A"),),
            ),
            ResourceAvailability(
                live_resource("c", **changed), (archive_captures("y", "20250101000000", copies=3, migrated=False),)
            ),
            ResourceAvailability(live_resource("d", last_modified=None), (archive_captures("y", migrated=False),)),
        ],
        NOW,
    )
    assert (found.stale.known, found.stale.stale, found.stale.most, found.stale.least) == (3, 2, 10, 2)
    assert (found.canonical, found.migrated, found.same) == (2, 1, 1)
    assert found.by_archives == {1: 3, 2: 1}
    x, y = sorted(found.archives, key=lambda use: use.archive)
    assert (x.resources, x.only, x.copies, x.stale.stale) == (2, 1, 2, 1)
    assert (y.resources, y.only, y.copies, y.stale.stale) == (3, 2, 5, 2)


def table(found: CheckStats, name: str) -> dict[str, int]:
    """Return the number of resources in each row of a table."""
    return {row.label: row.total for each in found.tables if each.name == name for row in each.rows}


def test_tables() -> None:
    """By type, depth and first folder; many folders share one row."""
    paths = ["", "x.html", "a/x.html", "a/b/c/x.html", "b/x.pdf"]
    found = compute_check_stats([availability(path) for path in paths], NOW)
    assert table(found, "depth") == {"0": 1, "1": 1, "2": 2, "4": 1}
    top = "http://site.example/"
    assert table(found, "folder") == {top: 2, f"{top}a/": 2, f"{top}b/": 1}
    many = compute_check_stats([availability(f"f{number}/x") for number in range(100)], NOW)
    assert table(many, "folder")["80 others"] == 80


def advice(*standings: ResourceAvailability, knows_links: bool = True) -> dict[Hindrance | None, tuple[int, int]]:
    """Return the numbers of affected and saved resources for each piece of advice."""
    found = compute_check_stats(standings, NOW, knows_links=knows_links).advice
    return {each.hindrance: (each.affected, each.saved) for each in found}


FREE = [
    *(availability(f"kept{number}", "x") for number in range(8)),
    *(availability(f"not{number}") for number in range(2)),
]
"""Of ten resources that nothing hinders, eight are in an archive."""


@pytest.mark.parametrize(
    ("hindrance", "path", "more"),
    [
        (Hindrance.ROBOTS, "p", {"outcome": CrawlOutcome.FORBIDDEN, "status": None}),
        (Hindrance.NOARCHIVE, "p", {"is_noarchive": True}),
        (Hindrance.UNLINKED, "p", {"hops": None}),
        (Hindrance.QUERY, "p?q=", {}),
        (Hindrance.DEEP, "p", {"hops": 4}),
        (Hindrance.DEEP, "a/b/c/d/p", {}),
        (Hindrance.NEW, "p", {"last_modified": "20260520000000"}),
    ],
)
def test_advice_names_each_hindrance(hindrance: Hindrance, path: str, more: dict[str, Any]) -> None:
    """Of ten vulnerable resources with a hindrance, eight would be archived without it."""
    group = [availability(f"{path}{number}", **more) for number in range(10)]
    assert advice(*FREE, *group) == {hindrance: (10, 8), None: (12, 12)}


def test_advice_saves_at_most_the_affected_resources() -> None:
    """A group that is archived as often as others saves nothing; ten with six archived, two."""
    group = [availability(f"q{number}?a", *(["x"] if number < 6 else [])) for number in range(10)]
    assert advice(*FREE, *group)[Hindrance.QUERY] == (4, 2)
    group = [availability(f"q{number}?a", *(["x"] if number < 8 else [])) for number in range(10)]
    assert advice(*FREE, *group)[Hindrance.QUERY] == (2, 0)


def test_only_the_first_hindrance_counts() -> None:
    """So that the numbers add up."""
    both = [availability(f"q{number}?a", is_noarchive=True, hops=None) for number in range(5)]
    assert advice(*FREE, *both) == {Hindrance.NOARCHIVE: (5, 4), None: (7, 7)}


def test_without_followed_links_no_page_is_unlinked() -> None:
    """For URL lists; pages in sitemaps are discoverable."""
    assert Hindrance.UNLINKED not in advice(availability("a", hops=None), knows_links=False)
    assert Hindrance.UNLINKED not in advice(availability("a", hops=None, is_in_sitemap=True))
    assert advice(availability("a", "x")) == {}


def test_advice_texts() -> None:
    """For every hindrance."""
    found = compute_check_stats(
        [*FREE, availability("gone", "x", status=404), *[availability(f"q{n}?a") for n in range(10)]], NOW
    )
    assert check_headline(found.score) == "If the site were lost now, 8 of 20 resources could be recovered: 40 %."
    assert check_remarks(found)[0] == "1 more is offline (1 archived)."
    assert describe_advice(found.advice[0]).endswith("10 affected, about 8 would then be archived.")
