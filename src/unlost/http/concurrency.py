"""Adaptive concurrency: how many requests one host is sent at once."""

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass

_MIN_ROUND = 8  # responses that are needed at least to judge latencies and errors
_MAX_ERROR_SHARE = 0.1  # the share of a round above which errors halve the limit
_LATENCY_RISE = 2.0  # a mean latency of so many times the usual one is a rise
_LATENCY_SLACK = 0.05  # seconds that are no rise: this process may be what is slow
_HALF, _THREE_QUARTERS = 0.5, 0.75
_DRIFT, _SETTLE = 0.01, 0.5  # the weight of a round in the usual latency: where it is higher, and lower


@dataclass(frozen=True, slots=True)
class ConcurrencyOptions:
    """The bounds of a `ConcurrencyLimiter`. Requests at once to one host.

    initial: at first. minimum, maximum: what it never leaves. Where all are equal, nothing adapts.
    """

    initial: int = 32
    minimum: int = 1
    maximum: int = 256

    @classmethod
    def fixed(cls, limit: int) -> "ConcurrencyOptions":
        """Return those of a limit that never changes."""
        return cls(limit, limit, limit)


class ConcurrencyLimiter:
    """A semaphore for requests to one host, first in, first out, whose size adapts. It is used by one event loop.

    Additive increase, only while requests wait for a slot: by one for each response until the first decrease (as in
    TCP's slow start), then by one for each round of responses. Multiplicative decrease, at most once for the requests
    that are on their way together: by half on a response that says to wait, and on errors above a tenth of a round; by
    a quarter, the first time by half, on a mean latency of twice the usual one. Latency and errors that may be those of
    single pages never take it below a quarter of the initial size, since some pages just take longer or fail: requests
    for such a page must not slow down all others.

    >>> ConcurrencyLimiter(ConcurrencyOptions(initial=4)).limit
    4
    """

    def __init__(self, options: ConcurrencyOptions) -> None:
        self._options = options
        self._is_adaptive = options.minimum < options.maximum
        self._limit = float(options.initial)
        self._in_use = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_starting = True
        self._decreased_at = float("-inf")
        self._baseline = 0.0
        self._begin_round()

    @property
    def limit(self) -> int:
        """How many requests may be on their way now."""
        return int(self._limit)

    def locked(self) -> bool:
        """Return whether `acquire` would wait."""
        return bool(self._waiting) or self._in_use >= self.limit

    async def acquire(self) -> bool:
        """Wait for a slot; always returns True, as semaphores do."""
        if not self.locked():
            self._in_use += 1
            return True
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):
                    self._waiting.remove(turn)
                self._grant_slots()  # those that came in the meantime queue after it
            else:
                self.release()  # the slot was given at the same moment
            raise
        return True

    def release(self) -> None:
        """Give a slot back."""
        self._in_use -= 1
        self._grant_slots()

    def record_response(self, sent_at: float, now: float) -> None:
        """Record a response. sent_at, now: times of the event loop."""
        if not self._is_adaptive:
            return
        if self._waiting:
            self._limit += 1 if self._is_starting else 1 / self._limit
            self._limit = min(self._limit, self._options.maximum)
            self._grant_slots()
        self._record_latency(sent_at, now)

    def record_abandoned(self, sent_at: float, now: float) -> None:
        """Record a request that was given up, without a response, after that time."""
        if self._is_adaptive:
            self._record_latency(sent_at, now)

    def record_failure(self, sent_at: float, now: float, *, of_page: bool = False) -> None:
        """Record an error: a timeout, a broken or refused connection, a status of 500 and above.

        of_page: whether it may be one of the requested page alone, such as a status.
        """
        if not self._is_adaptive or sent_at < self._decreased_at:
            return
        self._responses += 1
        self._errors += 1
        if self._errors >= _MAX_ERROR_SHARE * self._limit:
            self._decrease(_HALF, self._page_floor() if of_page else self._options.minimum, now)

    def record_throttling(self, sent_at: float, now: float) -> None:
        """Record a response that says to wait: 429 or 503."""
        if self._is_adaptive and sent_at >= self._decreased_at:
            self._decrease(_HALF, self._options.minimum, now)

    def _grant_slots(self) -> None:
        while self._waiting and self._in_use < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_use += 1
                turn.set_result(None)

    def _record_latency(self, sent_at: float, now: float) -> None:
        """Add a latency to the round, and judge the round when it is over."""
        if sent_at < self._decreased_at:
            return
        self._responses += 1
        self._total_latency += now - sent_at
        if self._responses < self._round:
            return
        mean, is_first = self._total_latency / (self._responses - self._errors), self._baseline == 0.0
        if not is_first and mean > _LATENCY_RISE * self._baseline + _LATENCY_SLACK:
            self._decrease(_HALF if self._is_starting else _THREE_QUARTERS, self._page_floor(), now)
        weight = 1.0 if is_first else _DRIFT if mean > self._baseline else _SETTLE
        self._baseline += weight * (mean - self._baseline)
        self._begin_round()

    def _page_floor(self) -> float:
        """Return the limit below which slow or failing pages do not take it."""
        return min(max(self._options.minimum, self._options.initial // 4), self._limit)

    def _decrease(self, factor: float, floor: float, now: float) -> None:
        self._limit = max(factor * self._limit, floor)
        self._is_starting = False
        self._decreased_at = now
        self._begin_round()

    def _begin_round(self) -> None:
        self._round = max(_MIN_ROUND, self._limit)
        self._responses = self._errors = 0
        self._total_latency = 0.0
