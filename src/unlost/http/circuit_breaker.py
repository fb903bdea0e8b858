"""Circuit breakers for archives.

`CircuitBreaker` and `BreakerRegistry` serve the aggregator: a circuit opens after repeated failures, and after a while
one trial request decides whether it closes again. `CircuitBreakers` serves recoveries: it suspends an archive after
repeated failures, or at once when the archive asks to wait or its quota is exhausted. An archive whose circuit is open
is not queried.
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
"""The outcomes that count as failures of an archive. A body that does not end in time is a `timeout`."""
PAGE_FAILURE_OUTCOMES = frozenset({"redirect", "http-5xx", "malformed", "too-large"})
"""The failures that may be those of single pages. They count only if pages of several hosts fail."""
MIN_FAILING_HOSTS, FAILING_HOSTS_SECONDS = 3, 300.0
"""Number of different hosts whose pages must fail, and within how many seconds, to count against the archive."""
NEUTRAL_OUTCOMES = frozenset({"not-now", "limited", "dormant"})
"""The outcomes that count neither as success nor as failure: no request was sent. All others count as success."""
_WINDOW_SLOTS = 6  # counters of the sliding window, so that its memory does not grow with the requests
LISTING_INCOMPLETE = "unlisted"
"""Reason of a `Suspension`: the archive's list of captures is incomplete."""
_MAX_FAILURES = 5  # consecutive failures after which an archive is suspended
_SUSPENSION_SECONDS = 600.0


class BreakerState(StrEnum):
    """State of a circuit."""

    ACTIVE = "active"
    """Closed: requests are sent."""
    DORMANT = "dormant"
    """Open: no requests are sent."""
    TRIAL = "trial"
    """Half-open: one trial request is sent, and its outcome decides."""


@dataclass(frozen=True, slots=True)
class BreakerConfig:
    """When a circuit opens and for how long. Times are in seconds.

    The circuit opens after `max_consecutive_failures`, or if `max_failure_share` of the responses within the window
    failed. Failures of single pages (`PAGE_FAILURE_OUTCOMES`) count for both only if pages of `MIN_FAILING_HOSTS`
    different hosts failed within `FAILING_HOSTS_SECONDS`.

    Attributes:
        max_consecutive_failures: Consecutive failures that open the circuit.
        max_failure_share: Share of failures within the window that opens the circuit.
        window: Length of the window.
        min_responses: Responses within the window below which the share does not matter.
        open_seconds: How long the circuit is open at first; doubled each time that the trial fails.
        max_open_seconds: Limit of that doubling.
    """

    max_consecutive_failures: int = 3
    max_failure_share: float = 0.5
    window: float = 60.0
    min_responses: int = 20
    open_seconds: float = 30.0
    max_open_seconds: float = 900.0


class BreakerPermit(NamedTuple):
    """The permission to send one request. Return it with `CircuitBreaker.record`."""

    era: int
    is_trial: bool


@dataclass(frozen=True, slots=True)
class BreakerStatus:
    """State and statistics of a circuit. Times are seconds since 1970.

    Attributes:
        state: The state.
        since: When the state began.
        until: When a trial request may be sent; None if the circuit is closed.
        last_failure: Outcome of the last failure.
        last_message: Message of the last failure.
        consecutive_failures: Failures since the last success.
        failures: All failures.
        successes: All successes.
        times_opened: How often the circuit has opened.
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
    """The circuit breaker of one archive. Not shared between event loops.

    >>> from unlost.clock import SystemClock
    >>> breaker = CircuitBreaker(SystemClock(), BreakerConfig(max_consecutive_failures=1, open_seconds=0.0))
    >>> breaker.record(breaker.acquire(), "timeout")
    >>> trial = breaker.acquire()
    >>> trial.is_trial, breaker.acquire() is None
    (True, True)
    >>> breaker.record(trial, "miss")
    >>> breaker.status().state.value
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
        """Return the permission to send a request; None if the circuit is open or the trial request is in flight."""
        if not self._is_open:
            return self._permit
        if self._is_trying or not self._is_trial_due():
            return None
        self._is_trying = True
        return BreakerPermit(self._era, is_trial=True)

    def record(self, permit: BreakerPermit, outcome: str | None, message: str = "", uri: str = "") -> None:
        """Record the outcome of a request.

        A request sent before the last change of state is counted, but does not change the state.

        Args:
            permit: The permission returned by `acquire`.
            outcome: The outcome; for a list of captures that broke off, the reason. None for a cancelled request.
            message: The error message of a failure.
            uri: The requested page.
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
        """Return the state and statistics."""
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
        """Return whether the circuit was open long enough. Setting the clock back does not prolong that."""
        return not 0 <= self._clock.now() - self._since < self._open_for

    def _count(self, now: float, *, failed: bool, of_page: bool) -> None:
        if not failed:
            self._consecutive_failures = self._consecutive_page_failures = 0
            self._consecutive_hosts.clear()
        elif of_page:
            self._consecutive_page_failures += 1
        else:
            self._consecutive_failures += 1
        failures, page_failures, responses = self._window.add(now, failed=failed, of_page=of_page)
        if not failed:
            return
        consecutive = self._consecutive_failures + (
            self._consecutive_page_failures if self._consecutive_hosts.are_many(now) else 0
        )
        if self._failing_hosts.are_many(now):
            failures += page_failures
            responses += page_failures
        config = self._config
        is_share_exceeded = responses >= config.min_responses and failures >= config.max_failure_share * responses
        if consecutive >= config.max_consecutive_failures or is_share_exceeded:
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
    """The last hosts whose pages failed, at most `MIN_FAILING_HOSTS`."""

    def __init__(self) -> None:
        self._failed_at: dict[str, float] = {}

    def add(self, host: str, now: float) -> None:
        self._failed_at.pop(host, None)
        self._failed_at[host] = now
        if len(self._failed_at) > MIN_FAILING_HOSTS:
            del self._failed_at[next(iter(self._failed_at))]

    def are_many(self, now: float) -> bool:
        """Return whether pages of `MIN_FAILING_HOSTS` hosts failed within `FAILING_HOSTS_SECONDS`."""
        # A time after now was recorded before the clock was set back: its age is unknown.
        return sum(now - FAILING_HOSTS_SECONDS <= at <= now for at in self._failed_at.values()) >= MIN_FAILING_HOSTS

    def clear(self) -> None:
        self._failed_at.clear()


def _host_of(uri: str) -> str:
    """Return the host of a page in SURT form, which is the same for all spellings; empty for an invalid URL."""
    try:
        return key(uri).partition(")")[0]
    except UriError:
        return ""


class _FailureWindow:
    """Counts responses and failures in a sliding window, in slots of a sixth of it."""

    def __init__(self, seconds: float) -> None:
        self._slot = max(seconds / _WINDOW_SLOTS, 0.001)
        self._slots: deque[tuple[int, Counter[str]]] = deque()  # number of the slot, counts
        self._counts: Counter[str] = Counter()

    def add(self, now: float, *, failed: bool, of_page: bool) -> tuple[int, int, int]:
        """Count a response. Returns failures of the archive, failures of pages, and responses without the latter."""
        number = int(now // self._slot)
        slots = self._slots
        # Slots later than now are dropped, too: the clock was set back, and their age is unknown.
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
        self._slots.clear()
        self._counts.clear()


class BreakerRegistry:
    """A circuit breaker for each archive, by id."""

    def __init__(self, clock: Clock, config: BreakerConfig = BreakerConfig()) -> None:  # noqa: B008  it is frozen
        self._clock = clock
        self._config = config
        self._breakers: dict[str, CircuitBreaker] = {}

    def breaker(self, archive: str) -> CircuitBreaker:
        """Return the breaker of an archive, with a closed circuit if the archive was never queried."""
        breaker = self._breakers.get(archive)
        if breaker is None:
            breaker = self._breakers[archive] = CircuitBreaker(self._clock, self._config)
        return breaker

    def statuses(self) -> dict[str, BreakerStatus]:
        """Return the status of each archive that was queried, by id."""
        return {archive: breaker.status() for archive, breaker in sorted(self._breakers.items())}


@dataclass(frozen=True, slots=True)
class Suspension:
    """Why an archive is not queried, and until when.

    Attributes:
        until: When it may be queried again, in seconds since 1970.
        reason: As in NotNowError, or `failing`, or `LISTING_INCOMPLETE`.
        message: Human-readable explanation.
    """

    until: float
    reason: str
    message: str


class CircuitBreakers:
    """The suspended archives of a recovery, by id.

    Attributes:
        suspended: The archives that must not be queried now.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[str, int] = {}
        self.suspended: dict[str, Suspension] = {}

    def record_failure(self, archive: str, error: ArchiveError) -> bool:
        """Record an error. Returns whether the archive is suspended, by this error or an earlier one."""
        suspension = self.suspended.get(archive)
        if suspension is not None and suspension.reason == LISTING_INCOMPLETE:
            return True  # requests that were in flight do not matter: the list of captures comes first
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
        """Reset the count of consecutive failures."""
        self._failures.pop(archive, None)

    def half_open(self, archive: str) -> None:
        """End a suspension. One more failure suspends the archive again."""
        self.suspended.pop(archive, None)
        self._failures[archive] = _MAX_FAILURES - 1
