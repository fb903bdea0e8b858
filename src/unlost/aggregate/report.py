"""What came of each archive beside the copies that were found, so that nobody takes a failure for an absence."""

from dataclasses import dataclass
from typing import Literal

from unlost.formats import upstream

ArchiveOutcome = (
    upstream.UpstreamOutcome
    | Literal[
        "dormant",  # it failed so often that it is not asked for a while
        "not-now",  # its limits are used up, or it said to wait
        "excluded",  # it does not show the page: an answer, too
        "incomplete",  # it listed some copies and then failed, or has more than it lists
    ]
)
"""What came of asking an archive, or why it was not asked although it should have been."""

ANSWERED_OUTCOMES = frozenset({"hit", "miss", "excluded"})
"""The outcomes after which nothing more is to be expected of an archive."""


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What came of one archive that was to be asked for a page.

    archive: its id. reason: why it was to be asked. outcome: what came of it.
    mementos: how many copies it listed.
    duration_ms: from asking to the end of the answer.
    message: what went wrong, in a sentence; empty if nothing did.
    """

    archive: str
    reason: upstream.RoutingReason
    outcome: ArchiveOutcome
    mementos: int = 0
    duration_ms: float = 0.0
    message: str = ""

    @property
    def has_answered(self) -> bool:
        """Whether the archive said all that it has to say."""
        return self.outcome in ANSWERED_OUTCOMES
