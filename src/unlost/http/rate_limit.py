"""Rate limits, quotas and backoff of an archive, as pure functions of its state.

No clock, disk or network: limit_store stores the state, rate_limiter waits.

The limits themselves are in the registry. The defaults here follow what was observed of the Wayback Machine: careful
clients use 80 % of its limits; its 429 had no Retry-After in 2023, and clients waited 60 seconds; ignoring a 429 for
more than a minute leads to an hour of refused connections, doubling each time.
"""

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple

from unlost.dates import from_http, to_datetime
from unlost.errors import DateError, InputError
from unlost.registry.models import Archive, RateLimit, RequestKind

DEFAULT_SHARE = 0.8
"""Share of a limit that is used, as careful clients of the Wayback Machine do."""
SHARE_WITHOUT_CONTACT = DEFAULT_SHARE / 2
"""Share of a limit that is used without a contact: the archive cannot report problems to the user."""
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
_VERSION = 1
_MAX_BURST = 10  # requests sent together; more would wait for a connection anyway
_BURST_FRACTION = 16  # a burst is at most a sixteenth of a limit, because some archives count in shorter windows
_INTERVAL_MARGIN = 0.001  # seconds added to each interval, so that rounding never admits an additional request


@dataclass(frozen=True, slots=True)
class RateLimitState:
    """The rate-limit state of one archive. Times are seconds since 1970.

    Attributes:
        due: For each limit, when its token bucket will be full. A limit without an entry has a full bucket.
        counted: For each quota, a UTC day (days since 1970) and the number of requests sent on it.
        wait_until: When the archive may be queried again after a 429 or 503.
        waits: Number of consecutive 429 and 503.
        blocked_until: When the archive may be queried again after it refused a connection.
        blocked_for: Length of that block in seconds; 0 after the next response.
        lost: Earlier entries were lost, so that all limits count as exhausted.
    """

    due: Mapping[str, float] = field(default_factory=dict)
    counted: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    wait_until: float = 0.0
    waits: int = 0
    blocked_until: float = 0.0
    blocked_for: float = 0.0
    lost: bool = False

    def to_json(self) -> str:
        """Serialize the state to a line of JSON.

        >>> RateLimitState.from_json(RateLimitState(waits=1).to_json()) == RateLimitState(waits=1)
        True
        """
        return json.dumps({"unlost-limits": _VERSION, **asdict(self)}, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "RateLimitState":
        """Parse the output of `to_json`. Raises InputError for anything else."""
        try:
            fields = json.loads(text)
            version = fields.pop("unlost-limits")
            state = cls(
                due={str(name): _check_seconds(value) for name, value in fields.pop("due").items()},
                counted={
                    str(name): (_check_count(day), _check_count(n)) for name, (day, n) in fields.pop("counted").items()
                },
                wait_until=_check_seconds(fields.pop("wait_until")),
                waits=_check_count(fields.pop("waits")),
                blocked_until=_check_seconds(fields.pop("blocked_until")),
                blocked_for=_check_seconds(fields.pop("blocked_for")),
                lost=bool(fields.pop("lost")),
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise InputError(f"not an account of limits: {error!s:.100}") from error
        if fields or version != _VERSION:
            raise InputError(f"not an account of limits of version {_VERSION}")
        return state


def newer_version(data: bytes) -> int | None:
    """Return the format version of a state if it is later than the one supported; else None."""
    try:
        version = json.loads(data)["unlost-limits"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return version if isinstance(version, int) and version > _VERSION else None


def _check_seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError("expected a number of seconds")
    return float(value)


def _check_count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("expected a count")
    return value


class Admission(NamedTuple):
    """The decision whether a request may be sent.

    Attributes:
        at: When it may be sent. If that is in the future, the request was not counted: call `admit` again then.
        reason: Why it may not be sent now, as in NotNowError; None if it may, and was counted.
        has_backoff: The state has a wait or a block, so that `record_response` would change it.
    """

    at: float
    reason: str | None
    has_backoff: bool


@dataclass(frozen=True, slots=True)
class _TokenBucket:
    """A token bucket, expressed as two durations.

    Attributes:
        interval: Seconds until a token is added.
        slack: Seconds that a request may be early: the interval times all tokens but one.
    """

    interval: float
    slack: float


def token_bucket(limit: RateLimit, share: float = DEFAULT_SHARE) -> _TokenBucket:
    """Return the token bucket for a limit, so that no window of `limit.seconds` ever exceeds the share.

    A bucket of b tokens admits (seconds + (b - 1) intervals) / interval + 1 requests in a window, both ends included.
    The interval is chosen so that this is at most what the share allows: some servers count in sliding windows. If the
    share is less than one request, one is sent in a longer time.

    >>> token_bucket(RateLimit(30, 60, (RequestKind.INDEX,), "docs"))  # 24 a minute: 2 at once, then 1 each 2.61 s
    _TokenBucket(interval=2.609..., slack=2.609...)
    """
    allowed = limit.requests * share
    if allowed < 1:
        return _TokenBucket(limit.seconds / allowed + _INTERVAL_MARGIN, 0.0)
    burst = min(_MAX_BURST, 1 + int(allowed) // _BURST_FRACTION)
    interval = limit.seconds / (int(allowed) - burst + 1) + _INTERVAL_MARGIN
    return _TokenBucket(interval, (burst - 1) * interval)


def admit(
    state: RateLimitState, archive: Archive, kind: RequestKind, now: float, share: float = DEFAULT_SHARE
) -> tuple[RateLimitState, Admission]:
    """Count a request if every limit and quota for its kind allows it now; otherwise return when to try again.

    Nothing is reserved for that time: the first process that tries again sends first. A process that wakes up late,
    such as after the machine was suspended, therefore never catches up with a burst.
    """
    if state.lost:
        state = _exhausted_state(archive, now, share)
    state = _clamp_times(state, archive, now)
    limits = {_limit_key(limit): token_bucket(limit, share) for limit in archive.limits if kind in limit.works}
    quotas = {_limit_key(quota): max(1, int(quota.requests * share)) for quota in archive.quotas if kind in quota.works}
    has_backoff = bool(state.waits or state.blocked_for)

    today = int(now // DAY)
    # After the clock was set back, a count of tomorrow counts as today's: otherwise it would be dropped tomorrow.
    used = {name: (day, count) for name, (day, count) in state.counted.items() if day >= today}
    unused = (today, 0)
    constraints = [(state.blocked_until, "blocked"), (state.wait_until, "told-to-wait")]
    constraints += [((today + 1) * DAY, "quota") for name, most in quotas.items() if used.get(name, unused)[1] >= most]
    constraints += [(state.due.get(name, 0.0) - each.slack, "rate") for name, each in limits.items()]
    at, reason = max(constraints)
    if at > now:
        return state, Admission(at, reason, has_backoff)

    # Full buckets and past days need no entry.
    due = {name: full for name, full in state.due.items() if full > now}
    due |= {name: max(due.get(name, 0.0), now) + each.interval for name, each in limits.items()}
    counted = used | {name: (day, count + 1) for name in quotas for day, count in [used.get(name, unused)]}
    return replace(state, due=due, counted=counted), Admission(now, None, has_backoff)


def record_throttling(state: RateLimitState, now: float, sent: float, wait: float | None) -> RateLimitState:
    """Return the state after a 429 or 503.

    Args:
        state: The state before.
        now: The current time.
        sent: When the request was admitted. Several responses to requests that were in flight together count once.
        wait: Seconds to wait according to Retry-After, of which at most a day is respected. None if the response has
            none: then a minute, doubling with each consecutive one up to an hour.
    """
    is_new = sent >= state.wait_until
    waits = state.waits + 1 if is_new else max(1, state.waits)
    doubled = 2.0 ** min(waits - 1, 20)
    # The wait also grows for an archive that keeps sending 429 with `Retry-After: 0`.
    seconds = min(MINUTE * doubled, HOUR) if wait is None else max(wait, min(doubled, MINUTE))
    return replace(state, waits=waits, wait_until=max(state.wait_until, now + min(seconds, DAY)))


def record_refusal(state: RateLimitState, now: float, sent: float, *, is_confirmed: bool = True) -> RateLimitState:
    """Return the state after an archive refused a connection: a block of an hour, doubling up to a day.

    The Wayback Machine refuses connections of clients that ignored its 429 for more than a minute; it does so for an
    hour, doubling each time.

    Args:
        state: The state before.
        now: The current time.
        sent: When the request was admitted, as for `record_throttling`.
        is_confirmed: The network is known to work otherwise. If not, the cause may be a local one, and the block is
            a minute, doubling up to an hour.
    """
    if sent < state.blocked_until:
        return state
    shortest, longest = (HOUR, DAY) if is_confirmed else (MINUTE, HOUR)
    seconds = min(max(shortest, 2 * state.blocked_for), longest)
    return replace(state, blocked_for=seconds, blocked_until=now + seconds)


def refund_quota(state: RateLimitState, archive: Archive, kind: RequestKind, at: float) -> RateLimitState:
    """Return the state after a request admitted at `at` could not be sent: quotas do not count it."""
    names = {_limit_key(quota) for quota in archive.quotas if kind in quota.works}
    today = int(at // DAY)
    counted = {
        name: (day, count - 1) if name in names and day == today and count else (day, count)
        for name, (day, count) in state.counted.items()
    }
    return replace(state, counted=counted)


def clear_backoff(state: RateLimitState) -> RateLimitState:
    """Return the state without blocks and waits. Rates and quotas still count what was sent."""
    return replace(state, waits=0, wait_until=0.0, blocked_for=0.0, blocked_until=0.0)


class ArchiveBackoff(NamedTuple):
    """Why an archive must not be queried now.

    Attributes:
        reason: As in NotNowError.
        until: When it may be queried again, in seconds since 1970.
    """

    reason: str
    until: float


def current_backoff(
    state: RateLimitState, archive: Archive, now: float, share: float = DEFAULT_SHARE
) -> ArchiveBackoff | None:
    """Return the block, wait or exhausted quota that ends last; None if there is none.

    >>> from unlost.registry.models import ArchiveKind
    >>> current_backoff(RateLimitState(blocked_until=7200.0), Archive("a", "A", ArchiveKind.MEMENTO), 0.0)
    ArchiveBackoff(reason='blocked', until=7200.0)
    """
    if state.lost:
        state = _exhausted_state(archive, now, share)
    state = _clamp_times(state, archive, now)
    backoffs = [ArchiveBackoff("blocked", state.blocked_until), ArchiveBackoff("told-to-wait", state.wait_until)]
    today = int(now // DAY)
    for quota in archive.quotas:
        day, count = state.counted.get(_limit_key(quota), (today, 0))
        if day >= today and count >= max(1, int(quota.requests * share)):
            backoffs.append(ArchiveBackoff("quota", (today + 1) * DAY))
    last = max(backoffs, key=lambda backoff: backoff.until)
    return last if last.until > now else None


def record_response(state: RateLimitState, sent: float) -> RateLimitState:
    """Return the state after a response: waits and blocks that began before `sent` are cleared."""
    if sent < max(state.wait_until, state.blocked_until):
        return state
    return replace(state, waits=0, wait_until=0.0, blocked_for=0.0, blocked_until=0.0)


def parse_retry_after(retry_after: str | None, date: str | None, now: float) -> float | None:
    """Return the seconds to wait according to a Retry-After header (RFC 9110, section 10.2.3); None if it is not valid.

    Args:
        retry_after: A number of seconds, or an HTTP date.
        date: The Date header of the response, with which an HTTP date is compared, so that a difference between the
            two clocks does not matter.
        now: The current time, used without a Date header.

    >>> parse_retry_after("120", None, 0.0), parse_retry_after("soon", None, 0.0)
    (120.0, None)
    >>> parse_retry_after("Mon, 10 Feb 2014 00:02:00 GMT", "Mon, 10 Feb 2014 00:00:00 GMT", 0.0)
    120.0
    """
    text = (retry_after or "").strip()[:100]
    if re.fullmatch(r"\d{1,15}(\.\d{1,15})?", text, re.ASCII):
        return float(text)
    try:
        moment = to_datetime(from_http(text)).timestamp()
    except DateError:
        return None
    with suppress(DateError):
        now = to_datetime(from_http((date or "")[:100])).timestamp()
    return max(0.0, moment - now)


def _limit_key(limit: RateLimit) -> str:
    return f"{limit.requests}/{limit.seconds:g} {'+'.join(sorted(limit.works))}"


def _exhausted_state(archive: Archive, now: float, share: float) -> RateLimitState:
    """Return a state in which every limit and quota is used up."""
    buckets = {_limit_key(limit): token_bucket(limit, share) for limit in archive.limits}
    return RateLimitState(
        due={name: now + each.slack + each.interval for name, each in buckets.items()},
        counted={_limit_key(quota): (int(now // DAY), quota.requests) for quota in archive.quotas},
        wait_until=now + MINUTE,
    )


def _clamp_times(state: RateLimitState, archive: Archive, now: float) -> RateLimitState:
    """Return the state without times that only a wrong clock can have written.

    No wait is longer than a day, or than ten windows of its limit; a count of a day after tomorrow is today's.
    """
    today = int(now // DAY)
    furthest = {_limit_key(limit): now + 10 * limit.seconds for limit in archive.limits}
    return replace(
        state,
        due={name: min(full, furthest.get(name, full)) for name, full in state.due.items()},
        counted={name: (day if day <= today + 1 else today, count) for name, (day, count) in state.counted.items()},
        wait_until=min(state.wait_until, now + DAY),
        blocked_until=min(state.blocked_until, now + DAY),
    )
