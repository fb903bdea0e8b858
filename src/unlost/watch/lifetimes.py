"""Lifetimes of resources on the web and in archives, and statistics over all visits of a site.

    t0 published      ta stored            tr removed           tp purged
    ├── vulnerable ───┼──── replicated ────┼──── endangered ────┤
    ├────────────── on the web ────────────┤
                      ├───────── TTL_c, in the archive ─────────┤

An observation is valid until the next visit that observes the resource, so all times are start times of visits. The
names of the times are those of the dissertation.
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
    """The lifetime of a resource, for one archive or for any archive.

    Times are in seconds since 1970; None if not observed.

    Attributes:
        t0: First seen on the web.
        ta: First seen in the archive.
        tr: Removed from the web for good.
        tp: Purged from the archive for good.
        end: The last visit.
        held_seconds: Seconds between ta and tp during which the archive held the resource.
    """

    t0: float | None
    ta: float | None
    tr: float | None
    tp: float | None
    end: float
    held_seconds: float = 0.0

    @property
    def ttl_c(self) -> float | None:
        """Seconds in the archive: tp - ta; None if never held or still held."""
        return None if self.ta is None or self.tp is None else self.tp - self.ta

    @property
    def p_r(self) -> float | None:
        """The share of the time between ta and tp during which the resource was retrievable.

        While it is still held, the last visit takes the place of tp. None if it was never held, or only at the last
        visit.
        """
        if self.ta is None:
            return None
        seconds = (self.end if self.tp is None else self.tp) - self.ta
        return self.held_seconds / seconds if seconds > 0 else None

    @property
    def is_late(self) -> bool:
        """Whether the archive stored the resource only after it was removed from the web (late caching, tr < ta)."""
        return self.tr is not None and self.ta is not None and self.tr < self.ta

    @property
    def vulnerable(self) -> float | None:
        """Seconds on the web before the archive held the resource: ta - t0, or tr - t0 if it was removed first.

        0 if it was held before it was seen on the web. None if it was never on the web, or is still vulnerable.
        """
        if self.t0 is None:
            return None
        ends = [each for each in (self.ta, self.tr) if each is not None]
        return max(0.0, min(ends) - self.t0) if ends else None

    @property
    def endangered(self) -> float | None:
        """Seconds in the archive only: tp - tr, or tp - ta after late caching.

        0 if it was purged before it was removed. None if it is still on the web, was never held, or is still held.
        """
        if self.tr is None or self.ta is None or self.tp is None:
            return None
        return max(0.0, self.tp - max(self.tr, self.ta))


def compute_lifetime(observations: Sequence[Observation]) -> Lifetime | None:
    """Return the lifetime of a resource from its observations in chronological order; None without observations."""
    if not observations:
        return None
    live_values = [
        (observation.time, observation.is_live) for observation in observations if observation.is_live is not None
    ]
    held_values = [
        (observation.time, observation.is_held) for observation in observations if observation.is_held is not None
    ]
    t0, tr = _span(live_values)
    ta, tp = _span(held_values)
    return Lifetime(t0, ta, tr, tp, observations[-1].time, _true_seconds(held_values))


def _span(values: Sequence[tuple[float, bool]]) -> tuple[float | None, float | None]:
    """Return when a value first became true, and when it became false for good; None each if that never happened."""
    first = next((time for time, value in values if value), None)
    end: float | None = None
    for time, value in reversed(values):
        if value:
            break
        end = time
    return (first, end) if first is not None else (None, None)


def _true_seconds(values: Sequence[tuple[float, bool]]) -> float:
    return sum(end - begin for (begin, value), (end, _) in pairwise(values) if value)


@dataclass(frozen=True, slots=True)
class LifetimeStats:
    """Statistics of many lifetimes, for one archive or for any archive. Times are means in days; None without data.

    Attributes:
        resources: Number of resources.
        held: Number of resources that were ever held.
        late: Number of those that were stored only after they were removed.
        open: Number of held resources that are not purged. Their TTL_c is at least `open_days`.
        ta: From t0 until the resource was held.
        ttl_c: Time in the archive.
        p_r: Mean share of that time during which the resource was retrievable.
        vulnerable: Time on the web before it was held.
        endangered: Time in the archive after it was removed.
        open_days: Time since `ta` of resources that are not purged.
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


def summarize_lifetimes(lifetimes: Iterable[Lifetime]) -> LifetimeStats:
    """Return the statistics of lifetimes."""
    all_lifetimes = list(lifetimes)
    held = [each for each in all_lifetimes if each.ta is not None]
    unpurged = [each for each in held if each.tp is None]
    return LifetimeStats(
        len(all_lifetimes),
        len(held),
        sum(each.is_late for each in held),
        len(unpurged),
        _mean_days(each.ta - each.t0 for each in held if each.ta is not None and each.t0 is not None),
        _mean_days(each.ttl_c for each in held),
        _mean(each.p_r for each in held),
        _mean_days(each.vulnerable for each in all_lifetimes),
        _mean_days(each.endangered for each in held),
        _mean_days(each.end - each.ta for each in unpurged if each.ta is not None),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _mean_days(values: Iterable[float | None]) -> float | None:
    mean = _mean(values)
    return None if mean is None else mean / 86_400


@dataclass(frozen=True, slots=True)
class LifetimeRow:
    """Statistics of one media type group of a site, in one archive.

    Attributes:
        archive: The archive's id; empty for any archive.
        group: `HTML`, `images` or `other`; empty for all.
        stats: The statistics.
    """

    archive: str
    group: str
    stats: LifetimeStats


@dataclass(frozen=True, slots=True)
class SiteSurvey:
    """Statistics over all visits of a site.

    Attributes:
        visits: The finished visits in order.
        rows: Lifetime statistics, those for any archive first.
        change_rate: How often a download differs from the previous one, as the mean over the resources; None without
            data.
        birth_rate: Share of new resources among those on the web, as the mean over all visits but the first; None
            without data.
    """

    visits: list[FinishedVisit]
    rows: list[LifetimeRow]
    change_rate: float | None
    birth_rate: float | None


def survey_site(history: VisitHistory) -> SiteSurvey:
    """Return the statistics over all visits of a site whose dates are reliable."""
    visits = history.finished_visits()
    rows = []
    for archive in (ANY_ARCHIVE, *history.archives()):
        lifetimes = [
            (group_of(mime or UNKNOWN_TYPE), lifetime) for _, mime, lifetime in resource_lifetimes(history, archive)
        ]
        rows.append(LifetimeRow(archive, "", summarize_lifetimes(lifetime for _, lifetime in lifetimes)))
        for group in ("HTML", "images", "other"):
            selected = [lifetime for each, lifetime in lifetimes if each == group]
            if selected and len(selected) < len(lifetimes):
                rows.append(LifetimeRow(archive, group, summarize_lifetimes(selected)))
    rates = [changes / (downloads - 1) for _, downloads, changes in history.changes() if downloads > 1]
    birth_rates = [each.new_resources / live for each in visits[1:] if (live := _live_count(each))]
    return SiteSurvey(visits, rows, fmean(rates) if rates else None, fmean(birth_rates) if birth_rates else None)


def resource_lifetimes(history: VisitHistory, archive: str = ANY_ARCHIVE) -> Iterator[tuple[str, str | None, Lifetime]]:
    """Yield URL, media type and lifetime of every resource that was ever on the web.

    Args:
        history: The visits of the site.
        archive: Id of the archive whose holdings count; any archive by default.
    """
    for uri, mime, observations in history.observations(archive):
        lifetime = compute_lifetime(observations)
        if lifetime is not None:
            yield uri, mime, lifetime


def _live_count(visit: FinishedVisit) -> int:
    return visit.states[AvailabilityState.REPLICATED] + visit.states[AvailabilityState.VULNERABLE]
