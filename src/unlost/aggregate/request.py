"""Parses requests to the aggregator's HTTP API.

The requested URL (URI-R), date, format, routing options and cache control are read from raw paths, queries and headers.
This is the hot path: most responses come from a cache, so parsing must cost little.
"""

import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote_from_bytes, unquote_to_bytes

from unlost import dates
from unlost.aggregate.models import CacheControl, RoutingOptions
from unlost.aggregate.urls import ServiceUrls
from unlost.errors import DateError, UriError, UsageError

MAX_TARGET_BYTES = 1 << 14
"""Longest accepted path with query. Browsers and archives do not use longer URLs."""
# Characters allowed unescaped in a URL, as in `uri.normalize`. Everything else is escaped, so that no byte of a
# request can end a header, a link or a line. So is `#`: clients never send fragments, so an escaped `#` is data.
_UNESCAPED = "!$%&'()*+,-./:;=?@_~[]|"
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_SINGLE_SLASH = re.compile(r"(https?):/(?=[^/])", re.IGNORECASE)
_PLAIN = re.compile(rb"https?://[!$&'()*+,\-./0-9:;=?@A-Z_a-z~]+")  # complete and needs no escaping

DEFAULT_OPTIONS = RoutingOptions()
DEFAULT_CACHE_CONTROL = CacheControl()
_MAX_ARCHIVES = 1_000  # IDs in one request: more than there are archives
_MAX_TOP_K = 1_000
_PREFERENCE = re.compile(
    r'\s*([!#$%&\'*+.^_`|~0-9a-z-]+)(?:\s*=\s*(?:"([^"]*)"|([^\s,;"]+)))?\s*(?:[,;]|$)', re.IGNORECASE
)
_FIRST_YEAR = "1900"  # no memento is older, so an earlier date is an error of the client
_PROBABILITY = re.compile(r"0?\.\d{1,9}|0|1|[01]\.0{1,9}", re.ASCII)
_DIGITS = re.compile(r"\d{4}(?:\d\d){0,5}", re.ASCII)
_HTTP_DATE = re.compile(  # the IMF-fixdate of RFC 9110 (section 5.6.7), also with one digit for the day
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (\d{4}) "
    r"\d\d:\d\d:\d\d GMT",
    re.ASCII,
)

Scope = MutableMapping[str, Any]

TIMEMAP_FORMATS = ("link", "json", "cdxj", "text")
"""Formats of TimeMaps."""
MEMENTO_FORMATS = ("link", "json", "cdxj", "proxy")
"""Formats of one memento; `proxy` is the memento itself."""
SUMMARY_FORMATS = ("json", "text")
ENDPOINT_PATTERNS = {
    "timemap": f"/timemap/{{{'|'.join(TIMEMAP_FORMATS)}}}/[FROM-UNTIL/]URI",
    "timegate": "/timegate/URI",
    "memento": f"/memento/[{{{'|'.join(MEMENTO_FORMATS)}}}/]DATE/URI",
    "api": f"/api/{{{'|'.join(MEMENTO_FORMATS)}}}/DATE/URI",
    "summary": f"/summary/{{{'|'.join(SUMMARY_FORMATS)}}}/URI",
}
"""Endpoints with a URL in their path, and their path patterns."""
_FORMATS = {"timemap": TIMEMAP_FORMATS, "memento": MEMENTO_FORMATS, "api": MEMENTO_FORMATS, "summary": SUMMARY_FORMATS}
_SPAN = re.compile(rb"([0-9]{14})-([0-9]{14})/")
_HOST = re.compile(r"[a-z0-9._~-]+(?::\d{1,5})?|\[[0-9a-f:.]+\](?::\d{1,5})?", re.IGNORECASE)
_MAX_HOST = 260  # characters: the longest host name (RFC 1035) and a port

_NO_URLS = ServiceUrls("")
# Byte range of a WARC record, as `upstream.capture_url` writes it. Clients do not send fragments, so a browser would
# download the whole file.
_RECORD_FRAGMENT = re.compile(r"#\d+(?:-\d+)?\Z")


def parse_target_url(path: bytes, query: bytes) -> str:
    """Return the URL that the end of a path and the query name, by MemGator's rules.

    The URL is unescaped once, and characters that a URL cannot contain are escaped again. `http://` is prepended unless
    there is a scheme. The query is part of the URL. Raises UriError if the URL is empty.

    >>> parse_target_url(b"http%3A%2F%2Fexample.com%2Fa%20b", b""), parse_target_url(b"example.com:8080/", b"a=1,2&b")
    ('http://example.com/a%20b', 'http://example.com:8080/?a=1,2&b')
    >>> parse_target_url(b"http:/example.com/%0d%0aX: y", b""), parse_target_url("http://ü.example/%23".encode(), b"")
    ('http://example.com/%0D%0AX:%20y', 'http://%C3%BC.example/%23')
    """
    target = path + b"?" + query if query else path
    if _PLAIN.fullmatch(target):
        return target.decode("ascii")
    return _escape_url(unquote_to_bytes(target))


def parse_typed_url(text: str) -> str:
    """Return the URL in a form field or parameter: like `parse_target_url`, but without unescaping.

    >>> parse_typed_url(" example.com/a b%20c ")
    'http://example.com/a%20b%20c'
    """
    return _escape_url(text.encode("utf-8", "surrogatepass"))


def _escape_url(url: bytes) -> str:
    text = quote_from_bytes(url.strip(), _UNESCAPED)
    if not text:
        raise UriError("expected the address of a page, found nothing", "empty")
    if _SCHEME.match(text):
        return text
    # Some servers and proxies merge double slashes in paths.
    repaired = _SINGLE_SLASH.sub(r"\1://", text, count=1)
    return repaired if repaired != text and _SCHEME.match(repaired) else f"http://{text.lstrip('/')}"


def parse_prefer(header: str) -> RoutingOptions:
    """Return the routing options of a `Prefer` header (RFC 7240). Unknown preferences are ignored. Raises UsageError.

    >>> parse_prefer('archives="a,b"; broadcast; top-k=3, respond-async') == parse_routing_options("a,b", "1", "3")
    True
    """
    preferences: dict[str, str] = {}
    position = 0
    while position < len(header):
        match = _PREFERENCE.match(header, position)
        if match is None:
            raise UsageError('Prefer: expected such as archives="a,b", broadcast, top-k=3')
        preferences.setdefault(match[1].lower(), match[2] or match[3] or "")
        position = match.end()
    broadcast = "1" if preferences.get("broadcast", "0") == "" else preferences.get("broadcast")
    min_probability = preferences.get("min-probability", preferences.get("min_probability"))
    return parse_routing_options(
        preferences.get("archives"), broadcast, preferences.get("top-k", preferences.get("top_k")), min_probability
    )


def parse_routing_options(
    archives: str | None, broadcast: str | None, top_k: str | None, min_probability: str | None = None
) -> RoutingOptions:
    """Return routing options from their text values; None or empty for those not given. Raises UsageError."""
    ids = [part.strip().lower() for part in archives.split(",")] if archives and archives.strip() else []
    if len(ids) > _MAX_ARCHIVES or not all(ids):
        raise UsageError("archives: expected ids of archives with commas between them")
    if broadcast not in (None, "", "0", "1", "true", "false", "on"):
        raise UsageError("broadcast: expected 1 or 0")
    if top_k and not (top_k.isascii() and top_k.isdigit() and len(top_k) < 5 and 1 <= int(top_k) <= _MAX_TOP_K):
        raise UsageError(f"top_k: expected a number from 1 to {_MAX_TOP_K}")
    if min_probability and not _PROBABILITY.fullmatch(min_probability):
        raise UsageError("min_probability: expected a number from 0 to 1, such as 0.05")
    archive_ids = frozenset(ids) if ids else None
    return RoutingOptions(
        archive_ids,
        broadcast in ("1", "true", "on"),
        int(top_k) if top_k else None,
        float(min_probability) if min_probability else 0.0,
    )


def merge_routing_options(options: RoutingOptions, defaults: RoutingOptions) -> RoutingOptions:
    """Return the options, completed with the defaults."""
    return RoutingOptions(
        options.archives or defaults.archives,
        options.broadcast or defaults.broadcast,
        options.top_k or defaults.top_k,
        options.min_probability or defaults.min_probability,
    )


def parse_routing_parameters(options: Mapping[str, str]) -> RoutingOptions:
    """Return the options in the parameters `archives`, `broadcast`, `top_k`, `min_probability`. Raises UsageError."""
    names = ("archives", "broadcast", "top_k", "min_probability")
    return parse_routing_options(*(options.get(name) for name in names))


def parse_cache_control(cache_control: str) -> CacheControl:
    """Parse a request's `Cache-Control`; other directives are ignored.

    >>> parse_cache_control("max-age=0, No-Cache")
    CacheControl(no_cache=True, only_if_cached=False)
    """
    directives = {part.strip().lower() for part in cache_control.split(",")}
    return CacheControl("no-cache" in directives, "only-if-cached" in directives)


def parse_date_digits(digits: str) -> str:
    """Return the first second of a date of 4, 6, … or 14 digits, from 1900 on. Raises DateError."""
    if not _DIGITS.fullmatch(digits):
        raise DateError(f"expected a date as YYYY[MM[DD[hh[mm[ss]]]]], found `{digits[:40]}`")
    _check_year(digits[:4])
    return dates.pad(digits)


def parse_accept_datetime(header: str) -> str:
    """Return the 14 digits of an `Accept-Datetime` header.

    Only dates in GMT are valid (RFC 7089, section 2.1.1), and only from 1900 on. Raises DateError.
    """
    match = _HTTP_DATE.fullmatch(header.strip())
    if match is None:
        raise DateError(f"expected a date such as Mon, 10 Feb 2014 00:00:01 GMT, found `{header[:40]}`")
    _check_year(match[1])  # before parsing: a year such as 0099 would become 1999
    return dates.from_http(header.strip())


def _check_year(year: str) -> None:
    """Raise DateError if a year of four digits is before the first year accepted."""
    if year < _FIRST_YEAR:
        raise DateError(f"expected a date of {_FIRST_YEAR} or later, in GMT, found year {year}")


@dataclass(slots=True)
class RequestHeaders:
    """Parsed request headers.

    `accept_datetime` and `if_none_match` have the raw values, or None.
    """

    urls: ServiceUrls
    options: RoutingOptions
    cache_control: CacheControl = DEFAULT_CACHE_CONTROL
    accept_datetime: str | None = None
    if_none_match: bytes | None = None


@dataclass(slots=True)
class MementoRequest:
    """Parsed path of a request.

    Attributes:
        endpoint: A key of `ENDPOINT_PATTERNS`.
        form: Format; empty if the endpoint has none.
        date: 14 digits; empty if the endpoint has none.
        uri: Requested URL (URI-R).
        span: First and last date of the requested page of the TimeMap, 14 digits each; None for all of it.
    """

    endpoint: str
    form: str
    date: str
    uri: str
    span: tuple[str, str] | None = None


def parse_path(endpoint: str, rest: bytes, query: bytes) -> MementoRequest:
    """Parse the path after an endpoint. Raises UsageError, DateError or UriError."""
    formats = _FORMATS.get(endpoint)
    form = date = ""
    if formats is not None:
        name, slash, remainder = rest.partition(b"/")
        form = name.decode("latin-1")
        if form not in formats and not (endpoint == "memento" and form[:1].isdigit()):
            raise UsageError(f"expected {ENDPOINT_PATTERNS[endpoint]}")
        if form in formats:
            rest = remainder
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
    if endpoint == "timemap" and (match := _SPAN.match(rest)):
        span = parse_date_digits(match[1].decode()), parse_date_digits(match[2].decode())
        rest = rest[match.end() :]
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
    """Parse the headers of a request. Raises UsageError.

    Args:
        scope: ASGI scope.
        urls: The service's own URLs; None to derive them from the `Host` header.
        default_options: Options for requests without a `Prefer` header.
    """
    host = prefer = cache_control = b""
    headers = RequestHeaders(urls or _NO_URLS, default_options)
    for name, value in scope["headers"]:
        if name == b"host":
            # Two `Host` fields are invalid (RFC 9112, section 3.2): a proxy may use the other one.
            host = host + b"," + value if host else value
        elif name == b"if-none-match":
            headers.if_none_match = value
        elif name == b"accept-datetime":
            headers.accept_datetime = value.decode("latin-1").strip() or None  # an empty one counts as absent
        elif name == b"prefer":
            prefer += b"," + value  # repeated fields are joined with commas (RFC 9110, 5.3)
        elif name == b"cache-control":
            cache_control += b"," + value
    if prefer:
        headers.options = merge_routing_options(parse_prefer(prefer[1:].decode("latin-1")), default_options)
    if cache_control:
        headers.cache_control = parse_cache_control(cache_control.decode("latin-1"))
    if urls is None:
        headers.urls = _service_urls(scope.get("scheme", "http"), host or b"localhost")
    return headers


def is_web_url(url: str) -> bool:
    """Return whether a browser can open a memento at its URL: not a record in a WARC file, and no other scheme."""
    return url[:8].lower().startswith(("http://", "https://")) and not _RECORD_FRAGMENT.search(url)
