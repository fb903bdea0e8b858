"""Scores of refresh policies and visit schedules on a simulated web, where every change is known."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from unlost.refresh.change_rate import change_probability, estimate_change_rate, estimate_page_rate
from unlost.refresh.decision_matrix import compute_cell, project_to_indicators
from unlost.refresh.history import ChangeHistory
from unlost.refresh.policy import LearningOptions, Policy, learn_policy, url_host
from unlost.refresh.schemes import NAMED_SCHEMES
from unlost.refresh.visit import Visit
from unlost.research.simulated_web import HEADER_BYTES, ServerMixture, SimulatedVisit, simulate_visits

SCORED_SCHEMES = ("always", "Scheme 1", "Scheme 2", "Scheme 3", "Scheme 4", "Scheme 1 variant")
_ABORT_COST_BYTES = (
    14_600  # bytes that are under way when a GET is broken off: ten segments, with which connections begin
)


@dataclass(slots=True)
class SimulationScore:
    """What became of the visits of a web.

    changed, unchanged: pairs of consecutive visits. missed: changed and skipped. unnecessary: unchanged and downloaded,
    audits left out. audited: skips that were downloaded to check them, missed ones among them.
    bytes: of bodies and headers. requests: sent.
    """

    name: str
    changed: int = 0
    unchanged: int = 0
    missed: int = 0
    unnecessary: int = 0
    audited: int = 0
    bytes: int = 0
    requests: int = 0

    @property
    def reliability(self) -> float:
        """The share of changes that was not missed."""
        return 1 - self.missed / self.changed if self.changed else 1.0

    @property
    def usefulness(self) -> float:
        """The share of unchanged pages that was skipped."""
        return 1 - self.unnecessary / self.unchanged if self.unchanged else 1.0


class DecisionMethod(Protocol):
    """A way to decide."""

    score: SimulationScore

    def visit(self, last: SimulatedVisit, this: SimulatedVisit, claimed: int) -> None:
        """Decide about a page that was visited before, and count what came of it. claimed: the cell that HEAD shows."""
        ...


def has_page_changed(last: SimulatedVisit, this: SimulatedVisit) -> bool:
    """Return the truth: whether the bytes of the body are others."""
    return last.visit.digest != this.visit.digest


@dataclass(slots=True)
class SchemeMethod:
    """Decides by one of the 512 schemes: HEAD, then GET if the headers say so."""

    scheme: int
    score: SimulationScore

    def visit(self, last: SimulatedVisit, this: SimulatedVisit, claimed: int) -> None:
        """See `Way`."""
        base = project_to_indicators(claimed, 0)[1]
        download = bool(self.scheme >> base & 1)
        _count_decision(self.score, has_page_changed(last, this), download=download)
        always = self.scheme == NAMED_SCHEMES["always"]
        self.score.requests += (0 if always else 1) + download + (download and this.has_unsolicited_304)
        self.score.bytes += (0 if always else HEADER_BYTES) + (this.size if download else 0)


@dataclass(slots=True)
class ConditionalMethod:
    """Sends both validators back, and believes 304."""

    score: SimulationScore

    def visit(self, last: SimulatedVisit, this: SimulatedVisit, claimed: int) -> None:
        """See `Way`."""
        del claimed
        _count_decision(self.score, has_page_changed(last, this), download=not this.not_modified)
        self.score.requests += 1
        self.score.bytes += HEADER_BYTES if this.not_modified else this.size


@dataclass(slots=True)
class OracleMethod:
    """Knows the truth, and asks for what changed; headers of the others, like everybody."""

    score: SimulationScore

    def visit(self, last: SimulatedVisit, this: SimulatedVisit, claimed: int) -> None:
        """See `Way`."""
        del claimed
        changed = has_page_changed(last, this)
        _count_decision(self.score, changed, download=changed)
        self.score.requests += 1
        self.score.bytes += this.size if changed else HEADER_BYTES


@dataclass(slots=True)
class PolicyMethod:
    """Decides by what was learned, audits, and learns on from what it downloads.

    HEAD first where a host's HEAD is like its GET, as every download behind a HEAD shows; else GET, broken off.
    """

    policy: Policy
    score: SimulationScore
    hosts_with_other_head: set[str] = field(default_factory=set)

    def visit(self, last: SimulatedVisit, this: SimulatedVisit, claimed: int) -> None:
        """See `Way`."""
        host = url_host(this.visit.uri)
        by_get = host in self.hosts_with_other_head or self.policy.estimate is None
        if by_get:
            claimed = compute_cell(last.visit, this.visit)
        decision = self.policy.decide_cell(host, claimed, this.visit)
        changed = has_page_changed(last, this)
        whole = decision.download or decision.audit
        _count_decision(self.score, changed, download=decision.download)
        self.score.audited += decision.audit
        self.score.requests += 1 + (whole and not by_get) + (whole and this.has_unsolicited_304)
        if whole:
            self.score.bytes += this.size + (0 if by_get else HEADER_BYTES)
            self.policy.note(host, decision.group, changed=changed)
            if this.head.etag != this.visit.etag or this.head.last_modified != this.visit.last_modified:
                self.hosts_with_other_head.add(host)
        else:
            self.score.bytes += min(this.size, HEADER_BYTES + _ABORT_COST_BYTES) if by_get else HEADER_BYTES


def _count_decision(score: SimulationScore, changed: bool, *, download: bool) -> None:
    score.changed += changed
    score.unchanged += not changed
    score.missed += changed and not download
    score.unnecessary += download and not changed


@dataclass(frozen=True, slots=True)
class SimulationTrial:
    """One mixture, tried.

    scores: of every way to decide. policy: what was learned, before anything was decided by it.
    """

    mixture: str
    scores: list[SimulationScore]
    policy: Policy


SimulatedPages = list[list[SimulatedVisit]]
"""The pages of a host, each as what its visits got."""


def build_history(web: Iterable[SimulatedPages], visits: int) -> ChangeHistory:
    """Return the history of the first visits to every page, as a log has them."""
    return ChangeHistory.from_rows(visit.row for pages in web for page in pages for visit in to_log(page[:visits]))


def to_log(page: Sequence[SimulatedVisit]) -> Iterator[Visit]:
    """Yield what a log has of visits: 304 where a server sent it unasked."""
    for seen in page:
        if seen.has_unsolicited_304:
            yield replace(seen.visit, status=304, digest=None, text_digest=None)
        else:
            yield seen.visit


def run_methods(methods: Sequence[DecisionMethod], web: Iterable[SimulatedPages], first: int) -> None:
    """Let ways decide about all visits from the one of this number on, day by day within each host.

    Nothing that is known of one host counts for another, so one after the other is as good as all at once.
    """
    for pages in web:
        for number in range(first, max((len(page) for page in pages), default=0)):
            for page in pages:
                last, this = page[number - 1], page[number]
                claimed = compute_cell(last.visit, this.head)
                for way in methods:
                    way.visit(last, this, claimed)


def run_trial(
    mixture: ServerMixture, hosts: int, visits: int, seed: int, options: LearningOptions, later: int | None = None
) -> SimulationTrial:
    """Learn from the first visits to every page of a web, then decide about as many later ones.

    The web is made twice and never as a whole: memory grows with what is learned of hosts alone.
    """
    whole = visits + (later or visits)
    policy = learn_policy(build_history(simulate_visits(mixture, hosts, whole, seed), visits), options)
    ways: list[DecisionMethod] = [SchemeMethod(NAMED_SCHEMES[name], SimulationScore(name)) for name in SCORED_SCHEMES]
    ways += [ConditionalMethod(SimulationScore("conditional GET")), OracleMethod(SimulationScore("oracle"))]
    ways.append(PolicyMethod(policy, SimulationScore("learned")))
    run_methods(ways, simulate_visits(mixture, hosts, whole, seed), visits)
    return SimulationTrial(mixture.name, [way.score for way in ways], policy)


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
