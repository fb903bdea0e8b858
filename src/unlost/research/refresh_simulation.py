"""Evaluates refresh policies and visit schedules on a simulated web, where every change is known."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from unlost.refresh.confidence import change_probability, estimate_change_rate, estimate_page_rate
from unlost.refresh.decision_matrix import compute_cell, project_to_indicators
from unlost.refresh.history import ChangeHistory
from unlost.refresh.policy import LearningOptions, Policy, history_host, learn_policy
from unlost.refresh.schemes import NAMED_SCHEMES
from unlost.refresh.visit import Visit
from unlost.research.simulated_web import HEADER_BYTES, ServerMixture, SimulatedVisit, simulate_visits

SCORED_SCHEMES = ("always", "Scheme 1", "Scheme 2", "Scheme 3", "Scheme 4", "Scheme 1 variant")
_ABORT_COST_BYTES = (
    14_600  # in flight when a GET is aborted: an initial window of ten segments of 1460 bytes (RFC 6928)
)

SimulatedPages = list[list[SimulatedVisit]]
"""The pages of a host, each as a list of its visits."""

_MAX_HOST_INTERVALS = 500  # from which the change rate of a host is estimated


@dataclass(slots=True)
class SimulationScore:
    """Outcome of a decision method.

    Attributes:
        changed: Pairs of consecutive visits with a change.
        unchanged: Pairs without a change.
        missed: Changes skipped.
        unnecessary: Downloads of unchanged pages, audits excluded.
        audited: Skips downloaded as a check, including missed changes.
        bytes: Bytes of bodies and headers.
        requests: Requests sent.
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
        """Share of changes that were downloaded."""
        return 1 - self.missed / self.changed if self.changed else 1.0

    @property
    def usefulness(self) -> float:
        """Share of unchanged pages that were skipped."""
        return 1 - self.unnecessary / self.unchanged if self.unchanged else 1.0


class DecisionMethod(Protocol):
    """A method for deciding whether to download a page again."""

    score: SimulationScore

    def visit(self, last: SimulatedVisit, this: SimulatedVisit, claimed: int) -> None:
        """Decide about a page that was visited before, and score the decision.

        Args:
            last: Previous visit.
            this: Current visit.
            claimed: Cell of the decision matrix according to the HEAD response.
        """
        ...


def has_page_changed(last: SimulatedVisit, this: SimulatedVisit) -> bool:
    """Return whether the body has changed."""
    return last.visit.digest != this.visit.digest


@dataclass(slots=True)
class SchemeMethod:
    """Decides by one of the 512 schemes: HEAD, then GET if the headers indicate a change."""

    scheme: int
    score: SimulationScore

    def visit(self, last: SimulatedVisit, this: SimulatedVisit, claimed: int) -> None:
        """See `DecisionMethod`."""
        base = project_to_indicators(claimed, 0)[1]
        download = bool(self.scheme >> base & 1)
        _count_decision(self.score, has_page_changed(last, this), download=download)
        always = self.scheme == NAMED_SCHEMES["always"]
        self.score.requests += (0 if always else 1) + download + (download and this.has_unsolicited_304)
        self.score.bytes += (0 if always else HEADER_BYTES) + (this.size if download else 0)


@dataclass(slots=True)
class ConditionalMethod:
    """Sends conditional GET requests with both validators, and trusts a 304."""

    score: SimulationScore

    def visit(self, last: SimulatedVisit, this: SimulatedVisit, claimed: int) -> None:
        """See `DecisionMethod`."""
        del claimed
        _count_decision(self.score, has_page_changed(last, this), download=not this.not_modified)
        self.score.requests += 1
        self.score.bytes += HEADER_BYTES if this.not_modified else this.size


@dataclass(slots=True)
class OracleMethod:
    """Knows which pages have changed and downloads only these; sends HEAD for the others."""

    score: SimulationScore

    def visit(self, last: SimulatedVisit, this: SimulatedVisit, claimed: int) -> None:
        """See `DecisionMethod`."""
        del claimed
        changed = has_page_changed(last, this)
        _count_decision(self.score, changed, download=changed)
        self.score.requests += 1
        self.score.bytes += this.size if changed else HEADER_BYTES


@dataclass(slots=True)
class PolicyMethod:
    """Decides by a learned policy, audits, and continues to learn from its downloads.

    Sends HEAD first if the headers of the host's HEAD and GET responses agree, which each download after a HEAD
    verifies; otherwise sends GET and aborts it.
    """

    policy: Policy
    score: SimulationScore
    hosts_with_other_head: set[str] = field(default_factory=set)

    def visit(self, last: SimulatedVisit, this: SimulatedVisit, claimed: int) -> None:
        """See `DecisionMethod`."""
        host = history_host(this.visit.uri)
        by_get = host in self.hosts_with_other_head or self.policy.estimate is None
        if by_get:
            claimed = compute_cell(last.visit, this.visit)
        decision = self.policy.decide_cell(host, claimed, this.visit)
        changed = has_page_changed(last, this)
        is_downloaded = decision.download or decision.audit
        _count_decision(self.score, changed, download=decision.download)
        self.score.audited += decision.audit
        self.score.requests += 1 + (is_downloaded and not by_get) + (is_downloaded and this.has_unsolicited_304)
        if is_downloaded:
            self.score.bytes += this.size + (0 if by_get else HEADER_BYTES)
            self.policy.record_page(host, decision.group, changed=changed)
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
    """Result for one mixture of servers.

    Attributes:
        scores: Scores of the decision methods.
        policy: Policy as learned before the first decision.
    """

    mixture: str
    scores: list[SimulationScore]
    policy: Policy


def build_history(web: Iterable[SimulatedPages], visits: int) -> ChangeHistory:
    """Return the history of the first visits to each page, as in a log."""
    return ChangeHistory.from_rows(visit.row for pages in web for page in pages for visit in to_log(page[:visits]))


def to_log(page: Sequence[SimulatedVisit]) -> Iterator[Visit]:
    """Yield the visits as in a log: with status 304 for an unsolicited 304."""
    for visit in page:
        if visit.has_unsolicited_304:
            yield replace(visit.visit, status=304, digest=None, text_digest=None)
        else:
            yield visit.visit


def run_methods(methods: Sequence[DecisionMethod], web: Iterable[SimulatedPages], first: int) -> None:
    """Run decision methods on all visits from number `first` on, in chronological order within each host.

    Hosts are independent, so they are processed one after the other.
    """
    for pages in web:
        for number in range(first, max((len(page) for page in pages), default=0)):
            for page in pages:
                last, this = page[number - 1], page[number]
                claimed = compute_cell(last.visit, this.head)
                for method in methods:
                    method.visit(last, this, claimed)


def run_trial(
    mixture: ServerMixture, hosts: int, visits: int, seed: int, options: LearningOptions, later: int | None = None
) -> SimulationTrial:
    """Learn from the first visits to each page, then decide about as many later ones.

    The web is generated twice and never in memory as a whole: memory grows only with the learned statistics.

    Args:
        mixture: Mixture of servers.
        hosts: Number of hosts.
        visits: Visits per page to learn from.
        seed: Seed of the web.
        options: Options for learning.
        later: Visits per page to decide about; None for `visits`.
    """
    total = visits + (later or visits)
    policy = learn_policy(build_history(simulate_visits(mixture, hosts, total, seed), visits), options)
    methods: list[DecisionMethod] = [
        SchemeMethod(NAMED_SCHEMES[name], SimulationScore(name)) for name in SCORED_SCHEMES
    ]
    methods += [ConditionalMethod(SimulationScore("conditional GET")), OracleMethod(SimulationScore("oracle"))]
    methods.append(PolicyMethod(policy, SimulationScore("learned")))
    run_methods(methods, simulate_visits(mixture, hosts, total, seed), visits)
    return SimulationTrial(mixture.name, [method.score for method in methods], policy)


@dataclass(slots=True)
class ScheduleScore:
    """Outcome of a visit schedule.

    Attributes:
        visits: Visits made.
        changes_found: Visits that found a change.
        fresh: Checks at which the stored version was current.
        checks: Checks.
    """

    name: str
    visits: int = 0
    changes_found: int = 0
    fresh: int = 0
    checks: int = 0

    @property
    def found_share(self) -> float:
        """Share of visits that found a change."""
        return self.changes_found / self.visits if self.visits else 0.0

    @property
    def freshness(self) -> float:
        """Share of checks at which the stored version was current."""
        return self.fresh / self.checks if self.checks else 1.0


@dataclass(slots=True)
class _ScheduledPage:
    """A page and what one schedule has observed of it."""

    simulated_visits: list[SimulatedVisit]
    last_visited: int
    host_rate: float | None
    intervals: list[tuple[float, bool]] = field(default_factory=list)

    def visit(self, number: int) -> bool:
        """Visit the page; return whether it has changed since the last visit."""
        last, this = self.simulated_visits[self.last_visited].visit, self.simulated_visits[number].visit
        changed = last.digest != this.digest
        self.intervals.append(((this.time - last.time) / 1000, changed))
        self.last_visited = number
        return changed

    def seconds_since_visit(self, number: int) -> float:
        """Return the seconds since the last visit."""
        return (self.simulated_visits[number].visit.time - self.simulated_visits[self.last_visited].visit.time) / 1000


PageRanking = Callable[[_ScheduledPage, int], float]


def _rank_by_wait(page: _ScheduledPage, number: int) -> float:
    return page.seconds_since_visit(number)


def _rank_by_seen_changes(page: _ScheduledPage, number: int) -> float:
    """Rank by the observed change rate, which ignores changes between two visits."""
    seconds = sum(each for each, _ in page.intervals)
    rate = sum(changed for _, changed in page.intervals) / seconds if seconds else 0.0
    return change_probability(rate, page.seconds_since_visit(number)) or 0.0


def _rank_by_corrected_rate(page: _ScheduledPage, number: int) -> float:
    return (
        change_probability(estimate_page_rate(page.intervals, page.host_rate), page.seconds_since_visit(number)) or 0.0
    )


PAGE_RANKINGS: dict[str, PageRanking] = {
    "by turns": _rank_by_wait,
    "as seen": _rank_by_seen_changes,
    "corrected for unseen changes": _rank_by_corrected_rate,
}


def simulate_schedules(web: Iterable[SimulatedPages], visits: int, share: float) -> list[ScheduleScore]:
    """Score each schedule, which may make a share of the visits after the first ones.

    The schedules learn from every third of the first visits, so that most changes between visits are unobserved. They
    know only what a log contains.

    Args:
        web: Pages by host.
        visits: Visits per page to learn from.
        share: Share of pages to visit at each step.
    """
    pages = [page for host in web for page in _schedule_host_pages(host, visits)]
    scores = []
    for name, rank in PAGE_RANKINGS.items():
        score = ScheduleScore(name)
        scheduled = [
            _ScheduledPage(page.simulated_visits, page.last_visited, page.host_rate, list(page.intervals))
            for page in pages
        ]
        later = len(scheduled[0].simulated_visits) if scheduled else 0
        for step in range(visits, later):
            order = sorted(range(len(scheduled)), key=lambda index: -rank(scheduled[index], step))
            for index in order[: round(share * len(scheduled))]:
                score.visits += 1
                score.changes_found += scheduled[index].visit(step)
            for page in scheduled:
                score.checks += 1
                score.fresh += (
                    page.simulated_visits[page.last_visited].visit.digest == page.simulated_visits[step].visit.digest
                )
        scores.append(score)
    return scores


def _schedule_host_pages(host: SimulatedPages, visits: int) -> list[_ScheduledPage]:
    scheduled = []
    for visits_of_page in host:
        page = _ScheduledPage(visits_of_page, 0, None)
        for number in range(3, visits, 3):
            page.visit(number)
        scheduled.append(page)
    intervals = [interval for page in scheduled for interval in page.intervals][:_MAX_HOST_INTERVALS]
    rate = estimate_change_rate(intervals)
    host_rate = rate.per_second if rate is not None and rate.changes else None
    for page in scheduled:
        page.host_rate = host_rate
    return scheduled
