"""Tests of which archives are asked."""

from tests.virtual_clock import VirtualClock
from unlost.errors import FailedError, NotNowError
from unlost.recover.doors import UNLISTED, Closing, Doors

FAILED = FailedError("timeout", "a", "timeout")


def test_who_says_when_is_asked_then() -> None:
    """At once closed, until the time that it says."""
    doors = Doors(VirtualClock())
    assert doors.failed("a", NotNowError("used up", "a", 99.0, "quota"))
    assert (doors.closed["a"].until, doors.closed["a"].reason) == (99.0, "quota")


def test_who_always_fails_is_left_alone_for_a_while() -> None:
    """After five in a row; an answer in between begins anew, and after the rest one more is enough."""
    clock = VirtualClock()
    doors = Doors(clock)
    for _ in range(4):
        assert not doors.failed("a", FAILED)
    doors.answered("a")
    assert [doors.failed("a", FAILED) for _ in range(5)] == [False] * 4 + [True]
    assert doors.closed["a"].until == clock.now() + 600
    doors.reopen("a")
    assert doors.closed == {}
    assert doors.failed("a", FAILED)


def test_a_list_that_is_wanted_stays_wanted() -> None:
    """Whatever comes of questions that were on their way."""
    doors = Doors(VirtualClock())
    closing = doors.closed["a"] = Closing(5.0, UNLISTED, "no list")
    assert doors.failed("a", NotNowError("used up", "a", 99.0, "quota"))
    assert doors.closed["a"] == closing
