"""What all visits of a site say together."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

from unlost.formats.media_types import UNKNOWN_TYPE, group_of
from unlost.measure.availability.states import AvailabilityState
from unlost.measure.visits.history import ANY_ARCHIVE, FinishedVisit, VisitHistory
from unlost.measure.watching.lifetimes import Lifetime, LifetimeStats, compute_lifetime, summarize_lifetimes


@dataclass(frozen=True, slots=True)
class LifetimeRow:
    """The lives of the resources of a site, of one type or of all, in one archive or in all together.

    archive: its id; empty for all. group: `HTML`, `images` or `other`; empty for all.
    """

    archive: str
    group: str
    stats: LifetimeStats


@dataclass(frozen=True, slots=True)
class SiteSurvey:
    """What all visits of a site say.

    visits: in their order. rows: lives, all together first. change_rate: how often a download differs from the one
    before, as the mean over the resources; birth_rate: which share of what is on the web was never seen before, as the
    mean over the visits but the first. None if there are too few.
    """

    visits: list[FinishedVisit]
    rows: list[LifetimeRow]
    change_rate: float | None
    birth_rate: float | None


def survey_site(history: VisitHistory) -> SiteSurvey:
    """Return what all visits of a site say, by those whose dates can be believed."""
    visits = history.finished_visits()
    rows = []
    for archive in (ANY_ARCHIVE, *history.archives()):
        lives = [(group_of(mime or UNKNOWN_TYPE), life) for _, mime, life in resource_lifetimes(history, archive)]
        rows.append(LifetimeRow(archive, "", summarize_lifetimes(life for _, life in lives)))
        for group in ("HTML", "images", "other"):
            some = [life for each, life in lives if each == group]
            if some and len(some) < len(lives):
                rows.append(LifetimeRow(archive, group, summarize_lifetimes(some)))
    rates = [changes / (downloads - 1) for _, downloads, changes in history.changes() if downloads > 1]
    births = [each.new_resources / live for each in visits[1:] if (live := _live_count(each))]
    return SiteSurvey(visits, rows, fmean(rates) if rates else None, fmean(births) if births else None)


def resource_lifetimes(history: VisitHistory, archive: str = ANY_ARCHIVE) -> Iterator[tuple[str, str | None, Lifetime]]:
    """Yield the address, the type and the life of every resource that was ever on the web, in one archive or in all."""
    for uri, mime, sights in history.observations(archive):
        life = compute_lifetime(sights)
        if life is not None:
            yield uri, mime, life


def _live_count(ended: FinishedVisit) -> int:
    return ended.states[AvailabilityState.REPLICATED] + ended.states[AvailabilityState.VULNERABLE]
