"""How archives stand with us, for the page about them and for metrics; whoever asks them tells it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from unlost.archives.archive import Archive

BreakerLabel = Literal["active", "trial", "dormant"]
"""Whether an archive is asked: it is; once, to see whether it answers again; it is not, for a while."""


@dataclass(frozen=True, slots=True)
class ArchiveStatus:
    """How one archive stands with us. Numbers are kept over restarts, times are in seconds since 1970.

    asked: whether it is asked unless it is named; why: what decides whether it is asked for a page, in a sentence.
    breaker: as above; until: when it is asked again, if it is dormant.
    failure: what came of asking it last, in words, unless it answered.
    has_map: whether a map or filters of it are in use. map_made, map_checked: of these: when they were made, if they
        tell, and when we last looked for newer ones.
    routed, routed_hits: how often its map said that it may hold a page, and how often it did.
    explored, explored_hits: how often it was asked although its map said no, and how often that was wrong.
    hit_rate: the share of all questions that it had an answer to, as learned.
    """

    archive: Archive
    is_queried: bool
    reason: str
    breaker: BreakerLabel = "active"
    retry_at: float | None = None
    failure: str | None = None
    has_map: bool = False
    map_created: float | None = None
    map_checked: float | None = None
    routed: int = 0
    routed_hits: int = 0
    explored: int = 0
    explored_hits: int = 0
    hit_rate: float | None = None


class ArchiveStatusProvider(Protocol):
    """Whoever knows how archives stand."""

    def archive_statuses(self) -> Sequence[ArchiveStatus]:
        """Return all archives of the registry, in its order."""
        ...
