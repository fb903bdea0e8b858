"""All that is known of one resource: how it is on the web, and what archives have of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from unlost.crawl.resource import LiveResource, CrawlOutcome
from unlost.formats.media_types import UNKNOWN_TYPE, format_of
from unlost.measure.availability.staleness import staleness_days
from unlost.measure.availability.states import AvailabilityState, is_live_resource, derive_state
from unlost.uri.naming import page_name, path_depth


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
