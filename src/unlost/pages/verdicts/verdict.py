"""What may be wrong with a page."""

from dataclasses import dataclass
from enum import StrEnum


class VerdictKind(StrEnum):
    """Why a page that came with a good status is none."""

    SOFT_404 = "soft-404"
    """The site has no such page, or had an accident, and says so in words only."""
    PARKED = "parked"
    """The domain has no site: it is for sale, full of advertising, or was never filled."""
    HIJACKED = "hijacked"
    """Somebody else has the domain, and uses its good name for something else."""
    LOGIN_WALL = "login-wall"
    """The page is only for those whom the site knows."""
    CONSENT_WALL = "consent-wall"
    """Something is to be agreed to, or proved, before the page is shown."""
    ARCHIVE_ERROR = "archive-error"
    """It is the archive that speaks, not the site."""


@dataclass(frozen=True, slots=True)
class PageVerdict:
    """Why a page is rejected.

    reason: what was found, in words, for people; it may quote the page, with nothing in it but printable characters.
    """

    kind: VerdictKind
    reason: str
