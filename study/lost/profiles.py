"""The 24 sites: as large, and of as many pages, images and other files, as those of the dissertation's Table 16."""

from dataclasses import dataclass
from enum import StrEnum


class Pace(StrEnum):
    """How much a site changes. Over a third of the dissertation's sites did not change in 14 weeks at all."""

    STILL = "still"
    CALM = "calm"
    LIVELY = "lively"


@dataclass(frozen=True, slots=True)
class Profile:
    """What a site is like in week 0, when it is lost for the first time.

    pages, images, others: how many it has of each; others are documents, style sheets, scripts and packed files.
    rank: how well known it is, 0 to 10, as search engines of the time told it.
    breadth: how many pages hang from one page; the fewer, the deeper is the site.
    documents: the share of documents among the others. dynamic: the share of pages whose address has a `?`.
    redesigned: the week in which all pages but the first one got new addresses; None if that never happened.
    """

    name: str
    pages: int
    images: int
    others: int
    rank: int
    pace: Pace
    breadth: int = 8
    documents: float = 0.7
    dynamic: float = 0.0
    redesigned: int | None = None

    @property
    def size(self) -> int:
        """How many resources it has in week 0."""
        return self.pages + self.images + self.others

    @property
    def host(self) -> str:
        """The host that it is on."""
        return f"{self.name}.example"


_S, _C, _L = Pace.STILL, Pace.CALM, Pace.LIVELY

# Numbers of files and ranks are those of Table 16, in its order. The rest is made up, but for two sites of which the
# dissertation tells more: one had been redesigned when it was recovered for the second time, one is made by a program.
# fmt: off
SITES = (
    Profile("school", 20, 23, 20, 4, _C, 6, 0.3),
    Profile("chapel", 10, 50, 5, 2, _S, 10),
    Profile("primary", 32, 36, 0, 3, _S, 8),
    Profile("staff", 19, 25, 29, 4, _C, 20, 0.9),
    Profile("trust", 24, 45, 10, 4, _S, 8),
    Profile("meeting", 16, 28, 45, 6, _C, 12, 0.95),
    Profile("museum", 27, 82, 2, 5, _S, 6),
    Profile("laboratory", 38, 59, 45, 7, _C, 10, 0.9),
    Profile("town", 96, 63, 3, 5, _L, 12),
    Profile("kitchen", 67, 136, 1, 6, _L, 20),
    Profile("islands", 60, 222, 5, 4, _S, 6),
    Profile("game", 20, 213, 61, 6, _C, 5, 0.1),
    Profile("privacy", 137, 48, 120, 8, _C, 8, 0.1),
    Profile("pyramid", 158, 141, 45, 0, _L, 10),
    Profile("preservation", 346, 42, 26, 8, _C, 10, 0.8, redesigned=-3),
    Profile("people", 267, 165, 0, 6, _C, 30),
    Profile("ranch", 173, 332, 0, 0, _S, 3),
    Profile("coalition", 236, 195, 121, 7, _L, 8, 0.95),
    Profile("professor", 160, 258, 222, 5, _S, 5, 0.8),
    Profile("notes", 696, 22, 1, 6, _S, 12),
    Profile("finance", 455, 312, 50, 6, _L, 10, 0.6),
    Profile("fishing", 259, 890, 3, 5, _C, 15),
    Profile("locker", 687, 529, 0, 4, _C, 4, dynamic=0.3),
    Profile("music", 1298, 211, 0, 4, _L, 6, dynamic=0.95),
)
# fmt: on
