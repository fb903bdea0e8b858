"""Asks an archive what it holds below a prefix, and keeps that in the state."""

from collections.abc import Sequence

from unlost.archives.closeness import EVER
from unlost.archives.repository import Repository
from unlost.errors import (
    ArchiveError,
    ExcludedError,
    ListCutError,
    NotNowError,
    UnsupportedError,
    UriError,
)
from unlost.formats.capture import Capture
from unlost.pages.link import Use
from unlost.recover.listing_filter import NO_CONTENT
from unlost.recover.plan import Plan
from unlost.recover.state.listings import Listed, Listing
from unlost.recover.state.resources import Wanted
from unlost.recover.state.state import State
from unlost.uri import naming

_AT_ONCE = 1000  # captures that are kept together


async def ask_for_list(repository: Repository, prefix: str, plan: Plan, state: State) -> Listing:
    """Keep all captures that an archive lists below a prefix, and return how that ended.

    Nothing is raised that an archive could cause: what it listed before it failed is right, and kept.
    """
    archive = repository.archive.id
    fresh, outcome, message, until = 0, Listed.DONE, None, None
    batch: list[Capture] = []
    try:
        async for capture in repository.under(prefix, plan.first, plan.last):
            batch.append(capture)
            if len(batch) >= _AT_ONCE:
                fresh += keep_captures(batch, state, plan)
                batch.clear()
    except ListCutError as error:
        outcome, message = Listed.CUT, str(error)
    except UnsupportedError as error:
        outcome, message = Listed.UNSUPPORTED, str(error)
    except ExcludedError as error:
        outcome, message = Listed.EXCLUDED, str(error)
    except NotNowError as error:
        outcome, message, until = Listed.NOT_NOW, str(error), error.until
    except ArchiveError as error:
        outcome, message = Listed.FAILED, str(error)
    fresh += keep_captures(batch, state, plan)
    listing = Listing(archive, prefix, outcome, fresh, message, until)
    state.listings.note(listing)
    return listing


def span_of(plan: Plan) -> str:
    """Return the time for which archives are asked, as text: what was listed for another is listed again."""
    return f"{plan.first or EVER[0]}-{plan.last or EVER[1]}"


def keep_captures(captures: Sequence[Capture], state: State, plan: Plan) -> int:
    """Keep captures with the resources that they are of; return how many were not known before."""
    names = naming.names_of([capture.uri for capture in captures], ignore_case=plan.ignore_case)
    found = [(name, capture) for name, capture in zip(names, captures, strict=True) if not isinstance(name, UriError)]
    # How deep a page lies is all that is known of its place among others, until a link leads to it.
    listed = {name: Wanted(name, capture.uri, _use(capture), name.count("/") + 1) for name, capture in found}
    numbers = state.resources.add(list(listed.values()))
    fresh = state.captures.add((numbers[name], capture) for name, capture in found)
    if fresh:
        state.resources.forget_reasons(set(numbers.values()), NO_CONTENT)
    return fresh


def _use(capture: Capture) -> Use:
    is_page = capture.mime is None or capture.mime in ("text/html", "application/xhtml+xml")
    return Use.PAGE if is_page else Use.REQUISITE
