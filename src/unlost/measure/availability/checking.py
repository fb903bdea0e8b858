"""One visit of a site, from its first page to the last answer of an archive; it goes on where it was interrupted."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from unlost import dates
from unlost.clock import Clock
from unlost.crawl.resource import LiveResource
from unlost.measure.availability.asking import Asking, Looks, Means, Progress, Result
from unlost.measure.availability.figures import Figures, figures_of
from unlost.measure.availability.judging import Judging
from unlost.measure.visits.history import History
from unlost.measure.visits.present import Listed, Present, Stage, Visit

_AT_ONCE = 200  # resources that are kept together
_OLD = 86_400.0  # seconds after which a visit that did not end is begun anew: what it saw may be gone


class LiveSite(Protocol):
    """Whoever knows what a site has.

    knows_links: whether links are followed, so that what nothing leads to can be told.
    look: looks at single addresses; None if nobody can.
    """

    @property
    def knows_links(self) -> bool:
        """Whether links are followed."""
        ...

    @property
    def look(self) -> Looks | None:
        """What looks at single addresses; None if nobody can."""
        ...

    def resources(self) -> AsyncIterator[LiveResource]:
        """Yield what the site has; of one that was yielded twice the second counts."""
        ...

    def prefixes(self) -> Sequence[str]:
        """Return what archives are asked for lists of, once all resources were yielded."""
        ...


@dataclass(frozen=True, slots=True)
class Depth:
    """How thoroughly archives are asked.

    sample: how many pages are asked for one by one, at most; None for all. thorough: ask every archive for every page.
    beside: how many addresses that archives list, and the site was not seen to have, are looked at.
    judge: of how many pages copies are fetched and judged.
    """

    sample: int | None = 200
    thorough: bool = False
    beside: int = 50
    judge: int = 0


@dataclass(frozen=True, slots=True)
class Checked:
    """What a visit came to.

    left_over: archives that did not say all that they have to say, each with why.
    """

    visit: Visit
    present: Present
    archives: tuple[str, ...]
    figures: Figures
    lists: tuple[Listed, ...]
    left_over: dict[str, str]
    now: str


async def begun(history: History, clock: Clock) -> tuple[Visit, int]:
    """Return the visit that goes on, or begin one; and how many visits lost their dates, since the clock went back."""
    now = clock.now()
    visit = history.going_on()
    if visit is not None and 0 <= now - visit.time < _OLD:
        return visit, 0
    return history.begin(now)


async def check_site(
    history: History, visit: Visit, site: LiveSite, means: Means, depth: Depth, progress: Progress | None = None
) -> Checked:
    """See what a site has, ask archives for it, and return what came of it. The visit is not ended."""
    present = history.present(visit)
    if visit.stage is Stage.BEGUN:
        await _crawl(present, site)
    asking = Asking(
        present,
        means,
        sample=depth.sample,
        thorough=depth.thorough,
        look=site.look,
        beside=depth.beside,
        progress=progress,
    )
    result = await asking.ask(site.prefixes())
    archives = tuple(means.archives)
    if depth.judge:
        await Judging(present, means.keepers, depth.judge).judge(archives)
    now = dates.from_epoch(str(int(visit.time)))
    figures = figures_of(present.standings(archives), now, knows_links=site.knows_links)
    lists = tuple(present.lists())
    return Checked(visit, present, archives, figures, lists, _left_over(lists, result), now)


async def _crawl(present: Present, site: LiveSite) -> None:
    batch: list[LiveResource] = []
    async for resource in site.resources():
        batch.append(resource)
        if len(batch) >= _AT_ONCE:
            present.see(batch)
            batch.clear()
    present.see(batch)
    present.crawled()


def _left_over(lists: Sequence[Listed], result: Result) -> dict[str, str]:
    """Return which archives did not say all: those that were given up; a list that was cut is made up for by asking."""
    messages = {each.archive: each.message or "its list was cut" for each in lists if not each.is_whole}
    return {name: messages.get(name, message) for name, message in result.given_up.items()}
