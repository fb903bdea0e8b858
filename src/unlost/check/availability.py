"""The state of one resource on the web and in archives, how stale its captures are, and the score of a site."""

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
    """What is to be expected of a resource, by where it is: on the web, in an archive, in both, in neither."""

    REPLICATED = "replicated"
    """On the web and in an archive."""
    ENDANGERED = "endangered"
    """In an archive only: it is lost if that loses it."""
    VULNERABLE = "vulnerable"
    """On the web only: it is lost if the site is."""
    UNRECOVERABLE = "unrecoverable"
    """In neither."""
    UNKNOWN = "unknown"
    """No archive is known to have it, and not all of them have said that they do not."""


def derive_state(is_live: bool, is_held: bool | None) -> AvailabilityState:
    """Return the state of a resource. is_held: whether an archive has it; None if nobody can tell.

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
    """Return whether a resource is on the web: it was fetched with a good status.

    What robots.txt forbids to fetch counts as there: the site leads to it, and nobody may look.

    >>> [is_live_resource(LiveResource("http://a/", "a)/", CrawlOutcome.FETCHED, status)) for status in (200, 404)]
    [True, False]
    """
    if resource.outcome is CrawlOutcome.FORBIDDEN:
        return True
    return resource.outcome is CrawlOutcome.FETCHED and 200 <= (resource.status or 0) < 300


def is_countable(resource: LiveResource) -> bool:
    """Return whether an address stands for a resource at all: redirects, and what a crawl left out, do not.

    >>> [is_countable(LiveResource("http://a/", "a)/", CrawlOutcome.FETCHED, status)) for status in (301, 404)]
    [False, True]
    """
    if resource.outcome is CrawlOutcome.EXCLUDED:
        return False
    return not (resource.outcome is CrawlOutcome.FETCHED and 300 <= (resource.status or 0) < 400)


_DAY = 86_400.0


def staleness_days(last_modified: str | None, stored: str | None) -> float | None:
    """Return how many days after it was stored a resource was changed; 0 if it was not. None if nobody can tell.

    last_modified, stored: 14 digits. As servers tell it: a wrong date of theirs gives a wrong number here.

    >>> staleness_days("20240110000000", "20240103120000"), staleness_days("20240101000000", "20240301000000")
    (6.5, 0.0)
    >>> staleness_days(None, "20240103120000")
    """
    if last_modified is None or stored is None:
        return None
    try:
        changed, kept = dates.to_datetime(last_modified), dates.to_datetime(stored)
    except DateError:
        return None
    return max(0.0, (changed - kept).total_seconds() / _DAY)


@dataclass(frozen=True, slots=True)
class StalenessStats:
    """How stale copies are, in days; the numbers from `mean` on are of those that are stale by a day or more.

    known: of how many it can be told. stale: how many of these are stale by a day or more.
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
        """The share that is stale; None of nothing."""
        return self.stale / self.known if self.known else None


def summarize_staleness(days: Iterable[float]) -> StalenessStats:
    """Return what copies have in common, by the days that each is stale.

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
    """What one archive has of a resource: copies that are good, as far as it tells.

    copies: how many. first, last: when the first and the last of them was stored, 14 digits.
    digest: of the last copy; None if the archive does not tell. migrated: whether the archive changed its format; None
        if nobody says.
    """

    archive: str
    copies: int
    first: str
    last: str
    digest: str | None = None
    migrated: bool | None = None


@dataclass(frozen=True, slots=True)
class ResourceAvailability:
    """One resource. What is derived from it is said by its properties.

    live: as the web has it. held: what archives have, each once.
    is_settled: whether all archives have said what they have, or cannot have any; if not, others may have it, too.
    is_drawn: whether archives were asked for this one alone, since it was among those that were drawn.
    first_seen: when it was first seen on the web, 14 digits; None if nobody watched.
    verdict: what is wrong with the copies that were fetched, in a word; empty if one is good, None if none was fetched.
    """

    live: LiveResource
    held: Sequence[ArchiveHolding] = ()
    is_settled: bool = True
    is_sampled: bool = False
    first_seen: str | None = None
    verdict: str | None = None

    @property
    def is_live(self) -> bool:
        """Whether it is on the web."""
        return is_live_resource(self.live)

    @property
    def is_held(self) -> bool | None:
        """Whether an archive has it; None if nobody can tell. Copies that were found to be none do not count."""
        if self.held:
            return not self.verdict
        return False if self.is_settled else None

    @property
    def is_classifiable(self) -> bool:
        """Whether its copies can be looked into: it is a page, on the web, and in an archive."""
        return self.is_live and bool(self.held) and format_of(self.mime) == "html"

    @property
    def state(self) -> AvailabilityState:
        """Whether it would come back."""
        return derive_state(self.is_live, self.is_held)

    @property
    def copies(self) -> int:
        """How many copies are known."""
        return sum(each.copies for each in self.held)

    @property
    def last_capture(self) -> str | None:
        """When the last copy was stored."""
        return max((each.last for each in self.held), default=None)

    @property
    def stale_days(self) -> float | None:
        """How many days the last copy is behind; None if nobody can tell, or there is none."""
        return staleness_days(self.live.last_modified, self.last_capture) if self.is_live else None

    @property
    def is_migrated(self) -> bool | None:
        """Whether every copy is in another format than the original; None if nobody says, or there is no copy."""
        told = [each.migrated for each in self.held]
        if False in told:
            return False
        return True if told and None not in told else None

    @property
    def is_same(self) -> bool | None:
        """Whether an archive's last copy has the very bytes that are on the web; None if nobody can tell."""
        told = [each.digest for each in self.held if each.digest is not None]
        if self.live.digest is None or not told:
            return None
        return self.live.digest in told

    @property
    def mime(self) -> str:
        """Its media type; `unknown` if nobody told."""
        return self.live.mime or UNKNOWN_TYPE

    @property
    def depth(self) -> int:
        """Its path depth."""
        return path_depth(page_name(self.live.uri))

    @property
    def folder(self) -> str:
        """The first folder of its path, with the host: `http://a.example/b/` for all that is below."""
        parts = urlsplit(self.live.uri)
        first, slash, _ = parts.path.lstrip("/").partition("/")
        return f"{parts.scheme}://{parts.netloc}/{first + '/' if slash else ''}"

    @property
    def has_query(self) -> bool:
        """Whether its address has a query."""
        return "?" in self.live.uri.partition("#")[0]

    @property
    def is_forbidden(self) -> bool:
        """Whether robots.txt keeps everybody from it."""
        return self.live.outcome is CrawlOutcome.FORBIDDEN


@dataclass(frozen=True, slots=True)
class AvailabilityScore:
    """How much of what is on the web would come back.

    live: how many resources are on the web. held: how many of them are known to be in an archive.
    absent: of how many all archives said that they have nothing. drawn, hits: of those that no list has, how many were
        asked for and answered about, and how many of these some archive has.
    """

    live: int
    held: int
    absent: int
    sampled: int
    hits: int

    @property
    def unknown(self) -> int:
        """Of how many nobody can tell."""
        return self.live - self.held - self.absent

    @property
    def share(self) -> float | None:
        """The share, estimated if something is unknown; None of nothing, or if nothing is known at all.

        >>> Score(live=100, held=60, absent=10, drawn=20, hits=10).share
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
        """Between which shares it lies, with a probability of 95 %; one point if nothing is unknown. None of nothing.

        >>> Score(live=4, held=3, absent=1, drawn=2, hits=1).interval
        (0.75, 0.75)
        >>> [round(end, 2) for end in Score(live=100, held=60, absent=10, drawn=20, hits=10).interval]
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
        """How many are known to be held without having been drawn."""
        return self.held - self.hits

    @property
    def _population(self) -> int:
        """How many there are from which were drawn: also those of which nobody can tell after all."""
        return self.sampled + self.unknown


STATE_ORDER = (
    AvailabilityState.REPLICATED,
    AvailabilityState.ENDANGERED,
    AvailabilityState.VULNERABLE,
    AvailabilityState.UNRECOVERABLE,
    AvailabilityState.UNKNOWN,
)
