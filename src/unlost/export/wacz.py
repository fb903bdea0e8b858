"""Exports a recovery as WACZ: a WARC, its CDXJ index and a page list in one ZIP file."""

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, BinaryIO, Self
from urllib.parse import urlsplit
from zipfile import ZIP64_LIMIT, ZIP_DEFLATED, ZipFile

from unlost import dates
from unlost.export.formats import ExportOptions, ExportProgress
from unlost.export.packed_targets import zip_entry
from unlost.export.targets import AtomicPath
from unlost.export.warc import (
    SOFTWARE,
    ArchiveFileResult,
    ChosenRecords,
    ExportedRecord,
    RecordProgress,
    VerifiedRecord,
    check_output_path,
    copy_records,
    record_progress,
)
from unlost.index import cdx, warc_index
from unlost.index.external_sort import sort_lines
from unlost.index.zipnum import compress_blocks
from unlost.quality.page import ClassifierContext, PageResponse, ParsedPage
from unlost.warc import reader
from unlost.warc.records import escape_target_uri

WACZ_VERSION = "1.1.1"
"""Version of the specification, https://specs.webrecorder.net/wacz/1.1.1/."""
_MEMBER_DATE = "19800101000000"  # of all members, so that the file is reproducible
# The index is in compressed blocks, so that replay in a browser reads only some. pywb requires `.cdx` in its name.
_INDEX, _INDEX_SUMMARY = "index.cdx.gz", "index.idx"
_DATAPACKAGE = "datapackage.json"


class WaczMemberWriter:
    """A member that is being written.

    Attributes:
        offset: Offset of its content in the file, in bytes.
        size: Bytes written so far.
    """

    def __init__(self, opened: IO[bytes], begin: int) -> None:
        self._opened = opened
        self._hashed = hashlib.sha256()
        self.offset = begin
        self.size = 0

    def write(self, data: bytes) -> None:
        """Write data and update the digest."""
        self._opened.write(data)
        self._hashed.update(data)
        self.size += len(data)

    @property
    def digest(self) -> str:
        """The SHA-256 digest of what was written so far."""
        return f"sha256:{self._hashed.hexdigest()}"


class WaczWriter:
    """Writes the members of a WACZ. Use it as a context manager and call `finish` at the end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._archive = ZipFile(file, "w")
        self._resources: list[dict[str, object]] = []

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Close without a central directory unless `finish` was called."""
        self._archive.fp = None

    @contextmanager
    def member(self, path: str, *, is_large: bool = False) -> Iterator[WaczMemberWriter]:
        """Yield a member to write to. Gzipped members are stored, so that records and blocks can be read individually.

        Args:
            path: Path in the ZIP file.
            is_large: Whether it may exceed 2 GiB.
        """
        info = zip_entry(path, _MEMBER_DATE)
        if not path.endswith(".gz"):
            info.compress_type = ZIP_DEFLATED
        with self._archive.open(info, "w", force_zip64=is_large) as opened:
            member = WaczMemberWriter(opened, self._file.tell())
            yield member
        name = path.rpartition("/")[2]
        self._resources.append({"name": name, "path": path, "hash": member.digest, "bytes": member.size})

    def add(self, path: str, pieces: Iterable[bytes]) -> str:
        """Write a member and return its digest."""
        with self.member(path) as member:
            for piece in pieces:
                member.write(piece)
        return member.digest

    def add_index(self, lines: Iterable[bytes]) -> None:
        """Sort CDXJ lines and write them as an index in compressed blocks, with a list of the blocks (ZipNum)."""
        listing = [f"!meta 0 {json.dumps({'format': 'cdxj-gzip-1.0', 'filename': _INDEX})}\n".encode()]
        with self.member(f"indexes/{_INDEX}") as member:
            for key, block in compress_blocks(sort_lines(lines)):
                digest = f"sha256:{hashlib.sha256(block).hexdigest()}"
                location = {"offset": member.size, "length": len(block), "digest": digest, "filename": _INDEX}
                listing.append(key + f" {json.dumps(location)}\n".encode())
                member.write(block)
        self.add(f"indexes/{_INDEX_SUMMARY}", listing)

    def finish(self, metadata: Mapping[str, object]) -> None:
        """Write the metadata of the collection, the digests, and the central directory."""
        fields = {name: value for name, value in metadata.items() if value is not None}
        package = {"profile": "data-package", "wacz_version": WACZ_VERSION, **fields, "resources": self._resources[:]}
        digest = self.add(_DATAPACKAGE, [_json(package)])
        self.add("datapackage-digest.json", [_json({"path": _DATAPACKAGE, "hash": digest})])
        self._archive.close()


def _json(value: object) -> bytes:
    return f"{json.dumps(value, indent=2)}\n".encode()


_PAGES_HEADER = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
_HTML = ("text/html", "application/xhtml+xml")
_OK = 200
_MAX_TITLE = 300  # characters
_ORDER_DIGITS = 12  # width of the number in front of a line, by which lines are sorted


@dataclass(frozen=True, slots=True)
class WaczPage:
    """A page of the page list.

    Attributes:
        order: Position in order of discovery.
        uri: URL as in its record.
        datetime: Datetime of the capture, 14 digits.
        title: Its title; None without one.
    """

    order: int
    uri: str
    datetime: str
    title: str | None


def page_title(verified: VerifiedRecord) -> str | None:
    """Return the title of an HTML record with a body; None without one."""
    capture = verified.record.capture
    content_type = next((value for name, value in verified.headers if name.lower() == "content-type"), "")
    charset = content_type.lower().partition("charset=")[2].partition(";")[0].strip("\"' ") or None
    page = PageResponse(
        capture.uri, capture.datetime, capture.status, capture.mime, verified.body_prefix, verified.headers, charset
    )
    return " ".join(ParsedPage(page, ClassifierContext()).title.split())[:_MAX_TITLE] or None


def _is_html(verified: VerifiedRecord) -> bool:
    return (verified.record.capture.mime or "").partition(";")[0].strip().lower() in _HTML


class WaczPageList:
    """Collects the pages of the collection.

    Attributes:
        count: Number of pages.
        main: The first page discovered, which is the start URL if it was recovered.
        newest: When the last capture was recovered, 14 digits.
    """

    def __init__(self, spool: BinaryIO) -> None:
        self._spool = spool
        self._titles: dict[str, str | None] = {}  # titles of originals of revisits, by WARC-Record-ID
        self.count = 0
        self.main: WaczPage | None = None
        self.newest = ""

    def add(self, exported: ExportedRecord) -> None:
        """Add a capture if it is a chosen, successful page and not a page requisite."""
        verified, capture = exported.verified, exported.verified.record.capture
        self.newest = max(self.newest, verified.record.recovered)
        if not _is_html(verified):
            return
        title = page_title(verified) if verified.refers_to is None else self._titles.get(verified.refers_to[0])
        if exported.is_original:
            self._titles[verified.record_id] = title
        if exported.order is not None and capture.status in (_OK, None):
            self._add(WaczPage(exported.order, escape_target_uri(capture.uri), capture.datetime, title))

    def _add(self, page: WaczPage) -> None:
        self.count += 1
        if self.main is None or page.order < self.main.order:
            self.main = page
        fields = {"id": f"{page.order}", "url": page.uri, "ts": dates.to_iso(page.datetime), "title": page.title}
        line = json.dumps({name: value for name, value in fields.items() if value is not None})
        self._spool.write(f"{page.order:0{_ORDER_DIGITS}d}{line}\n".encode())

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of `pages.jsonl` in order of discovery."""
        yield f"{json.dumps(_PAGES_HEADER)}\n".encode()
        self._spool.seek(0)
        for line in sort_lines(self._spool):
            yield line[_ORDER_DIGITS:]


WACZ_EXTENSION = ".wacz"
_WARC = "data.warc.gz"
_HEADROOM_BYTES = 1 << 20  # more than the size of a warcinfo record and a ZIP header


def export_wacz(recovery: Path, output: Path, _options: ExportOptions, progress: ExportProgress) -> ArchiveFileResult:
    """Write a WACZ, as an `Exporter`."""
    return write_wacz(recovery, output, on_progress=record_progress(progress))


def write_wacz(
    recovery: Path, to: Path, *, title: str | None = None, on_progress: RecordProgress | None = None
) -> ArchiveFileResult:
    """Write the chosen captures of a recovery as WACZ 1.1.1.

    `archive/data.warc.gz` is what `write_warc` writes; the index is that of `unlost index build`, in blocks; the pages
    are the chosen HTML captures with their titles. The same recovery yields the same file.

    Args:
        recovery: The folder of the recovery.
        to: Path of the file, which must end in `.wacz`. It appears when it is complete.
        title: Title of the collection; by default the host of its first page.
        on_progress: Receives the numbers of copied records and of all records.

    Raises:
        UsageError, InputError, OSError: As `write_warc`.
    """
    check_output_path(recovery, to, WACZ_EXTENSION)
    result = ArchiveFileResult()
    with AtomicPath(to) as output:
        records = ChosenRecords(recovery, result.problems)
        with output.writing() as file, tempfile.TemporaryFile() as spool, WaczWriter(file) as package:
            pages = WaczPageList(spool)
            with package.member(f"archive/{_WARC}", is_large=records.bytes + _HEADROOM_BYTES > ZIP64_LIMIT) as member:
                copy_records(records, member.write, _WARC, result, on_progress, pages.add)
            file.flush()
            # The index is built from the file as written, so that it describes exactly these bytes.
            captures = reader.read_warc_captures(
                output.temporary_path, result.problems, filename=_WARC, byte_range=(member.offset, member.size)
            )
            package.add_index(cdx.write_cdxj(map(warc_index.row_from_capture, captures)))
            package.add("pages/pages.jsonl", pages.lines())
            package.finish(_collection_metadata(pages, title))
            result.pages, result.bytes = pages.count, file.tell()
        output.publish_file()
    return result


def _host(uri: str) -> str | None:
    try:
        return urlsplit(uri).hostname
    except ValueError:  # a bracket in the user name, which other parsers accept
        return None


def _collection_metadata(pages: WaczPageList, title: str | None) -> dict[str, object]:
    main = pages.main
    return {
        "title": title or (main and _host(main.uri)),
        # The date of the last recovered capture and not the current time, so that the file is reproducible.
        "created": dates.to_iso(pages.newest),
        "software": SOFTWARE,
        "mainPageUrl": main and main.uri,
        "mainPageDate": main and dates.to_iso(main.datetime),
    }
