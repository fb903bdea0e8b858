"""Exports a recovery as WACZ: WARC, CDXJ index and page list in one ZIP file."""

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
)
from unlost.index import cdx, warc_index
from unlost.index.external_sort import sort_lines
from unlost.index.zipnum import compress_blocks
from unlost.quality.page import ClassifierContext, PageResponse, ParsedPage
from unlost.warc import reader
from unlost.warc.records import escape_target_uri

WACZ_VERSION = "1.1.1"
"""Of https://specs.webrecorder.net/wacz/1.1.1/."""
_MEMBER_DATE = "19800101000000"  # of all members: no clock is in them
_INDEX, _INDEX_SUMMARY = "index.cdx.gz", "index.idx"
_DATAPACKAGE = "datapackage.json"


class WaczMemberWriter:
    """A member that is being written. size: bytes so far. begin: where they begin in the file."""

    def __init__(self, opened: IO[bytes], begin: int) -> None:
        self._opened = opened
        self._hashed = hashlib.sha256()
        self.offset = begin
        self.size = 0

    def write(self, data: bytes) -> None:
        """Write some more of it."""
        self._opened.write(data)
        self._hashed.update(data)
        self.size += len(data)

    @property
    def digest(self) -> str:
        """Of what was written so far."""
        return f"sha256:{self._hashed.hexdigest()}"


class WaczWriter:
    """The members of a WACZ, one behind the other. Use it as a context manager; `end` makes it whole."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._archive = ZipFile(file, "w")
        self._resources: list[dict[str, object]] = []

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Write nothing more."""
        self._archive.fp = None

    @contextmanager
    def member(self, path: str, *, is_large: bool = False) -> Iterator[WaczMemberWriter]:
        """Give a member to write to. Records and blocks are stored as they are, so that each can be read alone.

        is_large: whether it may have more than 2 GiB.
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
        """Write a member, and return its digest."""
        with self.member(path) as member:
            for piece in pieces:
                member.write(piece)
        return member.digest

    def add_index(self, lines: Iterable[bytes]) -> None:
        """Write an index of lines of CDXJ, which are sorted here: in compressed blocks, and a list of these."""
        listing = [f"!meta 0 {json.dumps({'format': 'cdxj-gzip-1.0', 'filename': _INDEX})}\n".encode()]
        with self.member(f"indexes/{_INDEX}") as member:
            for head, block in compress_blocks(sort_lines(lines)):
                digest = f"sha256:{hashlib.sha256(block).hexdigest()}"
                place = {"offset": member.size, "length": len(block), "digest": digest, "filename": _INDEX}
                listing.append(head + f" {json.dumps(place)}\n".encode())
                member.write(block)
        self.add(f"indexes/{_INDEX_SUMMARY}", listing)

    def finish(self, about: Mapping[str, object]) -> None:
        """Write what is known about the collection, the digests, and the directory of the file."""
        known = {name: value for name, value in about.items() if value is not None}
        package = {"profile": "data-package", "wacz_version": WACZ_VERSION, **known, "resources": self._resources[:]}
        digest = self.add(_DATAPACKAGE, [_json(package)])
        self.add("datapackage-digest.json", [_json({"path": _DATAPACKAGE, "hash": digest})])
        self._archive.close()


def _json(value: object) -> bytes:
    return f"{json.dumps(value, indent=2)}\n".encode()


_PAGES_HEADER = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
_HTML = ("text/html", "application/xhtml+xml")
_OK = 200
_MAX_TITLE = 300  # characters
_ORDER_DIGITS = 12  # of a number in front of a line, by which lines are sorted


@dataclass(frozen=True, slots=True)
class WaczPage:
    """A page. order: as they were found. uri: as its record has it. datetime: 14 digits. title: None without one."""

    order: int
    uri: str
    datetime: str
    title: str | None


def page_title(found: VerifiedRecord) -> str | None:
    """Return the title of a record of HTML with a body; None if it has none."""
    capture = found.record.capture
    told = next((value for name, value in found.headers if name.lower() == "content-type"), "")
    charset = told.lower().partition("charset=")[2].partition(";")[0].strip("\"' ") or None
    answer = PageResponse(
        capture.uri, capture.datetime, capture.status, capture.mime, found.body_prefix, found.headers, charset
    )
    return " ".join(ParsedPage(answer, ClassifierContext()).title.split())[:_MAX_TITLE] or None


def _is_html(found: VerifiedRecord) -> bool:
    return (found.record.capture.mime or "").partition(";")[0].strip().lower() in _HTML


class WaczPageList:
    """The pages, as they come.

    count: how many. main: the first one that was found, which is where the recovery began, if that came back.
    newest: when the last copy was recovered, 14 digits.
    """

    def __init__(self, spool: BinaryIO) -> None:
        self._spool = spool
        self._titles: dict[str, str | None] = {}  # of what others refer to, by its id
        self.count = 0
        self.main: WaczPage | None = None
        self.newest = ""

    def add(self, copy: ExportedRecord) -> None:
        """Add a copy, if it is a page: not a part of one, nor an error, nor one that was not chosen."""
        found, capture = copy.verified, copy.verified.record.capture
        self.newest = max(self.newest, found.record.recovered)
        if not _is_html(found):
            return
        title = page_title(found) if found.refers_to is None else self._titles.get(found.refers_to[0])
        if copy.is_original:
            self._titles[found.record_id] = title
        if copy.order is not None and capture.status in (_OK, None):
            self._add(WaczPage(copy.order, escape_target_uri(capture.uri), capture.datetime, title))

    def _add(self, page: WaczPage) -> None:
        self.count += 1
        if self.main is None or page.order < self.main.order:
            self.main = page
        fields = {"id": f"{page.order}", "url": page.uri, "ts": dates.to_iso(page.datetime), "title": page.title}
        line = json.dumps({name: value for name, value in fields.items() if value is not None})
        self._spool.write(f"{page.order:0{_ORDER_DIGITS}d}{line}\n".encode())

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of `pages.jsonl`, in the order in which the pages were found."""
        yield f"{json.dumps(_PAGES_HEADER)}\n".encode()
        self._spool.seek(0)
        for line in sort_lines(self._spool):
            yield line[_ORDER_DIGITS:]


WACZ_EXTENSION = ".wacz"
_WARC = "data.warc.gz"
_HEADROOM_BYTES = 1 << 20  # bytes: more than a warcinfo and the header of a member take


def write_wacz(
    recovery: Path, to: Path, *, title: str | None = None, on_progress: RecordProgress | None = None
) -> ArchiveFileResult:
    """Write the chosen copies of a recovery as one WACZ in version 1.1.1, and return what is in it.

    `archive/data.warc.gz` is what `write_warc` writes; the index is that of `unlost index build`, in blocks; pages are
    the chosen copies of HTML, with their titles. The same recovery makes the same file.

    to: must end in `.wacz`; gets its name once all is written.
    title: of the collection; without one, the host of its first page.

    Raises as `write_warc`.
    """
    check_output_path(recovery, to, WACZ_EXTENSION)
    done = ArchiveFileResult()
    with AtomicPath(to) as place:
        copies = ChosenRecords(recovery, done.problems)
        with place.writing() as file, tempfile.TemporaryFile() as spool, WaczWriter(file) as package:
            pages = WaczPageList(spool)
            with package.member(f"archive/{_WARC}", is_large=copies.bytes + _HEADROOM_BYTES > ZIP64_LIMIT) as member:
                copy_records(copies, member.write, _WARC, done, on_progress, pages.add)
            file.flush()
            # Read from where it was written: so the index is that of the bytes that are there.
            captures = reader.read_warc_captures(
                place.temporary_path, done.problems, filename=_WARC, byte_range=(member.offset, member.size)
            )
            package.add_index(cdx.write_cdxj(map(warc_index.row_from_capture, captures)))
            package.add("pages/pages.jsonl", pages.lines())
            package.finish(_collection_metadata(pages, title))
            done.pages, done.bytes = pages.count, file.tell()
        place.publish_file()
    return done


def _host(uri: str) -> str | None:
    try:
        return urlsplit(uri).hostname
    except ValueError:  # a bracket in the name of a user, which others take
        return None


def _collection_metadata(pages: WaczPageList, title: str | None) -> dict[str, object]:
    main = pages.main
    return {
        "title": title or (main and _host(main.uri)),
        # No clock is in it: the same recovery makes the same file.
        "created": dates.to_iso(pages.newest),
        "software": SOFTWARE,
        "mainPageUrl": main and main.uri,
        "mainPageDate": main and dates.to_iso(main.datetime),
    }
