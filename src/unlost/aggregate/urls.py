"""URLs of the aggregator's own TimeMaps, TimeGates and mementos."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, urlsplit

# All visible ASCII characters except those that would end a URL in a header, an entry or a line.
_VISIBLE = "!#$%&'()*+,-./:;=?@[\\]^_`{|}~"
# In the path of a service URL, `#` would end the path, and `%` is unescaped once by the service.
_VISIBLE_IN_PATH = _VISIBLE.replace("#", "").replace("%", "")
# Nearly all URLs need no escaping, and checking that takes a tenth of the time of escaping them.
_UNESCAPED = {safe: re.compile(f"[0-9A-Za-z{re.escape(safe)}]*") for safe in (_VISIBLE, _VISIBLE_IN_PATH)}


class DateSpan(NamedTuple):
    """A time span, inclusive: two dates of 14 digits, UTC."""

    start: str
    until: str


def ascii_url(uri: str, safe: str = _VISIBLE) -> str:
    r"""Return a URL in visible ASCII without `<`, `>` and `"`; other characters are percent-encoded.

    >>> ascii_url('http://a.com/é b\r\n"<>%20')
    'http://a.com/%C3%A9%20b%0D%0A%22%3C%3E%20'
    """
    if _UNESCAPED[safe].fullmatch(uri):
        return uri
    try:
        return quote(uri.encode("utf-8", "surrogateescape"), safe=safe)
    except UnicodeEncodeError:
        return quote(uri.encode("utf-8", "surrogatepass"), safe=safe)


_ascii_base = lru_cache(maxsize=64)(ascii_url)  # there are few bases, and each response contains them several times


@dataclass(frozen=True, slots=True)
class ServiceUrls:
    """URLs of one aggregator, with MemGator's paths; safe in headers and link-format entries.

    A URL in a path is percent-encoded once more; the service decodes it once, as MemGator does.

    Attributes:
        base: Public URL of the service, without a trailing slash.

    >>> urls = ServiceUrls("http://localhost:1208")
    >>> urls.timemap("link", "http://a.com/?b=c"), urls.timegate("http://a.com/%2F")
    ('http://localhost:1208/timemap/link/http://a.com/?b=c', 'http://localhost:1208/timegate/http://a.com/%252F')
    >>> urls.memento("2014", "http://a.com/", "json")
    'http://localhost:1208/memento/json/2014/http://a.com/'
    """

    base: str

    def timemap(self, form: str, uri: str, span: DateSpan | None = None) -> str:
        """Return the URL of a TimeMap in a format; with a span, of one page of it."""
        dates = f"{span.start}-{span.until}/" if span else ""
        return f"{self._base}/timemap/{form}/{dates}{ascii_url(uri, _VISIBLE_IN_PATH)}"

    def timegate(self, uri: str) -> str:
        """Return the URL of a TimeGate."""
        return f"{self._base}/timegate/{ascii_url(uri, _VISIBLE_IN_PATH)}"

    def memento(self, date: str, uri: str, form: str | None = None) -> str:
        """Return the URL of the memento closest to a date of 4 to 14 digits; with a format, of its description."""
        format_part = f"{form}/" if form else ""
        return f"{self._base}/memento/{format_part}{date}/{ascii_url(uri, _VISIBLE_IN_PATH)}"

    @property
    def prefix(self) -> str:
        """Path of the base, which begins the path of every URL; empty if it has none.

        >>> ServiceUrls("https://example.org/memento").prefix
        '/memento'
        """
        return urlsplit(self.base).path

    @property
    def _base(self) -> str:
        return _ascii_base(self.base)
