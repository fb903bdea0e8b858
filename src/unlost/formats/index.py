"""Indexes of any text format, told by their first lines."""

from collections.abc import Callable, Iterable, Iterator
from os import PathLike, fspath
from pathlib import Path

from unlost import uri
from unlost.formats import cdxj
from unlost.formats.capture import Capture
from unlost.formats.cdx import Layout
from unlost.formats.lines import Line
from unlost.formats.problems import Problem, Problems
from unlost.formats.row import Row, RowError
from unlost.formats.textfile import read_lines
from unlost.formats.zipnum import ZipNum

_BOM = b"\xef\xbb\xbf"  # some editors put it before the first line

_RowReader = Callable[[bytes, int, int], Row]


def read_rows(
    path: str | PathLike[str], problems: Problems, on_read: Callable[[int], object] | None = None
) -> Iterator[Row]:
    """Yield the rows of a CDX or CDXJ file, plain, gzip or zstd, or of a ZipNum given by its `.idx`, in their order.

    A line that is no row is counted in `problems` (kinds: docs/index.md) and the next is read. on_read: is told now and
    then how many bytes of the file have been read, as they are stored; not of a ZipNum. Raises InputError if the file
    cannot be read at all.
    """
    return _rows(_lines(path, problems, on_read), fspath(path), problems)


def _rows(lines: Iterable[Line], name: str, problems: Problems) -> Iterator[Row]:
    reader: _RowReader | None = None
    is_behind_rows = False
    for each in lines:
        line = each._replace(text=each.text.removeprefix(_BOM)) if each.number == 1 else each
        if not line.text.strip():
            continue
        if line.text[:1] in b"!@#":
            if is_behind_rows:
                message = "expected headers and comments above all rows"
                problems.add(Problem("late-header", name, line.number, line.offset, message))
            continue
        if b"\0" in line.text:
            problems.add(Problem("binary", name, line.number, line.offset, "expected text, found a NUL byte"))
            continue
        try:
            if line.text[1:4] == b"CDX" and not line.text[:1].isalnum():
                reader = Layout.of_header(line.text).row
                continue
            is_behind_rows = True
            reader = reader or _told_by(line)
            yield reader(line.text, line.number, line.offset)
        except RowError as error:
            problems.add(Problem(error.kind, name, line.number, line.offset, str(error)))


def _lines(path: str | PathLike[str], problems: Problems, on_read: Callable[[int], object] | None) -> Iterator[Line]:
    """Yield the lines of a text file, or of all blocks of a ZipNum, with offsets as if they were one text."""
    if Path(path).suffix != ".idx":
        yield from read_lines(path, problems, on_read=on_read)
        return
    number = offset = 0
    with ZipNum(path) as index:
        for block in index.blocks(problems=problems):
            for line in index.block_lines(block, problems):
                number += 1
                yield Line(number, offset, line.text)
                offset += len(line.text) + 1


def _told_by(line: Line) -> _RowReader:
    """Tell CDXJ from CDX without a header: only CDXJ has a brace behind its second or third column."""
    columns = line.text.split(b" ", 3)
    if any(column.startswith(b"{") for column in columns[2:]):
        return cdxj.row
    return Layout.of_count(line.text).row


def find_captures(path: str | PathLike[str], address: str, problems: Problems) -> Iterator[Capture]:
    """Yield the captures of one page, in the order of the file; in a ZipNum without reading more than its blocks.

    The page is found under every spelling that an index may have of its key, and under keys that other tools give it.
    Raises UriError if the address is none.
    """
    key = uri.key(address)
    others = uri.alternative_keys(address)

    def is_page(capture: Capture) -> bool:
        # Under a key of other tools there are captures of other pages, too.
        return capture.key == key or (capture.key in others and uri.key_many([capture.uri])[0] == key)

    if Path(path).suffix != ".idx":
        yield from filter(is_page, read_captures(path, problems))
        return
    with ZipNum(path) as index:
        spellings = [spelling.encode() for each in (key, *others) for spelling in uri.spellings(each)]
        for line in index.lines(*spellings, problems=problems):
            found = _captures(_rows([Line(0, 0, line)], fspath(path), problems), fspath(path), problems)
            yield from filter(is_page, found) if others else found


def read_captures(path: str | PathLike[str], problems: Problems) -> Iterator[Capture]:
    """Yield the captures of an index, as `read_rows` does its rows. Rows that are no captures are counted too."""
    return _captures(read_rows(path, problems), fspath(path), problems)


def _captures(rows: Iterable[Row], name: str, problems: Problems) -> Iterator[Capture]:
    for row in rows:
        try:
            yield row.capture()
        except RowError as error:
            problems.add(Problem(error.kind, name, row.number, row.place, str(error)))
