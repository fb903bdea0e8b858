"""Leaves an archive that fails alone for a while, so that it costs nobody any time, and tries it again now and then."""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from unlost.clock import Clock

FAILURES = frozenset(
    {"timeout", "refused", "reset", "dns", "tls", "redirect", "http-5xx", "malformed", "too-large"},
)
"""The outcomes that count against an archive. A body that does not end in time is a `timeout`."""

NEITHER = frozenset({"not-now", "limited", "dormant"})
"""The outcomes that say nothing about it: its limits are kept elsewhere. All others show that it is well."""

_SLOTS = 6  # into which the window is cut: memory does not grow with the questions


class State(StrEnum):
    """How an archive is treated."""

    ACTIVE = "active"
    """It is asked."""
    DORMANT = "dormant"
    """It is not."""
    TRIAL = "trial"
    """It was dormant for long enough: one question is sent to it, and its answer decides."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How much an archive may fail before it is left alone, and for how long. Times are in seconds.

    in_a_row: after so many failures one behind the other.
    share, window, at_least: or when so large a share of the answers within the window failed, and there were as many
        as that at least.
    dormant: for how long, the first time; twice as long each time that the trial fails, up to `longest`.
    """

    in_a_row: int = 3
    share: float = 0.5
    window: float = 60.0
    at_least: int = 20
    dormant: float = 30.0
    longest: float = 900.0


class Entry(NamedTuple):
    """The permission to ask once. It must be given back to `leave`."""

    era: int
    is_trial: bool


@dataclass(frozen=True, slots=True)
class Condition:
    """How an archive is, for people and for measuring. Times are seconds since 1970.

    since: when this state began. until: when it is tried again; None if it is not dormant.
    last_failure: the outcome of the last failure; last_message: what it said.
    failures_in_a_row: since it last answered. failures, successes: in all. opened: how often it was made dormant.
    """

    state: State
    since: float
    until: float | None
    last_failure: str | None
    last_message: str
    failures_in_a_row: int
    failures: int
    successes: int
    opened: int


class Breaker:
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

    def __init__(self, clock: Clock, tolerance: Tolerance = Tolerance()) -> None:  # noqa: B008  it is frozen
        self._clock = clock
        self._tolerance = tolerance
        self._window = _Window(tolerance.window)
        self._is_dormant = False
        self._is_trying = False
        self._era = 0
        self._entry = Entry(0, is_trial=False)
        self._since = clock.now()
        self._dormant_for = 0.0
        self._in_a_row = 0
        self._failures = 0
        self._successes = 0
        self._opened = 0
        self._last_failure: tuple[str, str] | None = None

    def enter(self) -> Entry | None:
        """Return the permission to ask now; None if the archive is dormant, or another question is the trial."""
        if not self._is_dormant:
            return self._entry
        if self._is_trying or not self._is_over():
            return None
        self._is_trying = True
        return Entry(self._era, is_trial=True)

    def leave(self, entry: Entry, ended: str | None, message: str = "") -> None:
        """Say what came of asking.

        ended: the outcome; for a list that broke off, that of what broke it off; None if nobody waited for it.
        What was sent before the state last changed is counted, and changes nothing else: it speaks of an earlier time.
        """
        failed = ended in FAILURES
        if failed:
            self._failures += 1
            self._last_failure = (ended or "", message)
        elif ended is None or ended in NEITHER:
            if entry.is_trial and entry.era == self._era:
                self._is_trying = False
            return
        else:
            self._successes += 1
        if entry.era != self._era:
            return
        if not entry.is_trial:
            self._count(failed=failed)
            return
        self._is_trying = False
        if failed:
            self._sleep()
        else:
            self._wake()

    def condition(self) -> Condition:
        """Return how the archive is."""
        last, message = self._last_failure or (None, "")
        state = State.ACTIVE
        if self._is_dormant:
            state = State.TRIAL if self._is_trying or self._is_over() else State.DORMANT
        return Condition(
            state=state,
            since=self._since,
            until=self._since + self._dormant_for if self._is_dormant else None,
            last_failure=last,
            last_message=message,
            failures_in_a_row=self._in_a_row,
            failures=self._failures,
            successes=self._successes,
            opened=self._opened,
        )

    def _is_over(self) -> bool:
        """Return whether it was dormant for long enough. A clock that was set back does not make it longer."""
        return not 0 <= self._clock.now() - self._since < self._dormant_for

    def _count(self, *, failed: bool) -> None:
        self._in_a_row = self._in_a_row + 1 if failed else 0
        failures, answers = self._window.add(self._clock.now(), failed=failed)
        tolerance = self._tolerance
        is_often = answers >= tolerance.at_least and failures >= tolerance.share * answers
        if failed and (self._in_a_row >= tolerance.in_a_row or is_often):
            self._sleep()

    def _sleep(self) -> None:
        first, longest = self._tolerance.dormant, self._tolerance.longest
        self._dormant_for = min(2 * self._dormant_for if self._is_dormant else first, longest)
        self._is_dormant = True
        self._opened += 1
        self._change()

    def _wake(self) -> None:
        self._is_dormant = False
        self._in_a_row = 0
        self._window.clear()
        self._change()

    def _change(self) -> None:
        self._era += 1
        self._entry = Entry(self._era, is_trial=False)
        self._since = self._clock.now()


class _Window:
    """How many answers there were lately, and how many of them failed; rounded to a part of the window."""

    def __init__(self, seconds: float) -> None:
        self._slot = max(seconds / _SLOTS, 0.001)
        self._slots: deque[list[int]] = deque()  # number of the slot, failures, answers
        self._failures = self._answers = 0

    def add(self, now: float, *, failed: bool) -> tuple[int, int]:
        """Count one; return failures and answers of the window."""
        number = int(now // self._slot)
        slots = self._slots
        # Also what is later than now: then the clock was set back, and nobody knows how old it is.
        while slots and not number - _SLOTS < slots[0][0] <= number:
            _, failures, answers = slots.popleft()
            self._failures -= failures
            self._answers -= answers
        if not slots or slots[-1][0] != number:
            slots.append([number, 0, 0])
        slots[-1][1] += failed
        slots[-1][2] += 1
        self._failures += failed
        self._answers += 1
        return self._failures, self._answers

    def clear(self) -> None:
        """Forget everything."""
        self._slots.clear()
        self._failures = self._answers = 0


class Breakers:
    """A breaker for each archive, by its id."""

    def __init__(self, clock: Clock, tolerance: Tolerance = Tolerance()) -> None:  # noqa: B008  it is frozen
        self._clock = clock
        self._tolerance = tolerance
        self._breakers: dict[str, Breaker] = {}

    def of(self, archive: str) -> Breaker:
        """Return the breaker of an archive; one that was never asked is active."""
        found = self._breakers.get(archive)
        if found is None:
            found = self._breakers[archive] = Breaker(self._clock, self._tolerance)
        return found

    def conditions(self) -> dict[str, Condition]:
        """Return how each archive is that was asked, by id."""
        return {archive: breaker.condition() for archive, breaker in sorted(self._breakers.items())}
