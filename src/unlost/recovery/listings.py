"""Prefix listings of archives: queries and stores them, and determines which URLs they cover.

Also decides which listed URLs are skipped: crawl traps and duplicates.
"""

import re
from collections.abc import Mapping, Sequence

from unlost.archives.base import ArchiveClient
from unlost.archives.cdx import PrefixQuery
from unlost.archives.datetime_negotiation import ALL_TIME
from unlost.capture import Capture
from unlost.crawl.traps import endless_path_reason, is_endless_calendar
from unlost.errors import ArchiveError, ExcludedError, ListCutError, NotNowError, UnsupportedError, UriError
from unlost.html.links import LinkKind
from unlost.recovery.options import RecoverOptions
from unlost.recovery.ranking import EMPTY_DIGESTS
from unlost.recovery.state.captures import ListingRow, ListingStatus
from unlost.recovery.state.resources import NewResource, RecoveryResource
from unlost.recovery.state.store import RecoveryState
from unlost.registry.models import Archive
from unlost.uri import key as uri_key
from unlost.uri import names as uri_names

LISTING_INCOMPLETE = "unlisted"
"""Reason of a `Suspension`: the archive's listing has to be requested again first."""
OUT_OF_SCOPE = "out-of-scope"
NOT_LINKED = "not-linked"
"""The depth is limited, and a listed URL that no link points to has none."""
TRAP = "trap"
CALENDAR = "calendar"
DUPLICATE = "duplicate"
NO_CONTENT = "no-content"
"""Archives hold only error responses, redirects to other sites, or responses without a body."""
SKIP_REASONS = {
    OUT_OF_SCOPE: "out of the scope of this recovery",
    NOT_LINKED: "no link leads to them within --depth",
    TRAP: "crawl traps (--include-left-out fetches them)",
    CALENDAR: "calendar pages of years to come (--include-left-out fetches them)",
    DUPLICATE: "duplicates that differ in tracking parameters or session ids (--include-left-out fetches them)",
    NO_CONTENT: "archives have only errors, redirects to other sites, or responses without a body",
}
"""Descriptions of the reasons, for users."""
# Parameters that newsletters, advertisements and social networks append to URLs; they do not change the page.
_TRACKING = re.compile(
    r"utm_\w+|(?:fb|g|gb|wb|d|y|tw|tt)clid|gclsrc|msclkid|igshid|mc_[ce]id|_ga|_gl|_hsenc|_hsmi|mkt_tok|vero_id"
    r"|oly_(?:anon|enc)_id|fb_(?:action_ids|action_types|ref|source)|ref_src",
    re.IGNORECASE,
)
# Values that a server generates for each visit: long, with digits and letters mixed at random.
_TOKEN = re.compile(r"(?=[^=]*\d)(?=[^=]*[A-Za-z])(?:[0-9A-Fa-f]{16,}|[0-9A-Za-z]{24,})")


class ListingFilter:
    """Decides which listed resources are skipped, and why.

    Args:
        state: The database of the recovery.
        this_year: The current year. Calendar pages far after it count as a crawl trap.
    """

    def __init__(self, state: RecoveryState, this_year: int) -> None:
        self._state = state
        self._this_year = this_year
        self._first: dict[int, int] = {}

    def skip_reasons(self, resources: Sequence[RecoveryResource]) -> dict[int, str]:
        """Return the ids of resources to skip, with the reason. All others are to be fetched."""
        reasons: dict[int, str] = {}
        for each in resources:
            if endless_path_reason(each.name) is not None:
                reasons[each.id] = TRAP
            elif is_endless_calendar(each.name, self._this_year):
                reasons[each.id] = CALENDAR
        return reasons | self._duplicates([each for each in resources if each.id not in reasons])

    def _duplicates(self, resources: Sequence[RecoveryResource]) -> dict[int, str]:
        """Find resources whose successful captures all have the bytes of the URL without tracking parameters."""
        plain = {each.id: strip_tracking(each.name) for each in resources if "?" in each.name}
        stripped = {each.id: plain[each.id] for each in resources if plain.get(each.id, each.name) != each.name}
        ids = self._state.resources.find_ids(set(stripped.values()))
        reasons = {}
        for id_, name in stripped.items():
            # If the URL without them is not listed, the first one with them is fetched.
            other = ids.get(name) or self._first.setdefault(hash(name), id_)
            if other != id_ and self._has_bytes_of(id_, other):
                reasons[id_] = DUPLICATE
        return reasons

    def _has_bytes_of(self, id_: int, other: int) -> bool:
        digests = self._state.captures.digests((id_, other))
        return bool(digests[id_]) and digests[id_] - EMPTY_DIGESTS <= digests[other] - EMPTY_DIGESTS != set()


def strip_tracking(name: str) -> str:
    """Return a resource's name without tracking parameters and without values that look like session ids.

    >>> strip_tracking("example.com/a?id=7&utm_source=mail"), strip_tracking("example.com/a?s=9f86d081884c7d65")
    ('example.com/a?id=7', 'example.com/a')
    """
    path, separator, query = name.partition("?")
    if not separator:
        return name
    retained = [each for each in query.split("&") if not _is_tracking_parameter(each)]
    return f"{path}?{'&'.join(retained)}" if retained else path


def _is_tracking_parameter(parameter: str) -> bool:
    field, _, value = parameter.partition("=")
    return _TRACKING.fullmatch(field) is not None or _TOKEN.fullmatch(value) is not None


class ListingCoverage:
    """Which URLs the archives' listings cover.

    Args:
        archives: The archives that take part, in order of preference.
        listings: The results of listing queries.
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

    def archives_to_query(
        self, uri: str, queried: Mapping[str, str], allowed: Sequence[str] | None = None
    ) -> list[str]:
        """Return the archives that may hold a URL, have no complete listing for it, and were not queried for it.

        Args:
            uri: The URL.
            queried: The archives already queried for this URL, with the outcome.
            allowed: Consider only these archives, in this order; None for all.
        """
        try:
            key = uri_key(uri)
        except UriError:
            return []
        return [
            archive
            for archive in (self._archives if allowed is None else allowed)
            if archive not in queried
            and archive not in self._excluded
            and not any(prefix.covers(key) for prefix in self._complete_prefixes.get(archive, ()))
        ]


_BATCH_SIZE = 1000  # captures that are stored at once


async def query_listing(
    client: ArchiveClient, prefix: str, options: RecoverOptions, state: RecoveryState
) -> ListingRow:
    """Query an archive's listing of a prefix, store its captures and the result, and return the result.

    Errors of the archive are not raised: captures listed before an error are valid and stored.
    """
    archive = client.archive.id
    added, outcome, message, until = 0, ListingStatus.DONE, None, None
    batch: list[Capture] = []
    try:
        async for capture in client.list_prefix(prefix, options.first, options.last):
            batch.append(capture)
            if len(batch) >= _BATCH_SIZE:
                added += store_listed_captures(batch, state, options)
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
    added += store_listed_captures(batch, state, options)
    listing = ListingRow(archive, prefix, outcome, added, message, until)
    state.listings.store(listing)
    return listing


def listing_time_span(options: RecoverOptions) -> str:
    """Return the time range of listings as text. A listing of another range is queried again."""
    return f"{options.first or ALL_TIME[0]}-{options.last or ALL_TIME[1]}"


def store_listed_captures(captures: Sequence[Capture], state: RecoveryState, options: RecoverOptions) -> int:
    """Store captures with their resources, which are added if unknown; return the number of new captures."""
    names = uri_names.page_names([capture.uri for capture in captures], ignore_case=options.ignore_case)
    named = [(name, capture) for name, capture in zip(names, captures, strict=True) if not isinstance(name, UriError)]
    # Until a link to the page is found, the number of links to it is estimated by the depth of its path.
    listed = {name: NewResource(name, capture.uri, _link_kind(capture), name.count("/") + 1) for name, capture in named}
    ids = state.resources.add(list(listed.values()))
    added = state.captures.add((ids[name], capture) for name, capture in named)
    if added:
        state.resources.clear_skip_reasons(set(ids.values()), NO_CONTENT)
    return added


def _link_kind(capture: Capture) -> LinkKind:
    is_page = capture.mime is None or capture.mime in ("text/html", "application/xhtml+xml")
    return LinkKind.PAGE if is_page else LinkKind.REQUISITE
