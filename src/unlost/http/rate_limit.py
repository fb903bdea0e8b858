"""Rate limits, quotas and backoff of an archive, as pure functions on its state.

No clock, no disk, no network: limit_store stores the state, rate_limiter waits.
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

_VERSION = 1


@dataclass(frozen=True, slots=True)
class RateLimitState:
    """The account of one archive. `admission` has what is done with it. Times are seconds since 1970.

    due: for each limit, when its bucket will be full again; a limit that is not there has a full one.
    counted: for each quota, a day of UTC (days since 1970) and how many requests were sent on it.
    wait_until: when the archive may be asked again after it said 429 or 503.
    waits: how many times in a row it said so.
    blocked_until: when it may be asked again after it refused a connection.
    blocked_for: how long that block is or was, in seconds; 0 once the archive answered again.
    lost: whether earlier entries were lost, so that everything must be thought used up.
    """

    due: Mapping[str, float] = field(default_factory=dict)
    counted: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    wait_until: float = 0.0
    waits: int = 0
    blocked_until: float = 0.0
    blocked_for: float = 0.0
    lost: bool = False

    def to_json(self) -> str:
        """Return it as one line.

        >>> RateLimitState(waits=1).to_json() == RateLimitState.from_json(RateLimitState(waits=1).to_json()).to_json()
        True
        """
        return json.dumps({"unlost-limits": _VERSION, **asdict(self)}, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "RateLimitState":
        """Return what `to_json` wrote. Raises InputError for everything else."""
        try:
            found = json.loads(text)
            version = found.pop("unlost-limits")
            ledger = cls(
                due={str(name): _check_seconds(value) for name, value in found.pop("due").items()},
                counted={
                    str(name): (_check_count(day), _check_count(n)) for name, (day, n) in found.pop("counted").items()
                },
                wait_until=_check_seconds(found.pop("wait_until")),
                waits=_check_count(found.pop("waits")),
                blocked_until=_check_seconds(found.pop("blocked_until")),
                blocked_for=_check_seconds(found.pop("blocked_for")),
                lost=bool(found.pop("lost")),
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise InputError(f"not an account of limits: {error!s:.100}") from error
        if found or version != _VERSION:
            raise InputError(f"not an account of limits of version {_VERSION}")
        return ledger


def newer_version(data: bytes) -> int | None:
    """Return by which later version of the format an account was written; None if it is of none."""
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


DEFAULT_SHARE = 0.8
"""How much of a limit is used: what careful clients of the Wayback Machine use of its limits."""
SHARE_WITHOUT_CONTACT = DEFAULT_SHARE / 2
"""How much is used by somebody whom an archive cannot write to when something goes wrong."""
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
_MAX_BURST = 10  # questions at once; no more would find a connection anyway
_BURST_FRACTION = 16  # of what a limit allows, a burst is at most a sixteenth: some archives count in shorter spans
_INTERVAL_MARGIN = (
    0.001  # seconds that are added to each pause, so that rounding never makes room for one question more
)


class Admission(NamedTuple):
    """Whether a question may be sent.

    at: when. If that is later than now, the question was not counted: ask again then.
    reason: why not now, as in NotNowError; None if it may be sent, and was counted.
    troubled: whether the archive has to be told apart from one that always answered: `answered` would change something.
    """

    at: float
    reason: str | None
    has_backoff: bool


@dataclass(frozen=True, slots=True)
class _TokenBucket:
    """A token bucket in the form of two times.

    interval: seconds until a token comes back.
    slack: how many seconds early a question may be: all tokens but one.
    """

    interval: float
    slack: float


def token_bucket(limit: RateLimit, share: float = DEFAULT_SHARE) -> _TokenBucket:
    """Return how to keep a limit with a share of it, so that no span of its seconds ever has more.

    A bucket of b tokens lets (seconds + (b - 1) intervals) / interval + 1 questions through within the seconds, both
    ends included. The interval is chosen so that this is at most what the share allows; if that is less than one, one
    question is sent in a longer time.

    >>> pace(Limit(30, 60, (Work.INDEX,), "an example"))  # 24 in a minute, 2 at once, then one each 2.61 s
    _Pace(interval=2.609..., slack=2.609...)
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
    """Count a question if every limit and quota for its kind allows it now, or else say when to ask again.

    Nothing is promised for then: who asks first is sent first. So a process that wakes up late never sends in a hurry
    what it should have sent before.
    """
    if state.lost:
        state = _exhausted_state(archive, now, share)
    state = _clamp_times(state, archive, now)
    limits = {_limit_key(limit): token_bucket(limit, share) for limit in archive.limits if kind in limit.works}
    quotas = {_limit_key(quota): max(1, int(quota.requests * share)) for quota in archive.quotas if kind in quota.works}
    troubled = bool(state.waits or state.blocked_for)

    today = int(now // DAY)
    # By a clock that went back, what was counted tomorrow was counted today: else it would be forgotten tomorrow.
    used = {name: (day, count) for name, (day, count) in state.counted.items() if day >= today}
    unused = (today, 0)
    obstacles = [(state.blocked_until, "blocked"), (state.wait_until, "told-to-wait")]
    obstacles += [((today + 1) * DAY, "quota") for name, most in quotas.items() if used.get(name, unused)[1] >= most]
    obstacles += [(state.due.get(name, 0.0) - each.slack, "rate") for name, each in limits.items()]
    at, reason = max(obstacles)
    if at > now:
        return state, Admission(at, reason, troubled)

    # A bucket that is full, and a day that is over, need no entry.
    due = {name: full for name, full in state.due.items() if full > now}
    due |= {name: max(due.get(name, 0.0), now) + each.interval for name, each in limits.items()}
    counted = used | {name: (day, count + 1) for name in quotas for day, count in [used.get(name, unused)]}
    return replace(state, due=due, counted=counted), Admission(now, None, troubled)


def record_throttling(state: RateLimitState, now: float, sent: float, wait: float | None) -> RateLimitState:
    """Return the account after an archive said 429 or 503.

    sent: when the question was admitted. Several that were on their way together are told once.
    wait: how many seconds it asks for; None if it does not say. Then it is a minute, and twice as long each time that
        it says so again, up to an hour. Never more than a day is believed.
    """
    again = sent >= state.wait_until
    waits = state.waits + 1 if again else max(1, state.waits)
    doubled = 2.0 ** min(waits - 1, 20)
    # Who says "now" and then 429 again is asked at growing distances all the same.
    seconds = min(MINUTE * doubled, HOUR) if wait is None else max(wait, min(doubled, MINUTE))
    return replace(state, waits=waits, wait_until=max(state.wait_until, now + min(seconds, DAY)))


def record_refusal(state: RateLimitState, now: float, sent: float, *, is_confirmed: bool = True) -> RateLimitState:
    """Return the account after an archive refused a connection: a block of an hour, doubling up to a day.

    That is what the Wayback Machine does to clients that ignore its 429. sent: as for `told_to_wait`.
    is_confirmed: whether the network is known to work otherwise. If not, the cause may be a local one, and the block
        begins at a minute and doubles up to an hour.
    """
    if sent < state.blocked_until:
        return state
    shortest, longest = (HOUR, DAY) if is_confirmed else (MINUTE, HOUR)
    seconds = min(max(shortest, 2 * state.blocked_for), longest)
    return replace(state, blocked_for=seconds, blocked_until=now + seconds)


def refund_quota(state: RateLimitState, archive: Archive, kind: RequestKind, at: float) -> RateLimitState:
    """Return the account after a request that was admitted `at` a time could not be sent: no quota is charged."""
    names = {_limit_key(quota) for quota in archive.quotas if kind in quota.works}
    today = int(at // DAY)
    counted = {
        name: (day, count - 1) if name in names and day == today and count else (day, count)
        for name, (day, count) in state.counted.items()
    }
    return replace(state, counted=counted)


def clear_backoff(state: RateLimitState) -> RateLimitState:
    """Return the account without blocks and waits. Rates and quotas still count what was sent."""
    return replace(state, waits=0, wait_until=0.0, blocked_for=0.0, blocked_until=0.0)


class ArchiveBackoff(NamedTuple):
    """Why an archive is not queried at present. reason: as in NotNowError. until: seconds since 1970."""

    reason: str
    until: float


def current_backoff(
    state: RateLimitState, archive: Archive, now: float, share: float = DEFAULT_SHARE
) -> ArchiveBackoff | None:
    """Return the block, wait or used-up quota that holds requests to an archive back; None if there is none.

    >>> from unlost.registry.models import ArchiveKind
    >>> hold_of(Ledger(blocked_until=7200.0), Archive("a", "A", ArchiveKind.MEMENTO), 0.0)
    Hold(reason='blocked', until=7200.0)
    """
    if state.lost:
        state = _exhausted_state(archive, now, share)
    state = _clamp_times(state, archive, now)
    holds = [ArchiveBackoff("blocked", state.blocked_until), ArchiveBackoff("told-to-wait", state.wait_until)]
    today = int(now // DAY)
    for quota in archive.quotas:
        day, count = state.counted.get(_limit_key(quota), (today, 0))
        if day >= today and count >= max(1, int(quota.requests * share)):
            holds.append(ArchiveBackoff("quota", (today + 1) * DAY))
    last = max(holds, key=lambda hold: hold.until)
    return last if last.until > now else None


def record_response(state: RateLimitState, sent: float) -> RateLimitState:
    """Return the account after an archive answered: what grew is forgotten, unless it happened after `sent`."""
    if sent < max(state.wait_until, state.blocked_until):
        return state
    return replace(state, waits=0, wait_until=0.0, blocked_for=0.0, blocked_until=0.0)


def parse_retry_after(retry_after: str | None, date: str | None, now: float) -> float | None:
    """Return what the field Retry-After says, in seconds from now; None if it says nothing that can be understood.

    retry_after: a number of seconds, or an HTTP date, which is compared with that of the answer itself (`date`) if it
        has one: so it does not matter whether the two clocks agree.

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
    """Return an account of somebody who may just have sent as much as was allowed."""
    paces = {_limit_key(limit): token_bucket(limit, share) for limit in archive.limits}
    return RateLimitState(
        due={name: now + each.slack + each.interval for name, each in paces.items()},
        counted={_limit_key(quota): (int(now // DAY), quota.requests) for quota in archive.quotas},
        wait_until=now + MINUTE,
    )


def _clamp_times(state: RateLimitState, archive: Archive, now: float) -> RateLimitState:
    """Return an account without times that only a clock which was wrong can have written.

    Nothing lies further ahead than a day, or than some spans of its limit; what was counted on a day further away than
    tomorrow was counted today.
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
