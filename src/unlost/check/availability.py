"""Availability of one resource on the web and in archives, staleness of its captures, and the score of a site."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, median, pstdev
from urllib.parse import urlsplit

from unlost import dates
from unlost.crawl.models import CrawlOutcome, LiveResource
from unlost.errors import DateError
from unlost.media_types import UNKNOWN_TYPE, format_of
from unlost.statistics import wilson_interval
from unlost.uri.names import page_name, path_depth


class AvailabilityState(StrEnum):
    """Where a resource is available: on the web, in archives, in both, or in neither."""

    REPLICATED = "replicated"
    """On the web and in an archive."""
    ENDANGERED = "endangered"
    """In an archive only: lost if the archive loses it."""
    VULNERABLE = "vulnerable"
    """On the web only: lost if the site is lost."""
    UNRECOVERABLE = "unrecoverable"
    """In neither."""
    UNKNOWN = "unknown"
    """Not known to be in an archive, and not all archives have responded."""


def derive_state(is_live: bool, is_held: bool | None) -> AvailabilityState:
    """Return the state of a resource.

    Args:
        is_live: Whether it is on the web.
        is_held: Whether an archive holds it; None if unknown.

    >>> [derive_state(live, held).value for live in (True, False) for held in (True, False)]
    ['replicated', 'vulnerable', 'endangered', 'unrecoverable']
    >>> derive_state(True, None)
    <AvailabilityState.UNKNOWN: 'unknown'>
    """
    if is_held is None:
        return AvailabilityState.UNKNOWN
    if is_live:
        return AvailabilityState.REPLICATED if is_held else AvailabilityState.VULNERABLE
    return AvailabilityState.ENDANGERED if is_held else AvailabilityState.UNRECOVERABLE


def is_live_resource(resource: LiveResource) -> bool:
    """Return whether a resource is on the web: it was fetched with a 2xx status, or robots.txt forbids to fetch it.

    >>> [is_live_resource(LiveResource("http://a/", "a)/", CrawlOutcome.FETCHED, status)) for status in (200, 404)]
    [True, False]
    """
    if resource.outcome is CrawlOutcome.FORBIDDEN:
        return True
    return resource.outcome is CrawlOutcome.FETCHED and 200 <= (resource.status or 0) < 300


def is_countable(resource: LiveResource) -> bool:
    """Return whether a crawled URL counts as a resource: redirects and URLs that the crawl excluded do not.

    >>> [is_countable(LiveResource("http://a/", "a)/", CrawlOutcome.FETCHED, status)) for status in (301, 404)]
    [False, True]
    """
    if resource.outcome is CrawlOutcome.EXCLUDED:
        return False
    return not (resource.outcome is CrawlOutcome.FETCHED and 300 <= (resource.status or 0) < 400)


_DAY = 86_400.0


def staleness_days(last_modified: str | None, stored: str | None) -> float | None:
    """Return how many days after its capture a resource was modified; 0 if it was not, None if a date is missing.

    Args:
        last_modified: Date of the Last-Modified header, 14 digits. It is not verified.
        stored: Date of the capture, 14 digits.

    >>> staleness_days("20240110000000", "20240103120000"), staleness_days("20240101000000", "20240301000000")
    (6.5, 0.0)
    >>> staleness_days(None, "20240103120000")
    """
    if last_modified is None or stored is None:
        return None
    try:
        modified_time, stored_time = dates.to_datetime(last_modified), dates.to_datetime(stored)
    except DateError:
        return None
    return max(0.0, (modified_time - stored_time).total_seconds() / _DAY)


@dataclass(frozen=True, slots=True)
class StalenessStats:
    """Staleness of captures. All values but `known` cover only captures that are stale by at least a day.

    Attributes:
        known: Number of captures of known staleness.
        stale: Number of stale captures.
        mean: Mean staleness in days.
        median: Median staleness in days.
        deviation: Standard deviation in days.
        least: Lowest staleness in days.
        most: Highest staleness in days.
    """

    known: int
    stale: int
    mean: float | None = None
    median: float | None = None
    deviation: float | None = None
    least: float | None = None
    most: float | None = None

    @property
    def share(self) -> float | None:
        """The share of stale captures; None if none has a known staleness."""
        return self.stale / self.known if self.known else None


def summarize_staleness(days: Iterable[float]) -> StalenessStats:
    """Return statistics of the staleness of captures, in days.

    >>> summarize_staleness([0.0, 0.5, 2.0, 6.0])
    StalenessStats(known=4, stale=2, mean=4.0, median=4.0, deviation=2.0, least=2.0, most=6.0)
    """
    known = list(days)
    late = [each for each in known if each >= 1]
    if not late:
        return StalenessStats(len(known), 0)
    return StalenessStats(len(known), len(late), fmean(late), median(late), pstdev(late), min(late), max(late))


@dataclass(frozen=True, slots=True)
class ArchiveHolding:
    """The good captures that one archive has of a resource.

    Attributes:
        archive: The archive's id.
        captures: Number of captures.
        first: Date of the first capture, 14 digits.
        last: Date of the last capture, 14 digits.
        digest: Digest of the last capture; None if the archive does not list digests.
        migrated: Whether the archive converted all captures to another format; None if unknown.
    """

    archive: str
    captures: int
    first: str
    last: str
    digest: str | None = None
    migrated: bool | None = None


@dataclass(frozen=True, slots=True)
class ResourceAvailability:
    """One resource on the web and in archives.

    Attributes:
        live: The resource as crawled.
        held: The holdings, one for each archive.
        is_settled: Whether every archive has responded. Otherwise further archives may hold the resource.
        is_sampled: Whether archives were queried for this resource, as part of the sample.
        first_seen: When it was first seen on the web, 14 digits; None if the site was not watched.
        verdict: Why its fetched captures are bad; empty if one is good, None if none was fetched.
    """

    live: LiveResource
    held: Sequence[ArchiveHolding] = ()
    is_settled: bool = True
    is_sampled: bool = False
    first_seen: str | None = None
    verdict: str | None = None

    @property
    def is_live(self) -> bool:
        """Whether the resource is on the web."""
        return is_live_resource(self.live)

    @property
    def is_held(self) -> bool | None:
        """Whether an archive has a good capture; None if unknown."""
        if self.held:
            return not self.verdict
        return False if self.is_settled else None

    @property
    def is_classifiable(self) -> bool:
        """Whether its captures can be classified: it is an HTML page, on the web, and in an archive."""
        return self.is_live and bool(self.held) and format_of(self.mime) == "html"

    @property
    def state(self) -> AvailabilityState:
        """The availability state."""
        return derive_state(self.is_live, self.is_held)

    @property
    def captures(self) -> int:
        """Number of captures in all archives."""
        return sum(each.captures for each in self.held)

    @property
    def last_capture(self) -> str | None:
        """Date of the last capture, 14 digits; None if there is none."""
        return max((each.last for each in self.held), default=None)

    @property
    def stale_days(self) -> float | None:
        """Staleness of the last capture in days; None if unknown, without a capture, or if it is not on the web."""
        return staleness_days(self.live.last_modified, self.last_capture) if self.is_live else None

    @property
    def is_migrated(self) -> bool | None:
        """Whether every capture is in another format than the original; None if unknown or without a capture."""
        values = [each.migrated for each in self.held]
        if False in values:
            return False
        return True if values and None not in values else None

    @property
    def is_same(self) -> bool | None:
        """Whether an archive's last capture has the digest of the resource on the web; None if a digest is missing."""
        digests = [each.digest for each in self.held if each.digest is not None]
        if self.live.digest is None or not digests:
            return None
        return self.live.digest in digests

    @property
    def mime(self) -> str:
        """The media type; `unknown` if the server sent none."""
        return self.live.mime or UNKNOWN_TYPE

    @property
    def depth(self) -> int:
        """Path depth of the URL."""
        return path_depth(page_name(self.live.uri))

    @property
    def folder(self) -> str:
        """The URL of the first folder of the path, such as `http://a.example/b/`."""
        parts = urlsplit(self.live.uri)
        first, slash, _ = parts.path.lstrip("/").partition("/")
        return f"{parts.scheme}://{parts.netloc}/{first + '/' if slash else ''}"

    @property
    def has_query(self) -> bool:
        """Whether the URL has a query."""
        return "?" in self.live.uri.partition("#")[0]

    @property
    def is_forbidden(self) -> bool:
        """Whether robots.txt forbids to fetch the resource."""
        return self.live.outcome is CrawlOutcome.FORBIDDEN


@dataclass(frozen=True, slots=True)
class AvailabilityScore:
    """How many of the resources on the web could be recovered from archives.

    Attributes:
        live: Number of resources on the web.
        held: Number of those known to be in an archive.
        absent: Number of those that no archive holds, according to all archives.
        sampled: Number of resources that no listing contains, that were sampled, and that all archives responded about.
        hits: Number of sampled resources that an archive holds.
    """

    live: int
    held: int
    absent: int
    sampled: int
    hits: int

    @property
    def unknown(self) -> int:
        """Number of resources of unknown availability."""
        return self.live - self.held - self.absent

    @property
    def share(self) -> float | None:
        """The recoverable share, estimated if some resources are unknown; None without resources or without a sample.

        >>> AvailabilityScore(live=100, held=60, absent=10, sampled=20, hits=10).share
        0.75
        """
        if not self.live:
            return None
        if not self.unknown:
            return self.held / self.live
        if not self.sampled:
            return None
        return (self._listed + self._population * self.hits / self.sampled) / self.live

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % Wilson interval of the share; a single point if nothing is unknown, None without resources.

        >>> AvailabilityScore(live=4, held=3, absent=1, sampled=2, hits=1).interval
        (0.75, 0.75)
        >>> [round(end, 2) for end in AvailabilityScore(live=100, held=60, absent=10, sampled=20, hits=10).interval]
        [0.67, 0.83]
        """
        if not self.live:
            return None
        if not self.unknown:
            return self.held / self.live, self.held / self.live
        low, high = wilson_interval(self.hits, self.sampled, self._population)
        return (self._listed + low * self._population) / self.live, (self._listed + high * self._population) / self.live

    @property
    def _listed(self) -> int:
        """Number of resources known to be held without sampling."""
        return self.held - self.hits

    @property
    def _population(self) -> int:
        """Size of the population that was sampled, including resources whose queries failed."""
        return self.sampled + self.unknown


STATE_ORDER = (
    AvailabilityState.REPLICATED,
    AvailabilityState.ENDANGERED,
    AvailabilityState.VULNERABLE,
    AvailabilityState.UNRECOVERABLE,
    AvailabilityState.UNKNOWN,
)
"""States in the order of reports, the safest first."""
