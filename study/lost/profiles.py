"""Profiles of the 24 sites, with the numbers of pages, images and other files of the dissertation's Table 16."""

from dataclasses import dataclass
from enum import StrEnum


class ChangeRate(StrEnum):
    """Rate of change of a site. Over a third of the dissertation's sites did not change in 14 weeks."""

    STILL = "still"
    CALM = "calm"
    LIVELY = "lively"


@dataclass(frozen=True, slots=True)
class SiteProfile:
    """Properties of a site in week 0, when it is lost for the first time.

    Attributes:
        name: Name of the site.
        pages: Number of pages.
        images: Number of images.
        others: Number of documents, style sheets, scripts and ZIP files.
        rank: Popularity from 0 to 10, as ranked by search engines of the time.
        pace: Rate of change.
        breadth: Number of children of a page; a smaller number makes a deeper site.
        documents: Share of documents among the others.
        dynamic: Share of pages with a query in the URL.
        redesigned: Week in which all pages but the first got new URLs; None if never.
    """

    name: str
    pages: int
    images: int
    others: int
    rank: int
    pace: ChangeRate
    breadth: int = 8
    documents: float = 0.7
    dynamic: float = 0.0
    redesigned: int | None = None

    @property
    def size(self) -> int:
        """Number of resources in week 0."""
        return self.pages + self.images + self.others

    @property
    def host(self) -> str:
        """The host that it is on."""
        return f"{self.name}.example"


_S, _C, _L = ChangeRate.STILL, ChangeRate.CALM, ChangeRate.LIVELY

# Numbers of files and ranks are those of Table 16, in its order. The rest is made up, but for two sites of which the
# dissertation tells more: one had been redesigned when it was recovered for the second time, one is made by a program.
# fmt: off
SITES = (
    SiteProfile("school", 20, 23, 20, 4, _C, 6, 0.3),
    SiteProfile("chapel", 10, 50, 5, 2, _S, 10),
    SiteProfile("primary", 32, 36, 0, 3, _S, 8),
    SiteProfile("staff", 19, 25, 29, 4, _C, 20, 0.9),
    SiteProfile("trust", 24, 45, 10, 4, _S, 8),
    SiteProfile("meeting", 16, 28, 45, 6, _C, 12, 0.95),
    SiteProfile("museum", 27, 82, 2, 5, _S, 6),
    SiteProfile("laboratory", 38, 59, 45, 7, _C, 10, 0.9),
    SiteProfile("town", 96, 63, 3, 5, _L, 12),
    SiteProfile("kitchen", 67, 136, 1, 6, _L, 20),
    SiteProfile("islands", 60, 222, 5, 4, _S, 6),
    SiteProfile("game", 20, 213, 61, 6, _C, 5, 0.1),
    SiteProfile("privacy", 137, 48, 120, 8, _C, 8, 0.1),
    SiteProfile("pyramid", 158, 141, 45, 0, _L, 10),
    SiteProfile("preservation", 346, 42, 26, 8, _C, 10, 0.8, redesigned=-3),
    SiteProfile("people", 267, 165, 0, 6, _C, 30),
    SiteProfile("ranch", 173, 332, 0, 0, _S, 3),
    SiteProfile("coalition", 236, 195, 121, 7, _L, 8, 0.95),
    SiteProfile("professor", 160, 258, 222, 5, _S, 5, 0.8),
    SiteProfile("notes", 696, 22, 1, 6, _S, 12),
    SiteProfile("finance", 455, 312, 50, 6, _L, 10, 0.6),
    SiteProfile("fishing", 259, 890, 3, 5, _C, 15),
    SiteProfile("locker", 687, 529, 0, 4, _C, 4, dynamic=0.3),
    SiteProfile("music", 1298, 211, 0, 4, _L, 6, dynamic=0.95),
)
# fmt: on
