"""Models of four repositories with the parameters of the dissertation: what each archives, and for how long."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from study.lost.seeded_random import seeded_uniform
from study.lost.site import FileVersion, SimulatedSite, week_timestamp
from study.lost.site_files import FileKind, SiteFile


@dataclass(frozen=True, slots=True)
class RepositoryModel:
    """Parameters of a repository.

    Attributes:
        id: Archive id.
        name: Name in tables.
        keeps_versions: Whether it stores unmodified versions; otherwise it has only the last one, converted.
        archived_share: Probability by kind that it ever archives a file.
        query_factor: Factor of that probability for URLs with a query.
        max_hops: Number of links that it follows from the first page.
        mean_delay: Mean number of weeks from publication to the first capture.
        visit_interval: Weeks between visits.
        publication_lag: Weeks until a capture is available.
        retention_weeks: Weeks that a capture stays after a visit that found the file removed.
        availability: Probability that an engine's capture is available in a week.
        miss_rate: Share of listed captures that cannot be fetched.
        page_rows: Rows of a page of a listing.
        max_rows: Maximum rows of a listing; None for no limit.
    """

    id: str
    name: str
    keeps_versions: bool
    archived_share: Mapping[FileKind, float]
    query_factor: float
    max_hops: int
    mean_delay: float
    visit_interval: int
    publication_lag: int
    retention_weeks: int
    availability: float
    miss_rate: float
    page_rows: int
    max_rows: int | None


@dataclass(frozen=True, slots=True)
class RepositoryCapture:
    """A capture that is available in some week.

    Attributes:
        uri: Captured URL.
        datetime: 14-digit date.
        content: Content as the repository returns it.
        migrated: Whether the format differs from the published one.
        is_miss: Whether it is listed but cannot be fetched.
    """

    uri: str
    datetime: str
    content: FileVersion = field(repr=False)
    migrated: bool
    is_miss: bool


def _shares_by_kind(page: float, image: float, document: float, other: float) -> dict[FileKind, float]:
    rest = dict.fromkeys((FileKind.STYLE, FileKind.SCRIPT, FileKind.PACKED), other)
    return {FileKind.PAGE: page, FileKind.IMAGE: image, FileKind.DOCUMENT: document, **rest}


# From the dissertation: archived types and formats (Table 3); for search engines the delay (12, 65 and 50 days), the
# retention (51, 8 and 23 days) and the availability (0.86, 0.89, 0.53) of captures (Table 6); miss rates (Table 7);
# shares of pages and documents (Tables 6 and 8); the lag of the archive of half a year and more, and its overlap with
# the engines of one half (Table 10); at most a thousand rows. Assumed here: shares of images and other files, visit
# intervals, hops, rows of a page.
ARCHIVE = RepositoryModel(
    "archive", "the archive", True, _shares_by_kind(0.6, 0.35, 0.55, 0.5), query_factor=0.35,
    max_hops=9, mean_delay=8, visit_interval=9, publication_lag=30,
    retention_weeks=1 << 20, availability=1.0, miss_rate=0.01, page_rows=1000, max_rows=None,
)  # fmt: skip
BROAD = RepositoryModel(
    "broad", "the broad engine", False, _shares_by_kind(0.85, 0.4, 0.7, 0.0), query_factor=0.4,
    max_hops=8, mean_delay=1.7, visit_interval=1, publication_lag=0,
    retention_weeks=7, availability=0.86, miss_rate=0.0388, page_rows=10, max_rows=1000,
)  # fmt: skip
FRESH = RepositoryModel(
    "fresh", "the fresh engine", False, _shares_by_kind(0.7, 0.0, 0.6, 0.0), query_factor=0.3,
    max_hops=6, mean_delay=9.3, visit_interval=1, publication_lag=0,
    retention_weeks=1, availability=0.89, miss_rate=0.0001, page_rows=50, max_rows=1000,
)  # fmt: skip
PATCHY = RepositoryModel(
    "patchy", "the patchy engine", False, _shares_by_kind(0.6, 0.25, 0.5, 0.0), query_factor=0.3,
    max_hops=6, mean_delay=7.1, visit_interval=4, publication_lag=0,
    retention_weeks=3, availability=0.53, miss_rate=0.0153, page_rows=100, max_rows=1000,
)  # fmt: skip

REPOSITORY_MODELS = (ARCHIVE, BROAD, FRESH, PATCHY)

_UNKNOWN_SITE_CHANCE = 0.05  # probability that a repository does not know a site


class SiteHoldings:
    """Holdings of one repository for one site."""

    def __init__(self, model: RepositoryModel, site: SimulatedSite, seed: int) -> None:
        self.model = model
        self._site = site
        self._names = ("keeping", seed, model.id, site.profile.name)
        self._share = 0.0 if self._chance("unknown") < _UNKNOWN_SITE_CHANCE else self._site_factor()
        self._phase = int(self._chance("phase") * model.visit_interval)

    def _chance(self, *names: object) -> float:
        return seeded_uniform(*self._names, *names)

    def _site_factor(self) -> float:
        """Return the factor of all archived shares, which depends on the rank of the site and on chance."""
        return (0.8 + 0.04 * self._site.profile.rank) * (0.8 + 0.4 * self._chance("luck"))

    def captures_at(self, week: int) -> list[RepositoryCapture]:
        """Return all captures that are available in a week, in the order of the site's files."""
        found: list[RepositoryCapture] = []
        for site_file in self._site.site_files:
            if site_file.created <= week and self._is_archived(site_file):
                found += (
                    self._all_versions(site_file, week)
                    if self.model.keeps_versions
                    else self._last_version(site_file, week)
                )
        return found

    def _is_archived(self, site_file: SiteFile) -> bool:
        share = (
            self.model.archived_share[site_file.kind]
            * self._share
            * (self.model.query_factor if "?" in site_file.path else 1.0)
        )
        # Every repository that knows the site has its first page.
        is_first = site_file.parent is None and self._share > 0
        return is_first or (site_file.hops <= self.model.max_hops and self._chance("takes", site_file.number) < share)

    def _first_visit(self, site_file: SiteFile) -> int:
        """Return the week of the first visit that archives a file."""
        # Exponentially distributed delay.
        delay = -self.model.mean_delay * math.log(1.0 - self._chance("delay", site_file.number))
        return self._next_visit(
            site_file.created if site_file.parent is None else site_file.created + math.floor(delay)
        )

    def _next_visit(self, week: int) -> int:
        """Return the week of the first visit in or after a week."""
        return week + (self._phase - week) % self.model.visit_interval

    def _all_versions(self, site_file: SiteFile, week: int) -> list[RepositoryCapture]:
        visits = range(self._first_visit(site_file), week - self.model.publication_lag + 1, self.model.visit_interval)
        return [self._capture(site_file, visit, week) for visit in visits if site_file.exists_in(visit)]

    def _last_version(self, site_file: SiteFile, week: int) -> list[RepositoryCapture]:
        first = self._first_visit(site_file)
        last = week - (week - self._phase) % self.model.visit_interval
        if site_file.removed is not None and last >= site_file.removed:
            # The retention starts at the visit that finds the file removed.
            if week >= self._next_visit(site_file.removed) + self.model.retention_weeks:
                return []
            last = self._next_visit(site_file.removed) - self.model.visit_interval
        # First pages are always available.
        is_available = (
            site_file.parent is None or self._chance("there", site_file.number, week) < self.model.availability
        )
        can_be_fetched = first <= last and is_available
        return [self._capture(site_file, last, week)] if can_be_fetched else []

    def _capture(self, site_file: SiteFile, visit: int, week: int) -> RepositoryCapture:
        model, site = self.model, self._site
        file = site.version_in(site_file, visit) if model.keeps_versions else site.engine_version(site_file, visit)
        is_miss = self._chance("missed", site_file.number, visit, week) < model.miss_rate
        migrated = not model.keeps_versions and site_file.kind in (FileKind.IMAGE, FileKind.DOCUMENT)
        return RepositoryCapture(
            site.uri(site_file),
            week_timestamp(visit, int(7 * self._chance("day", site_file.number, visit))),
            file,
            migrated,
            is_miss,
        )
