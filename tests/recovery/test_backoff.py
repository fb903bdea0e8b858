"""Tests of the circuit breakers as a recovery uses them."""

from tests.virtual_clock import VirtualClock
from unlost.errors import FailedError, NotNowError
from unlost.http import FAILING, POLICIES, BreakerRegistry, Suspension
from unlost.recovery import LISTING_INCOMPLETE, record_archive_error

FAILED = FailedError("timeout", "a", "timeout")
POLICY = POLICIES["recover"]


def test_not_now_error_opens_circuit_until_its_date() -> None:
    """The circuit opens at once, until the given time."""
    breakers = BreakerRegistry(VirtualClock(), POLICY)
    record_archive_error(breakers, "a", NotNowError("used up", "a", 99.0, "quota"))
    assert breakers.suspended == {"a": Suspension(99.0, "quota", "used up")}


def test_consecutive_failures_open_circuit() -> None:
    """A success resets the count; half open, one more failure opens the circuit again, and a success closes it."""
    clock = VirtualClock()
    breakers = BreakerRegistry(clock, POLICY)

    def fail(count: int) -> bool:
        for _ in range(count):
            record_archive_error(breakers, "a", FAILED)
        return "a" in breakers.suspended

    assert not fail(POLICY.failures - 1)
    breakers.record_success("a")
    assert not fail(POLICY.failures - 1)
    assert fail(1)
    suspension = Suspension(clock.now() + POLICY.pause, FAILING, "a: 5 failures in a row, the last: timeout")
    assert breakers.suspended == {"a": suspension}
    breakers.breaker("a").half_open()
    assert breakers.suspended == {}
    assert fail(1)
    breakers.breaker("a").half_open()
    breakers.record_success("a")
    assert not fail(POLICY.failures - 1)


def test_later_failures_do_not_replace_listing_suspension() -> None:
    """Failures of requests in flight do not change a suspension for an incomplete listing."""
    breakers = BreakerRegistry(VirtualClock(), POLICY)
    breakers.breaker("a").open(5.0, LISTING_INCOMPLETE, "no list")
    record_archive_error(breakers, "a", NotNowError("used up", "a", 99.0, "quota"))
    assert breakers.suspended == {"a": Suspension(5.0, LISTING_INCOMPLETE, "no list")}
