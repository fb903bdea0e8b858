"""What all visits of a site say together."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

from unlost.formats.media_types import UNKNOWN, group_of
from unlost.measure.availability.states import State
from unlost.measure.visits.history import ANY, Ended, History
from unlost.measure.watching.lifetimes import Lifetime, Lifetimes, lifetime, together


@dataclass(frozen=True, slots=True)
class Row:
    """The lives of the resources of a site, of one type or of all, in one archive or in all together.

    archive: its id; empty for all. group: `HTML`, `images` or `other`; empty for all.
    """

    archive: str
    group: str
    lives: Lifetimes


@dataclass(frozen=True, slots=True)
class Survey:
    """What all visits of a site say.

    visits: in their order. rows: lives, all together first. change_rate: how often a download differs from the one
    before, as the mean over the resources; birth_rate: which share of what is on the web was never seen before, as the
    mean over the visits but the first. None if there are too few.
    """

    visits: list[Ended]
    rows: list[Row]
    change_rate: float | None
    birth_rate: float | None


def survey(history: History) -> Survey:
    """Return what all visits of a site say, by those whose dates can be believed."""
    visits = history.visits()
    rows = []
    for archive in (ANY, *history.archives()):
        lives = [(group_of(mime or UNKNOWN), life) for _, mime, life in lives_of(history, archive)]
        rows.append(Row(archive, "", together(life for _, life in lives)))
        for group in ("HTML", "images", "other"):
            some = [life for each, life in lives if each == group]
            if some and len(some) < len(lives):
                rows.append(Row(archive, group, together(some)))
    rates = [changes / (downloads - 1) for _, downloads, changes in history.changes() if downloads > 1]
    births = [each.fresh / live for each in visits[1:] if (live := _live(each))]
    return Survey(visits, rows, fmean(rates) if rates else None, fmean(births) if births else None)


def lives_of(history: History, archive: str = ANY) -> Iterator[tuple[str, str | None, Lifetime]]:
    """Yield the address, the type and the life of every resource that was ever on the web, in one archive or in all."""
    for uri, mime, sights in history.sights(archive):
        life = lifetime(sights)
        if life is not None:
            yield uri, mime, life


def _live(ended: Ended) -> int:
    return ended.states[State.REPLICATED] + ended.states[State.VULNERABLE]
