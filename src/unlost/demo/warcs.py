"""WARCs of the lost site and their indexes, as crawls of that time would have left them."""

import asyncio
import io
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from unlost import dates
from unlost._core import VERSION
from unlost.crawl import visitor
from unlost.crawl.warcs import CrawlWarcStore
from unlost.demo.site import SiteResponse
from unlost.formats import cdxj, warcindex
from unlost.formats.output import atomic_file
from unlost.formats.problems import Problems
from unlost.formats.sorting import sort_lines

_PEER_ADDRESS = "192.0.2.1"  # an address that is nobody's, for examples


class _FixedClock:
    """A clock that stands still, so that the same files are made on any day."""

    def __init__(self, date: str) -> None:
        self._now = dates.to_datetime(date).timestamp()

    def now(self) -> float:
        """Return the seconds since 1970."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


def write_site_warc(folder: Path, captures: Iterable[tuple[str, str, SiteResponse]], date: str) -> Path:
    """Write a WARC into a new folder, and return its path.

    copies: address, date (14 digits) and answer of each. date: of the file itself. Raises OSError, InputError.
    """
    folder.mkdir(parents=True)
    with closing(CrawlWarcStore(folder, _FixedClock(date), f"unlost/{VERSION}")) as warcs:
        for url, when, answer in captures:
            warcs.store(_crawled_response(url, when, answer), answer.mime.partition(";")[0])
    return next(folder.iterdir())


def write_index(warc: Path, index: Path) -> int:
    """Write the CDXJ of a WARC, as pywb serves it; return how many captures it lists. Raises OSError, InputError."""
    problems = Problems()
    lines = list(sort_lines(cdxj.write_cdxj(warcindex.read_archive_rows(warc, problems))))
    with atomic_file(index) as file:
        file.writelines(lines)
    return len(lines)


def _crawled_response(url: str, when: str, answer: SiteResponse) -> visitor.FetchResponse:
    parts = urlsplit(url)
    place = f"{parts.path}?{parts.query}" if parts.query else parts.path
    headers = [("Content-Type", answer.mime), *([("Location", answer.location)] if answer.location else [])]
    request = f"GET {place} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode()
    return visitor.FetchResponse(
        url,
        answer.status,
        tuple(headers),
        io.BytesIO(answer.body),
        len(answer.body),
        None,
        when,
        _PEER_ADDRESS,
        request,
    )
