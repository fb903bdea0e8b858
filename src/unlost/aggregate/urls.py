"""The aggregator's own URLs: TimeMaps, TimeGates and mementos."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, urlsplit

# All visible ASCII but for what would end an address in a header, an entry or a line.
_VISIBLE = "!#$%&'()*+,-./:;=?@[\\]^_`{|}~"
# In an address of ours, `#` would end the path, and `%` is unescaped once before the page is looked for.
_VISIBLE_IN_PATH = _VISIBLE.replace("#", "").replace("%", "")
# Nearly all addresses need no escaping, and to see that takes a tenth of the time of escaping them.
_UNESCAPED = {safe: re.compile(f"[0-9A-Za-z{re.escape(safe)}]*") for safe in (_VISIBLE, _VISIBLE_IN_PATH)}


class DateSpan(NamedTuple):
    """A span of time, ends included. start, until: 14 digits each, UTC."""

    start: str
    until: str


def ascii_url(uri: str, safe: str = _VISIBLE) -> str:
    r"""Return an address in visible ASCII without `<`, `>` and `"`, the rest of it escaped.

    >>> ascii_url('http://a.com/é b\r\n"<>%20')
    'http://a.com/%C3%A9%20b%0D%0A%22%3C%3E%20'
    """
    if _UNESCAPED[safe].fullmatch(uri):
        return uri
    try:
        return quote(uri.encode("utf-8", "surrogateescape"), safe=safe)
    except UnicodeEncodeError:
        return quote(uri.encode("utf-8", "surrogatepass"), safe=safe)


_ascii_base = lru_cache(maxsize=64)(ascii_url)  # bases are few, and each answer names them some times


@dataclass(frozen=True, slots=True)
class ServiceUrls:
    """The addresses of one aggregator, as MemGator has them; safe to be written into headers and entries.

    base: how it is reached from outside, without a slash at the end.

    A page in them is escaped once more than the page itself: whoever reads it unescapes it once, as MemGator does.

    >>> places = ServiceUrls("http://localhost:1208")
    >>> places.timemap("link", "http://a.com/?b=c"), places.timegate("http://a.com/%2F")
    ('http://localhost:1208/timemap/link/http://a.com/?b=c', 'http://localhost:1208/timegate/http://a.com/%252F')
    >>> places.memento("2014", "http://a.com/", "json")
    'http://localhost:1208/memento/json/2014/http://a.com/'
    """

    base: str

    def timemap(self, form: str, uri: str, span: DateSpan | None = None) -> str:
        """Return where the copies of a page are listed, in a format; with a span, one page of that list."""
        dates = f"{span.start}-{span.until}/" if span else ""
        return f"{self._base}/timemap/{form}/{dates}{ascii_url(uri, _VISIBLE_IN_PATH)}"

    def timegate(self, uri: str) -> str:
        """Return where the copy closest to a date is found."""
        return f"{self._base}/timegate/{ascii_url(uri, _VISIBLE_IN_PATH)}"

    def memento(self, date: str, uri: str, form: str | None = None) -> str:
        """Return where the copy closest to a date of 4 to 14 digits is, or with a format, where it is described."""
        described = f"{form}/" if form else ""
        return f"{self._base}/memento/{described}{date}/{ascii_url(uri, _VISIBLE_IN_PATH)}"

    @property
    def prefix(self) -> str:
        """The path of the base, which the path of every URL begins with; empty if it has none.

        >>> ServiceUrls("https://example.org/memento").prefix
        '/memento'
        """
        return urlsplit(self.base).path

    @property
    def _base(self) -> str:
        return _ascii_base(self.base)
