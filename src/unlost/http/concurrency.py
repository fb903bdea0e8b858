"""Adaptive concurrency: how many requests may be in flight to one host."""

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass

_MIN_ROUND = 8  # responses needed to judge latency and errors
_MAX_ERROR_SHARE = 0.1  # share of errors in a round above which the limit is halved
_LATENCY_RISE = 2.0  # mean latency of a round, as a multiple of the baseline, that counts as a rise
_LATENCY_SLACK = 0.05  # seconds of latency that may be caused by this process
_HALF, _THREE_QUARTERS = 0.5, 0.75
_DRIFT, _SETTLE = 0.01, 0.5  # weight of a round in the baseline if its latency is higher, and if it is lower


@dataclass(frozen=True, slots=True)
class ConcurrencyOptions:
    """Bounds of a `ConcurrencyLimiter`, in requests in flight to one host. If all are equal, nothing adapts.

    Attributes:
        initial: Limit at the start.
        minimum: Lowest limit.
        maximum: Highest limit.
    """

    initial: int = 32
    minimum: int = 1
    maximum: int = 256

    @classmethod
    def fixed(cls, limit: int) -> "ConcurrencyOptions":
        """Return the options of a limit that never changes."""
        return cls(limit, limit, limit)


class ConcurrencyLimiter:
    """A FIFO semaphore for requests to one host, whose size adapts. It must not be shared between event loops.

    Additive increase, only while requests wait for a slot: by one for each response until the first decrease (as in
    TCP slow start, RFC 5681), then by one for each round of responses. Multiplicative decrease, at most once for
    requests that were in flight together: by half on a 429 or 503, and if more than a tenth of a round failed; by a
    quarter, the first time by half, if the mean latency of a round is twice the baseline. Latency and errors that may
    be those of single pages never reduce the limit below a quarter of its initial size, because requests for slow or
    failing pages must not slow down all others.

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
        """The current limit of requests in flight."""
        return int(self._limit)

    def locked(self) -> bool:
        """Return whether `acquire` would wait."""
        return bool(self._waiting) or self._in_use >= self.limit

    async def acquire(self) -> bool:
        """Wait for a slot. Always returns True, as `asyncio.Semaphore.acquire` does."""
        if not self.locked():
            self._in_use += 1
            return True
        slot = asyncio.get_running_loop().create_future()
        self._waiting.append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if slot.cancelled():
                with suppress(ValueError):
                    self._waiting.remove(slot)
                self._grant_slots()  # requests that arrived in the meantime are queued after it
            else:
                self.release()  # the slot was granted at the same moment
            raise
        return True

    def release(self) -> None:
        """Release a slot."""
        self._in_use -= 1
        self._grant_slots()

    def record_response(self, sent_at: float, now: float) -> None:
        """Record a response. Both arguments are times of the event loop."""
        if not self._is_adaptive:
            return
        if self._waiting:
            self._limit += 1 if self._is_starting else 1 / self._limit
            self._limit = min(self._limit, self._options.maximum)
            self._grant_slots()
        self._record_latency(sent_at, now)

    def record_abandoned(self, sent_at: float, now: float) -> None:
        """Record a request that was cancelled at `now`, without a response."""
        if self._is_adaptive:
            self._record_latency(sent_at, now)

    def record_failure(self, sent_at: float, now: float, *, of_page: bool = False) -> None:
        """Record a timeout, a broken or refused connection, or a status of 500 and above.

        Args:
            sent_at: When the request was sent, as time of the event loop.
            now: The current time of the event loop.
            of_page: The failure may be that of the requested page alone, such as a status.
        """
        if not self._is_adaptive or sent_at < self._decreased_at:  # in flight before the last decrease
            return
        self._responses += 1
        self._errors += 1
        if self._errors >= _MAX_ERROR_SHARE * self._limit:
            self._decrease(_HALF, self._page_floor() if of_page else self._options.minimum, now)

    def record_throttling(self, sent_at: float, now: float) -> None:
        """Record a 429 or 503 response."""
        if self._is_adaptive and sent_at >= self._decreased_at:
            self._decrease(_HALF, self._options.minimum, now)

    def _grant_slots(self) -> None:
        while self._waiting and self._in_use < self.limit:
            slot = self._waiting.popleft()
            if not slot.done():
                self._in_use += 1
                slot.set_result(None)

    def _record_latency(self, sent_at: float, now: float) -> None:
        """Add a latency to the round, and evaluate the round when it is complete."""
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
        """Return the limit below which slow or failing pages do not reduce it."""
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
