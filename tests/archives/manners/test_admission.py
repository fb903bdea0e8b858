"""The rules of manners: no limit is ever broken, nothing waits for ever, and what grew is forgotten in time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.archives.manners.windows import most_within
from unlost.archives.archive import Archive, Kind, Limit, Work
from unlost.archives.manners.admission import (
    DAY,
    HOUR,
    SHARE,
    SHARE_WITHOUT_CONTACT,
    admit,
    answered,
    refused,
    seconds_to_wait,
    told_to_wait,
)
from unlost.archives.manners.ledger import Ledger

NOW = 1_700_000_000.0
NOON = NOW - NOW % DAY + DAY / 2

limits = st.builds(
    Limit,
    st.integers(1, 60),
    st.floats(0.5, 5_000),
    st.lists(st.sampled_from(list(Work)), min_size=1, unique=True).map(tuple),
    st.just("a test"),
)


def archive(*limits: Limit, quotas: tuple[Limit, ...] = ()) -> Archive:
    """Return an archive with limits."""
    return Archive("a", "A", Kind.MEMENTO, limits=limits, quotas=quotas)


@given(
    st.lists(limits, min_size=1, max_size=3),
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.0, 0.0, 0.01, 0.3, 1.0, 7.0, 60.0, 900.0]) | st.floats(0, 2_000),
            st.sampled_from(list(Work)),
            st.booleans(),
            st.booleans(),
        ),
        max_size=60,
    ),
)
def test_no_window_of_a_limit_ever_has_more_than_its_share(
    limits: list[Limit], asks: list[tuple[float, Work, bool, bool]]
) -> None:
    """Whoever asks, with or without a contact, at whatever times: a sliding window of any limit is never too full."""
    asked, ledger, now = archive(*limits), Ledger(), NOW
    sent: list[tuple[float, Work]] = []
    for gap, work, waits, has_contact in asks:
        now += gap
        share = SHARE if has_contact else SHARE_WITHOUT_CONTACT
        ledger, admission = admit(Ledger.from_json(ledger.to_json()), asked, work, now, share)
        while waits and admission.reason is not None:
            assert admission.at > now
            now = admission.at
            ledger, admission = admit(ledger, asked, work, now, share)
        if admission.reason is None:
            sent.append((now, work))
    for limit in limits:
        times = [time for time, work in sent if work in limit.works]
        allowed = limit.requests * SHARE
        if times:
            assert most_within(times, limit.seconds) <= max(1, int(allowed))
            assert allowed >= 1 or most_within(times, limit.seconds / allowed) == 1


@given(limits, st.integers(1, 80))
def test_who_waits_is_let_through_at_the_rate_that_is_left(limit: Limit, questions: int) -> None:
    """Somebody who comes back when told to needs one try each, and gets nearly the share of the limit."""
    asked, ledger, now, work = archive(limit), Ledger(), NOW, limit.works[0]
    for _ in range(questions):
        ledger, admission = admit(ledger, asked, work, now)
        if admission.reason is not None:
            now = admission.at
            ledger, admission = admit(ledger, asked, work, now)
        assert admission.reason is None
    per_window = 0.75 * max(1, int(limit.requests * SHARE)) if limit.requests > 1 else SHARE
    assert now - NOW <= questions / per_window * limit.seconds + 0.01 * questions


@given(limits, st.integers(1, 30), st.sampled_from(list(Work)))
def test_a_question_is_counted_by_all_limits_or_by_none(limit: Limit, requests: int, work: Work) -> None:
    """What one limit does not allow leaves no trace in the others."""
    other = Limit(requests, 10.0, tuple(Work), "a test")
    asked, ledger = archive(limit, other), Ledger()
    for _ in range(200):
        after, admission = admit(ledger, asked, work, NOW)
        if admission.reason is not None:
            assert after == ledger
            return
        assert after != ledger
        ledger = after
    raise AssertionError("a limit that is never reached")


def test_a_quota_counts_a_day_of_utc() -> None:
    """80 of 100 are sent on a day, the next is told midnight, and then it begins anew; other kinds have their own."""
    quota = Limit(100, DAY, (Work.SEARCH,), "a test")
    asked, ledger = archive(quotas=(quota,)), Ledger()
    for _ in range(80):
        ledger, admission = admit(ledger, asked, Work.SEARCH, NOON)
        assert admission.reason is None
    ledger, admission = admit(ledger, asked, Work.SEARCH, NOON)
    assert (admission.at, admission.reason) == (NOON + DAY / 2, "quota")
    assert admit(ledger, asked, Work.REPLAY, NOON)[1].reason is None
    assert admit(ledger, asked, Work.SEARCH, NOON + DAY / 2)[1].reason is None


def test_a_clock_that_goes_back_and_forth_makes_no_room_in_a_quota() -> None:
    """What was counted on a day is counted when it comes again."""
    asked = archive(quotas=(Limit(10, DAY, (Work.INDEX,), "a test"),))
    ledger, sent = Ledger(), 0
    for each in range(40):
        ledger, admission = admit(ledger, asked, Work.INDEX, NOON + DAY / 2 + 600 - each % 2 * HOUR + each)
        sent += admission.reason is None
    assert sent == 8


def test_the_last_obstacle_is_the_one_that_is_told() -> None:
    """Who comes back at the time that was said finds nothing else in the way that was there before."""
    limit, quota = Limit(1, 60, (Work.INDEX,), "a test"), Limit(1, DAY, (Work.INDEX,), "a test")
    ledger, _ = admit(Ledger(), archive(limit, quotas=(quota,)), Work.INDEX, NOON)
    _, admission = admit(told_to_wait(ledger, NOON, NOON, 5), archive(limit, quotas=(quota,)), Work.INDEX, NOON)
    assert (admission.at, admission.reason) == (NOON + DAY / 2, "quota")


def test_waits_without_a_number_grow_and_are_forgotten() -> None:
    """A minute, two, four, up to an hour; several answers to questions sent together are told once."""
    ledger, now = Ledger(), NOW
    for minutes in (1, 2, 4, 8, 16, 32, 60, 60):
        together = now + 1
        for _ in range(10):
            ledger = told_to_wait(ledger, together, now, None)
        assert ledger.wait_until == together + 60 * minutes
        _, admission = admit(ledger, archive(), Work.INDEX, together)
        assert (admission.at, admission.reason, admission.troubled) == (ledger.wait_until, "told-to-wait", True)
        now = ledger.wait_until
    assert answered(ledger, now - 1) == ledger, "it was sent before the archive complained"
    assert answered(ledger, now) == Ledger()


@pytest.mark.parametrize(("wait", "seconds"), [(0, 1), (7, 7), (3 * DAY, DAY)])
def test_a_wait_with_a_number_is_obeyed(wait: float, seconds: float) -> None:
    """As long as it says, a second at least, a day at most: nobody can send us away for ever."""
    assert told_to_wait(Ledger(), NOW, NOW, wait).wait_until == NOW + seconds


def test_an_archive_that_says_now_and_refuses_again_is_asked_more_and_more_rarely() -> None:
    """`Retry-After: 0` for ever is not a licence to ask without pause."""
    ledger, now, pauses = Ledger(), NOW, []
    for _ in range(9):
        ledger = told_to_wait(ledger, now, now, 0)
        pauses.append(ledger.wait_until - now)
        now = ledger.wait_until
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_blocks_grow_from_an_hour_to_a_day() -> None:
    """Each refusal after a block is a longer block; those of questions sent together are one."""
    ledger, now = Ledger(), NOW
    for hours in (1, 2, 4, 8, 16, 24, 24):
        ledger = refused(refused(ledger, now, now), now + 1, now)
        assert ledger.blocked_until == now + hours * HOUR
        ledger = Ledger.from_json(ledger.to_json())
        _, admission = admit(ledger, archive(), Work.REPLAY, now + 1)
        assert (admission.at, admission.reason) == (ledger.blocked_until, "blocked")
        now = ledger.blocked_until
    assert refused(answered(ledger, now), now, now).blocked_until == now + HOUR


def test_a_lost_account_is_thought_used_up() -> None:
    """Nothing is sent for a minute, no token is there then, and nothing of a quota until midnight."""
    limit, quota = Limit(60, 60, (Work.INDEX,), "a test"), Limit(100, DAY, (Work.SEARCH,), "a test")
    asked = archive(limit, quotas=(quota,))
    ledger, admission = admit(Ledger(lost=True), asked, Work.INDEX, NOON)
    assert (admission.at, admission.reason) == (NOON + 60, "told-to-wait")
    assert not ledger.lost
    assert admit(ledger, asked, Work.SEARCH, NOON + 60)[1] == (NOON + DAY / 2, "quota", False)
    assert admit(ledger, asked, Work.INDEX, NOON + 60)[1].reason is None


def test_a_clock_that_was_wrong_blocks_nobody_for_ever() -> None:
    """What was written in the year 2100 holds for a day at most, and its counts are counts of today."""
    limit, quota = Limit(60, 60, (Work.INDEX,), "a test"), Limit(2, DAY, (Work.INDEX,), "a test")
    asked, later = archive(limit, quotas=(quota,)), NOON + 100 * 365 * DAY
    ledger, _ = admit(Ledger(), asked, Work.INDEX, later)
    ledger, admission = admit(refused(ledger, later, later), asked, Work.INDEX, NOON)
    assert admission.at == NOON + DAY
    ledger, admission = admit(ledger, asked, Work.INDEX, NOON + DAY)
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
def test_both_forms_of_retry_after_are_read(text: str | None, date: str | None, seconds: float | None) -> None:
    """Seconds or a date, by the archive's own clock if it tells it; what cannot be read is as if it were not there."""
    assert seconds_to_wait(text, date, NOW) == seconds
