"""Reads WARC 0.17 to 1.1 and ARC files (plain, gzip or zstd).

Yields captures in bounded memory, and opens single records with their bodies. docs/formats.md describes what is read
and the kinds of problems.
"""

import io
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from unlost import dates, uri
from unlost._core import WarcBody, WarcRecord, WarcScanner
from unlost.capture import Capture, normalize_digest
from unlost.errors import ArchiveFileError, DateError, ForeignSchemeError, UriError
from unlost.problems import Problem, Problems

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


# WARC 1.1 requires WARC-Target-URI for captures and forbids it for `warcinfo`. A `metadata` record may lack it, too,
# but then it is not a capture.
_TYPES_WITHOUT_URL = {"warcinfo"}

CAPTURE_RECORD_TYPES = ("response", "revisit", "resource")
"""Record types that are captures of a page or a page requisite. `metadata` and `request` describe a capture."""


@dataclass(frozen=True, slots=True)
class CaptureReader:
    """Iterates over the captures of one archive file.

    Attributes:
        scanner: Reads the records.
        file: Name of the file in problems.
        filename: Name of the file in captures.
        problems: Collects the problems.
        record_types: Record types that are captures.
        type_counts: Receives the number of records of each type; the scanner must then return all types.
        on_read: Called periodically with the number of bytes read.
    """

    scanner: WarcScanner
    file: str
    filename: str
    problems: Problems
    record_types: Collection[str]
    type_counts: Counter[str] | None = None
    on_read: Callable[[int], object] | None = None

    def __iter__(self) -> Iterator[Capture]:
        """Yield the captures in the order of the file."""
        while (batch := self.scanner.next_batch()) is not None:
            records, scan_problems = batch
            if self.on_read is not None:
                self.on_read(self.scanner.position)
            for kind, offset, message in scan_problems:
                self._report(kind, offset, message)
            if self.type_counts is not None:
                self.type_counts.update(record.type for record in records)
                records = [record for record in records if record.type in self.record_types]
            for record, key in zip(records, uri.key_many(record.uri or "" for record in records), strict=True):
                capture = self._capture(record, key)
                if capture:
                    yield capture

    def _report(self, kind: str, offset: int, message: str) -> None:
        self.problems.add(Problem(kind, self.file, None, offset, message))

    def _capture(self, record: WarcRecord, key: str | UriError) -> Capture | None:
        if record.uri is None and record.type not in _TYPES_WITHOUT_URL:
            self._report("no-uri", record.offset, f"expected a WARC-Target-URI in a {record.type} record, found none")
            return None
        timestamp = self._parse_date(record, record.date or "")
        if timestamp is None:
            return None
        if record.uri and isinstance(key, UriError) and not isinstance(key, ForeignSchemeError):
            self._report("bad-uri", record.offset, str(key))
        is_redirect = record.status is not None and 300 <= record.status < 400
        return Capture(
            uri=record.uri or "",
            key=None if isinstance(key, UriError) else key,
            datetime=timestamp,
            status=record.status,
            mime=record.mime,
            digest=normalize_digest(record.digest) if record.digest else None,
            length=record.length,
            redirect=record.location or None if is_redirect else None,
            revisit=record.type == "revisit",
            revisit_of=self._revisit_of(record),
            filename=self.filename,
            offset=record.offset,
            skip=record.skip or None,
        )

    def _parse_date(self, record: WarcRecord, text: str) -> str | None:
        # ARC has digits, possibly truncated; WARC has the W3C profile of ISO 8601.
        try:
            return dates.pad(text) if record.is_arc else dates.from_iso(text)
        except DateError as error:
            self._report("bad-date", record.offset, str(error))
            return None

    def _revisit_of(self, record: WarcRecord) -> tuple[str, str] | None:
        if not record.refers_to_uri or not record.refers_to_date:
            return None
        timestamp = self._parse_date(record, record.refers_to_date)
        return None if timestamp is None else (record.refers_to_uri, timestamp)


def read_warc_captures(
    path: str | PathLike[str],
    problems: Problems,
    *,
    record_types: Iterable[str] = CAPTURE_RECORD_TYPES,
    compute_digests: bool = True,
    filename: str | None = None,
    byte_range: tuple[int, int] | None = None,
    type_counts: Counter[str] | None = None,
    on_read: Callable[[int], object] | None = None,
) -> Iterator[Capture]:
    r"""Yield the captures of a WARC or ARC file, in order, in bounded memory.

    A truncated record is both a capture and a problem. `length` is None where a gzip member or zstd frame contains more
    than the record.

    Args:
        path: The file.
        problems: Collects what could not be read. Reading resumes at the next record, if there is one.
        record_types: Record types to yield; others are `request`, `metadata`, `warcinfo`, `conversion`, `continuation`.
        compute_digests: Compute the SHA-1 of payloads without a digest.
        filename: Name of the file in captures; its own by default.
        byte_range: Offset and length of the WARC, if it is only a part of the file. Offsets in captures are relative to
            that part.
        type_counts: Receives the number of records of each type, including types that are not yielded.
        on_read: Called periodically with the number of bytes read, as stored.

    Raises:
        OSError: The file cannot be read.

    >>> import tempfile
    >>> text = b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://Example.com/A\r\n"
    >>> text += b"WARC-Date: 2014-02-10T00:00:01Z\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi"
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(text), file.flush()
    ...     found = list(read_warc_captures(file.name, problems := Problems()))
    >>> found[0].key, found[0].datetime, found[0].mime, found[0].length, problems.total
    ('com,example)/a', '20140210000001', 'text/plain', 152, 0)
    """
    types = list(record_types)
    start, length = byte_range or (0, None)
    scanner = WarcScanner(path, compute_digests, types if type_counts is None else None, start, length)
    return iter(CaptureReader(scanner, str(path), filename or Path(path).name, problems, types, type_counts, on_read))


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record with its body.

    Attributes:
        headers: WARC header fields as (name, value), in order; for an ARC record, their WARC equivalents.
        http_line: First line of the HTTP message, without its line end; None if there is none.
        http_headers: Fields of the HTTP message as (name, value), in order.
        body: The HTTP body or payload as stored, with transfer and content codings.
    """

    headers: tuple[tuple[str, str], ...]
    http_line: str | None
    http_headers: tuple[tuple[str, str], ...]
    body: BinaryIO
    _source: WarcBody
    _file: str

    def header(self, name: str) -> str | None:
        """Return the first value of a header field, matched case-insensitively; None if there is none."""
        return next((value for each, value in self.headers if each.lower() == name.lower()), None)

    def problems(self) -> list[Problem]:
        """Return the problems found so far. They are complete when the body has been read to its end."""
        return [Problem(kind, self._file, None, offset, message) for kind, offset, message in self._source.problems()]


class _WarcBodyStream(io.RawIOBase):
    def __init__(self, source: WarcBody) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer).cast("B")
        data = self._source.read(len(view))
        view[: len(data)] = data
        return len(data)


def open_warc_record(path: str | PathLike[str], offset: int, skip: int = 0) -> StoredRecord:
    r"""Open the record at an offset.

    The body is read as far as it is present, in bounded memory; `problems()` says whether it is complete.

    Args:
        path: The file.
        offset: Offset in bytes, as in captures.
        skip: Decompressed bytes before the record, if its compressed member contains several records.

    Raises:
        ArchiveFileError: There is no record at the offset.
        OSError: The file cannot be read.

    >>> import tempfile
    >>> text = b"WARC/1.0\r\nWARC-Type: response\r\n"
    >>> text += b"Content-Type: application/http\r\nContent-Length: 40\r\n\r\n"
    >>> text += b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(text), file.flush()
    ...     record = open_warc_record(file.name, 0)
    >>> record.header("warc-type"), record.http_line, record.http_headers, record.body.read(), record.problems()
    ('response', 'HTTP/1.1 200 OK', (('Content-Length', '2'),), b'hi', [])
    """
    return wrap_record(WarcBody.open(path, offset, skip), str(path), offset)


def wrap_record(source: WarcBody | None, file: str, offset: int) -> StoredRecord:
    """Return an opened record with its headers parsed. Raises ArchiveFileError if `source` is None."""
    if source is None:
        raise ArchiveFileError(f"{file}: expected a record at byte {offset}, found none")
    headers = tuple((name, value.decode("utf-8", "replace")) for name, value in source.fields)
    line, http_headers = _parse_http_head(source.http_head)
    body = io.BufferedReader(_WarcBodyStream(source))
    return StoredRecord(headers, line, http_headers, body, source, file)


def _parse_http_head(head: bytes | None) -> tuple[str | None, tuple[tuple[str, str], ...]]:
    """Split an HTTP head into its first line and its fields. Latin-1 preserves every byte."""
    if head is None:
        return None, ()
    first, *lines = head.decode("latin-1").split("\n")
    fields: list[tuple[str, str]] = []
    for line in lines:
        if line[:1] in (" ", "\t") and fields and line.strip():  # a folded line (obs-fold, RFC 9112, section 5.2)
            fields[-1] = (fields[-1][0], f"{fields[-1][1]} {line.strip()}")
        elif ":" in line:
            name, _, value = line.partition(":")
            fields.append((name.strip(), value.strip()))
    return first.rstrip("\r"), tuple(fields)
