"""Which archives are asked for now: not those that said to wait, whose quota is used up, or that always fail."""

from dataclasses import dataclass

from unlost.clock import Clock
from unlost.errors import ArchiveError, NotNowError

LISTING_INCOMPLETE = "unlisted"
"""Why an archive is closed that gave no whole list."""

_MAX_FAILURES = 5  # in a row, after which an archive is left alone
_SUSPENSION_SECONDS = 600.0  # for which it is


@dataclass(frozen=True, slots=True)
class Suspension:
    """Why an archive is not asked.

    until: when it may be again, seconds since 1970.
    reason: one word, as in NotNowError, or `failing`. message: for people.
    """

    until: float
    reason: str
    message: str


class CircuitBreakers:
    """The archives that are closed, by id."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[str, int] = {}
        self.suspended: dict[str, Suspension] = {}

    def record_failure(self, archive: str, error: ArchiveError) -> bool:
        """Take note of an error; return whether the archive is closed by it, or was before."""
        before = self.suspended.get(archive)
        if before is not None and before.reason == LISTING_INCOMPLETE:
            return True  # what was on its way does not change that its list is wanted first
        if isinstance(error, NotNowError):
            self.suspended[archive] = Suspension(error.until, error.reason, str(error))
            return True
        self._failures[archive] = self._failures.get(archive, 0) + 1
        if self._failures[archive] < _MAX_FAILURES:
            return False
        message = f"{archive}: {_MAX_FAILURES} failures in a row, the last: {error}"
        self.suspended[archive] = Suspension(self._clock.now() + _SUSPENSION_SECONDS, "failing", message)
        return True

    def record_success(self, archive: str) -> None:
        """Forget its failures."""
        self._failures.pop(archive, None)

    def half_open(self, archive: str) -> None:
        """Ask it again. One more failure closes it again."""
        self.suspended.pop(archive, None)
        self._failures[archive] = _MAX_FAILURES - 1
