"""Captures and index rows of archive files (WARC, ARC or WACZ), detected by their first bytes.

Rows have pywb's fields.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from errno import EISDIR
from os import PathLike
from pathlib import Path

from unlost import _core
from unlost.capture import Capture
from unlost.index.cdx import REVISIT_TYPE, IndexRow, index_key
from unlost.problems import Problems, unreadable_error, unreadable_error_for_errno
from unlost.warc import reader as warc_reader
from unlost.warc import wacz

_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")  # a member, or the directory of an empty ZIP
_ZSTD_DICTIONARY_MAGIC = b"\x5d\x2a\x4d\x18"  # skippable frame with which a `.warc.zst` may begin
_RECORD_START = re.compile(rb"WARC/\d|filedesc://")  # `filedesc://` begins the first line of an ARC
_RECORD_START_BYTES = 64
_WARC_SUFFIXES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz")


def is_archive_file(path: str | PathLike[str]) -> bool:
    """Return whether a file is a WARC, ARC or WACZ, judging by its first bytes or else its name.

    A pipe is judged by its name, because bytes read from it would be lost. Raises InputError if the file cannot be
    read.
    """
    return _detect_archive_format(path) is not None


def check_archive_readable(path: str | PathLike[str]) -> None:
    """Raise InputError for a file that `read_archive_captures` cannot read: missing, a directory, or an invalid WACZ.

    Reads only the first bytes, and the directory of a WACZ; nothing of a pipe.
    """
    try:
        if _detect_archive_format(path) == "wacz" and Path(path).is_file():
            wacz.check_wacz_directory(path)
        if Path(path).is_dir():
            raise unreadable_error_for_errno(path, EISDIR)
    except OSError as error:
        raise unreadable_error(path, error) from error


def read_archive_captures(
    path: str | PathLike[str],
    problems: Problems,
    *,
    type_counts: Counter[str] | None = None,
    on_read: Callable[[int], object] | None = None,
) -> Iterator[Capture]:
    """Yield the captures of a WARC, ARC or WACZ file.

    Args:
        path: The file.
        problems: Collects what could not be read.
        type_counts: As in `unlost.warc.reader.read_warc_captures`.
        on_read: As in `unlost.warc.reader.read_warc_captures`.

    Raises:
        InputError: The file cannot be read.
    """
    reader = wacz.read_wacz_captures if _detect_archive_format(path) == "wacz" else warc_reader.read_warc_captures
    try:
        yield from reader(path, problems, type_counts=type_counts, on_read=on_read)
    except OSError as error:
        raise unreadable_error(path, error) from error


def _detect_archive_format(path: str | PathLike[str]) -> str | None:
    if not Path(path).exists() or Path(path).is_file():
        try:
            with Path(path).open("rb") as file:
                magic = file.read(4)
            first = _core.LineReader(path, _RECORD_START_BYTES).batch(1)
        except OSError as error:
            raise unreadable_error(path, error) from error
        if magic in _ZIP_MAGIC:
            return "wacz"
        if magic == _ZSTD_DICTIONARY_MAGIC or (first and _RECORD_START.match(first[0][2])):
            return "warc"
    name = Path(path).name.lower()
    if name.endswith(".wacz"):
        return "wacz"
    return "warc" if name.endswith(_WARC_SUFFIXES) else None


def read_archive_rows(
    path: str | PathLike[str], problems: Problems, on_read: Callable[[int], object] | None = None
) -> Iterator[IndexRow]:
    """Yield an index row for each capture of a file, in order.

    There are no rows for `metadata` records: they share the key and date of a page, and would be replayed instead of
    it.
    """
    return map(row_from_capture, read_archive_captures(path, problems, on_read=on_read))


def row_from_capture(capture: Capture) -> IndexRow:
    """Return a capture as an index row, with the key and date in the form that pywb looks up."""
    fields = {
        "url": capture.uri,
        "mime": REVISIT_TYPE if capture.revisit else capture.mime,
        "status": capture.status,
        "digest": capture.digest,
        "redirect": capture.redirect,
        "length": capture.length,
        "offset": capture.offset,
        "filename": capture.filename,
    }
    known_fields = {name: str(value) for name, value in fields.items() if value is not None}
    return IndexRow(index_key(capture.uri), capture.datetime, known_fields)
