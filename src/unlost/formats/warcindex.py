"""Rows of an index from archive files, in the form that pywb serves."""

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path

from unlost.errors import InputError
from unlost.formats import cdxj, wacz, warc
from unlost.formats.capture import Capture
from unlost.formats.problems import Problems
from unlost.formats.row import REVISIT, Row, index_key


def read_archive(path: str | PathLike[str], problems: Problems) -> Iterator[Capture]:
    """Yield the captures of a WARC, ARC or WACZ file, told by its ending. Raises InputError if it cannot be read."""
    reader = wacz.read_captures if Path(path).suffix.lower() == ".wacz" else warc.read_captures
    try:
        yield from reader(path, problems)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


def lines(paths: Iterable[str | PathLike[str]], problems: Problems) -> Iterator[bytes]:
    """Yield one CDXJ line, with its end, for each capture of the files, in their order.

    Only captures of pages and their parts: metadata about a page would share its key and date, and be served in its
    place.
    """
    for path in paths:
        yield from cdxj.write_rows(row(capture) for capture in read_archive(path, problems))


def row(capture: Capture) -> Row:
    """Return a capture as an index row. Key and date are of the forms that pywb looks up."""
    fields = {
        "url": capture.uri,
        "mime": REVISIT if capture.revisit else capture.mime,
        "status": capture.status,
        "digest": capture.digest,
        "redirect": capture.redirect,
        "length": capture.length,
        "offset": capture.offset,
        "filename": capture.filename,
    }
    known = {name: str(value) for name, value in fields.items() if value is not None}
    return Row(index_key(capture.uri), capture.datetime, known)
