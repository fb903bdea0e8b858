"""How much a schedule finds: the same number of visits, to pages that are chosen in different ways."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from unlost.refresh.scheduling import change_probability, estimate_change_rate, estimate_page_rate
from unlost.refresh.simulation.scoring import SimulatedPages
from unlost.refresh.simulation.web import SimulatedVisit

_MAX_HOST_INTERVALS = 500  # intervals that tell how often the pages of a host change


@dataclass(slots=True)
class ScheduleScore:
    """What visits found that were made at the times of a schedule.

    visits: that were made. found: those that found a change. fresh, times: how often a copy was that of the page as
    it was then, and of how often.
    """

    name: str
    visits: int = 0
    changes_found: int = 0
    fresh: int = 0
    checks: int = 0

    @property
    def found_share(self) -> float:
        """The share of visits that found a change."""
        return self.changes_found / self.visits if self.visits else 0.0

    @property
    def freshness(self) -> float:
        """The share of times at which a copy was that of the page."""
        return self.fresh / self.checks if self.checks else 1.0


@dataclass(slots=True)
class _ScheduledPage:
    """A page, and what one schedule knows of it."""

    simulated_visits: list[SimulatedVisit]
    last_visited: int
    host_rate: float | None
    intervals: list[tuple[float, bool]] = field(default_factory=list)

    def visit(self, at: int) -> bool:
        """Visit it; return whether it had changed."""
        last, this = self.simulated_visits[self.last_visited].visit, self.simulated_visits[at].visit
        changed = last.digest != this.digest
        self.intervals.append(((this.time - last.time) / 1000, changed))
        self.last_visited = at
        return changed

    def seconds_since_visit(self, at: int) -> float:
        """Return how many seconds it was not looked at."""
        return (self.simulated_visits[at].visit.time - self.simulated_visits[self.last_visited].visit.time) / 1000


PageRanking = Callable[[_ScheduledPage, int], float]


def _rank_by_wait(page: _ScheduledPage, at: int) -> float:
    return page.seconds_since_visit(at)


def _rank_by_seen_changes(page: _ScheduledPage, at: int) -> float:
    """Rank by changes a second, as if every change had been seen."""
    seconds = sum(each for each, _ in page.intervals)
    rate = sum(changed for _, changed in page.intervals) / seconds if seconds else 0.0
    return change_probability(rate, page.seconds_since_visit(at)) or 0.0


def _rank_by_corrected_rate(page: _ScheduledPage, at: int) -> float:
    return change_probability(estimate_page_rate(page.intervals, page.host_rate), page.seconds_since_visit(at)) or 0.0


PAGE_RANKINGS: dict[str, PageRanking] = {
    "by turns": _rank_by_wait,
    "as seen": _rank_by_seen_changes,
    "corrected for unseen changes": _rank_by_corrected_rate,
}


def simulate_schedules(web: Iterable[SimulatedPages], visits: int, share: float) -> list[ScheduleScore]:
    """Return what each schedule finds that may make a share of the visits behind the first ones.

    All of them learn from every third of the first visits, so that most changes in between are unseen. Nothing but what
    a log has is known to them.
    """
    pages = [page for host in web for page in _schedule_host_pages(host, visits)]
    scores = []
    for name, rank in PAGE_RANKINGS.items():
        score = ScheduleScore(name)
        watched = [
            _ScheduledPage(page.simulated_visits, page.last_visited, page.host_rate, list(page.intervals))
            for page in pages
        ]
        later = len(watched[0].simulated_visits) if watched else 0
        for at in range(visits, later):
            order = sorted(range(len(watched)), key=lambda number: -rank(watched[number], at))
            for number in order[: round(share * len(watched))]:
                score.visits += 1
                score.changes_found += watched[number].visit(at)
            for page in watched:
                score.checks += 1
                score.fresh += (
                    page.simulated_visits[page.last_visited].visit.digest == page.simulated_visits[at].visit.digest
                )
        scores.append(score)
    return scores


def _schedule_host_pages(host: SimulatedPages, visits: int) -> list[_ScheduledPage]:
    found = []
    for seen in host:
        page = _ScheduledPage(seen, 0, None)
        for at in range(3, visits, 3):
            page.visit(at)
        found.append(page)
    together = [interval for page in found for interval in page.intervals][:_MAX_HOST_INTERVALS]
    rate = estimate_change_rate(together)
    usual = rate.per_second if rate is not None and rate.changes else None
    for page in found:
        page.host_rate = usual
    return found
