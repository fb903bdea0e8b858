"""One visit of a site, from its first page to the last answer of an archive; it goes on where it was interrupted."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from unlost import dates
from unlost.clock import Clock
from unlost.crawl.resource import LiveResource
from unlost.measure.availability.asking import (
    AvailabilityQuery,
    UrlProber,
    ArchiveAccess,
    CheckProgress,
    ArchiveQueryResult,
)
from unlost.measure.availability.figures import CheckStats, compute_check_stats
from unlost.measure.availability.judging import CaptureSampler
from unlost.measure.visits.history import VisitHistory
from unlost.measure.visits.present import ListingResult, CurrentVisit, VisitStage, SiteVisit

_BATCH_SIZE = 200  # resources that are kept together
_MAX_VISIT_AGE_SECONDS = 86_400.0  # seconds after which a visit that did not end is begun anew: what it saw may be gone


class SiteSource(Protocol):
    """Whoever knows what a site has.

    knows_links: whether links are followed, so that what nothing leads to can be told.
    look: looks at single addresses; None if nobody can.
    """

    @property
    def knows_links(self) -> bool:
        """Whether links are followed."""
        ...

    @property
    def probe(self) -> UrlProber | None:
        """What looks at single addresses; None if nobody can."""
        ...

    def resources(self) -> AsyncIterator[LiveResource]:
        """Yield what the site has; of one that was yielded twice the second counts."""
        ...

    def prefixes(self) -> Sequence[str]:
        """Return what archives are asked for lists of, once all resources were yielded."""
        ...


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How thoroughly archives are asked.

    sample: how many pages are asked for one by one, at most; None for all. thorough: ask every archive for every page.
    beside: how many addresses that archives list, and the site was not seen to have, are looked at.
    judge: of how many pages copies are fetched and judged.
    """

    sample: int | None = 200
    thorough: bool = False
    max_probed: int = 50
    max_classified: int = 0


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a visit came to.

    left_over: archives that did not say all that they have to say, each with why.
    """

    visit: SiteVisit
    current: CurrentVisit
    archives: tuple[str, ...]
    stats: CheckStats
    listings: tuple[ListingResult, ...]
    incomplete: dict[str, str]
    now: str


async def resume_or_begin_visit(history: VisitHistory, clock: Clock) -> tuple[SiteVisit, int]:
    """Return the visit that goes on, or begin one; and how many visits lost their dates, since the clock went back."""
    now = clock.now()
    visit = history.unfinished_visit()
    if visit is not None and 0 <= now - visit.time < _MAX_VISIT_AGE_SECONDS:
        return visit, 0
    return history.begin_visit(now)


async def check_site(
    history: VisitHistory,
    visit: SiteVisit,
    site: SiteSource,
    access: ArchiveAccess,
    options: CheckOptions,
    progress: CheckProgress | None = None,
) -> CheckResult:
    """See what a site has, ask archives for it, and return what came of it. The visit is not ended."""
    present = history.current_visit(visit)
    if visit.stage is VisitStage.BEGUN:
        await _crawl(present, site)
    asking = AvailabilityQuery(
        present,
        access,
        sample=options.sample,
        thorough=options.thorough,
        probe=site.probe,
        max_probed=options.max_probed,
        progress=progress,
    )
    result = await asking.run(site.prefixes())
    archives = tuple(access.archives)
    if options.max_classified:
        await CaptureSampler(present, access.capture_clients, options.max_classified).classify_sample(archives)
    now = dates.from_epoch(str(int(visit.time)))
    figures = compute_check_stats(present.availabilities(archives), now, knows_links=site.knows_links)
    lists = tuple(present.listings())
    return CheckResult(visit, present, archives, figures, lists, _incomplete_archives(lists, result), now)


async def _crawl(present: CurrentVisit, site: SiteSource) -> None:
    batch: list[LiveResource] = []
    async for resource in site.resources():
        batch.append(resource)
        if len(batch) >= _BATCH_SIZE:
            present.record_live(batch)
            batch.clear()
    present.record_live(batch)
    present.mark_crawled()


def _incomplete_archives(lists: Sequence[ListingResult], result: ArchiveQueryResult) -> dict[str, str]:
    """Return which archives did not say all: those that were given up; a list that was cut is made up for by asking."""
    messages = {each.archive: each.message or "its list was cut" for each in lists if not each.is_whole}
    return {name: messages.get(name, message) for name, message in result.given_up.items()}
