"""Rate-limit rules: no limit is exceeded, waits are bounded, and backoff is reset."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.http.rate_limits.windows import most_within
from unlost.http import (
    DAY,
    DEFAULT_SHARE,
    HOUR,
    SHARE_WITHOUT_CONTACT,
    RateLimitState,
    admit,
    parse_retry_after,
    record_refusal,
    record_response,
    record_throttling,
)
from unlost.registry import Archive, ArchiveKind, RateLimit, RequestKind

NOW = 1_700_000_000.0
NOON = NOW - NOW % DAY + DAY / 2

limits = st.builds(
    RateLimit,
    st.integers(1, 60),
    st.floats(0.5, 5_000),
    st.lists(st.sampled_from(list(RequestKind)), min_size=1, unique=True).map(tuple),
    st.just("a test"),
)


def archive(*limits: RateLimit, quotas: tuple[RateLimit, ...] = ()) -> Archive:
    """Return an archive with limits."""
    return Archive("a", "A", ArchiveKind.MEMENTO, limits=limits, quotas=quotas)


@given(
    st.lists(limits, min_size=1, max_size=3),
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.0, 0.0, 0.01, 0.3, 1.0, 7.0, 60.0, 900.0]) | st.floats(0, 2_000),
            st.sampled_from(list(RequestKind)),
            st.booleans(),
            st.booleans(),
        ),
        max_size=60,
    ),
)
def test_no_window_exceeds_the_share_of_a_limit(
    limits: list[RateLimit], asks: list[tuple[float, RequestKind, bool, bool]]
) -> None:
    """For any sequence of requests, with or without a contact, in any sliding window."""
    target, state, now = archive(*limits), RateLimitState(), NOW
    sent: list[tuple[float, RequestKind]] = []
    for gap, work, waits, has_contact in asks:
        now += gap
        share = DEFAULT_SHARE if has_contact else SHARE_WITHOUT_CONTACT
        state, admission = admit(RateLimitState.from_json(state.to_json()), target, work, now, share)
        while waits and admission.reason is not None:
            assert admission.at > now
            now = admission.at
            state, admission = admit(state, target, work, now, share)
        if admission.reason is None:
            sent.append((now, work))
    for limit in limits:
        times = [time for time, work in sent if work in limit.works]
        allowed = limit.requests * DEFAULT_SHARE
        if times:
            assert most_within(times, limit.seconds) <= max(1, int(allowed))
            assert allowed >= 1 or most_within(times, limit.seconds / allowed) == 1


@given(limits, st.integers(1, 80))
def test_waiting_requests_are_admitted_at_the_rate(limit: RateLimit, questions: int) -> None:
    """A client that retries at the reported time needs one try each, and gets nearly the share of the limit."""
    target, state, now, work = archive(limit), RateLimitState(), NOW, limit.works[0]
    for _ in range(questions):
        state, admission = admit(state, target, work, now)
        if admission.reason is not None:
            now = admission.at
            state, admission = admit(state, target, work, now)
        assert admission.reason is None
    per_window = 0.75 * max(1, int(limit.requests * DEFAULT_SHARE)) if limit.requests > 1 else DEFAULT_SHARE
    assert now - NOW <= questions / per_window * limit.seconds + 0.01 * questions


@given(limits, st.integers(1, 30), st.sampled_from(list(RequestKind)))
def test_request_counts_for_all_limits_or_none(limit: RateLimit, requests: int, work: RequestKind) -> None:
    """A request that one limit rejects is not counted by others."""
    other = RateLimit(requests, 10.0, tuple(RequestKind), "a test")
    target, state = archive(limit, other), RateLimitState()
    for _ in range(200):
        after, admission = admit(state, target, work, NOW)
        if admission.reason is not None:
            assert after == state
            return
        assert after != state
        state = after
    raise AssertionError("a limit that is never reached")


def test_quota_counts_a_utc_day() -> None:
    """80 of 100 are sent on a day, the next waits until midnight; other request kinds have their own quota."""
    quota = RateLimit(100, DAY, (RequestKind.SEARCH,), "a test")
    target, state = archive(quotas=(quota,)), RateLimitState()
    for _ in range(80):
        state, admission = admit(state, target, RequestKind.SEARCH, NOON)
        assert admission.reason is None
    state, admission = admit(state, target, RequestKind.SEARCH, NOON)
    assert (admission.at, admission.reason) == (NOON + DAY / 2, "quota")
    assert admit(state, target, RequestKind.REPLAY, NOON)[1].reason is None
    assert admit(state, target, RequestKind.SEARCH, NOON + DAY / 2)[1].reason is None


def test_clock_changes_do_not_extend_a_quota() -> None:
    """Requests of a day still count when the clock returns to it."""
    target = archive(quotas=(RateLimit(10, DAY, (RequestKind.INDEX,), "a test"),))
    state, sent = RateLimitState(), 0
    for each in range(40):
        state, admission = admit(state, target, RequestKind.INDEX, NOON + DAY / 2 + 600 - each % 2 * HOUR + each)
        sent += admission.reason is None
    assert sent == 8


def test_last_constraint_is_reported() -> None:
    """A client that retries at the reported time is not rejected for an earlier constraint."""
    limit, quota = RateLimit(1, 60, (RequestKind.INDEX,), "a test"), RateLimit(1, DAY, (RequestKind.INDEX,), "a test")
    state, _ = admit(RateLimitState(), archive(limit, quotas=(quota,)), RequestKind.INDEX, NOON)
    _, admission = admit(
        record_throttling(state, NOON, NOON, 5), archive(limit, quotas=(quota,)), RequestKind.INDEX, NOON
    )
    assert (admission.at, admission.reason) == (NOON + DAY / 2, "quota")


def test_waits_without_retry_after_grow_and_are_reset() -> None:
    """A minute, two, four, up to an hour; concurrent responses count once."""
    state, now = RateLimitState(), NOW
    for minutes in (1, 2, 4, 8, 16, 32, 60, 60):
        together = now + 1
        for _ in range(10):
            state = record_throttling(state, together, now, None)
        assert state.wait_until == together + 60 * minutes
        _, admission = admit(state, archive(), RequestKind.INDEX, together)
        assert (admission.at, admission.reason, admission.has_backoff) == (state.wait_until, "told-to-wait", True)
        now = state.wait_until
    assert record_response(state, now - 1) == state, "it was sent before the archive complained"
    assert record_response(state, now) == RateLimitState()


@pytest.mark.parametrize(("wait", "seconds"), [(0, 1), (7, 7), (3 * DAY, DAY)])
def test_retry_after_is_obeyed(wait: float, seconds: float) -> None:
    """Within a second and a day."""
    assert record_throttling(RateLimitState(), NOW, NOW, wait).wait_until == NOW + seconds


def test_retry_after_zero_followed_by_429_backs_off() -> None:
    """`Retry-After: 0` does not allow requests without a pause."""
    state, now, pauses = RateLimitState(), NOW, []
    for _ in range(9):
        state = record_throttling(state, now, now, 0)
        pauses.append(state.wait_until - now)
        now = state.wait_until
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_blocks_grow_from_an_hour_to_a_day() -> None:
    """Each refusal after a block is a longer block; those of concurrent requests are one."""
    state, now = RateLimitState(), NOW
    for hours in (1, 2, 4, 8, 16, 24, 24):
        state = record_refusal(record_refusal(state, now, now), now + 1, now)
        assert state.blocked_until == now + hours * HOUR
        state = RateLimitState.from_json(state.to_json())
        _, admission = admit(state, archive(), RequestKind.REPLAY, now + 1)
        assert (admission.at, admission.reason) == (state.blocked_until, "blocked")
        now = state.blocked_until
    assert record_refusal(record_response(state, now), now, now).blocked_until == now + HOUR


def test_lost_state_counts_as_exhausted() -> None:
    """Nothing is sent for a minute, then without a burst, and nothing of a quota until midnight."""
    limit, quota = (
        RateLimit(60, 60, (RequestKind.INDEX,), "a test"),
        RateLimit(100, DAY, (RequestKind.SEARCH,), "a test"),
    )
    target = archive(limit, quotas=(quota,))
    state, admission = admit(RateLimitState(lost=True), target, RequestKind.INDEX, NOON)
    assert (admission.at, admission.reason) == (NOON + 60, "told-to-wait")
    assert not state.lost
    assert admit(state, target, RequestKind.SEARCH, NOON + 60)[1] == (NOON + DAY / 2, "quota", False)
    assert admit(state, target, RequestKind.INDEX, NOON + 60)[1].reason is None


def test_wrong_clock_blocks_for_a_limited_time() -> None:
    """An entry of the year 2100 blocks for at most a day, and its counts are those of today."""
    limit, quota = RateLimit(60, 60, (RequestKind.INDEX,), "a test"), RateLimit(2, DAY, (RequestKind.INDEX,), "a test")
    target, later = archive(limit, quotas=(quota,)), NOON + 100 * 365 * DAY
    state, _ = admit(RateLimitState(), target, RequestKind.INDEX, later)
    state, admission = admit(record_refusal(state, later, later), target, RequestKind.INDEX, NOON)
    assert admission.at == NOON + DAY
    state, admission = admit(state, target, RequestKind.INDEX, NOON + DAY)
    assert admission.reason is None


@pytest.mark.parametrize(
    ("text", "date", "seconds"),
    [
        ("60", None, 60),
        (" 1.5 ", None, 1.5),
        ("Tue, 14 Nov 2023 22:14:20 GMT", None, 60),
        ("Tue, 14 Nov 2023 20:00:30 GMT", "Tue, 14 Nov 2023 20:00:00 GMT", 30),
        ("Tue, 14 Nov 2000 20:00:30 GMT", None, 0),
        ("-5", None, None),
        ("1e9", None, None),
        ("", None, None),
        (None, None, None),
        ("٣", None, None),
        ("Tue, 99 Nov 2023 22:14:20 GMT", "rubbish", None),
    ],
)
def test_both_formats_of_retry_after_are_parsed(text: str | None, date: str | None, seconds: float | None) -> None:
    """Seconds, or a date relative to the archive's clock; invalid values are ignored."""
    assert parse_retry_after(text, date, NOW) == seconds
