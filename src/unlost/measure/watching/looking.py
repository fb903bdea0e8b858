"""Looks at a site as a visitor would, who knows what was there, and says whether it is still that site.

The home page and some pages that are known to have been good are fetched. As long as one of the known pages says what
it said, the site is there, whatever the others do; only then is it asked what stands in its place.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from urllib.parse import urlsplit

from unlost import uri as addresses
from unlost.errors import UriError
from unlost.measure.watching.glimpse import Glances, Glimpse
from unlost.pages.link import Use
from unlost.pages.links import links
from unlost.pages.shingles import resemblance
from unlost.pages.verdicts import Context, Kind, Known, verdict_of

KNOWN_PAGES = 8
"""How many pages a look knows, the home page not counted."""

_KEPT = 20_000  # characters of a known page: as much as is ever compared
_ALIKE = 0.4  # of the shingles of three words: a page that was worked on still has so many
_LEADS_ON = 3  # links of a home page that are tried before it is said to lead nowhere
_TRIES = 3  # for the home page: one request in a hundred fails anywhere
# What a verdict quotes of pages that are away for a while.
_FOR_A_WHILE = re.compile(
    r"maintenance|wartung|temporar|vorübergehend|be (right )?back|back soon|in kürze|updating|database|mysql|sql|"
    r"server error|serverfehler|server too busy|unavailable|indisponible|bandwidth|technical|went wrong|gone wrong|"
    r"error occurred|error has occurred|unexpected|gateway|zur ?zeit|derzeit|momentané|503|502|500",
    re.IGNORECASE,
)
_WAIT = (429, 503)
_SUFFIXES = addresses.SuffixList()


class Look(StrEnum):
    """How a site looks."""

    FINE = "fine"
    """It is there."""
    WAIT = "wait"
    """It says that it is away for a while."""
    UNRESPONSIVE = "unresponsive"
    """Nothing answers, or only errors of the server."""
    MISSING = "missing-content"
    """Something answers, but nothing of the site is there."""
    PARKED = "parked"
    """The domain has no site any more."""
    HIJACKED = "hijacked"
    """Another site is in its place."""
    MOVED = "moved"
    """It leads to another domain."""
    UNSEEN = "unseen"
    """Its robots.txt does not want us to look."""

    @property
    def is_gone(self) -> bool:
        """Whether the site is not there, as far as one look can tell."""
        return self not in (Look.FINE, Look.WAIT, Look.UNSEEN)


@dataclass(frozen=True, slots=True)
class KnownPage:
    """A page that was good. digest: of its bytes; text: a bounded part."""

    uri: str
    datetime: str
    digest: str | None
    text: str


@dataclass(frozen=True, slots=True)
class SiteLook:
    """How a site looks, why that is said, and which pages are known now: those of a fine site, else as before."""

    look: Look
    reason: str
    pages: tuple[KnownPage, ...]


async def look_at(home: str, known: Sequence[KnownPage], glances: Glances) -> SiteLook:
    """Look at a site. home: its address. known: pages that were good at the last fine look; none at the first.

    Sends some requests, at most `2 * KNOWN_PAGES` + 6. Raises nothing that a site could cause.
    """
    first = await _home(home, glances)
    others = [page for page in known if _place(page.uri) != _place(home)][:KNOWN_PAGES]
    seen = [await glances.glimpse(page.uri) for page in others]
    before = next((page for page in known if _place(page.uri) == _place(home)), None)
    pairs = list(zip(seen, others, strict=True)) + ([(first, before)] if before is not None else [])
    if any(_is_as_before(glimpse, page) for glimpse, page in pairs):
        return await _fine("pages that are known are as they were", home, first, seen, known, glances)
    if first.is_forbidden or (seen and all(each.is_forbidden for each in seen)):
        return SiteLook(Look.UNSEEN, "its robots.txt does not want us to look", tuple(known))
    look, reason = await _instead(home, first, seen, known, glances)
    if look is not Look.FINE:
        return SiteLook(look, reason, tuple(known))
    return await _fine(reason, home, first, seen, known, glances)


async def _home(home: str, glances: Glances) -> Glimpse:
    """Fetch the home page, again if no answer comes: a look must not hang on one request."""
    for _ in range(_TRIES - 1):
        found = await glances.glimpse(home)
        if found.status is not None and found.status not in (500, 502, 504):
            return found
    return await glances.glimpse(home)


def _is_as_before(glimpse: Glimpse, page: KnownPage) -> bool:
    """Return whether a known page still says what it said."""
    if not glimpse.is_good:
        return False
    if glimpse.digest is not None and glimpse.digest == page.digest:
        return True
    text = glimpse.text()[:_KEPT]
    return bool(text.strip()) and resemblance(text, page.text, 3) >= _ALIKE


async def _instead(  # noqa: PLR0911  a way out for each look
    home: str, first: Glimpse, seen: Sequence[Glimpse], known: Sequence[KnownPage], glances: Glances
) -> tuple[Look, str]:
    """Return what stands in the place of a site of which no known page is as it was."""
    answers = [each for each in (first, *seen) if each.status is not None]
    if not answers:
        return Look.UNRESPONSIVE, first.trouble or "no answer"
    if any(each.status in _WAIT for each in answers) and not first.is_good:
        return Look.WAIT, f"status {first.status}" if first.status else "some pages say to wait"
    if all((each.status or 0) >= 500 for each in answers):
        return Look.UNRESPONSIVE, f"status {answers[0].status} everywhere"
    if first.status is not None and (found := _moved(home, first, seen)) is not None:
        return found
    if first.is_good:
        return await _in_words(first, seen, known, glances)
    if not known:
        return (Look.MISSING, f"status {first.status}") if first.status else (Look.UNRESPONSIVE, first.trouble)
    if any(each.is_good and _verdict(each, known) is None for each in seen):
        return Look.FINE, "the home page is missing, other pages are there"
    return Look.MISSING, f"{_status(first)} at home, and nothing that is known elsewhere"


async def _in_words(  # noqa: PLR0911
    first: Glimpse, seen: Sequence[Glimpse], known: Sequence[KnownPage], glances: Glances
) -> tuple[Look, str]:
    """Judge a home page that came with a good status and is not as it was."""
    verdict = _verdict(first, known)
    if verdict is not None and verdict[0] is Kind.PARKED:
        return Look.PARKED, verdict[1]
    if verdict is not None and verdict[0] is Kind.HIJACKED:
        return Look.HIJACKED, verdict[1]
    if verdict is not None and verdict[0] is Kind.SOFT_404:
        return (Look.WAIT if _FOR_A_WHILE.search(verdict[1]) else Look.MISSING), verdict[1]
    if not known:
        return Look.FINE, "it is looked at for the first time"
    if any(each.is_good and _verdict(each, known) is None and _is_other(each, first) for each in seen):
        return Look.FINE, "the pages have changed"
    for uri in islice(_own_links(first), _LEADS_ON):
        led = await glances.glimpse(uri)
        if led.is_good and _verdict(led, known) is None and _is_other(led, first):
            return Look.FINE, "it looks different, and leads to other pages"
    if len(known) == 1:
        return Look.FINE, "its only page has changed"
    return Look.MISSING, "only a home page is left, which is another one and leads nowhere"


def _verdict(glimpse: Glimpse, known: Sequence[KnownPage]) -> tuple[Kind, str] | None:
    earlier = [Known(page.uri, page.datetime, page.text) for page in known]
    found = verdict_of(glimpse.answer, Context(earlier=earlier))
    return None if found is None else (found.kind, found.reason)


def _is_other(glimpse: Glimpse, home: Glimpse) -> bool:
    """Return whether it is another page than the home page: a site that is gone says the same everywhere."""
    return resemblance(glimpse.text()[:_KEPT], home.text()[:_KEPT], 3) < 0.9


def _moved(home: str, first: Glimpse, seen: Sequence[Glimpse]) -> tuple[Look, str] | None:
    """Return that a site leads to another domain, if all that answers does."""
    own = domain_of(home)
    if not first.final or domain_of(first.final) == own:
        return None
    # Where others stay, it is the home page alone that leads elsewhere.
    stays = [each for each in seen if each.is_good and domain_of(each.final or each.uri) == own]
    return None if stays else (Look.MOVED, f"it leads to {domain_of(first.final)}")


async def _fine(
    reason: str, home: str, first: Glimpse, seen: Sequence[Glimpse], known: Sequence[KnownPage], glances: Glances
) -> SiteLook:
    """Return that a site is fine, with the pages that are known from now on: up to `KNOWN_PAGES` that are good."""
    pages = [
        _known(each) for each in (first, *seen) if each.is_good and domain_of(each.final or each.uri) == domain_of(home)
    ]
    places = {_place(page.uri) for page in pages} | {_place(page.uri) for page in known}
    if first.is_good:
        for uri in _own_links(first):
            if len(pages) > KNOWN_PAGES:
                break
            if _place(uri) in places:
                continue
            places.add(_place(uri))
            found = await glances.glimpse(uri)
            if not found.is_good:
                break  # a site that is not well is not looked at more
            if found.mime is None or "html" in found.mime:
                pages.append(_known(found))
    # A page that only failed today is known tomorrow, unless others have taken its place.
    there = {_place(page.uri) for page in pages}
    failed = {_place(each.uri) for each in (first, *seen) if each.status is None or each.status >= 500}
    pages += [page for page in known if _place(page.uri) in failed - there]
    return SiteLook(Look.FINE, reason, tuple(pages[: KNOWN_PAGES + 1]))


def _known(glimpse: Glimpse) -> KnownPage:
    return KnownPage(glimpse.uri, glimpse.datetime, glimpse.digest, glimpse.text()[:_KEPT])


def _own_links(page: Glimpse) -> list[str]:
    """Return where a page leads within its own domain."""
    own = domain_of(page.final or page.uri)
    found = links(page.body, page.mime, page.final or page.uri, page.charset)
    here = _place(page.uri)
    return [
        each.uri for each in found if each.use is Use.PAGE and domain_of(each.uri) == own and _place(each.uri) != here
    ]


def domain_of(uri: str) -> str:
    """Return the registered domain of an address; of what has none, its host.

    >>> domain_of("http://www.a.co.uk/x"), domain_of("http://127.0.0.1:80/")
    ('a.co.uk', '127.0.0.1')
    """
    try:
        return _SUFFIXES.registered_domain(uri)
    except UriError:
        return (urlsplit(uri).hostname or "").lower()


def _place(uri: str) -> str:
    try:
        return addresses.key(uri)
    except UriError:
        return uri


def _status(glimpse: Glimpse) -> str:
    return f"status {glimpse.status}" if glimpse.status else "no answer"
