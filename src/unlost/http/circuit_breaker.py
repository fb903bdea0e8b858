"""Circuit breakers: a failing archive or host is skipped, and tried again after a pause.

A circuit opens after `BreakerPolicy.failures` consecutive failures, or at once if the archive asks to wait or its quota
is exhausted. While it is open, no request is sent. After the pause it is half-open: a success closes it, a failure
opens it again.

Used by aggregate, recovery, crawl, refresh, check, watch, vault, research and the samplers of archives, each with its
own entry in `unlost.http.policy.POLICIES`.
"""

import math
from collections import Counter, deque
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from unlost.clock import Clock
from unlost.errors import ArchiveError, FailedError, NotNowError, UriError
from unlost.http.policy import BreakerPolicy
from unlost.uri import key

FAILING = "failing"
"""Reason of a `Suspension` after repeated failures."""
_WINDOW_SLOTS = 6  # counters of the sliding window, so that its memory does not grow with the requests


class BreakerState(StrEnum):
    """State of a circuit."""

    CLOSED = "active"
    """Requests are sent."""
    OPEN = "dormant"
    """No requests are sent."""
    HALF_OPEN = "trial"
    """The pause is over, and the outcome of the next request decides."""


class BreakerPermit(NamedTuple):
    """The permission to send one request. Return it with the outcome, or with `CircuitBreaker.release`."""

    era: int
    is_trial: bool


@dataclass(frozen=True, slots=True)
class Suspension:
    """Why requests are not sent, and until when.

    Attributes:
        until: When they may be sent again, in seconds since 1970.
        reason: As in NotNowError, or `FAILING`, or the caller's own.
        message: Human-readable explanation.
    """

    until: float
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class BreakerStatus:
    """State and statistics of a circuit. Times are seconds since 1970.

    Attributes:
        state: The state.
        since: When the circuit opened or closed.
        until: When a trial request may be sent; None if the circuit is closed.
        last_failure: Kind of the last failure.
        last_message: Message of the last failure.
        consecutive_failures: Failures since the last success.
        failures: All failures that count.
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
    """The circuit breaker of one archive or host. Not shared between event loops.

    Before a request, call `acquire`, which admits one trial request at a time, or `allows_request`, which limits none.
    Afterwards, record its outcome, with the permit if there is one.

    Args:
        clock: Source of time.
        policy: When the circuit opens, and for how long.
        name: Name of the archive or host, for messages.

    >>> from unlost.clock import SystemClock
    >>> breaker = CircuitBreaker(SystemClock(), BreakerPolicy(failures=1, pause=0.0))
    >>> breaker.record_failure("timeout")
    True
    >>> trial = breaker.acquire()
    >>> trial.is_trial, breaker.acquire() is None
    (True, True)
    >>> breaker.record_success(trial)
    >>> breaker.status().state.name
    'CLOSED'
    """

    __slots__ = (
        "_clock",
        "_consecutive_failures",
        "_consecutive_hosts",
        "_consecutive_page_failures",
        "_era",
        "_failing_hosts",
        "_failures",
        "_is_trying",
        "_last_failure",
        "_name",
        "_pause",
        "_permit",
        "_policy",
        "_since",
        "_state",
        "_successes",
        "_suspension",
        "_times_opened",
        "_window",
    )

    def __init__(self, clock: Clock, policy: BreakerPolicy, name: str = "") -> None:
        self._clock = clock
        self._policy = policy
        self._name = name
        self._state = BreakerState.CLOSED
        self._suspension: Suspension | None = None  # None while the circuit is closed
        self._is_trying = False  # a trial request with a permit is in flight
        self._era = 0
        self._permit = BreakerPermit(0, is_trial=False)
        self._since = clock.now()
        self._pause = policy.pause  # of the next time that the circuit opens
        self._window = None if policy.max_failure_share is None else _FailureWindow(policy.window)
        self._consecutive_failures = 0
        self._consecutive_page_failures = 0
        self._failing_hosts = _FailingHosts(policy)
        self._consecutive_hosts = _FailingHosts(policy)
        self._failures = 0
        self._successes = 0
        self._times_opened = 0
        self._last_failure: tuple[str, str] | None = None

    def acquire(self) -> BreakerPermit | None:
        """Return the permission to send a request; None if the circuit is open or the trial request is in flight."""
        if not self.allows_request() or self._is_trying:
            return None
        if self._state is BreakerState.CLOSED:
            return self._permit
        self._is_trying = True
        return BreakerPermit(self._era, is_trial=True)

    def allows_request(self) -> bool:
        """Return whether a request may be sent now. Half-opens the circuit if its pause is over."""
        if self._state is BreakerState.OPEN and self._is_pause_over():
            self.half_open()
        return self._state is not BreakerState.OPEN

    def record_success(self, permit: BreakerPermit | None = None) -> None:
        """Record a request that succeeded.

        A request sent before the last change of state is counted, but does not change the state.
        """
        self._successes += 1
        if self._is_late(permit):
            return
        if self._state is BreakerState.HALF_OPEN:
            self._close()
            return
        self._consecutive_failures = self._consecutive_page_failures = 0
        self._consecutive_hosts.clear()
        if self._window is not None:
            self._window.add(self._clock.now(), "successes")

    def record_failure(
        self, kind: str, message: str = "", *, permit: BreakerPermit | None = None, uri: str = ""
    ) -> bool:
        """Record a request that failed.

        A request sent before the last change of state is counted, but does not change the state.

        Args:
            kind: The kind of failure. Kinds that the policy does not count are ignored.
            message: The error message.
            permit: The permission returned by `acquire`.
            uri: The requested page.

        Returns:
            Whether the circuit is open now.
        """
        if not self._policy.counts(kind):
            self.release(permit)
            return self._state is BreakerState.OPEN
        self._failures += 1
        self._last_failure = kind, message
        if not self._is_late(permit):
            self._count_failure(kind, uri)
        return self._state is BreakerState.OPEN

    def record_error(self, error: ArchiveError) -> bool:
        """Record an error of an archive: NotNowError opens the circuit until its date, others are failures.

        Returns:
            Whether the circuit is open now.
        """
        if isinstance(error, NotNowError):
            self.open(error.until, error.reason, str(error))
            return True
        kind = error.kind if isinstance(error, FailedError) else type(error).__name__
        return self.record_failure(kind, str(error))

    def release(self, permit: BreakerPermit | None) -> None:
        """Return a permission without an outcome: the request was cancelled, or not sent."""
        if permit is not None and permit.is_trial and permit.era == self._era:
            self._is_trying = False

    def open(self, until: float, reason: str, message: str = "") -> None:
        """Open the circuit until a date, for a reason of the caller. Replaces an earlier suspension."""
        self._state = BreakerState.OPEN
        self._suspension = Suspension(until, reason, message)
        self._times_opened += 1
        self._start_era()

    def half_open(self) -> None:
        """End the pause of an open circuit now."""
        if self._state is BreakerState.OPEN:
            self._state = BreakerState.HALF_OPEN

    @property
    def suspension(self) -> Suspension | None:
        """Why the circuit is open; None if it is closed or was half-opened."""
        return self._suspension if self._state is BreakerState.OPEN else None

    def status(self) -> BreakerStatus:
        """Return the state and statistics."""
        last, message = self._last_failure or (None, "")
        state = self._state
        if state is BreakerState.OPEN and self._is_pause_over():
            state = BreakerState.HALF_OPEN
        return BreakerStatus(
            state=state,
            since=self._since,
            until=None if self._suspension is None else self._suspension.until,
            last_failure=last,
            last_message=message,
            consecutive_failures=self._consecutive_failures + self._consecutive_page_failures,
            failures=self._failures,
            successes=self._successes,
            times_opened=self._times_opened,
        )

    def _is_pause_over(self) -> bool:
        """Return whether the circuit was open long enough. Setting the clock back does not prolong a finite pause."""
        if self._suspension is None:
            return True
        if math.isinf(self._suspension.until):
            return False
        return not self._since <= self._clock.now() < self._suspension.until

    def _is_late(self, permit: BreakerPermit | None) -> bool:
        """Return whether a request was sent before the circuit opened or closed; without a permit: whether it is open.

        The permit of a trial request is returned.
        """
        if permit is None:
            return self._state is BreakerState.OPEN
        self.release(permit)
        return permit.era != self._era

    def _count_failure(self, kind: str, uri: str) -> None:
        policy, now = self._policy, self._clock.now()
        of_page = kind in policy.page_kinds
        if of_page:
            host = _host_of(uri)
            self._failing_hosts.add(host, now)
            self._consecutive_hosts.add(host, now)
        if self._state is BreakerState.HALF_OPEN:
            if not of_page or self._failing_hosts.are_many(now):
                self._pause = min(policy.growth * self._pause, policy.max_pause)
                self._open_for_failures("a trial request failed")
            return
        if of_page:
            self._consecutive_page_failures += 1
        else:
            self._consecutive_failures += 1
        consecutive = self._consecutive_failures + (
            self._consecutive_page_failures if self._consecutive_hosts.are_many(now) else 0
        )
        is_share_exceeded = self._is_share_exceeded(now, of_page=of_page)
        if consecutive >= policy.failures or is_share_exceeded:
            self._pause = policy.pause
            in_a_row = consecutive >= policy.failures
            self._open_for_failures(f"{consecutive} failures in a row" if in_a_row else "too many failures")

    def _is_share_exceeded(self, now: float, *, of_page: bool) -> bool:
        """Add a failure to the window; return whether too many of the responses in it are failures."""
        share = self._policy.max_failure_share
        if self._window is None or share is None:
            return False
        counts = self._window.add(now, "of_pages" if of_page else "failures")
        failures, responses = counts["failures"], counts["failures"] + counts["successes"]
        if self._failing_hosts.are_many(now):
            failures += counts["of_pages"]
            responses += counts["of_pages"]
        return responses >= self._policy.min_responses and failures >= share * responses

    def _open_for_failures(self, reason: str) -> None:
        last = (self._last_failure or ("", ""))[1]
        self.open(self._clock.now() + self._pause, FAILING, f"{self._name}: {reason}, the last: {last}")

    def _close(self) -> None:
        self._state = BreakerState.CLOSED
        self._suspension = None
        self._consecutive_failures = self._consecutive_page_failures = 0
        self._failing_hosts.clear()
        self._consecutive_hosts.clear()
        if self._window is not None:
            self._window.clear()
        self._start_era()

    def _start_era(self) -> None:
        self._era += 1
        self._is_trying = False
        self._permit = BreakerPermit(self._era, is_trial=False)
        self._since = self._clock.now()


class _FailingHosts:
    """The last hosts whose pages failed, at most `BreakerPolicy.page_hosts`."""

    __slots__ = ("_failed_at", "_policy")

    def __init__(self, policy: BreakerPolicy) -> None:
        self._policy = policy
        self._failed_at: dict[str, float] = {}

    def add(self, host: str, now: float) -> None:
        self._failed_at.pop(host, None)
        self._failed_at[host] = now
        if len(self._failed_at) > self._policy.page_hosts:
            del self._failed_at[next(iter(self._failed_at))]

    def are_many(self, now: float) -> bool:
        """Return whether pages of `page_hosts` hosts failed within `page_window`."""
        # A time after now was recorded before the clock was set back: its age is unknown.
        earliest = now - self._policy.page_window
        return sum(earliest <= at <= now for at in self._failed_at.values()) >= self._policy.page_hosts

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

    def add(self, now: float, name: str) -> Counter[str]:
        """Count a response under a name: `successes`, `failures`, or `of_pages`. Returns the counts of the window."""
        number = int(now // self._slot)
        slots = self._slots
        # Slots later than now are dropped, too: the clock was set back, and their age is unknown.
        while slots and not number - _WINDOW_SLOTS < slots[0][0] <= number:
            self._counts.subtract(slots.popleft()[1])
        if not slots or slots[-1][0] != number:
            slots.append((number, Counter()))
        slots[-1][1][name] += 1
        self._counts[name] += 1
        return self._counts

    def clear(self) -> None:
        self._slots.clear()
        self._counts.clear()


class BreakerRegistry:
    """The circuit breakers of one use, by the name of the archive or host.

    Args:
        clock: Source of time.
        policy: The policy of each of them.
    """

    def __init__(self, clock: Clock, policy: BreakerPolicy) -> None:
        self._clock = clock
        self._policy = policy
        self._breakers: dict[str, CircuitBreaker] = {}

    def breaker(self, name: str) -> CircuitBreaker:
        """Return a breaker, which is created with a closed circuit when it is first used."""
        breaker = self._breakers.get(name)
        if breaker is None:
            breaker = self._breakers[name] = CircuitBreaker(self._clock, self._policy, name)
        return breaker

    def statuses(self) -> dict[str, BreakerStatus]:
        """Return the status of each breaker that was used, by name."""
        return {name: breaker.status() for name, breaker in sorted(self._breakers.items())}

    @property
    def suspended(self) -> dict[str, Suspension]:
        """The open circuits, by name, until they are half-opened."""
        return {name: each for name, breaker in self._breakers.items() if (each := breaker.suspension) is not None}

    def suspended_until(self) -> dict[str, float]:
        """Return the ends of the suspensions of open circuits, in seconds since 1970, by name.

        Half-open circuits are not included: requests are sent to them, and what fails is recorded one by one.
        """
        return {name: suspension.until for name, suspension in sorted(self.suspended.items())}

    def allows_request(self, name: str) -> bool:
        """Return whether a request may be sent now, as `CircuitBreaker.allows_request` does."""
        breaker = self._breakers.get(name)
        return breaker is None or breaker.allows_request()

    def record_success(self, name: str) -> None:
        """Record a request that succeeded. Creates no breaker, so that only failing hosts take memory."""
        breaker = self._breakers.get(name)
        if breaker is not None:
            breaker.record_success()
