"""After a clock jump nothing is removed until an operator confirms the time."""

from collections.abc import Callable, Iterator

import pytest

from tests.virtual_clock import VirtualClock
from unlost.jobs import ClockGuard, Database

DAY = 86_400.0


class Machine:
    """A machine with a wall clock that may jump and a monotonic clock."""

    def __init__(self, url: str) -> None:
        self.wall, self.monotonic = VirtualClock(), 100.0
        self.database = Database(url, self.wall)
        self.database.prepare()
        self.guard = self.started()

    def started(self) -> ClockGuard:
        """Restart the service."""
        self.guard = ClockGuard(self.database, lambda: self.monotonic)
        return self.guard

    def run(self, seconds: float, jump: float = 0.0) -> str:
        """Let time pass and the wall clock jump, and return the result of a check."""
        self.monotonic += seconds
        self.wall.advance(seconds + jump)
        return self.guard.check()


@pytest.fixture
def machine(url: str) -> Iterator[Machine]:
    """Return a machine."""
    found = Machine(url)
    yield found
    found.database.close()


def test_elapsed_time_is_not_a_jump(machine: Machine) -> None:
    """Small differences and a few days of downtime are not reported."""
    assert machine.guard.check() == ""
    assert machine.run(60) == machine.run(3 * DAY) == machine.run(60, 30) == machine.run(60, -30) == ""
    machine.started()
    assert machine.run(6 * DAY) == ""
    assert machine.guard.reason() == ""


def restart_with_earlier_clock(machine: Machine) -> str:
    """Restart with a clock that is slow."""
    machine.started()
    return machine.run(0, -400)


def restart_after_a_week(machine: Machine) -> str:
    """Restart with a clock that is fast, or after a long downtime, which look the same."""
    machine.started()
    return machine.run(0, 7 * DAY + 1)


@pytest.mark.parametrize(
    ("jump", "reason"),
    [
        (lambda machine: machine.run(60, DAY), "jumped by +86400 s"),
        (lambda machine: machine.run(60, -DAY), "jumped by -86400 s"),
        (restart_with_earlier_clock, "400 s in the future"),
        (restart_after_a_week, "7 days ago"),
    ],
)
def test_jump_is_reported_until_confirmed(machine: Machine, jump: Callable[[Machine], str], reason: str) -> None:
    """Also after the clock was corrected, in other processes, and after a restart."""
    assert machine.guard.check() == ""
    assert reason in jump(machine)
    assert reason in machine.run(60)
    assert reason in ClockGuard(machine.database, lambda: 0.0).reason()
    machine.started()
    assert reason in machine.run(60)
    machine.guard.confirm()
    assert machine.guard.reason() == machine.run(60) == ""


def test_confirmation_applies_to_all_processes(machine: Machine) -> None:
    """Another process does not report the confirmed jump again, but reports the next one."""
    other = ClockGuard(machine.database, lambda: machine.monotonic)
    assert machine.guard.check() == other.check() == ""
    assert machine.run(60, DAY)
    machine.guard.confirm()
    assert other.check() == machine.run(60) == other.check() == ""
    machine.wall.advance(DAY)
    assert "jumped by +86400 s" in other.check()
