"""The lost site of the demonstration: its resources, the bytes of their responses, and its WARCs and indexes."""

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

_MOVED_PERMANENTLY = 301
_PEER_ADDRESS = "192.0.2.1"  # TEST-NET-1 (RFC 5737)
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
    """Return the Content-Type of the response built from a source file.

    >>> content_type_of("lamp.pixels")
    'image/png'
    """
    return _TYPES[file.rpartition(".")[2]]


def build_body(file: str, path: str, title: str) -> bytes:
    """Return the response body built from a source file. The output is deterministic.

    Args:
        file: Name of the source file.
        path: Path of the resource on the site; relative links depend on it.
        title: Title of an HTML page.
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
    r"""Return a PNG image drawn with characters.

    Args:
        drawing: A line `scale N`, a line `CHARACTER #RRGGBB` for each colour, an empty line, and the rows of pixels.

    >>> build_png("scale 2\nx #ff0000\n\nx\n")[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    header, _, body = drawing.partition("\n\n")
    first, *colours = header.splitlines()
    scale = int(first.removeprefix("scale "))
    palette = {line[0]: bytes.fromhex(line[3:]) for line in colours}
    characters = list(palette)
    rows = [bytes(characters.index(character) for character in row for _ in range(scale)) for row in body.split()]
    lines = b"".join(b"\0" + row for row in rows for _ in range(scale))  # 0: filter type None
    ihdr = struct.pack(">IIBBBBB", len(rows[0]), len(rows) * scale, 8, 3, 0, 0, 0)  # 3: indexed colour
    chunks = (
        (b"IHDR", ihdr),
        (b"PLTE", b"".join(palette.values())),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def build_pdf(lines: list[str]) -> bytes:
    """Return lines of ASCII text as a one-page PDF in Courier.

    >>> build_pdf(["a (b)"])[:8]
    b'%PDF-1.4'
    """
    operators = "".join(f"({_escape_pdf(line)}) '\n" for line in lines)
    text = f"BT /F 12 Tf 60 780 Td 16 TL\n{operators}ET".encode("ascii")
    page = b"/Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page %b >>" % page,
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(text), text),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>",
    ]
    body, offsets = b"%PDF-1.4\n", []
    for number, pdf_object in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, pdf_object)
    xref = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(body))
    return body + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + xref + trailer


def _escape_pdf(line: str) -> str:
    return "".join(f"\\{character}" if character in "()\\" else character for character in line)


@dataclass(frozen=True, slots=True)
class SiteResponse:
    """A response of the original site.

    Attributes:
        mime: Content-Type header with its parameters.
        location: Target of a redirect.
    """

    status: int
    mime: str
    body: bytes
    location: str | None = None


@dataclass(frozen=True, slots=True)
class SiteCapture:
    """A capture in an archive.

    Attributes:
        archive: Archive id.
        date: 14 digits.
    """

    archive: str
    date: str
    response: SiteResponse


@dataclass(frozen=True, slots=True)
class DemoResource:
    """A URL of the site.

    Attributes:
        title: Title of an HTML page; empty for other resources.
        last: Response when the site went offline; None if the resource had been deleted before.
        captures: Captures, by date.
    """

    url: str
    title: str
    last: SiteResponse | None
    captures: tuple[SiteCapture, ...]

    @property
    def is_page(self) -> bool:
        """Whether the resource was an HTML page when the site went offline."""
        return bool(self.title) and self.last is not None


@dataclass(frozen=True, slots=True)
class LostSite:
    """The site.

    Attributes:
        url: Home page.
        ended: Date on which it went offline, 14 digits.
        archives: Display names of archives by id.
    """

    url: str
    ended: str
    archives: Mapping[str, str]
    resources: tuple[DemoResource, ...]

    def captures_in(self, archive: str) -> Iterator[tuple[DemoResource, SiteCapture]]:
        """Yield the captures of an archive with their resources."""
        for resource in self.resources:
            yield from ((resource, capture) for capture in resource.captures if capture.archive == archive)

    def final_resources(self) -> Iterator[tuple[DemoResource, SiteResponse]]:
        """Yield the resources that existed when the site went offline, with their responses."""
        for resource in self.resources:
            if resource.last is not None:
                yield resource, resource.last


@lru_cache(1)
def lost_site() -> LostSite:
    """Return the site, read from captures.toml."""
    document = tomllib.loads(files("unlost.demo").joinpath("captures.toml").read_text(encoding="utf-8"))
    return LostSite(
        document["site"],
        dates.from_user_input(document["ended"]),
        {each["id"]: each["name"] for each in document["archive"]},
        tuple(_resource(document["site"], each) for each in document["resource"]),
    )


def _resource(site: str, entry: Mapping[str, Any]) -> DemoResource:
    last = _response(entry, entry.get("file"))
    captures = [
        SiteCapture(
            each["archive"], dates.from_user_input(each["date"]), _response(entry, each.get("file", entry.get("file")))
        )
        for each in entry.get("copies", ())
    ]
    return DemoResource(
        site + entry["path"],
        entry.get("title", ""),
        last if entry.get("original", True) else None,
        tuple(sorted(captures, key=lambda capture: capture.date)),
    )


def _response(entry: Mapping[str, Any], file: str | None) -> SiteResponse:
    if file is None:
        return SiteResponse(_MOVED_PERMANENTLY, "text/html", b"", entry["to"])
    return SiteResponse(200, content_type_of(file), build_body(file, entry["path"], entry.get("title", "")))


class _FixedClock:
    """A clock that always returns the same time, so that the WARCs are reproducible."""

    def __init__(self, date: str) -> None:
        self._now = dates.to_datetime(date).timestamp()

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Sleep in real time."""
        await asyncio.sleep(seconds)


def write_site_warc(folder: Path, captures: Iterable[tuple[str, str, SiteResponse]], date: str) -> Path:
    """Write a WARC into a new folder and return its path.

    Args:
        folder: Folder to create.
        captures: URL, date (14 digits) and response of each capture.
        date: Creation date of the WARC, 14 digits.

    Raises:
        OSError: The WARC could not be written.
        InputError: A capture is invalid.
    """
    folder.mkdir(parents=True)
    with closing(CrawlWarcStore(folder, _FixedClock(date), f"unlost/{VERSION}")) as store:
        for url, when, response in captures:
            store.store(_crawled_response(url, when, response), response.mime.partition(";")[0])
    return next(folder.iterdir())


def write_index(warc: Path, index: Path) -> int:
    """Write the CDXJ of a WARC, sorted for pywb, and return its number of captures.

    Raises:
        OSError: The index could not be written.
        InputError: The WARC could not be read.
    """
    problems = Problems()
    lines = list(sort_lines(cdx.write_cdxj(warc_index.read_archive_rows(warc, problems))))
    with atomic_file(index) as file:
        file.writelines(lines)
    return len(lines)


def _crawled_response(url: str, when: str, response: SiteResponse) -> fetcher.FetchResponse:
    parts = urlsplit(url)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    headers = [("Content-Type", response.mime), *([("Location", response.location)] if response.location else [])]
    request = f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode()
    return fetcher.FetchResponse(
        url,
        response.status,
        tuple(headers),
        io.BytesIO(response.body),
        len(response.body),
        None,
        when,
        _PEER_ADDRESS,
        request,
    )
