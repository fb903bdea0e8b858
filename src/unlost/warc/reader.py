"""Reads WARC 0.17 to 1.1 and ARC files, plain, gzip or zstd.

Yields captures in bounded memory, and opens single records with their bodies.

docs/warc.md says what is read and lists the kinds of problems.
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


# Records that are about the file, and need no address.
_TYPES_WITHOUT_URL = {"warcinfo"}


@dataclass(frozen=True, slots=True)
class CaptureReader:
    """The captures of one archive file.

    scanner: what reads it.
    file: its name in problems.
    filename: its name in captures.
    problems: where problems go.
    wanted: the types of records that are captures.
    tally: gets how many records there are of each type; the scanner must give them all.
    on_read: is told how far the file was read, in bytes from its beginning.
    """

    scanner: WarcScanner
    file: str
    filename: str
    problems: Problems
    record_types: Collection[str]
    type_counts: Counter[str] | None = None
    on_read: Callable[[int], object] | None = None

    def __iter__(self) -> Iterator[Capture]:
        """Yield them in the order of the file."""
        while (batch := self.scanner.next_batch()) is not None:
            records, found = batch
            if self.on_read is not None:
                self.on_read(self.scanner.position)
            for kind, offset, message in found:
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
        moment = self._parse_date(record, record.date or "")
        if moment is None:
            return None
        if record.uri and isinstance(key, UriError) and not isinstance(key, ForeignSchemeError):
            self._report("bad-uri", record.offset, str(key))
        is_redirect = record.status is not None and 300 <= record.status < 400
        return Capture(
            uri=record.uri or "",
            key=None if isinstance(key, UriError) else key,
            datetime=moment,
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
        try:
            return dates.pad(text) if record.is_arc else dates.from_iso(text)
        except DateError as error:
            self._report("bad-date", record.offset, str(error))
            return None

    def _revisit_of(self, record: WarcRecord) -> tuple[str, str] | None:
        if not record.refers_to_uri or not record.refers_to_date:
            return None
        moment = self._parse_date(record, record.refers_to_date)
        return None if moment is None else (record.refers_to_uri, moment)


CAPTURE_RECORD_TYPES = ("response", "revisit", "resource")
"""The types of records that are captures of a page or a part of one."""


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
    r"""Yield the captures of a WARC or ARC file in its order, in bounded memory.

    problems: gets everything that could not be read; reading goes on behind it wherever that can be found.
    records: the types wanted; others are `request`, `metadata`, `warcinfo`, `conversion`, `continuation`.
    digests: whether to compute the SHA-1 of payloads that come without a digest.
    filename: the name to give in captures; the file's own by default.
    within: where in the file it is, offset and length in bytes, if it is only a part of that. Offsets in captures are
        from its own beginning.
    tally: gets how many records of each type there are, wanted or not.
    on_read: is told now and then how many bytes of the file have been read, as they are stored.

    A record cut short is a capture, too, and a problem. `length` is None where a compressed member holds more than the
    record. Raises OSError if the file cannot be opened or read.

    >>> import tempfile
    >>> text = b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://Example.com/A\r\n"
    >>> text += b"WARC-Date: 2014-02-10T00:00:01Z\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi"
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(text), file.flush()
    ...     found = list(read_warc_captures(file.name, problems := Problems()))
    >>> found[0].key, found[0].datetime, found[0].mime, found[0].length, problems.total
    ('com,example)/a', '20140210000001', 'text/plain', 152, 0)
    """
    wanted = list(record_types)
    start, length = byte_range or (0, None)
    scanner = WarcScanner(path, compute_digests, wanted if type_counts is None else None, start, length)
    return iter(CaptureReader(scanner, str(path), filename or Path(path).name, problems, wanted, type_counts, on_read))


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One record with its body.

    headers: the fields of its header in their order, as (name, value); of an ARC, what they would be in a WARC.
    http_line: the first line of the HTTP message in it, without its end; None if it holds none.
    http_headers: the fields of the HTTP message, as (name, value), in their order.
    body: what comes after these, as it is stored: transfer and content codings are not undone.
    """

    headers: tuple[tuple[str, str], ...]
    http_line: str | None
    http_headers: tuple[tuple[str, str], ...]
    body: BinaryIO
    _source: WarcBody
    _file: str

    def header(self, name: str) -> str | None:
        """Return the first value of a field of the record's header, in whatever case; None if there is none."""
        return next((value for each, value in self.headers if each.lower() == name.lower()), None)

    def problems(self) -> list[Problem]:
        """Return what is wrong with the part that was read so far: read the body to its end first."""
        return [Problem(kind, self._file, None, offset, message) for kind, offset, message in self._source.problems()]


class _WarcBodyStream(io.RawIOBase):
    """The body as a file."""

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
    r"""Return the record that is stored at an offset in bytes, as captures have it, ready to read its body.

    skip: how much text of the compressed member comes before it, where that holds several.

    The body comes as far as it is there, in bounded memory; `problems()` tells whether that was all. Raises
    ArchiveFileError if no record begins there, OSError if the file cannot be read.

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
    """Return what was opened in a file. Raises ArchiveFileError if that is nothing."""
    if source is None:
        raise ArchiveFileError(f"{file}: expected a record at byte {offset}, found none")
    headers = tuple((name, value.decode("utf-8", "replace")) for name, value in source.fields)
    line, http_headers = _parse_http_head(source.http_head)
    body = io.BufferedReader(_WarcBodyStream(source))
    return StoredRecord(headers, line, http_headers, body, source, file)


def _parse_http_head(head: bytes | None) -> tuple[str | None, tuple[tuple[str, str], ...]]:
    """Cut the head of an HTTP message into its first line and its fields. Latin-1 keeps every byte."""
    if head is None:
        return None, ()
    first, *lines = head.decode("latin-1").split("\n")
    fields: list[tuple[str, str]] = []
    for line in lines:
        if line[:1] in (" ", "\t") and fields and line.strip():
            fields[-1] = (fields[-1][0], f"{fields[-1][1]} {line.strip()}")
        elif ":" in line:
            name, _, value = line.partition(":")
            fields.append((name.strip(), value.strip()))
    return first.rstrip("\r"), tuple(fields)
