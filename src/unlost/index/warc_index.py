"""Captures and index rows of archive files of any kind: WARC, ARC or WACZ, told apart by their first bytes.

Rows have the form that pywb serves.
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

_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_ZSTD_DICTIONARY_MAGIC = b"\x5d\x2a\x4d\x18"  # a `.warc.zst` may begin with one, and without it nothing can be read
_RECORD_START = re.compile(rb"WARC/\d|filedesc://")
_RECORD_START_BYTES = 64
_WARC_SUFFIXES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz")


def is_archive_file(path: str | PathLike[str]) -> bool:
    """Return whether a file is a WARC, ARC or WACZ: its first bytes tell, and if they tell nothing, its name.

    A pipe is told by its name, since what is read of it is gone. Raises InputError if the file cannot be read.
    """
    return _detect_archive_format(path) is not None


def check_archive_readable(path: str | PathLike[str]) -> None:
    """Raise InputError for what `read_archive` can read nothing of: not there, a folder, a WACZ that is no ZIP.

    Only the first bytes are looked at, and the directory of a WACZ; of a pipe, nothing.
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
    """Yield the captures of a WARC, ARC or WACZ file, told as `is_archive` does.

    tally, on_read: as `unlost.warc.reader.read_captures` has them. Raises InputError if it cannot be read.
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
    """Yield one row for each capture of a file, in its order.

    Only captures of pages and their parts: metadata about a page would share its key and date, and be served in its
    place.
    """
    return map(row_from_capture, read_archive_captures(path, problems, on_read=on_read))


def row_from_capture(capture: Capture) -> IndexRow:
    """Return a capture as an index row. Key and date are of the forms that pywb looks up."""
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
    known = {name: str(value) for name, value in fields.items() if value is not None}
    return IndexRow(index_key(capture.uri), capture.datetime, known)
