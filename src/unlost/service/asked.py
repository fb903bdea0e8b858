"""What a request asks for: read from its raw path, query and headers in one go, since most answers cost no more."""

import re
from dataclasses import dataclass
from functools import lru_cache

from unlost.aggregate.places import ServiceUrls
from unlost.aggregate.wish import CacheControl, RoutingOptions
from unlost.errors import DateError, UsageError
from unlost.service.address import parse_target_url
from unlost.service.answers import Scope
from unlost.service.preferences import (
    DEFAULT_OPTIONS,
    DEFAULT_CACHE_CONTROL,
    merge_routing_options,
    parse_date_digits,
    parse_cache_control,
    parse_prefer,
)

TIMEMAP_FORMATS = ("link", "json", "cdxj", "text")
"""The formats of TimeMaps."""
MEMENTO_FORMATS = ("link", "json", "cdxj", "proxy")
"""The formats of one memento; `proxy` is the memento itself."""
SUMMARY_FORMATS = ("json", "text")

ENDPOINT_PATTERNS = {
    "timemap": f"/timemap/{{{'|'.join(TIMEMAP_FORMATS)}}}/[FROM-UNTIL/]URI",
    "timegate": "/timegate/URI",
    "memento": f"/memento/[{{{'|'.join(MEMENTO_FORMATS)}}}/]DATE/URI",
    "api": f"/api/{{{'|'.join(MEMENTO_FORMATS)}}}/DATE/URI",
    "summary": f"/summary/{{{'|'.join(SUMMARY_FORMATS)}}}/URI",
}
"""The endpoints that have a page's address in their path, and what is expected of each."""

_FORMATS = {"timemap": TIMEMAP_FORMATS, "memento": MEMENTO_FORMATS, "api": MEMENTO_FORMATS, "summary": SUMMARY_FORMATS}
_SPAN = re.compile(rb"([0-9]{14})-([0-9]{14})/")
_HOST = re.compile(r"[a-z0-9._~-]+(?::\d{1,5})?|\[[0-9a-f:.]+\](?::\d{1,5})?", re.IGNORECASE)
_MAX_HOST = 260  # characters: the longest name of a host, and a port


@dataclass(slots=True)
class RequestHeaders:
    """What the headers of a request say. Values are as they came, or None."""

    urls: ServiceUrls
    options: RoutingOptions
    cache_control: CacheControl = DEFAULT_CACHE_CONTROL
    accept_datetime: str | None = None
    if_none_match: bytes | None = None


@dataclass(slots=True)
class MementoRequest:
    """What a request asks for.

    endpoint: of `SHAPES`. form: the format, or nothing where there is none. date: 14 digits, or nothing.
    span: the first and last date of the part of a list that is wanted, 14 digits each; None for all of it.
    """

    endpoint: str
    form: str
    date: str
    uri: str
    span: tuple[str, str] | None = None


def parse_path(endpoint: str, rest: bytes, query: bytes) -> MementoRequest:
    """Return what the path behind an endpoint asks for. Raises UsageError, DateError, UriError."""
    formats = _FORMATS.get(endpoint)
    form = date = ""
    if formats is not None:
        name, slash, behind = rest.partition(b"/")
        form = name.decode("latin-1")
        if form not in formats and not (endpoint == "memento" and form[:1].isdigit()):
            raise UsageError(f"expected {ENDPOINT_PATTERNS[endpoint]}")
        if form in formats:
            rest = behind
        else:
            form, slash = "", b"/"
        if not slash:
            raise UsageError(f"expected {ENDPOINT_PATTERNS[endpoint]}")
    if endpoint in ("memento", "api"):
        digits, slash, rest = rest.partition(b"/")
        if not slash:
            raise UsageError(f"expected {ENDPOINT_PATTERNS[endpoint]}")
        try:
            date = parse_date_digits(digits.decode("latin-1"))
        except DateError as error:
            raise DateError(f"{error} in {ENDPOINT_PATTERNS[endpoint]}") from None
    span = None
    if endpoint == "timemap" and (found := _SPAN.match(rest)):
        span = parse_date_digits(found[1].decode()), parse_date_digits(found[2].decode())
        rest = rest[found.end() :]
    return MementoRequest(endpoint, form, date, parse_target_url(rest, query), span)


@lru_cache(maxsize=64)
def _service_urls(scheme: str, host: bytes) -> ServiceUrls:
    name = host.decode("latin-1")
    if len(name) > _MAX_HOST or not _HOST.fullmatch(name):
        raise UsageError("Host: expected a name or an address, perhaps with a port")
    return ServiceUrls(f"{scheme}://{name}")


def parse_headers(
    scope: Scope, urls: ServiceUrls | None, default_options: RoutingOptions = DEFAULT_OPTIONS
) -> RequestHeaders:
    """Return what the headers of a request say. Raises UsageError.

    places: our own addresses; without them, those by which the request calls us. wish: that of requests without one.
    """
    host = said = cached = b""
    terms = RequestHeaders(urls or _NO_URLS, default_options)
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
        terms.options = merge_routing_options(parse_prefer(said[1:].decode("latin-1")), default_options)
    if cached:
        terms.cache_control = parse_cache_control(cached.decode("latin-1"))
    if urls is None:
        terms.urls = _service_urls(scope.get("scheme", "http"), host or b"localhost")
    return terms


_NO_URLS = ServiceUrls("")
