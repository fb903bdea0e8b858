"""Circuit breakers for archives.

An archive's circuit opens after repeated consecutive failures, or at once when the archive asks to wait or its quota
is exhausted. While it is open, the archive is not queried.
"""

from collections import Counter, deque
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from unlost.clock import Clock
from unlost.errors import ArchiveError, NotNowError, UriError
from unlost.uri import key

FAILURE_OUTCOMES = frozenset(
    {"timeout", "refused", "reset", "dns", "tls", "redirect", "http-5xx", "malformed", "too-large"},
)
"""The outcomes that count against an archive. A body that does not end in time is a `timeout`."""
PAGE_FAILURE_OUTCOMES = frozenset({"redirect", "http-5xx", "malformed", "too-large"})
"""The failures that may be those of single pages: they count only if pages of several hosts fail."""
MIN_FAILING_HOSTS, FAILING_HOSTS_SECONDS = 3, 300.0
"""Of how many different hosts pages must fail, and within how many seconds, to count against the archive."""
NEUTRAL_OUTCOMES = frozenset({"not-now", "limited", "dormant"})
"""The outcomes that say nothing about it: its limits are kept elsewhere. All others show that it is well."""
_WINDOW_SLOTS = 6  # into which the window is cut: memory does not grow with the questions


class BreakerState(StrEnum):
    """How an archive is treated."""

    ACTIVE = "active"
    """It is asked."""
    DORMANT = "dormant"
    """It is not."""
    TRIAL = "trial"
    """It was dormant for long enough: one question is sent to it, and its answer decides."""


@dataclass(frozen=True, slots=True)
class BreakerConfig:
    """How much an archive may fail before it is left alone, and for how long. Times are in seconds.

    in_a_row: after so many failures one behind the other. Failures of single pages (`OF_PAGES`) count here and in the
        share only if pages of `HOSTS` different hosts failed within `HOSTS_SECONDS`.
    share, window, at_least: or when so large a share of the answers within the window failed, and there were as many
        as that at least.
    dormant: for how long, the first time; twice as long each time that the trial fails, up to `longest`.
    """

    max_consecutive_failures: int = 3
    max_failure_share: float = 0.5
    window: float = 60.0
    min_responses: int = 20
    open_seconds: float = 30.0
    max_open_seconds: float = 900.0


class BreakerPermit(NamedTuple):
    """The permission to ask once. It must be given back to `leave`."""

    era: int
    is_trial: bool


@dataclass(frozen=True, slots=True)
class BreakerStatus:
    """How an archive is, for people and for measuring. Times are seconds since 1970.

    since: when this state began. until: when it is tried again; None if it is not dormant.
    last_failure: the outcome of the last failure; last_message: what it said.
    failures_in_a_row: since it last answered. failures, successes: in all. opened: how often it was made dormant.
    """

    state: BreakerState
    since: float
    until: float | None
    last_failure: str | None
    last_message: str
    consecutive_failures: int
    failures: int
    successes: int
    times_opened: int


class CircuitBreaker:
    """The circuit breaker of one archive. It is used by one event loop.

    >>> from unlost.clock import SystemClock
    >>> breaker = Breaker(SystemClock(), Tolerance(in_a_row=1, dormant=0.0))
    >>> breaker.leave(breaker.enter(), "timeout")
    >>> trial = breaker.enter()
    >>> trial.is_trial, breaker.enter() is None
    (True, True)
    >>> breaker.leave(trial, "miss")
    >>> breaker.condition().state.value
    'active'
    """

    def __init__(self, clock: Clock, config: BreakerConfig = BreakerConfig()) -> None:  # noqa: B008  it is frozen
        self._clock = clock
        self._config = config
        self._window = _FailureWindow(config.window)
        self._is_open = False
        self._is_trying = False
        self._era = 0
        self._permit = BreakerPermit(0, is_trial=False)
        self._since = clock.now()
        self._open_for = 0.0
        self._consecutive_failures = 0
        self._consecutive_page_failures = 0
        self._failing_hosts = _FailingHosts()
        self._consecutive_hosts = _FailingHosts()
        self._failures = 0
        self._successes = 0
        self._times_opened = 0
        self._last_failure: tuple[str, str] | None = None

    def acquire(self) -> BreakerPermit | None:
        """Return the permission to ask now; None if the archive is dormant, or another question is the trial."""
        if not self._is_open:
            return self._permit
        if self._is_trying or not self._is_trial_due():
            return None
        self._is_trying = True
        return BreakerPermit(self._era, is_trial=True)

    def record(self, permit: BreakerPermit, outcome: str | None, message: str = "", uri: str = "") -> None:
        """Say what came of asking.

        ended: the outcome; for a list that broke off, that of what broke it off; None if nobody waited for it.
        uri: the page that was requested.
        What was sent before the state last changed is counted, and changes nothing else: it speaks of an earlier time.
        """
        failed = outcome in FAILURE_OUTCOMES
        if failed:
            self._failures += 1
            self._last_failure = (outcome or "", message)
        elif outcome is None or outcome in NEUTRAL_OUTCOMES:
            if permit.is_trial and permit.era == self._era:
                self._is_trying = False
            return
        else:
            self._successes += 1
        if permit.era != self._era:
            return
        of_page, now = outcome in PAGE_FAILURE_OUTCOMES, self._clock.now()
        if of_page:
            host = _host_of(uri)
            self._failing_hosts.add(host, now)
            self._consecutive_hosts.add(host, now)
        if not permit.is_trial:
            self._count(now, failed=failed, of_page=of_page)
            return
        self._is_trying = False
        if not failed:
            self._close()
        elif not of_page or self._failing_hosts.are_many(now):
            self._open()

    def status(self) -> BreakerStatus:
        """Return how the archive is."""
        last, message = self._last_failure or (None, "")
        state = BreakerState.ACTIVE
        if self._is_open:
            state = BreakerState.TRIAL if self._is_trying or self._is_trial_due() else BreakerState.DORMANT
        return BreakerStatus(
            state=state,
            since=self._since,
            until=self._since + self._open_for if self._is_open else None,
            last_failure=last,
            last_message=message,
            consecutive_failures=self._consecutive_failures + self._consecutive_page_failures,
            failures=self._failures,
            successes=self._successes,
            times_opened=self._times_opened,
        )

    def _is_trial_due(self) -> bool:
        """Return whether it was dormant for long enough. A clock that was set back does not make it longer."""
        return not 0 <= self._clock.now() - self._since < self._open_for

    def _count(self, now: float, *, failed: bool, of_page: bool) -> None:
        if not failed:
            self._consecutive_failures = self._consecutive_page_failures = 0
            self._consecutive_hosts.clear()
        elif of_page:
            self._consecutive_page_failures += 1
        else:
            self._consecutive_failures += 1
        failures, of_pages, answers = self._window.add(now, failed=failed, of_page=of_page)
        if not failed:
            return
        in_a_row = self._consecutive_failures + (
            self._consecutive_page_failures if self._consecutive_hosts.are_many(now) else 0
        )
        if self._failing_hosts.are_many(now):
            failures += of_pages
            answers += of_pages
        tolerance = self._config
        is_often = answers >= tolerance.min_responses and failures >= tolerance.max_failure_share * answers
        if in_a_row >= tolerance.max_consecutive_failures or is_often:
            self._open()

    def _open(self) -> None:
        first, longest = self._config.open_seconds, self._config.max_open_seconds
        self._open_for = min(2 * self._open_for if self._is_open else first, longest)
        self._is_open = True
        self._times_opened += 1
        self._start_era()

    def _close(self) -> None:
        self._is_open = False
        self._consecutive_failures = self._consecutive_page_failures = 0
        self._failing_hosts.clear()
        self._consecutive_hosts.clear()
        self._window.clear()
        self._start_era()

    def _start_era(self) -> None:
        self._era += 1
        self._permit = BreakerPermit(self._era, is_trial=False)
        self._since = self._clock.now()


class _FailingHosts:
    """The hosts whose pages failed last, of which no more are remembered than are needed."""

    def __init__(self) -> None:
        self._failed_at: dict[str, float] = {}

    def add(self, host: str, now: float) -> None:
        """Record that a page of a host failed."""
        self._failed_at.pop(host, None)
        self._failed_at[host] = now
        if len(self._failed_at) > MIN_FAILING_HOSTS:
            del self._failed_at[next(iter(self._failed_at))]

    def are_many(self, now: float) -> bool:
        """Return whether pages of `HOSTS` hosts failed within `HOSTS_SECONDS`."""
        # A time after now was recorded before the clock was set back: its age is not known.
        return sum(now - FAILING_HOSTS_SECONDS <= at <= now for at in self._failed_at.values()) >= MIN_FAILING_HOSTS

    def clear(self) -> None:
        """Forget everything."""
        self._failed_at.clear()


def _host_of(uri: str) -> str:
    """Return the host of a page as its SURT has it: the same for all spellings."""
    try:
        return key(uri).partition(")")[0]
    except UriError:
        return ""


class _FailureWindow:
    """How many answers there were lately, and how many of them failed; rounded to a part of the window."""

    def __init__(self, seconds: float) -> None:
        self._slot = max(seconds / _WINDOW_SLOTS, 0.001)
        self._slots: deque[tuple[int, Counter[str]]] = deque()  # number of the slot, counts
        self._counts: Counter[str] = Counter()

    def add(self, now: float, *, failed: bool, of_page: bool) -> tuple[int, int, int]:
        """Count one; return the failures of the archive, those of pages, and all answers but the latter."""
        number = int(now // self._slot)
        slots = self._slots
        # Also what is later than now: then the clock was set back, and nobody knows how old it is.
        while slots and not number - _WINDOW_SLOTS < slots[0][0] <= number:
            self._counts.subtract(slots.popleft()[1])
        if not slots or slots[-1][0] != number:
            slots.append((number, Counter()))
        name = "of_pages" if of_page else "failures" if failed else "successes"
        slots[-1][1][name] += 1
        self._counts[name] += 1
        counts = self._counts
        return counts["failures"], counts["of_pages"], counts["failures"] + counts["successes"]

    def clear(self) -> None:
        """Forget everything."""
        self._slots.clear()
        self._counts.clear()


class BreakerRegistry:
    """A breaker for each archive, by its id."""

    def __init__(self, clock: Clock, config: BreakerConfig = BreakerConfig()) -> None:  # noqa: B008  it is frozen
        self._clock = clock
        self._config = config
        self._breakers: dict[str, CircuitBreaker] = {}

    def breaker(self, archive: str) -> CircuitBreaker:
        """Return the breaker of an archive; one that was never asked is active."""
        found = self._breakers.get(archive)
        if found is None:
            found = self._breakers[archive] = CircuitBreaker(self._clock, self._config)
        return found

    def statuses(self) -> dict[str, BreakerStatus]:
        """Return how each archive is that was asked, by id."""
        return {archive: breaker.status() for archive, breaker in sorted(self._breakers.items())}


LISTING_INCOMPLETE = "unlisted"
"""Why an archive is closed that gave no whole list."""
_MAX_FAILURES = 5  # in a row, after which an archive is left alone
_SUSPENSION_SECONDS = 600.0  # for which it is


@dataclass(frozen=True, slots=True)
class Suspension:
    """Why an archive is not asked.

    until: when it may be again, seconds since 1970.
    reason: one word, as in NotNowError, or `failing`. message: for people.
    """

    until: float
    reason: str
    message: str


class CircuitBreakers:
    """The archives that are closed, by id."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[str, int] = {}
        self.suspended: dict[str, Suspension] = {}

    def record_failure(self, archive: str, error: ArchiveError) -> bool:
        """Take note of an error; return whether the archive is closed by it, or was before."""
        before = self.suspended.get(archive)
        if before is not None and before.reason == LISTING_INCOMPLETE:
            return True  # what was on its way does not change that its list is wanted first
        if isinstance(error, NotNowError):
            self.suspended[archive] = Suspension(error.until, error.reason, str(error))
            return True
        self._failures[archive] = self._failures.get(archive, 0) + 1
        if self._failures[archive] < _MAX_FAILURES:
            return False
        message = f"{archive}: {_MAX_FAILURES} failures in a row, the last: {error}"
        self.suspended[archive] = Suspension(self._clock.now() + _SUSPENSION_SECONDS, "failing", message)
        return True

    def record_success(self, archive: str) -> None:
        """Forget its failures."""
        self._failures.pop(archive, None)

    def half_open(self, archive: str) -> None:
        """Ask it again. One more failure closes it again."""
        self.suspended.pop(archive, None)
        self._failures[archive] = _MAX_FAILURES - 1
