"""What an archive lists of a site, put down for each address of it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from unlost.archives.repository import ArchiveClient
from unlost.errors import ArchiveError, UnsupportedError
from unlost.formats.capture import Capture
from unlost.measure.availability.standing import ArchiveHolding
from unlost.measure.visits.present import ListingResult

MAX_LISTED_URLS = 200_000
"""Of one list, some 85 MB of memory; a list of more is cut, and its archive asked for single addresses instead."""


def is_good_capture(capture: Capture) -> bool:
    """Return whether a capture is of a page, as far as its index tells: no error, no redirect.

    >>> [is_good(Capture("http://a/", "a)/", "20140210000001", status)) for status in (200, 404, None)]
    [True, False, True]
    """
    if capture.status is None or capture.revisit:
        return True
    return 200 <= capture.status < 300


@dataclass(slots=True)
class SiteListing:
    """Captures of a site, added up by key. uris: how each is spelled. rows: how many were listed, of whatever kind."""

    archive: str
    held: dict[str, ArchiveHolding] = field(default_factory=dict)
    uris: dict[str, str] = field(default_factory=dict)
    rows: int = 0

    def add(self, capture: Capture) -> None:
        """Take one capture."""
        self.rows += 1
        if capture.key is None or not is_good_capture(capture):
            return
        before = self.held.get(capture.key)
        if before is None:
            self.uris[capture.key] = capture.uri
            self.held[capture.key] = ArchiveHolding(
                self.archive, 1, capture.datetime, capture.datetime, capture.digest, capture.migrated
            )
            return
        is_later = capture.datetime >= before.last
        # One copy in its own format is enough for it to come back so.
        kept = False if False in (before.migrated, capture.migrated) else before.migrated
        self.held[capture.key] = ArchiveHolding(
            self.archive,
            before.copies + 1,
            min(before.first, capture.datetime),
            max(before.last, capture.datetime),
            capture.digest if is_later else before.digest,
            kept,
        )


async def fetch_listing(
    repository: ArchiveClient,
    prefix: str,
    max_urls: int = MAX_LISTED_URLS,
    on_rows: Callable[[int], object] = lambda _: None,
) -> tuple[ListingResult | None, SiteListing]:
    """Return how a lister query ended, and what was listed; None in the first place if the archive has no such list.

    Nothing is raised that an archive could cause: what it listed before it failed is right. tell: gets the number of
    rows now and then.
    """
    archive = repository.archive.id
    found = SiteListing(archive)
    try:
        async for capture in repository.list_prefix(prefix):
            found.add(capture)
            if found.rows % 1_000 == 0:
                on_rows(found.rows)
            if len(found.held) > max_urls:
                return ListingResult(archive, prefix, False, found.rows, 0, f"more than {max_urls:,} addresses"), found
    except UnsupportedError:
        return None, found
    except ArchiveError as error:
        return ListingResult(archive, prefix, False, found.rows, 0, str(error)[:300]), found
    return ListingResult(archive, prefix, True, found.rows), found
