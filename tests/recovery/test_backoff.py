"""Tests of the circuit breakers as a recovery uses them."""

from tests.virtual_clock import VirtualClock
from unlost.errors import FailedError, NotNowError
from unlost.http import LISTING_INCOMPLETE, CircuitBreakers, Suspension

FAILED = FailedError("timeout", "a", "timeout")


def test_not_now_error_opens_circuit_until_its_date() -> None:
    """The circuit opens at once, until the given time."""
    breakers = CircuitBreakers(VirtualClock())
    assert breakers.record_failure("a", NotNowError("used up", "a", 99.0, "quota"))
    assert (breakers.suspended["a"].until, breakers.suspended["a"].reason) == (99.0, "quota")


def test_five_consecutive_failures_open_circuit() -> None:
    """A success resets the count; half open, one more failure opens the circuit again."""
    clock = VirtualClock()
    breakers = CircuitBreakers(clock)
    for _ in range(4):
        assert not breakers.record_failure("a", FAILED)
    breakers.record_success("a")
    assert [breakers.record_failure("a", FAILED) for _ in range(5)] == [False] * 4 + [True]
    assert breakers.suspended["a"].until == clock.now() + 600
    breakers.half_open("a")
    assert breakers.suspended == {}
    assert breakers.record_failure("a", FAILED)


def test_later_failures_do_not_replace_listing_suspension() -> None:
    """Failures of requests in flight do not change a suspension for an incomplete listing."""
    breakers = CircuitBreakers(VirtualClock())
    suspension = breakers.suspended["a"] = Suspension(5.0, LISTING_INCOMPLETE, "no list")
    assert breakers.record_failure("a", NotNowError("used up", "a", 99.0, "quota"))
    assert breakers.suspended["a"] == suspension
