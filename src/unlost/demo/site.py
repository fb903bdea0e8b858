"""The lost site of the demonstration: its resources, their bytes, and its WARCs and indexes."""

import asyncio
import io
import struct
import tomllib
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import urlsplit

from unlost import dates
from unlost._core import VERSION
from unlost.atomic import atomic_file
from unlost.crawl import fetcher
from unlost.crawl.warc_store import CrawlWarcStore
from unlost.index import cdx, warc_index
from unlost.index.external_sort import sort_lines
from unlost.problems import Problems

_TYPES = {
    "html": "text/html; charset=utf-8",
    "htm": "text/html; charset=utf-8",
    "css": "text/css",
    "svg": "image/svg+xml",
    "pixels": "image/png",
    "lines": "application/pdf",
    "txt": "text/plain; charset=utf-8",
}


def content_type_of(file: str) -> str:
    """Return the Content-Type of what is made of a file.

    >>> content_type_of("lamp.pixels")
    'image/png'
    """
    return _TYPES[file.rpartition(".")[2]]


def build_body(file: str, path: str, title: str) -> bytes:
    """Return the bytes that are made of a file of the site; the same ones always.

    path: where they are on the site, which links in them go by. title: of a page.
    """
    text = files("unlost.demo").joinpath("site", file).read_text(encoding="utf-8")
    match file.rpartition(".")[2]:
        case "html":
            frame = files("unlost.demo").joinpath("site", "frame.html").read_text(encoding="utf-8")
            return Template(frame).substitute(title=title, body=text.strip(), up="../" * path.count("/")).encode()
        case "pixels":
            return build_png(text)
        case "lines":
            return build_pdf(text.splitlines())
    return text.encode()


def build_png(drawing: str) -> bytes:
    r"""Return a picture as PNG.

    drawing: a line `scale N`, a line for each letter with its colour, an empty line, and a letter for each square.

    >>> build_png("scale 2\nx #ff0000\n\nx\n")[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    head, _, body = drawing.partition("\n\n")
    first, *colours = head.splitlines()
    scale = int(first.removeprefix("scale "))
    palette = {line[0]: bytes.fromhex(line[3:]) for line in colours}
    letters = list(palette)
    rows = [bytes(letters.index(letter) for letter in row for _ in range(scale)) for row in body.split()]
    lines = b"".join(b"\0" + row for row in rows for _ in range(scale))  # 0: no filter
    size = struct.pack(">IIBBBBB", len(rows[0]), len(rows) * scale, 8, 3, 0, 0, 0)  # 3: colours of a palette
    parts = ((b"IHDR", size), (b"PLTE", b"".join(palette.values())), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def build_pdf(lines: list[str]) -> bytes:
    """Return lines of plain letters as a PDF of one page, in a typewriter's face.

    >>> build_pdf(["a (b)"])[:8]
    b'%PDF-1.4'
    """
    shown = "".join(f"({_escape_pdf(line)}) '\n" for line in lines)
    text = f"BT /F 12 Tf 60 780 Td 16 TL\n{shown}ET".encode("ascii")
    page = b"/Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page %b >>" % page,
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(text), text),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>",
    ]
    body, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(body))
    return body + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end


def _escape_pdf(line: str) -> str:
    return "".join(f"\\{letter}" if letter in "()\\" else letter for letter in line)


_MOVED_PERMANENTLY = 301


@dataclass(frozen=True, slots=True)
class SiteResponse:
    """What the site answered with. mime: the whole Content-Type. location: where a redirect leads."""

    status: int
    mime: str
    body: bytes
    location: str | None = None


@dataclass(frozen=True, slots=True)
class SiteCapture:
    """A copy in an archive, by the archive's id. date: 14 digits."""

    archive: str
    date: str
    response: SiteResponse


@dataclass(frozen=True, slots=True)
class DemoResource:
    """One address of the site.

    title: of a page; empty for anything else. last: what was there when the site ended; None if it was gone by then.
    copies: by date.
    """

    url: str
    title: str
    last: SiteResponse | None
    captures: tuple[SiteCapture, ...]

    @property
    def is_page(self) -> bool:
        """Whether it was a page when the site ended."""
        return bool(self.title) and self.last is not None


@dataclass(frozen=True, slots=True)
class LostSite:
    """All of it. url: its home page. ended: its last day, 14 digits. archives: names by ids."""

    url: str
    ended: str
    archives: Mapping[str, str]
    resources: tuple[DemoResource, ...]

    def captures_in(self, archive: str) -> Iterator[tuple[DemoResource, SiteCapture]]:
        """Yield what an archive has."""
        for resource in self.resources:
            yield from ((resource, copy) for copy in resource.captures if copy.archive == archive)

    def final_resources(self) -> Iterator[tuple[DemoResource, SiteResponse]]:
        """Yield what was there when the site ended."""
        for resource in self.resources:
            if resource.last is not None:
                yield resource, resource.last


@lru_cache(1)
def lost_site() -> LostSite:
    """Return the site."""
    told = tomllib.loads(files("unlost.demo").joinpath("captures.toml").read_text(encoding="utf-8"))
    return LostSite(
        told["site"],
        dates.from_user_input(told["ended"]),
        {each["id"]: each["name"] for each in told["archive"]},
        tuple(_resource(told["site"], each) for each in told["resource"]),
    )


def _resource(site: str, entry: Mapping[str, Any]) -> DemoResource:
    last = _response(entry, entry.get("file"))
    copies = [
        SiteCapture(
            each["archive"], dates.from_user_input(each["date"]), _response(entry, each.get("file", entry.get("file")))
        )
        for each in entry.get("copies", ())
    ]
    return DemoResource(
        site + entry["path"],
        entry.get("title", ""),
        last if entry.get("original", True) else None,
        tuple(sorted(copies, key=lambda copy: copy.date)),
    )


def _response(entry: Mapping[str, Any], file: str | None) -> SiteResponse:
    if file is None:
        return SiteResponse(_MOVED_PERMANENTLY, "text/html", b"", entry["to"])
    return SiteResponse(200, content_type_of(file), build_body(file, entry["path"], entry.get("title", "")))


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
    lines = list(sort_lines(cdx.write_cdxj(warc_index.read_archive_rows(warc, problems))))
    with atomic_file(index) as file:
        file.writelines(lines)
    return len(lines)


def _crawled_response(url: str, when: str, answer: SiteResponse) -> fetcher.FetchResponse:
    parts = urlsplit(url)
    place = f"{parts.path}?{parts.query}" if parts.query else parts.path
    headers = [("Content-Type", answer.mime), *([("Location", answer.location)] if answer.location else [])]
    request = f"GET {place} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode()
    return fetcher.FetchResponse(
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
