"""Archive files: WARC 0.17 to 1.1 and ARC, plain, gzipped or in zstd, as captures; single records with their bodies.

docs/warc.md says what is read and lists the kinds of problems.
"""

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from unlost._core import WarcBody, WarcScanner
from unlost.errors import ArchiveFileError
from unlost.formats._captures import CaptureReader
from unlost.formats.capture import Capture
from unlost.formats.problems import Problem, Problems

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

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
    ...     found = list(read_captures(file.name, problems := Problems()))
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
    ...     record = open_record(file.name, 0)
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
