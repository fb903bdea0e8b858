"""Aggregate results of any size."""

from tests.aggregate.stubs import mementos_of
from tests.virtual_clock import VirtualClock
from unlost.aggregate import AggregateResult, ArchiveReport


def make_result(
    uri: str, size: int = 0, made: float | None = None, lifetime: float = 3600.0, archives: int = 3
) -> AggregateResult:
    """Return a result with `size` mementos, all of the first archive."""
    made = VirtualClock().now() if made is None else made
    datetimes = [f"{1996 + number // 86_400:04}0101{number // 3600 % 24:02}{number // 60 % 60:02}{number % 60:02}"
               for number in range(size)]  # fmt: skip
    reports = tuple(
        ArchiveReport(f"a{each}", "broadcast", "hit" if size and not each else "miss", 0 if each else size, 1.5 + each)
        for each in range(archives)
    )
    return AggregateResult(uri, mementos_of("a0", datetimes, uri), reports, ("z",), made, made + lifetime)
