"""Lifetimes of resources on the web and in archives, and what all visits of a site say together.

    t0 published      ta stored            tr removed            tp purged
    ├── vulnerable ───┼──── replicated ────┼──── endangered ─────┤
    ├─────────────── on the web ───────────┤
                      ├──────────── TTL_c, in the archive ───────┤

An observation holds until the next visit that observed the resource, so all times are those of visits.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from unlost.check.availability import AvailabilityState
from unlost.check.history import ANY_ARCHIVE, FinishedVisit, Observation, VisitHistory
from unlost.media_types import UNKNOWN_TYPE, group_of


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The life of a resource, for one archive or for all together. Times are in seconds since 1970; None if not seen.

    t0: since when it was on the web. ta: since when it was held. tr: when it was gone from the web for good.
    tp: when it was gone from the archive for good.
    end: the last visit. held_seconds: how long, between ta and tp, it could be had.
    """

    t0: float | None
    ta: float | None
    tr: float | None
    tp: float | None
    end: float
    held_seconds: float = 0.0

    @property
    def ttl_c(self) -> float | None:
        """How long it was in the archive, in seconds: tp - ta; None if it never was, or still is."""
        return None if self.ta is None or self.tp is None else self.tp - self.ta

    @property
    def p_r(self) -> float | None:
        """The share of that time in which it could be had; of what is still held, of the time until the last visit.

        None if it never was held, or only the last visit saw it.
        """
        if self.ta is None:
            return None
        whole = (self.end if self.tp is None else self.tp) - self.ta
        return self.held_seconds / whole if whole > 0 else None

    @property
    def is_late(self) -> bool:
        """Whether it came into the archive only after it was gone from the web: late caching, tr < ta."""
        return self.tr is not None and self.ta is not None and self.tr < self.ta

    @property
    def vulnerable(self) -> float | None:
        """How long it was on the web and not yet in the archive: ta - t0, or until it was gone. None if it still is so.

        0 if it was held before it was seen on the web.
        """
        if self.t0 is None:
            return None
        ends = [each for each in (self.ta, self.tr) if each is not None]
        return max(0.0, min(ends) - self.t0) if ends else None

    @property
    def endangered(self) -> float | None:
        """How long it was in the archive and not on the web any more: tp - tr; after late caching, tp - ta.

        0 if it was purged first. None if it is still on the web, never was held, or still is.
        """
        if self.tr is None or self.ta is None or self.tp is None:
            return None
        return max(0.0, self.tp - max(self.tr, self.ta))


def compute_lifetime(observations: Sequence[Observation]) -> Lifetime | None:
    """Return the life of a resource, by what visits saw, in the order of their times; None without any visit."""
    if not observations:
        return None
    lives = [(sight.time, sight.is_live) for sight in observations if sight.is_live is not None]
    holds = [(sight.time, sight.is_held) for sight in observations if sight.is_held is not None]
    t0, tr = _span(lives)
    ta, tp = _span(holds)
    return Lifetime(t0, ta, tr, tp, observations[-1].time, _true_seconds(holds))


def _span(seen: Sequence[tuple[float, bool]]) -> tuple[float | None, float | None]:
    """Return when something was first so, and when it was first not so after it was so for the last time."""
    first = next((time for time, is_so in seen if is_so), None)
    after: float | None = None
    for time, is_so in reversed(seen):
        if is_so:
            break
        after = time
    return (first, after) if first is not None else (None, None)


def _true_seconds(seen: Sequence[tuple[float, bool]]) -> float:
    return sum(after - before for (before, is_so), (after, _) in pairwise(seen) if is_so)


@dataclass(frozen=True, slots=True)
class LifetimeStats:
    """What many resources have in common, for one archive or for all together; times are means, in days.

    resources: how many there are. held: how many were ever held. late: how many only after they were gone.
    ta: from t0 until they were held. ttl_c, p_r, vulnerable, endangered: of those for which each is known;
    None of nothing. open: how many of those held have not been purged: their TTL_c is at least `open_days`.
    """

    resources: int
    held: int
    late: int
    open: int
    ta: float | None
    ttl_c: float | None
    p_r: float | None
    vulnerable: float | None
    endangered: float | None
    open_days: float | None


def summarize_lifetimes(lives: Iterable[Lifetime]) -> LifetimeStats:
    """Return what lives have in common."""
    all_of = list(lives)
    held = [each for each in all_of if each.ta is not None]
    still = [each for each in held if each.tp is None]
    return LifetimeStats(
        len(all_of),
        len(held),
        sum(each.is_late for each in held),
        len(still),
        _mean_days(each.ta - each.t0 for each in held if each.ta is not None and each.t0 is not None),
        _mean_days(each.ttl_c for each in held),
        _mean(each.p_r for each in held),
        _mean_days(each.vulnerable for each in all_of),
        _mean_days(each.endangered for each in held),
        _mean_days(each.end - each.ta for each in still if each.ta is not None),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _mean_days(values: Iterable[float | None]) -> float | None:
    mean = _mean(values)
    return None if mean is None else mean / 86_400


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
