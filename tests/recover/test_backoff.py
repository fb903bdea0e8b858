"""Tests of which archives are asked."""

from tests.virtual_clock import VirtualClock
from unlost.errors import FailedError, NotNowError
from unlost.http import LISTING_INCOMPLETE, CircuitBreakers, Suspension

FAILED = FailedError("timeout", "a", "timeout")


def test_who_says_when_is_asked_then() -> None:
    """At once closed, until the time that it says."""
    doors = CircuitBreakers(VirtualClock())
    assert doors.record_failure("a", NotNowError("used up", "a", 99.0, "quota"))
    assert (doors.suspended["a"].until, doors.suspended["a"].reason) == (99.0, "quota")


def test_who_always_fails_is_left_alone_for_a_while() -> None:
    """After five in a row; an answer in between begins anew, and after the rest one more is enough."""
    clock = VirtualClock()
    doors = CircuitBreakers(clock)
    for _ in range(4):
        assert not doors.record_failure("a", FAILED)
    doors.record_success("a")
    assert [doors.record_failure("a", FAILED) for _ in range(5)] == [False] * 4 + [True]
    assert doors.suspended["a"].until == clock.now() + 600
    doors.half_open("a")
    assert doors.suspended == {}
    assert doors.record_failure("a", FAILED)


def test_a_list_that_is_wanted_stays_wanted() -> None:
    """Whatever comes of questions that were on their way."""
    doors = CircuitBreakers(VirtualClock())
    closing = doors.suspended["a"] = Suspension(5.0, LISTING_INCOMPLETE, "no list")
    assert doors.record_failure("a", NotNowError("used up", "a", 99.0, "quota"))
    assert doors.suspended["a"] == closing
