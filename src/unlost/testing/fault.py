"""What can be wrong with an archive."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Fault:
    """How an archive fails. Made by one of the methods, and given to `FakeArchive.fail`.

    status: what it answers in the place of the truth; None if it does not.
    retry_after: what it says there, seconds; None for nothing.
    body: what it says beside that. delay: seconds before it answers. is_dead: whether it breaks the connection.

    >>> Fault.too_many(retry_after=60).status, Fault.slow(3).delay
    (429, 3)
    """

    status: int | None = None
    retry_after: int | None = None
    body: bytes = b""
    delay: float = 0.0
    is_dead: bool = False

    @classmethod
    def slow(cls, seconds: float) -> Self:
        """Return the fault of an archive that answers truly, but late; `math.inf` for never.

        The wait ends with the archive: no test has to wait for it.
        """
        return cls(delay=seconds)

    @classmethod
    def unavailable(cls, retry_after: int | None = None) -> Self:
        """Return that of one that answers 503. retry_after: seconds that it wants to be left alone."""
        return cls(503, retry_after, b"down for maintenance")

    @classmethod
    def too_many(cls, retry_after: int | None = None) -> Self:
        """Return that of one that answers 429. retry_after: the same."""
        return cls(429, retry_after, b"too many requests")

    @classmethod
    def dead(cls) -> Self:
        """Return that of one that takes connections and breaks them."""
        return cls(is_dead=True)

    @classmethod
    def garbage(cls) -> Self:
        """Return that of one that answers 200, and what it says is nothing."""
        return cls(200, None, b'\x00\xff<html>]}{,,; rel="memento"\xfe')
