"""The many names of archive.today: it sends whoever asks from one to another, and means itself by all of them."""

import re
from dataclasses import replace
from urllib.parse import urlsplit

from unlost.archives.archive import Archive
from unlost.archives.asking.question import HttpResponse

DOMAINS = frozenset(f"archive.{ending}" for ending in ("today", "ph", "is", "md", "li", "fo", "vn"))
"""Its names, as its own front page and the lists of aggregators had them from 2012 to 2026."""

_ORIGIN = re.compile(r"https?://[^/?#<>\"\s]+", re.IGNORECASE)
_DOTTED_DATE = re.compile(r"/(\d{4})\.(\d{2})\.(\d{2})-(\d{6})(?=/)", re.ASCII)
_URL_HEADERS = ("location", "content-location", "link")


class ArchiveTodayDomains:
    """Brings all its names to the one of the registry, and that one to the name at which it is just now.

    home: scheme and host of the registry's addresses.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.registered = _origin(archive.timemap or archive.timegate or "") or "http://archive.today"
        self._current = self.registered

    @property
    def archive(self) -> Archive:
        """The archive with addresses at its present name, so that what that says counts as its own."""
        places = {
            field: self._current + value.removeprefix(self.registered)
            for field in ("timemap", "timegate")
            if (value := getattr(self._archive, field)) is not None and value.startswith(self.registered)
        }
        return replace(self._archive, **places)

    def is_own(self, url: str) -> bool:
        """Return whether an address is one of this archive, under any of its names."""
        origin = _origin(url)
        return origin is not None and (origin in (self.registered, self._current) or _host(origin) in DOMAINS)

    def at_current_domain(self, url: str) -> str:
        """Return an address of the archive at its present name; others as they are."""
        return self._current + url.removeprefix(_origin(url) or "") if self.is_own(url) else url

    def follow_move(self, url: str, target: str) -> bool:
        """Return whether a redirect leads only to another name of the archive, and remember that name."""
        origin, before = _origin(target), _origin(url)
        if origin is None or before is None or origin == before or not self.is_own(target):
            return False
        if target.removeprefix(origin) != url.removeprefix(before):
            return False
        self._current = origin
        return True

    def normalize_response(self, response: HttpResponse) -> HttpResponse:
        """Return an answer as if the archive had one name: where it is from, and where its headers lead."""
        headers = tuple(
            (name, self._at_registered_domain(value)) if name.lower() in _URL_HEADERS else (name, value)
            for name, value in response.headers
        )
        return replace(response, url=self._at_registered_domain(response.url), headers=headers)

    def _at_registered_domain(self, text: str) -> str:
        """Return a text with all addresses of the archive at home, and dates in the form that other archives have."""
        text = _ORIGIN.sub(lambda found: self.registered if self.is_own(found[0]) else found[0], text)
        return _DOTTED_DATE.sub(r"/\1\2\3\4", text)


def _origin(url: str) -> str | None:
    found = _ORIGIN.match(url)
    return found[0] if found else None


def _host(origin: str) -> str | None:
    try:
        return (urlsplit(origin).hostname or "").removeprefix("www.")
    except ValueError:
        return None
