"""Asks an archive what it holds below a prefix, and keeps that in the state."""

from collections.abc import Sequence

from unlost.archives.closeness import ALL_TIME
from unlost.archives.repository import ArchiveClient
from unlost.errors import (
    ArchiveError,
    ExcludedError,
    ListCutError,
    NotNowError,
    UnsupportedError,
    UriError,
)
from unlost.formats.capture import Capture
from unlost.pages.link import LinkKind
from unlost.recover.listing_filter import NO_CONTENT
from unlost.recover.plan import RecoverOptions
from unlost.recover.state.listings import ListingStatus, ListingRow
from unlost.recover.state.resources import NewResource
from unlost.recover.state.state import RecoveryState
from unlost.uri import naming

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
    names = naming.page_names([capture.uri for capture in captures], ignore_case=options.ignore_case)
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
