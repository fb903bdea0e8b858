"""The crawls of Common Crawl: each has an index of its own, and dates from which to which it went."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

from unlost import dates
from unlost.archives import closeness
from unlost.errors import DateError

MAX_CRAWLS = 10_000
"""What a list may have; the public one has more than a hundred, and gets one more each month."""

_WEEKLY = re.compile(r"CC-MAIN-(\d{4})-(\d{2})", re.ASCII)
_YEARLY = re.compile(r"CC-MAIN-(\d{4})(?:-(\d{4}))?", re.ASCII)
# A crawl takes weeks, and its name has one of them: those before and after it may belong to it, too.
_CRAWL_MARGIN = timedelta(weeks=10)


class CommonCrawlIndex(NamedTuple):
    """One crawl.

    id: as `CC-MAIN-2024-10`. address: of its index server.
    first, last: 14 digits, between which it captured; of one that does not say, all times there are.
    """

    id: str
    url: str
    first: str
    last: str

    def seconds_from(self, first: str, last: str) -> float:
        """Return how far it is from a span of time; 0 if they meet."""
        return closeness.gap_seconds(self.first, self.last, first, last)


def parse_crawl_list(text: bytes, address: str) -> tuple[list[CommonCrawlIndex], int]:
    """Return the crawls of a `collinfo.json`, newest first, and how many entries of it were left out.

    An entry is left out if it is none, or if its index is not at the host of the list, which is all that was trusted.
    address: of the list. Raises ValueError if it is no list.

    >>> text = b'[{"id": "CC-MAIN-2013-20", "cdx-api": "http://i.org/CC-MAIN-2013-20-index"}, {"id": "x"}]'
    >>> read_crawls(text, "http://i.org/collinfo.json")
    ([Crawl(id='CC-MAIN-2013-20', address='http://i.org/CC-MAIN-2013-20-index', first='20130304...', last=...)], 1)
    """
    entries = json.loads(text)
    if not isinstance(entries, list) or len(entries) > MAX_CRAWLS:
        raise ValueError(f"expected a list of at most {MAX_CRAWLS} crawls")
    found = [crawl for entry in entries if (crawl := _parse_crawl(entry, address)) is not None]
    # The list is newest first; those that say when they were are sorted by it, whatever the list does.
    return sorted(found, key=lambda crawl: crawl.last, reverse=True), len(entries) - len(found)


def _parse_crawl(entry: object, address: str) -> CommonCrawlIndex | None:
    if not isinstance(entry, dict):
        return None
    name, index = entry.get("id"), entry.get("cdx-api")
    if not isinstance(index, str) or _origin(index) != _origin(address):
        return None
    if not isinstance(name, str):
        name = index.rpartition("/")[2].removesuffix("-index")
    begin, end = _dates_from_name(name)
    return CommonCrawlIndex(name, index, _parse_iso(entry.get("from")) or begin, _parse_iso(entry.get("to")) or end)


def _origin(address: str) -> tuple[str, str] | None:
    """Return scheme and host of an address; None if it is none of the web."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    return (parts.scheme, parts.netloc) if parts.scheme in ("http", "https") else None


def _parse_iso(value: object) -> str | None:
    try:
        return dates.from_iso(value) if isinstance(value, str) else None
    except DateError:
        return None


def _dates_from_name(name: str) -> tuple[str, str]:
    """Return from when to when a crawl may have gone, by the week or the years in its name."""
    if week := _WEEKLY.fullmatch(name):
        try:
            monday = datetime.fromisocalendar(int(week[1]), int(week[2]), 1).replace(tzinfo=UTC)
            return dates.from_datetime(monday - _CRAWL_MARGIN), dates.from_datetime(monday + _CRAWL_MARGIN)
        except (ValueError, OverflowError):
            pass
    if years := _YEARLY.fullmatch(name):
        return f"{years[1]}0101000000", f"{years[2] or years[1]}1231235959"
    return closeness.ALL_TIME
