"""What a request says about how it is to be answered: which archives to ask, how fresh, for which date."""

import re
from collections.abc import Mapping

from unlost import dates
from unlost.aggregate.wish import CacheControl, RoutingOptions
from unlost.errors import DateError, UsageError

DEFAULT_OPTIONS = RoutingOptions()
DEFAULT_CACHE_CONTROL = CacheControl()

_MAX_ARCHIVES = 1_000  # ids in one wish: more than there are archives
_MAX_TOP_K = 1_000
_PREFERENCE = re.compile(
    r'\s*([!#$%&\'*+.^_`|~0-9a-z-]+)(?:\s*=\s*(?:"([^"]*)"|([^\s,;"]+)))?\s*(?:[,;]|$)', re.IGNORECASE
)
_FIRST_YEAR = "1900"  # no memento is older: dates of earlier years are errors of a client
_PROBABILITY = re.compile(r"0?\.\d{1,9}|0|1|[01]\.0{1,9}", re.ASCII)
_DIGITS = re.compile(r"\d{4}(?:\d\d){0,5}", re.ASCII)
_HTTP_DATE = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (\d{4}) "
    r"\d\d:\d\d:\d\d GMT",
    re.ASCII,
)


def parse_prefer(header: str) -> RoutingOptions:
    """Return what a `Prefer` header wishes (RFC 7240); preferences of others are passed over. Raises UsageError.

    >>> preferred('archives="a,b"; broadcast; top-k=3, respond-async') == wished("a,b", "1", "3")
    True
    """
    found: dict[str, str] = {}
    place = 0
    while place < len(header):
        match = _PREFERENCE.match(header, place)
        if match is None:
            raise UsageError('Prefer: expected such as archives="a,b", broadcast, top-k=3')
        found.setdefault(match[1].lower(), match[2] or match[3] or "")
        place = match.end()
    broadcast = "1" if found.get("broadcast", "0") == "" else found.get("broadcast")
    least = found.get("min-probability", found.get("min_probability"))
    return parse_routing_options(found.get("archives"), broadcast, found.get("top-k", found.get("top_k")), least)


def parse_routing_options(
    archives: str | None, broadcast: str | None, top_k: str | None, min_probability: str | None = None
) -> RoutingOptions:
    """Return a wish from the values of options; None or nothing for those that were not given. Raises UsageError."""
    ids = [part.strip().lower() for part in archives.split(",")] if archives and archives.strip() else []
    if len(ids) > _MAX_ARCHIVES or not all(ids):
        raise UsageError("archives: expected ids of archives with commas between them")
    if broadcast not in (None, "", "0", "1", "true", "false", "on"):
        raise UsageError("broadcast: expected 1 or 0")
    if top_k and not (top_k.isascii() and top_k.isdigit() and len(top_k) < 5 and 1 <= int(top_k) <= _MAX_TOP_K):
        raise UsageError(f"top_k: expected a number from 1 to {_MAX_TOP_K}")
    if min_probability and not _PROBABILITY.fullmatch(min_probability):
        raise UsageError("min_probability: expected a number from 0 to 1, such as 0.05")
    chosen = frozenset(ids) if ids else None
    least = float(min_probability) if min_probability else 0.0
    return RoutingOptions(chosen, broadcast in ("1", "true", "on"), int(top_k) if top_k else None, least)


def merge_routing_options(options: RoutingOptions, defaults: RoutingOptions) -> RoutingOptions:
    """Return a wish, with what is usual where it says nothing."""
    return RoutingOptions(
        options.archives or defaults.archives,
        options.broadcast or defaults.broadcast,
        options.top_k or defaults.top_k,
        options.min_probability or defaults.min_probability,
    )


def parse_routing_parameters(options: Mapping[str, str]) -> RoutingOptions:
    """Return a wish from parameters: `archives`, `broadcast`, `top_k`, `min_probability`. Raises UsageError."""
    names = ("archives", "broadcast", "top_k", "min_probability")
    archives, broadcast, top_k, least = (options.get(name) for name in names)
    return parse_routing_options(archives, broadcast, top_k, least)


def parse_cache_control(cache_control: str) -> CacheControl:
    """Return how fresh an answer must be, from a request's Cache-Control; what else it says is passed over.

    >>> freshness_of("max-age=0, No-Cache")
    Freshness(no_cache=True, only_if_cached=False)
    """
    directives = {part.strip().lower() for part in cache_control.split(",")}
    return CacheControl("no-cache" in directives, "only-if-cached" in directives)


def parse_date_digits(digits: str) -> str:
    """Return the first moment of a date of 4, 6, … or 14 digits, from 1900 on. Raises DateError."""
    if not _DIGITS.fullmatch(digits):
        raise DateError(f"expected a date as YYYY[MM[DD[hh[mm[ss]]]]], found `{digits[:40]}`")
    _check_year(digits[:4])
    return dates.pad(digits)


def parse_accept_datetime(header: str) -> str:
    """Return the 14 digits of an Accept-Datetime: only GMT, as RFC 7089 has it, from 1900 on. Raises DateError."""
    found = _HTTP_DATE.fullmatch(header.strip())
    if found is None:
        raise DateError(f"expected a date such as Mon, 10 Feb 2014 00:00:01 GMT, found `{header[:40]}`")
    _check_year(found[1])  # before the date is read: a year such as 0099 would become 1999
    return dates.from_http(header.strip())


def _check_year(year: str) -> None:
    """Raise DateError if a year of four digits is invalid."""
    if year < _FIRST_YEAR:
        raise DateError(f"expected a date of {_FIRST_YEAR} or later, in GMT, found year {year}")
