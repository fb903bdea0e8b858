"""What a request asks for: read from its raw path, query and headers in one go, since most answers cost no more."""

import re
from dataclasses import dataclass
from functools import lru_cache

from unlost.aggregate.places import Places
from unlost.aggregate.wish import Freshness, Wish
from unlost.errors import DateError, UsageError
from unlost.service.address import page_of
from unlost.service.answers import Scope
from unlost.service.preferences import ANY, FRESH_ENOUGH, combined, date_of, freshness_of, preferred

LISTS = ("link", "json", "cdxj", "text")
"""The formats of TimeMaps."""
DESCRIPTIONS = ("link", "json", "cdxj", "proxy")
"""The formats of one memento; `proxy` is the memento itself."""
SUMMARIES = ("json", "text")

SHAPES = {
    "timemap": f"/timemap/{{{'|'.join(LISTS)}}}/[FROM-UNTIL/]URI",
    "timegate": "/timegate/URI",
    "memento": f"/memento/[{{{'|'.join(DESCRIPTIONS)}}}/]DATE/URI",
    "api": f"/api/{{{'|'.join(DESCRIPTIONS)}}}/DATE/URI",
    "summary": f"/summary/{{{'|'.join(SUMMARIES)}}}/URI",
}
"""The endpoints that have a page's address in their path, and what is expected of each."""

_FORMATS = {"timemap": LISTS, "memento": DESCRIPTIONS, "api": DESCRIPTIONS, "summary": SUMMARIES}
_SPAN = re.compile(rb"([0-9]{14})-([0-9]{14})/")
_HOST = re.compile(r"[a-z0-9._~-]+(?::\d{1,5})?|\[[0-9a-f:.]+\](?::\d{1,5})?", re.IGNORECASE)
_MAX_HOST = 260  # characters: the longest name of a host, and a port


@dataclass(slots=True)
class Terms:
    """What the headers of a request say. Values are as they came, or None."""

    places: Places
    wish: Wish
    freshness: Freshness = FRESH_ENOUGH
    accept_datetime: str | None = None
    if_none_match: bytes | None = None


@dataclass(slots=True)
class Asked:
    """What a request asks for.

    endpoint: of `SHAPES`. form: the format, or nothing where there is none. date: 14 digits, or nothing.
    span: the first and last date of the part of a list that is wanted, 14 digits each; None for all of it.
    """

    endpoint: str
    form: str
    date: str
    uri: str
    span: tuple[str, str] | None = None


def asked_in(endpoint: str, rest: bytes, query: bytes) -> Asked:
    """Return what the path behind an endpoint asks for. Raises UsageError, DateError, UriError."""
    formats = _FORMATS.get(endpoint)
    form = date = ""
    if formats is not None:
        name, slash, behind = rest.partition(b"/")
        form = name.decode("latin-1")
        if form not in formats and not (endpoint == "memento" and form[:1].isdigit()):
            raise UsageError(f"expected {SHAPES[endpoint]}")
        if form in formats:
            rest = behind
        else:
            form, slash = "", b"/"
        if not slash:
            raise UsageError(f"expected {SHAPES[endpoint]}")
    if endpoint in ("memento", "api"):
        digits, slash, rest = rest.partition(b"/")
        if not slash:
            raise UsageError(f"expected {SHAPES[endpoint]}")
        try:
            date = date_of(digits.decode("latin-1"))
        except DateError as error:
            raise DateError(f"{error} in {SHAPES[endpoint]}") from None
    span = None
    if endpoint == "timemap" and (found := _SPAN.match(rest)):
        span = date_of(found[1].decode()), date_of(found[2].decode())
        rest = rest[found.end() :]
    return Asked(endpoint, form, date, page_of(rest, query), span)


@lru_cache(maxsize=64)
def _places(scheme: str, host: bytes) -> Places:
    name = host.decode("latin-1")
    if len(name) > _MAX_HOST or not _HOST.fullmatch(name):
        raise UsageError("Host: expected a name or an address, perhaps with a port")
    return Places(f"{scheme}://{name}")


def terms_of(scope: Scope, places: Places | None, wish: Wish = ANY) -> Terms:
    """Return what the headers of a request say. Raises UsageError.

    places: our own addresses; without them, those by which the request calls us. wish: that of requests without one.
    """
    host = said = cached = b""
    terms = Terms(places or _NOWHERE, wish)
    for name, value in scope["headers"]:
        if name == b"host":
            host = host + b"," + value if host else value  # two are none: a proxy before us may take the other
        elif name == b"if-none-match":
            terms.if_none_match = value
        elif name == b"accept-datetime":
            terms.accept_datetime = value.decode("latin-1").strip() or None  # an empty one counts as absent
        elif name == b"prefer":
            said += b"," + value  # fields that come more than once are one, with commas between
        elif name == b"cache-control":
            cached += b"," + value
    if said:
        terms.wish = combined(preferred(said[1:].decode("latin-1")), wish)
    if cached:
        terms.freshness = freshness_of(cached.decode("latin-1"))
    if places is None:
        terms.places = _places(scope.get("scheme", "http"), host or b"localhost")
    return terms


_NOWHERE = Places("")
