"""How much a schedule finds: the same number of visits, to pages that are chosen in different ways."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from unlost.refresh.scheduling import chance_of_change, change_rate, expected_rate
from unlost.refresh.simulation.scoring import Pages
from unlost.refresh.simulation.web import Seen

_OF_HOST = 500  # intervals that tell how often the pages of a host change


@dataclass(slots=True)
class ScheduleScore:
    """What visits found that were made at the times of a schedule.

    visits: that were made. found: those that found a change. fresh, times: how often a copy was that of the page as
    it was then, and of how often.
    """

    name: str
    visits: int = 0
    found: int = 0
    fresh: int = 0
    times: int = 0

    @property
    def found_share(self) -> float:
        """The share of visits that found a change."""
        return self.found / self.visits if self.visits else 0.0

    @property
    def freshness(self) -> float:
        """The share of times at which a copy was that of the page."""
        return self.fresh / self.times if self.times else 1.0


@dataclass(slots=True)
class _Watched:
    """A page, and what one schedule knows of it."""

    seen: list[Seen]
    held: int
    usual: float | None
    intervals: list[tuple[float, bool]] = field(default_factory=list)

    def look(self, at: int) -> bool:
        """Visit it; return whether it had changed."""
        last, this = self.seen[self.held].visit, self.seen[at].visit
        changed = last.digest != this.digest
        self.intervals.append(((this.time - last.time) / 1000, changed))
        self.held = at
        return changed

    def waited(self, at: int) -> float:
        """Return how many seconds it was not looked at."""
        return (self.seen[at].visit.time - self.seen[self.held].visit.time) / 1000


Rank = Callable[[_Watched, int], float]


def _by_turns(page: _Watched, at: int) -> float:
    return page.waited(at)


def _naive(page: _Watched, at: int) -> float:
    """Rank by changes a second, as if every change had been seen."""
    seconds = sum(each for each, _ in page.intervals)
    rate = sum(changed for _, changed in page.intervals) / seconds if seconds else 0.0
    return chance_of_change(rate, page.waited(at)) or 0.0


def _corrected(page: _Watched, at: int) -> float:
    return chance_of_change(expected_rate(page.intervals, page.usual), page.waited(at)) or 0.0


RANKS: dict[str, Rank] = {"by turns": _by_turns, "as seen": _naive, "corrected for unseen changes": _corrected}


def schedules(web: Iterable[Pages], visits: int, share: float) -> list[ScheduleScore]:
    """Return what each schedule finds that may make a share of the visits behind the first ones.

    All of them learn from every third of the first visits, so that most changes in between are unseen. Nothing but what
    a log has is known to them.
    """
    pages = [page for host in web for page in _watched(host, visits)]
    scores = []
    for name, rank in RANKS.items():
        score = ScheduleScore(name)
        watched = [_Watched(page.seen, page.held, page.usual, list(page.intervals)) for page in pages]
        later = len(watched[0].seen) if watched else 0
        for at in range(visits, later):
            order = sorted(range(len(watched)), key=lambda number: -rank(watched[number], at))
            for number in order[: round(share * len(watched))]:
                score.visits += 1
                score.found += watched[number].look(at)
            for page in watched:
                score.times += 1
                score.fresh += page.seen[page.held].visit.digest == page.seen[at].visit.digest
        scores.append(score)
    return scores


def _watched(host: Pages, visits: int) -> list[_Watched]:
    found = []
    for seen in host:
        page = _Watched(seen, 0, None)
        for at in range(3, visits, 3):
            page.look(at)
        found.append(page)
    together = [interval for page in found for interval in page.intervals][:_OF_HOST]
    rate = change_rate(together)
    usual = rate.per_second if rate is not None and rate.seen else None
    for page in found:
        page.usual = usual
    return found
