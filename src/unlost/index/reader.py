"""Reads rows and captures of an index of any kind: CDX and CDXJ (plain, gzip, zstd), and ZipNum.

CDX and CDXJ are distinguished line by line. In a ZipNum, the captures of one page are found by reading only their
blocks.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from os import SEEK_END, PathLike, fspath
from pathlib import Path

from unlost import uri
from unlost.capture import Capture
from unlost.errors import InputError
from unlost.index import cdx
from unlost.index.cdx import CdxLayout, IndexRow, RowError
from unlost.index.detection import (
    BYTE_ORDER_MARK,
    detect_line_kind,
    has_json_column,
    is_cdx_header,
    reject_unsupported_formats,
)
from unlost.index.zipnum import ZipNumIndex
from unlost.problems import Problem, Problems, unreadable_error
from unlost.text_lines import MAX_LINE_BYTES, Line, is_compressed, read_lines

_OTHER_KIND_LABELS = {"urls": "a list of URLs", "log": "an access log", "map": "a map"}
_MAX_HEADER_BYTES = 1000  # longer than any CDX header


def read_index_rows(
    path: str | PathLike[str], problems: Problems, on_read: Callable[[int], object] | None = None
) -> Iterator[IndexRow]:
    """Yield the rows of a CDX or CDXJ file (plain, gzip or zstd), or of a ZipNum given by its `.idx`, in order.

    Invalid lines are counted in `problems` (kinds: docs/formats.md) and skipped.

    Args:
        path: The index.
        problems: Collects the invalid lines.
        on_read: Called periodically with the number of bytes read, as stored; not for a ZipNum.

    Raises:
        InputError: The file cannot be read, or is not an index, judging by its first lines.
    """
    if Path(path).suffix != ".idx" and Path(path).is_file():
        reject_unsupported_formats(path)
        # Lines of an unknown kind become problems one by one when they are parsed.
        if (kind := detect_line_kind(path, unknown="index")) != "index":
            raise InputError(f"{fspath(path)}: expected CDX or CDXJ, found {_OTHER_KIND_LABELS[kind]}")
    return _parse_rows(_read_text_lines(path, problems, on_read), fspath(path), problems)


def ends_within_row(path: str | PathLike[str]) -> bool:
    """Return whether a plain text index is truncated: its last line has no line end and is invalid.

    False for compressed files, which detect truncation by themselves, and for pipes, whose end cannot be read in
    advance. Raises InputError if the file cannot be read.
    """
    if Path(path).suffix == ".idx" or not Path(path).is_file() or is_compressed(path):
        return False
    try:
        with Path(path).open("rb") as file:
            first_line = file.readline(_MAX_HEADER_BYTES).removeprefix(BYTE_ORDER_MARK)
            file.seek(max(0, file.seek(0, SEEK_END) - MAX_LINE_BYTES))
            last_line = file.read().rpartition(b"\n")[2]
    except OSError as error:
        raise unreadable_error(path, error) from error
    lines = (
        [Line(1, 0, first_line.rstrip(b"\r\n")), Line(2, 0, last_line)]
        if is_cdx_header(first_line)
        else [Line(2, 0, last_line)]
    )
    problems = Problems()
    for _ in _parse_rows(lines, fspath(path), problems):
        pass
    return any(problem.line == 2 for problem in problems.first.values())


def _parse_rows(lines: Iterable[Line], name: str, problems: Problems) -> Iterator[IndexRow]:
    layout: CdxLayout | None = None
    has_rows = False
    for raw_line in lines:
        line = raw_line._replace(text=raw_line.text.removeprefix(BYTE_ORDER_MARK)) if raw_line.number == 1 else raw_line
        if not line.text.strip():
            continue
        if line.text[:1] in b"!@#":
            if has_rows:
                message = "expected headers and comments above all rows"
                problems.add(Problem("late-header", name, line.number, line.offset, message))
            continue
        if b"\0" in line.text:
            problems.add(Problem("binary", name, line.number, line.offset, "expected text, found a NUL byte"))
            continue
        try:
            if is_cdx_header(line.text):
                layout = (
                    _layout_after_rows(layout, line, name, problems) if has_rows else CdxLayout.from_header(line.text)
                )
                continue
            has_rows = True
            if (layout is None or layout.delimiter == " ") and has_json_column(line.text):
                yield cdx.parse_cdxj_row(line.text, line.number, line.offset)
            else:
                yield (layout or cdx).parse_row(line.text, line.number, line.offset)
        except RowError as error:
            problems.add(Problem(error.kind, name, line.number, line.offset, str(error)))


def _read_text_lines(
    path: str | PathLike[str], problems: Problems, on_read: Callable[[int], object] | None
) -> Iterator[Line]:
    """Yield the lines of a text file, or of all blocks of a ZipNum, with offsets as if the blocks were one text."""
    if Path(path).suffix != ".idx":
        yield from read_lines(path, problems, on_read=on_read)
        return
    number = offset = 0
    with ZipNumIndex(path) as index:
        for block in index.blocks(problems=problems):
            for line in index.block_lines(block, problems):
                number += 1
                yield Line(number, offset, line.text)
                offset += len(line.text) + 1


def _layout_after_rows(layout: CdxLayout | None, line: Line, name: str, problems: Problems) -> CdxLayout:
    """Return the layout of a header after the first row. A layout that differs is a problem."""
    new_layout = CdxLayout.from_header(line.text)
    if new_layout != (layout or cdx.CDX11):
        message = "a header with other columns in the middle of the file: split the file there"
        problems.add(Problem("late-header", name, line.number, line.offset, message))
    return new_layout


def find_index_captures(path: str | PathLike[str], url: str, problems: Problems) -> Iterator[Capture]:
    """Yield the captures of one page, in the order of the file; in a ZipNum, by reading only its blocks.

    The page is found under all spellings of its key, and under the keys that other tools compute. Raises UriError if
    the URL is invalid.
    """
    key = uri.key(url)
    alternatives = uri.alternative_keys(url)

    def is_page(capture: Capture) -> bool:
        # Captures of other pages may share a key computed by other tools.
        return capture.key == key or (capture.key in alternatives and uri.key_many([capture.uri])[0] == key)

    if Path(path).suffix != ".idx":
        yield from filter(is_page, read_index_captures(path, problems))
        return
    with ZipNumIndex(path) as index:
        keys = [with_port for page_key in (key, *alternatives) for with_port in _with_default_ports(page_key)]
        spellings = {spelling.encode() for page_key in keys for spelling in uri.spellings(page_key)}
        for line in index.lines(*spellings, problems=problems):
            captures = _rows_to_captures(
                _parse_rows([Line(0, 0, line)], fspath(path), problems), fspath(path), problems
            )
            yield from filter(is_page, captures)


def _with_default_ports(key: str) -> list[str]:
    """Return a key without a port, and the variants with the default ports that some tools leave in it.

    >>> _with_default_ports("com,a)/x"), _with_default_ports("com,a:81)/x")
    (['com,a)/x', 'com,a:80)/x', 'com,a:443)/x'], ['com,a:81)/x'])
    """
    host, end, path = key.partition(")")
    has_port = re.search(r":\d+$", host)
    return [key] if has_port else [key, *(f"{host}:{port}{end}{path}" for port in (80, 443))]


def read_index_captures(path: str | PathLike[str], problems: Problems) -> Iterator[Capture]:
    """Yield the captures of an index. Rows that are not valid captures are problems, as in `read_index_rows`."""
    return _rows_to_captures(read_index_rows(path, problems), fspath(path), problems)


def _rows_to_captures(rows: Iterable[IndexRow], name: str, problems: Problems) -> Iterator[Capture]:
    for row in rows:
        try:
            yield row.to_capture()
        except RowError as error:
            problems.add(Problem(error.kind, name, row.number, row.offset, str(error)))
