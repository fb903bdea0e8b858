"""Policies of requests, with all their numbers: circuit breakers, retries, timeouts and waits, one entry for each use.

docs/archives.md has the same tables; a test compares them with this module.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Self

BreakerUse = Literal["aggregate", "recover", "crawl", "harvest", "check", "check-captures", "watch", "sample", "vault"]
RetryUse = Literal["archives", "aggregate", "crawl", "harvest", "throttled", "watch"]
TimeoutUse = Literal["archives", "live"]
WaitUse = Literal["archives", "aggregate", "recoveries", "live", "overlap", "recover", "watch"]

PAGE_FAILURE_OUTCOMES = frozenset({"redirect", "http-5xx", "malformed", "too-large"})
"""The failures of an upstream request that may be those of single pages."""
FAILURE_OUTCOMES = frozenset({"timeout", "refused", "reset", "dns", "tls"}) | PAGE_FAILURE_OUTCOMES
"""The outcomes of an upstream request that are failures. A body that does not end in time is a `timeout`."""
UNREACHABLE_KINDS = frozenset({"refused", "dns", "unreachable", "proxy"})
"""The kinds in `unlost.http.models.FAILURE_KINDS` that mean that a site's host cannot be reached."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When a circuit opens, and for how long. Times are in seconds.

    The circuit opens after `failures` consecutive failures, or if `max_failure_share` of the responses within the
    window failed. A success resets the count and closes the circuit.

    Attributes:
        failures: Consecutive failures that open the circuit.
        pause: How long the circuit is open. Infinite: until the end of the run.
        growth: Factor by which the pause grows each time that a trial request fails.
        max_pause: Limit of that growth.
        kinds: Kinds of failure that count; None for all. Others neither count nor reset the count.
        page_kinds: Those that may be failures of single pages. They count only if pages of `page_hosts` different
            hosts failed within `page_window`.
        page_hosts: Number of these hosts.
        page_window: Length of that time.
        max_failure_share: Share of failures within the window that opens the circuit; None for no such limit.
        window: Length of the window.
        min_responses: Responses within the window below which the share does not matter.

    Raises:
        ValueError: A number is out of range.
    """

    failures: int
    pause: float
    growth: float = 1.0
    max_pause: float = math.inf
    kinds: frozenset[str] | None = None
    page_kinds: frozenset[str] = frozenset()
    page_hosts: int = 3
    page_window: float = 300.0
    max_failure_share: float | None = None
    window: float = 60.0
    min_responses: int = 20

    def __post_init__(self) -> None:
        """Validate the numbers."""
        if self.failures < 1 or self.page_hosts < 1 or self.min_responses < 1:
            raise ValueError("failures, page_hosts and min_responses: expected at least 1")
        # Not `<= 0`, which would accept NaN. A pause of 0 admits a trial request at once.
        if not self.pause >= 0 or not self.max_pause >= self.pause:
            raise ValueError("pause: expected a number from 0 to max_pause")
        if not 1 <= self.growth < math.inf:
            raise ValueError("growth: expected a number from 1")
        if not self.window > 0 or not self.page_window > 0:
            raise ValueError("window and page_window: expected positive numbers")
        if self.max_failure_share is not None and not 0 < self.max_failure_share <= 1:
            raise ValueError("max_failure_share: expected a number above 0 and at most 1")
        if self.kinds is not None and not self.page_kinds <= self.kinds:
            raise ValueError("page_kinds: expected a subset of kinds")

    def counts(self, kind: str) -> bool:
        """Return whether a kind of failure counts."""
        return self.kinds is None or kind in self.kinds


_HOST_POLICY = BreakerPolicy(failures=5, pause=3_600.0, kinds=UNREACHABLE_KINDS)

POLICIES: Mapping[BreakerUse, BreakerPolicy] = MappingProxyType(
    {
        # Users wait for the aggregator: it skips a failing archive early, and tries it again soon.
        "aggregate": BreakerPolicy(
            failures=3,
            pause=30.0,
            growth=2.0,
            max_pause=900.0,
            kinds=FAILURE_OUTCOMES,
            page_kinds=PAGE_FAILURE_OUTCOMES,
            max_failure_share=0.5,
        ),
        # A recovery takes hours, and other archives may have the same captures meanwhile.
        "recover": BreakerPolicy(failures=5, pause=600.0),
        "crawl": _HOST_POLICY,
        "harvest": _HOST_POLICY,
        # A visit is resumed by the next run, which queries the archive again.
        "check": BreakerPolicy(failures=5, pause=math.inf),
        # A sample of some 20 captures, of which 5 failures would be a quarter.
        "check-captures": BreakerPolicy(failures=3, pause=math.inf),
        # Fails if no archive can be reached because of the local network: no site can be visited then.
        "watch": BreakerPolicy(failures=1, pause=600.0),
        # Archives without an index fail on many single pages. The next run queries these again.
        "sample": BreakerPolicy(failures=20, pause=math.inf),
        "vault": BreakerPolicy(failures=5, pause=math.inf),
    }
)
"""The policy of each use of a circuit breaker."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A retry policy: which failed requests are sent again, and when. A retry costs as much as a new request.

    Attributes:
        retries: Number of retries after the first attempt.
        delay: Seconds before the first retry.
        growth: Factor of the delay for each further retry.
        kinds: Kinds of failure that are retried.

    Raises:
        ValueError: A number is out of range.
    """

    retries: int
    delay: float = 0.0
    growth: float = 4.0
    kinds: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Validate the numbers."""
        if self.retries < 0 or not self.delay >= 0 or not self.growth >= 1:
            raise ValueError("expected retries and a delay of at least 0, and a growth of at least 1")

    def delay_before(self, retry: int) -> float:
        """Return the seconds to wait before a retry; the first one is 0.

        >>> [RetryPolicy(3, 1.0).delay_before(retry) for retry in range(3)]
        [1.0, 4.0, 16.0]
        """
        return self.delay * self.growth**retry

    def allows(self, kind: str, retries: int) -> bool:
        """Return whether a request that failed with this kind, after `retries` retries, is sent again."""
        return kind in self.kinds and retries < self.retries


_PAGE_RETRIES = RetryPolicy(retries=1, kinds=frozenset({"timeout", "reset"}))

RETRIES: Mapping[RetryUse, RetryPolicy] = MappingProxyType(
    {
        "archives": RetryPolicy(retries=2, delay=1.0, kinds=frozenset({"reset", "status"})),
        # The user waits: another request to a failing archive would exceed the deadline.
        "aggregate": RetryPolicy(retries=0),
        "crawl": _PAGE_RETRIES,
        "harvest": _PAGE_RETRIES,
        # A site that responds with 429 or 503 without Retry-After; then that is the response.
        "throttled": RetryPolicy(retries=2, delay=30.0, kinds=frozenset({"429", "503"})),
        # For the home page, since about one request in a hundred fails anywhere. `silent`: no response.
        "watch": RetryPolicy(retries=2, kinds=frozenset({"500", "502", "504", "silent"})),
    }
)
"""The retries of each use. `archives` is the default of `ArchiveHttpClient`."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts of a request, in seconds.

    Attributes:
        connect: Name resolution, TCP connection and TLS handshake.
        first_byte: From sending the request to receiving the response headers. CDX servers take long before the
            first row of a large site.
        idle: Between two pieces of the body.
        total: The whole request with redirects, retries and their delays, without waiting for rate limits.
    """

    connect: float = 15.0
    first_byte: float = 60.0
    idle: float = 30.0
    total: float = 180.0

    @classmethod
    def within(cls, deadline: float) -> Self:
        """Return the timeouts of a request that must end within a deadline, as those of the aggregator."""
        return cls(min(5.0, deadline), deadline, deadline, deadline)


TIMEOUTS: Mapping[TimeoutUse, Timeouts] = MappingProxyType(
    {
        "archives": Timeouts(),
        # One fetch of the live web: 300 s allow 64 MiB at 220 KB/s.
        "live": Timeouts(connect=15.0, first_byte=30.0, idle=20.0, total=300.0),
    }
)
"""The timeouts of requests to archives and to the live web. Those of the aggregator follow from its deadline."""

MAX_WAITS: Mapping[WaitUse, float] = MappingProxyType(
    {
        "archives": 300.0,
        "aggregate": 2.0,  # at most half of the deadline: otherwise an archive without a permit counts as slow
        "recoveries": 900.0,
        "live": 300.0,  # that a host may demand by Retry-After before it is left for a later run
        "overlap": 60.0,  # for a live site, so that other sites are not delayed
        "recover": 60.0,  # for the live version of a site, so that archives are not delayed
        "watch": 0.0,  # a site that asks to wait is reported as such
    }
)
"""Seconds that a request may wait for rate limits, and as told by Retry-After. A longer wait fails at once."""
