"""Leaves an archive that fails alone for a while, so that it costs nobody any time, and tries it again now and then."""

from collections import Counter, deque
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from unlost.clock import Clock
from unlost.errors import UriError
from unlost.uri import key

FAILURES = frozenset(
    {"timeout", "refused", "reset", "dns", "tls", "redirect", "http-5xx", "malformed", "too-large"},
)
"""The outcomes that count against an archive. A body that does not end in time is a `timeout`."""

OF_PAGES = frozenset({"redirect", "http-5xx", "malformed", "too-large"})
"""The failures that may be those of single pages: they count only if pages of several hosts fail."""

HOSTS, HOSTS_SECONDS = 3, 300.0
"""Of how many different hosts pages must fail, and within how many seconds, to count against the archive."""

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

    in_a_row: after so many failures one behind the other. Failures of single pages (`OF_PAGES`) count here and in the
        share only if pages of `HOSTS` different hosts failed within `HOSTS_SECONDS`.
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
        self._pages_in_a_row = 0
        self._hosts = _Hosts()
        self._hosts_in_a_row = _Hosts()
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

    def leave(self, entry: Entry, ended: str | None, message: str = "", uri: str = "") -> None:
        """Say what came of asking.

        ended: the outcome; for a list that broke off, that of what broke it off; None if nobody waited for it.
        uri: the page that was requested.
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
        of_page, now = ended in OF_PAGES, self._clock.now()
        if of_page:
            host = _host_of(uri)
            self._hosts.add(host, now)
            self._hosts_in_a_row.add(host, now)
        if not entry.is_trial:
            self._count(now, failed=failed, of_page=of_page)
            return
        self._is_trying = False
        if not failed:
            self._wake()
        elif not of_page or self._hosts.are_many(now):
            self._sleep()

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
            failures_in_a_row=self._in_a_row + self._pages_in_a_row,
            failures=self._failures,
            successes=self._successes,
            opened=self._opened,
        )

    def _is_over(self) -> bool:
        """Return whether it was dormant for long enough. A clock that was set back does not make it longer."""
        return not 0 <= self._clock.now() - self._since < self._dormant_for

    def _count(self, now: float, *, failed: bool, of_page: bool) -> None:
        if not failed:
            self._in_a_row = self._pages_in_a_row = 0
            self._hosts_in_a_row.clear()
        elif of_page:
            self._pages_in_a_row += 1
        else:
            self._in_a_row += 1
        failures, of_pages, answers = self._window.add(now, failed=failed, of_page=of_page)
        if not failed:
            return
        in_a_row = self._in_a_row + (self._pages_in_a_row if self._hosts_in_a_row.are_many(now) else 0)
        if self._hosts.are_many(now):
            failures += of_pages
            answers += of_pages
        tolerance = self._tolerance
        is_often = answers >= tolerance.at_least and failures >= tolerance.share * answers
        if in_a_row >= tolerance.in_a_row or is_often:
            self._sleep()

    def _sleep(self) -> None:
        first, longest = self._tolerance.dormant, self._tolerance.longest
        self._dormant_for = min(2 * self._dormant_for if self._is_dormant else first, longest)
        self._is_dormant = True
        self._opened += 1
        self._change()

    def _wake(self) -> None:
        self._is_dormant = False
        self._in_a_row = self._pages_in_a_row = 0
        self._hosts.clear()
        self._hosts_in_a_row.clear()
        self._window.clear()
        self._change()

    def _change(self) -> None:
        self._era += 1
        self._entry = Entry(self._era, is_trial=False)
        self._since = self._clock.now()


class _Hosts:
    """The hosts whose pages failed last, of which no more are remembered than are needed."""

    def __init__(self) -> None:
        self._failed_at: dict[str, float] = {}

    def add(self, host: str, now: float) -> None:
        """Record that a page of a host failed."""
        self._failed_at.pop(host, None)
        self._failed_at[host] = now
        if len(self._failed_at) > HOSTS:
            del self._failed_at[next(iter(self._failed_at))]

    def are_many(self, now: float) -> bool:
        """Return whether pages of `HOSTS` hosts failed within `HOSTS_SECONDS`."""
        # A time after now was recorded before the clock was set back: its age is not known.
        return sum(now - HOSTS_SECONDS <= at <= now for at in self._failed_at.values()) >= HOSTS

    def clear(self) -> None:
        """Forget everything."""
        self._failed_at.clear()


def _host_of(uri: str) -> str:
    """Return the host of a page as its SURT has it: the same for all spellings."""
    try:
        return key(uri).partition(")")[0]
    except UriError:
        return ""


class _Window:
    """How many answers there were lately, and how many of them failed; rounded to a part of the window."""

    def __init__(self, seconds: float) -> None:
        self._slot = max(seconds / _SLOTS, 0.001)
        self._slots: deque[tuple[int, Counter[str]]] = deque()  # number of the slot, counts
        self._counts: Counter[str] = Counter()

    def add(self, now: float, *, failed: bool, of_page: bool) -> tuple[int, int, int]:
        """Count one; return the failures of the archive, those of pages, and all answers but the latter."""
        number = int(now // self._slot)
        slots = self._slots
        # Also what is later than now: then the clock was set back, and nobody knows how old it is.
        while slots and not number - _SLOTS < slots[0][0] <= number:
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
