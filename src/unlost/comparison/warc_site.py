"""Sites stored in WARC, ARC and WACZ files: converts records to resources and resolves revisits."""

import re
import shutil
import tempfile
import threading
import weakref
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple

from unlost import dates
from unlost._core import WarcBody, WarcRecord, WarcScanner
from unlost.capture import normalize_digest
from unlost.comparison.site import NO_DATE, ResourceBody, ResourceTable, SiteResource, SiteResources
from unlost.errors import ArchiveFileError, DateError, ForeignSchemeError, UriError
from unlost.problems import Problem, Problems
from unlost.uri.names import page_names
from unlost.warc import wacz

_RECORD_TYPES = ("response", "resource", "revisit")


@dataclass(frozen=True, slots=True)
class ArchiveFilePart:
    """One archive file, or one member of a WACZ.

    Attributes:
        path: Path of the file.
        name: Name in messages.
        start: Offset of the part in the file.
        length: Length of the part in bytes; None for the rest of the file.
        inflated_length: Length after inflating; None if the member is stored.
    """

    path: Path
    name: str
    start: int = 0
    length: int | None = None
    inflated_length: int | None = None

    def open_scanner(self) -> WarcScanner:
        """Return a scanner of the records that computes digests of bodies. Raises OSError."""
        return WarcScanner(self.path, False, _RECORD_TYPES, self.start, self.length, self.inflated_length, bodies=True)

    def open_record(self, offset: int, skip: int) -> WarcBody:
        """Return the record at an offset. Raises ArchiveFileError, OSError."""
        if self.inflated_length is not None:
            message = "expected a member stored as it is, found a deflated one: take the WARC out of the ZIP to read it"
            raise ArchiveFileError(f"{self.name}: {message}")
        record = WarcBody.open(self.path, offset, skip, self.start, self.length)
        if record is None:
            raise ArchiveFileError(f"{self.name}: expected a record at byte {offset}, found none: it was changed")
        return record


def list_archive_parts(file: Path, problems: Problems) -> list[ArchiveFilePart]:
    """Return the parts of a file: the members of a ZIP file, otherwise the file itself.

    Raises ArchiveFileError, OSError.
    """
    with file.open("rb") as opened:
        is_zip = opened.read(2) == b"PK"
    if not is_zip:
        return [ArchiveFilePart(file, str(file))]
    members = wacz.list_wacz_members(file, problems)
    return [
        ArchiveFilePart(file, f"{file}/{each.filename}", each.start, each.length, each.inflated_length)
        for each in members
    ]


FAR_OFFSET = 1 << 20
"""Minimum number of decompressed bytes before a record for which `InflatedMemberCache` is faster."""
_MAX_MEMBER_BYTES = 4 << 30  # on disk; a longer member is decompressed from its beginning each time
_MAX_CACHED_MEMBERS = 4
_INFLATE_CHUNK_BYTES = 1 << 16
_GZIP = b"\x1f\x8b"


class InflatedMemberCache:
    """Opens records that are far from the beginning of their gzip member. Thread-safe.

    Decompressed members are stored in temporary files, which are deleted with the cache.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._inflated_files: dict[tuple[str, int], Path | None] = {}
        self._count = 0

    def open_record(self, part: ArchiveFilePart, offset: int, skip: int) -> WarcBody | None:
        """Return the record in a member, after `skip` decompressed bytes.

        Returns:
            None if the member is not gzipped, is too long, is damaged before the record, or does not fit on the disk.
        """
        with self._lock:
            key = (part.name, offset)
            if key not in self._inflated_files:
                if len(self._inflated_files) >= _MAX_CACHED_MEMBERS:
                    self._forget(next(iter(self._inflated_files)))
                self._inflated_files[key] = self._unpack(part.path, part.start + offset)
            text = self._inflated_files[key]
            # Opened while the lock is held, since another thread may delete the file afterwards.
            return None if text is None else WarcBody.open(text, skip)

    def _unpack(self, path: Path, start: int) -> Path | None:
        """Decompress a member into a file, up to the first damage."""
        with path.open("rb") as packed:
            packed.seek(start)
            if packed.read(len(_GZIP)) != _GZIP:
                return None
            packed.seek(start)
            try:
                if self._folder is None:
                    self._folder = Path(tempfile.mkdtemp(prefix="unlost-members-"))
                    weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
                self._count += 1
                file = self._folder / str(self._count)
                with file.open("wb") as text:
                    is_complete = _inflate_member(packed, text)
            except OSError:
                is_complete = False
        if is_complete:
            return file
        if self._folder is not None:
            (self._folder / str(self._count)).unlink(missing_ok=True)
        return None

    def _forget(self, key: tuple[str, int]) -> None:
        text = self._inflated_files.pop(key)
        if text is not None:
            text.unlink(missing_ok=True)


def _inflate_member(packed: IO[bytes], text: IO[bytes]) -> bool:
    """Decompress a gzip member up to the first damage; return whether it is short enough."""
    inflater = zlib.decompressobj(wbits=31)
    remaining = _MAX_MEMBER_BYTES
    while not inflater.eof and remaining > 0:
        data = inflater.unconsumed_tail or packed.read(_INFLATE_CHUNK_BYTES)
        if not data:
            break
        try:
            piece = inflater.decompress(data, 1 << 20)
        except zlib.error:
            break  # the record may be in the part before the damage
        remaining -= len(piece)
        text.write(piece)
    return remaining > 0


_SHA1_LENGTH = 37  # `sha1:` and 32 Base32 characters, the usual form
_DAMAGE_KINDS = ("bad-checksum", "corrupt-gzip", "corrupt-zstd")  # problems that make a whole member unreliable
_USUAL_DATE = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ")


class _PendingRevisit(NamedTuple):
    """A revisit whose body has not been found yet."""

    name: str
    uri: str
    datetime: int
    mime: str | None
    original: tuple[str, int] | None
    digest_hash: int


class WarcSiteReader:
    """Reads archive files one after the other into a table.

    Attributes:
        table: The resources.
        skipped: Number of records that are not resources, by reason.
        problems: Unreadable records.
    """

    def __init__(self, *, ignore_case: bool = False) -> None:
        self.table = ResourceTable()
        self.skipped: Counter[str] = Counter()
        self.problems = Problems()
        self._ignore_case = ignore_case
        self._digest_hashes = array("q")  # hash of the payload digest for each row; 0 without one
        self._names = array("q")  # hash of the name for each row
        self._revisits: list[_PendingRevisit] = []

    def read(self, part: ArchiveFilePart, part_index: int, on_read: Callable[[int], object] | None = None) -> None:
        """Read one part.

        Args:
            part: The part.
            part_index: Index of the part.
            on_read: Called with the position in the part, in bytes.

        Raises:
            OSError: The file cannot be read.
        """
        scanner = part.open_scanner()
        last: list[WarcRecord] = []  # held back, since its problems may be reported with the next batch
        while (batch := scanner.next_batch()) is not None:
            records, problems = last + batch[0], batch[1]
            last = records[-1:]
            for kind, offset, message in problems:
                self.problems.add(Problem(kind, part.name, None, offset, message))
            damaged = {offset for kind, offset, _ in problems if kind in _DAMAGE_KINDS}
            self._add_records(records[:-1], damaged, part, part_index)
            if damaged and last and last[0].offset in damaged:
                self._add_records(last, damaged, part, part_index)
                last = []
            if on_read is not None:
                on_read(scanner.position)
        self._add_records(last, set(), part, part_index)
        self.skipped.update(scanner.skipped_by_type())

    def _add_records(
        self, records: list[WarcRecord], damaged: set[int], part: ArchiveFilePart, part_index: int
    ) -> None:
        """Add the records, except those of damaged members."""
        if damaged:
            intact = [record for record in records if record.offset not in damaged]
            self.skipped["cut"] += len(records) - len(intact)
            records = intact
        names = page_names([record.uri or "" for record in records], ignore_case=self._ignore_case)
        for record, name in zip(records, names, strict=True):
            self._add_record(record, name, part, part_index)

    def resolve_revisits(self) -> None:
        """Find the body of each revisit: that of the record it refers to, otherwise of one with the same digest."""
        if not self._revisits:
            return
        table = self.table
        rows_by_name = {(name, table.datetime(row)): row for row, name in enumerate(self._names)}
        rows_by_digest = {digest_hash: row for row, digest_hash in enumerate(self._digest_hashes) if digest_hash}
        originals = page_names(
            (each.original[0] if each.original else "" for each in self._revisits), ignore_case=self._ignore_case
        )
        for revisit, original in zip(self._revisits, originals, strict=True):
            row = None
            if revisit.original is not None and isinstance(original, str):
                row = rows_by_name.get((hash(original), revisit.original[1]))
            if row is None and revisit.digest_hash:
                row = rows_by_digest.get(revisit.digest_hash)
            if row is None:
                self.skipped["revisit-without-body"] += 1
            else:
                self._resolve_revisit(revisit, row)
        self._revisits = []

    def _add_record(self, record: WarcRecord, name: str | UriError, part: ArchiveFilePart, part_index: int) -> None:
        if isinstance(name, UriError):
            self._skip_url(record, name, part)
            return
        kind, status = record.type, record.status
        reason = skip_reason(status) if kind != "resource" else None
        if kind == "revisit" and status in (None, 304):
            reason = None  # the original record has the status
        if reason is not None:
            self.skipped[reason] += 1
            return
        date = self._parse_date(record, part)
        if kind == "revisit":
            self._add_revisit(record, name, date)
            return
        body = record.body
        if body is None or body[2] or record.is_short or record.is_truncated:
            self.skipped["cut"] += 1
            return
        last_modified = record.last_modified
        modified = NO_DATE if last_modified is None else _http_number(last_modified)
        location = (part_index, record.offset, record.skip)
        self.table.add(name, record.uri or "", date, modified, record.mime, body[0], body[1], None, location)
        self._digest_hashes.append(_digest_hash(record.digest))
        self._names.append(hash(name))

    def _skip_url(self, record: WarcRecord, error: UriError, part: ArchiveFilePart) -> None:
        if isinstance(error, ForeignSchemeError):
            self.skipped["foreign-scheme"] += 1
            return
        self.skipped["no-address"] += 1
        kind = "no-uri" if record.uri is None else "bad-uri"
        self.problems.add(Problem(kind, part.name, None, record.offset, str(error)))

    def _parse_date(self, record: WarcRecord, part: ArchiveFilePart) -> int:
        date = record.date or ""
        try:
            return int(dates.pad(date)) if record.is_arc else _iso_number(date)
        except DateError as error:
            self.problems.add(Problem("bad-date", part.name, None, record.offset, str(error)))
            return NO_DATE

    def _add_revisit(self, record: WarcRecord, name: str, date: int) -> None:
        original = None
        if record.refers_to_uri and record.refers_to_date:
            with suppress(DateError):
                original = (record.refers_to_uri, _iso_number(record.refers_to_date))
        digest_hash = _digest_hash(record.digest)
        revisit = _PendingRevisit(name, record.uri or "", date, record.mime, original, digest_hash)
        row = self.table.row_of(name)
        if original is None and row is not None and digest_hash and self._digest_hashes[row] == digest_hash:
            self._resolve_revisit(revisit, row)  # unchanged since the previous capture, as in most cases
        else:
            self._revisits.append(revisit)

    def _resolve_revisit(self, revisit: _PendingRevisit, row: int) -> None:
        self.table.add_revisit(row, revisit.name, revisit.uri, revisit.datetime, revisit.mime)
        self._digest_hashes.append(self._digest_hashes[row])
        self._names.append(hash(revisit.name))


def _iso_number(text: str) -> int:
    """Return the date of a record as a number of 14 digits. Raises DateError."""
    if _USUAL_DATE.fullmatch(text):  # the time is valid, so only the day is parsed, and cached
        return _day_number(text[:10]) + int(text[11:13] + text[14:16] + text[17:19])
    return int(dates.from_iso(text))


@lru_cache(maxsize=64)
def _day_number(text: str) -> int:
    return int(dates.from_iso(text))


@lru_cache(maxsize=1024)
def _http_number(text: str) -> int:
    """Return an HTTP date as a number of 14 digits; `NO_DATE` if it is invalid."""
    try:
        return int(dates.from_http(text))
    except DateError:
        return NO_DATE


def skip_reason(status: int | None) -> str | None:
    """Return why a response with this status is not a resource; None if it is one.

    >>> [skip_reason(status) for status in (200, 204, 301, 304, 404, 503, None, 100)]
    [None, 'no-body', 'redirect', 'not-modified', 'error', 'error', 'no-status', 'no-status']
    """
    if status is None or not 200 <= status < 600:
        return "no-status"
    if status < 300:
        return "no-body" if status in (204, 205) else None
    if status < 400:
        return "not-modified" if status == 304 else "redirect"
    return "error"


def _digest_hash(digest: str | None) -> int:
    """Return a hash of a digest that does not depend on its spelling; 0 without a digest."""
    if not digest:
        return 0
    if len(digest) == _SHA1_LENGTH and digest.startswith("sha1:"):
        return hash(digest.upper())
    return hash(normalize_digest(digest).upper())


_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([^\s;,\"']+)", re.IGNORECASE)
_TYPE = re.compile(rb"\ncontent-type[ \t]*:([^\n]*)", re.IGNORECASE)


class WarcSite:
    """A site that was read from archive files; a `Site`."""

    def __init__(
        self,
        table: ResourceTable,
        parts: Sequence[ArchiveFilePart],
        skipped: Mapping[str, int],
        problems: Problems,
        listed: frozenset[str] = frozenset(),
        requests: int | None = None,
    ) -> None:
        """Create a site from a table of resources in these parts."""
        self.resources: SiteResources = table
        self.listed = listed
        self.requests = requests
        self.skipped = skipped
        self.problems = problems
        self._table = table
        self._parts = parts
        self._unpacked = InflatedMemberCache()

    def read_body(self, resource: SiteResource, max_bytes: int) -> ResourceBody:
        """Return at most `max_bytes` of the body of a resource. Raises ArchiveFileError, OSError."""
        part_index, offset, skip = self._table.locate(resource.location)
        part = self._parts[part_index]
        cached = (
            self._unpacked.open_record(part, offset, skip)
            if skip > FAR_OFFSET and part.inflated_length is None
            else None
        )
        record = cached or part.open_record(offset, skip)
        content, is_truncated, is_broken = record.read_decoded(max_bytes)
        if is_broken and not is_truncated:
            raise ArchiveFileError(f"{part.name}: the record at byte {offset} was changed: read it anew")
        return ResourceBody(content, _record_charset(record), is_truncated)


def read_parts(
    files: Sequence[Path], *, ignore_case: bool, on_read: Callable[[int], object] | None
) -> tuple[WarcSiteReader, list[ArchiveFilePart]]:
    """Read all records of archive files, without resolving revisits. Raises ArchiveFileError, OSError."""
    reader = WarcSiteReader(ignore_case=ignore_case)
    parts: list[ArchiveFilePart] = []
    before = 0
    for file in files:
        for part in list_archive_parts(file, reader.problems):
            reader.read(part, len(parts), _offset_progress(on_read, before))
            parts.append(part)
        before += file.stat().st_size
    return reader, parts


def read_warcs(
    files: Sequence[Path], *, ignore_case: bool = False, on_read: Callable[[int], object] | None = None
) -> WarcSite:
    """Read the site that archive files form together. Raises ArchiveFileError, OSError."""
    reader, parts = read_parts(files, ignore_case=ignore_case, on_read=on_read)
    reader.resolve_revisits()
    return WarcSite(reader.table, parts, dict(reader.skipped), reader.problems)


def _offset_progress(on_read: Callable[[int], object] | None, before: int) -> Callable[[int], object] | None:
    return None if on_read is None else lambda count: on_read(before + count)


def _record_charset(record: WarcBody) -> str | None:
    """Return the charset that the Content-Type of a record declares."""
    header = record.http_head
    if header is not None:
        match = _TYPE.search(header)
        value = match[1] if match else b""
    else:
        value = next((value for name, value in record.fields if name.lower() == "content-type"), b"")
    charset = _CHARSET.search(value)
    return charset[1].decode("ascii", "replace") if charset else None
