"""Prefix listings of archives.

Queries and stores them, knows which URLs they cover, and filters crawl traps and duplicates.
"""

import re
from collections.abc import Mapping, Sequence

from unlost import uri as addresses
from unlost.archives.base import ArchiveClient
from unlost.archives.datetime_negotiation import ALL_TIME
from unlost.archives.prefix_query import PrefixQuery
from unlost.capture import Capture
from unlost.crawl.traps import endless_path_reason, is_endless_calendar
from unlost.errors import ArchiveError, ExcludedError, ListCutError, NotNowError, UnsupportedError, UriError
from unlost.html.links import LinkKind
from unlost.recover.options import RecoverOptions
from unlost.recover.ranking import EMPTY_DIGESTS
from unlost.recover.state.captures import ListingRow, ListingStatus
from unlost.recover.state.resources import NewResource, RecoveryResource
from unlost.recover.state.store import RecoveryState
from unlost.registry.models import Archive
from unlost.uri import names as uri_names

OUT_OF_SCOPE = "out-of-scope"
NOT_LINKED = "not-linked"
"""With a limit on the number of links from the start page, a URL that no link points to has no place."""
TRAP = "trap"
CALENDAR = "calendar"
DUPLICATE = "duplicate"
NO_CONTENT = "no-content"
"""Archives have only error responses, redirects to other sites, or responses without a body."""
SKIP_REASONS = {
    OUT_OF_SCOPE: "out of the scope of this recovery",
    NOT_LINKED: "no link leads to them within --depth",
    TRAP: "crawl traps (--include-left-out fetches them)",
    CALENDAR: "calendar pages of years to come (--include-left-out fetches them)",
    DUPLICATE: "duplicates that differ in tracking parameters or session ids (--include-left-out fetches them)",
    NO_CONTENT: "archives have only errors, redirects to other sites, or responses without a body",
}
"""The reasons, in words."""
# What newsletters, advertisements and social networks append to URLs. The page is the same without it.
_TRACKING = re.compile(
    r"utm_\w+|(?:fb|g|gb|wb|d|y|tw|tt)clid|gclsrc|msclkid|igshid|mc_[ce]id|_ga|_gl|_hsenc|_hsmi|mkt_tok|vero_id"
    r"|oly_(?:anon|enc)_id|fb_(?:action_ids|action_types|ref|source)|ref_src",
    re.IGNORECASE,
)
# Values that a server makes up for each visit: long, and of digits and letters mixed at random.
_TOKEN = re.compile(r"(?=[^=]*\d)(?=[^=]*[A-Za-z])(?:[0-9A-Fa-f]{16,}|[0-9A-Za-z]{24,})")


class ListingFilter:
    """Decides for each listed resource whether it is left out of a recovery, and why.

    this_year: calendars may be captured a little ahead of it.
    """

    def __init__(self, state: RecoveryState, this_year: int) -> None:
        self._state = state
        self._this_year = this_year
        self._first: dict[int, int] = {}

    def skip_reasons(self, resources: Sequence[RecoveryResource]) -> dict[int, str]:
        """Return why some of these resources are left out, by id; the others are to be fetched."""
        found: dict[int, str] = {}
        for each in resources:
            if endless_path_reason(each.name) is not None:
                found[each.id] = TRAP
            elif is_endless_calendar(each.name, self._this_year):
                found[each.id] = CALENDAR
        return found | self._duplicates([each for each in resources if each.id not in found])

    def _duplicates(self, resources: Sequence[RecoveryResource]) -> dict[int, str]:
        """Find resources all of whose successful captures have the bytes of a URL without what changes by the visit."""
        plain = {each.id: strip_tracking(each.name) for each in resources if "?" in each.name}
        suspects = {each.id: plain[each.id] for each in resources if plain.get(each.id, each.name) != each.name}
        known = self._state.resources.find_ids(set(suspects.values()))
        found = {}
        for number, name in suspects.items():
            # Without such a URL, the first that has these parameters stays.
            other = known.get(name) or self._first.setdefault(hash(name), number)
            if other != number and self._has_bytes_of(number, other):
                found[number] = DUPLICATE
        return found

    def _has_bytes_of(self, number: int, other: int) -> bool:
        digests = self._state.captures.digests((number, other))
        return bool(digests[number]) and digests[number] - EMPTY_DIGESTS <= digests[other] - EMPTY_DIGESTS != set()


def strip_tracking(name: str) -> str:
    """Return a resource's name without tracking parameters and without values that look like session ids.

    >>> strip_tracking("example.com/a?id=7&utm_source=mail"), strip_tracking("example.com/a?s=9f86d081884c7d65")
    ('example.com/a?id=7', 'example.com/a')
    """
    path, mark, query = name.partition("?")
    if not mark:
        return name
    kept = [each for each in query.split("&") if not _is_tracking_parameter(each)]
    return f"{path}?{'&'.join(kept)}" if kept else path


def _is_tracking_parameter(parameter: str) -> bool:
    field, _, value = parameter.partition("=")
    return _TRACKING.fullmatch(field) is not None or _TOKEN.fullmatch(value) is not None


class ListingCoverage:
    """What lister queries have shown of archives.

    archives: those that take part, in the order in which they are asked where nothing else decides.
    """

    def __init__(self, archives: Sequence[Archive], listings: Sequence[ListingRow]) -> None:
        self._archives = [archive.id for archive in archives]
        self._complete_prefixes: dict[str, list[PrefixQuery]] = {}
        self._excluded: set[str] = set()
        for listing in listings:
            if listing.outcome is ListingStatus.DONE:
                self._complete_prefixes.setdefault(listing.archive, []).append(PrefixQuery.parse(listing.prefix))
            elif listing.outcome is ListingStatus.EXCLUDED:
                self._excluded.add(listing.archive)

    def archives_to_query(self, uri: str, asked: Mapping[str, str], among: Sequence[str] | None = None) -> list[str]:
        """Return the archives that may hold an address, and neither list it with others nor were asked for it alone.

        asked: the archives that were. among: only of these archives, in this order; None for all.
        """
        try:
            key = addresses.key(uri)
        except UriError:
            return []
        return [
            archive
            for archive in (self._archives if among is None else among)
            if archive not in asked
            and archive not in self._excluded
            and not any(prefix.covers(key) for prefix in self._complete_prefixes.get(archive, ()))
        ]


_BATCH_SIZE = 1000  # captures that are kept together


async def query_listing(
    repository: ArchiveClient, prefix: str, options: RecoverOptions, state: RecoveryState
) -> ListingRow:
    """Keep all captures that an archive lists below a prefix, and return how that ended.

    Nothing is raised that an archive could cause: what it listed before it failed is right, and kept.
    """
    archive = repository.archive.id
    fresh, outcome, message, until = 0, ListingStatus.DONE, None, None
    batch: list[Capture] = []
    try:
        async for capture in repository.list_prefix(prefix, options.first, options.last):
            batch.append(capture)
            if len(batch) >= _BATCH_SIZE:
                fresh += store_listed_captures(batch, state, options)
                batch.clear()
    except ListCutError as error:
        outcome, message = ListingStatus.TRUNCATED, str(error)
    except UnsupportedError as error:
        outcome, message = ListingStatus.UNSUPPORTED, str(error)
    except ExcludedError as error:
        outcome, message = ListingStatus.EXCLUDED, str(error)
    except NotNowError as error:
        outcome, message, until = ListingStatus.NOT_NOW, str(error), error.until
    except ArchiveError as error:
        outcome, message = ListingStatus.FAILED, str(error)
    fresh += store_listed_captures(batch, state, options)
    listing = ListingRow(archive, prefix, outcome, fresh, message, until)
    state.listings.store(listing)
    return listing


def listing_time_span(options: RecoverOptions) -> str:
    """Return the time for which archives are asked, as text: what was listed for another is listed again."""
    return f"{options.first or ALL_TIME[0]}-{options.last or ALL_TIME[1]}"


def store_listed_captures(captures: Sequence[Capture], state: RecoveryState, options: RecoverOptions) -> int:
    """Keep captures with the resources that they are of; return how many were not known before."""
    names = uri_names.page_names([capture.uri for capture in captures], ignore_case=options.ignore_case)
    found = [(name, capture) for name, capture in zip(names, captures, strict=True) if not isinstance(name, UriError)]
    # How deep a page lies is all that is known of its place among others, until a link leads to it.
    listed = {name: NewResource(name, capture.uri, _link_kind(capture), name.count("/") + 1) for name, capture in found}
    numbers = state.resources.add(list(listed.values()))
    fresh = state.captures.add((numbers[name], capture) for name, capture in found)
    if fresh:
        state.resources.clear_skip_reasons(set(numbers.values()), NO_CONTENT)
    return fresh


def _link_kind(capture: Capture) -> LinkKind:
    is_page = capture.mime is None or capture.mime in ("text/html", "application/xhtml+xml")
    return LinkKind.PAGE if is_page else LinkKind.REQUISITE
