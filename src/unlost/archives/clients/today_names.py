"""The many names of archive.today: it sends whoever asks from one to another, and means itself by all of them."""

import re
from dataclasses import replace
from urllib.parse import urlsplit

from unlost.archives.archive import Archive
from unlost.archives.asking.question import Reply

NAMES = frozenset(f"archive.{ending}" for ending in ("today", "ph", "is", "md", "li", "fo", "vn"))
"""Its names, as its own front page and the lists of aggregators had them from 2012 to 2026."""

_ORIGIN = re.compile(r"https?://[^/?#<>\"\s]+", re.IGNORECASE)
_DOTTED = re.compile(r"/(\d{4})\.(\d{2})\.(\d{2})-(\d{6})(?=/)", re.ASCII)
_FIELDS = ("location", "content-location", "link")


class TodayNames:
    """Brings all its names to the one of the registry, and that one to the name at which it is just now.

    home: scheme and host of the registry's addresses.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.home = _origin(archive.timemap or archive.timegate or "") or "http://archive.today"
        self._now = self.home

    @property
    def archive(self) -> Archive:
        """The archive with addresses at its present name, so that what that says counts as its own."""
        places = {
            field: self._now + value.removeprefix(self.home)
            for field in ("timemap", "timegate")
            if (value := getattr(self._archive, field)) is not None and value.startswith(self.home)
        }
        return replace(self._archive, **places)

    def is_own(self, url: str) -> bool:
        """Return whether an address is one of this archive, under any of its names."""
        origin = _origin(url)
        return origin is not None and (origin in (self.home, self._now) or _host(origin) in NAMES)

    def at_present(self, url: str) -> str:
        """Return an address of the archive at its present name; others as they are."""
        return self._now + url.removeprefix(_origin(url) or "") if self.is_own(url) else url

    def moved(self, url: str, target: str) -> bool:
        """Return whether a redirect leads only to another name of the archive, and remember that name."""
        origin, before = _origin(target), _origin(url)
        if origin is None or before is None or origin == before or not self.is_own(target):
            return False
        if target.removeprefix(origin) != url.removeprefix(before):
            return False
        self._now = origin
        return True

    def told(self, reply: Reply) -> Reply:
        """Return an answer as if the archive had one name: where it is from, and where its headers lead."""
        headers = tuple(
            (name, self._at_home(value)) if name.lower() in _FIELDS else (name, value) for name, value in reply.headers
        )
        return replace(reply, url=self._at_home(reply.url), headers=headers)

    def _at_home(self, text: str) -> str:
        """Return a text with all addresses of the archive at home, and dates in the form that other archives have."""
        text = _ORIGIN.sub(lambda found: self.home if self.is_own(found[0]) else found[0], text)
        return _DOTTED.sub(r"/\1\2\3\4", text)


def _origin(url: str) -> str | None:
    found = _ORIGIN.match(url)
    return found[0] if found else None


def _host(origin: str) -> str | None:
    try:
        return (urlsplit(origin).hostname or "").removeprefix("www.")
    except ValueError:
        return None
