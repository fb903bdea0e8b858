"""Tests of simulated repositories: their holdings, and the cost of requests."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from study.lost.profiles import ChangeRate, SiteProfile
from study.lost.repository import SimulatedRepository, body_digest
from study.lost.repository_models import (
    ARCHIVE,
    BROAD,
    REPOSITORY_MODELS,
    RepositoryCapture,
    RepositoryModel,
    SiteHoldings,
)
from study.lost.site import FileVersion, SimulatedSite, week_timestamp
from study.lost.site_files import FileKind

from unlost.capture import Capture
from unlost.errors import ListCutError
from unlost.registry import RequestKind

SITE = SiteProfile("lively", 60, 50, 20, 8, ChangeRate.LIVELY, breadth=5)


def deterministic(model: RepositoryModel, **changes: object) -> RepositoryModel:
    """Return a model without chance: it stores everything at once and always has it."""
    whole = dict.fromkeys(FileKind, 100.0)
    return replace(
        model,
        archived_share=whole,
        query_factor=1.0,
        max_hops=99,
        mean_delay=0.0,
        availability=1.0,
        miss_rate=0.0,
        **changes,  # type: ignore[arg-type]
    )


def site_and_holdings(model: RepositoryModel) -> tuple[SimulatedSite, SiteHoldings]:
    """Return a site and the holdings of a repository that knows it."""
    for seed in range(20):
        site = SimulatedSite(SITE, seed)
        found = SiteHoldings(model, site, seed)
        if found.captures_at(0):
            return site, found
    raise AssertionError("no seed with a repository that knows the site")


def test_complete_engine_holds_the_current_site() -> None:
    """Pages are unchanged; documents and images are migrated and marked as such."""
    site, found = site_and_holdings(deterministic(BROAD, retention_weeks=0))
    held = {each.uri: each for each in found.captures_at(5)}
    assert held.keys() == {site.uri(item) for item in site.files_in(5)}
    for item in site.files_in(5):
        capture = held[site.uri(item)]
        is_same = item.kind not in (FileKind.IMAGE, FileKind.DOCUMENT)
        assert capture.migrated is not is_same
        assert (capture.content == site.version_in(item, 5)) is is_same
        assert week_timestamp(5) <= capture.datetime <= week_timestamp(5, 6)


def test_engine_drops_removed_pages_after_some_weeks() -> None:
    """A capture stays for the configured weeks after a visit without the page, and is from before."""
    site, found = site_and_holdings(deterministic(BROAD, retention_weeks=3))
    gone = next(item for item in site.site_files if item.removed == 5)
    had = {week: [each for each in found.captures_at(week) if each.uri == site.uri(gone)] for week in range(1, 12)}
    assert [week for week in had if had[week]] == [1, 2, 3, 4, 5, 6, 7]
    assert had[7][0].datetime < week_timestamp(5)


def test_archive_holds_versions_with_a_lag() -> None:
    """No capture is younger than the lag, removed pages stay, and every visit has a capture."""
    site, found = site_and_holdings(deterministic(ARCHIVE))
    held = found.captures_at(0)
    assert max(each.datetime for each in held) <= week_timestamp(-ARCHIVE.publication_lag, 6)
    first = [each for each in held if each.uri == site.url]
    assert len(first) >= (104 - ARCHIVE.publication_lag) // ARCHIVE.visit_interval
    assert not any(each.migrated for each in held)
    assert {each.uri for each in held} - {site.uri(item) for item in site.files_in(0)}


@pytest.mark.parametrize("model", REPOSITORY_MODELS, ids=lambda model: model.id)
def test_held_shares_match_the_model(model: RepositoryModel) -> None:
    """On average, the share of held old pages follows from model and rank of the site."""
    shares = []
    for seed in range(12):
        site = SimulatedSite(replace(SITE, pages=100, images=0, others=0, pace=ChangeRate.STILL), seed)
        held = {each.uri for each in SiteHoldings(model, site, seed).captures_at(0)}
        old = [
            item
            for item in site.files_in(0)
            if item.kind is FileKind.PAGE and item.created < -80 and item.hops <= model.max_hops
        ]
        if held:
            shares.append(sum(site.uri(item) in held for item in old) / len(old))
    expected = model.archived_share[FileKind.PAGE] * model.availability * (0.8 + 0.04 * SITE.rank)
    assert len(shares) >= 8
    assert sum(shares) / len(shares) == pytest.approx(min(1.0, expected), rel=0.2)


def test_holdings_are_reproducible() -> None:
    """Holdings do not depend on the order of queries."""
    site, found = site_and_holdings(BROAD)
    later = found.captures_at(9)
    other = SiteHoldings(BROAD, site, found._names[1])
    assert other.captures_at(2) == found.captures_at(2)
    assert other.captures_at(9) == later


def planted_captures(count: int) -> list[RepositoryCapture]:
    """Return captures of which the first cannot be fetched."""
    file = FileVersion("text/html", b"<p>here")
    return [
        RepositoryCapture(f"http://a.example/{place}", "20060101000000", file, migrated=False, is_miss=place == 0)
        for place in range(count)
    ]


def test_listing_costs_one_request_per_result_page() -> None:
    """With ten rows per page, 25 rows are three requests; no rows are one; truncation is reported."""
    sent: Counter[tuple[str, RequestKind]] = Counter()
    repository = SimulatedRepository(BROAD, planted_captures(25), sent)

    async def listed(of: SimulatedRepository) -> list[Capture]:
        return [each async for each in of.list_prefix("http://a.example/")]

    assert len(asyncio.run(listed(repository))) == 25
    assert sent == {("broad", RequestKind.INDEX): 3}
    assert asyncio.run(listed(SimulatedRepository(ARCHIVE, [], sent))) == []
    assert sent["archive", RequestKind.INDEX] == 1
    with pytest.raises(ListCutError):
        asyncio.run(listed(SimulatedRepository(replace(BROAD, max_rows=20), planted_captures(25), sent)))
    assert sent["broad", RequestKind.INDEX] == 5


def test_captures_and_misses_cost_one_request_each() -> None:
    """A listed capture that cannot be fetched costs one request, too."""
    sent: Counter[tuple[str, RequestKind]] = Counter()
    repository = SimulatedRepository(ARCHIVE, planted_captures(2), sent)

    async def fetched(place: int) -> bytes | None:
        captures = [each async for each in repository.captures(f"http://a.example/{place}")]
        assert [each.digest for each in captures] == [body_digest(b"<p>here")]
        capture = await repository.fetch(captures[0])
        return None if capture is None else capture.body.read()

    assert [asyncio.run(fetched(place)) for place in range(2)] == [None, b"<p>here"]
    assert sent == {("archive", RequestKind.INDEX): 2, ("archive", RequestKind.REPLAY): 2}
