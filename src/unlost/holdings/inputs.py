"""What holdings are counted from: indexes, archive files, lists of addresses, access logs, other maps."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from unlost.errors import InputError, UnsortedError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.output import NO_ROOM
from unlost.formats.problems import Problems
from unlost.formats.textfile import read_lines
from unlost.formats.ukvs import Header
from unlost.formats.unread import refuse_pipe, unread
from unlost.holdings._map_header import is_rolled_up, read_map_header, rules_of
from unlost.holdings.report import Report

if TYPE_CHECKING:
    # Names of types, which the extension itself does not have.
    from unlost._core import Progress, RowColumns, Tally

Kind = Literal["index", "zipnum", "archive", "urls", "log", "map"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_BATCH = 10_000
_LOOKED_AT = 1000
"""So many lines are looked at to tell what a file is."""

_MARK = b"\xef\xbb\xbf"
"""Of the order of bytes, which some editors put before the first line."""

_LOG = re.compile(rb"\[\d{1,2}/[A-Za-z]{3}/\d{4}:")
_FREQUENCY = re.compile(rb"(?=.)(\d{1,18}[+~-]?)?(/(\d{1,18}[+~-]?)?)?")


class Counter(Protocol):
    """What counts: `unlost._core.MapBuilder`, or something that is fed the same way."""

    def add_file(
        self, path: str, progress: "Progress", urls: bool = False, column: int | None = None
    ) -> "tuple[Tally, str | None]":
        """Count the rows of an index, or the addresses of a list."""

    def add_rows(self, rows: "list[RowColumns]") -> "Tally":
        """Count rows that were read elsewhere."""

    def add_map(self, path: str, fields: int, line_limit: int, exclusions: bool, progress: "Progress") -> "Tally":
        """Add what another map says."""


def refuse_pipes(paths: Iterable[str | PathLike[str]]) -> None:
    """Raise InputError for a pipe, before anybody who reads twice waits for what never comes again."""
    for path in paths:
        refuse_pipe(path)


def kind_of(path: str | PathLike[str]) -> Kind:
    """Tell what a file is by its contents; a ZipNum by its ending `.idx`. Raises InputError if it cannot be read.

    A pipe is taken for an index, since what is read of it is gone.
    """
    if Path(path).exists() and not Path(path).is_file():
        return "index"
    if Path(path).suffix == ".idx":
        return "zipnum"
    if _may_be_archive(path):
        from unlost.formats import warcindex  # noqa: PLC0415  takes longer than a small map

        if warcindex.is_archive(path):
            return "archive"
    has_fields = False
    for line in islice(read_lines(path, Problems()), _LOOKED_AT):
        text = line.text.removeprefix(_MARK) if line.number == 1 else line.text
        has_fields |= text.startswith(b"!fields ")
        if text[1:4] == b"CDX" and not text[:1].isalnum():
            return "index"
        if text.strip() and text[:1] not in b"!@#":
            return "map" if has_fields else _kind_of_line(text)
    return "map" if has_fields else "index"


def _may_be_archive(path: str | PathLike[str]) -> bool:
    """Return whether the first bytes leave it open that this is an archive. Raises InputError as `kind_of` does."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise unread(path, error) from error
    return not head.isascii() or head in (b"WARC", b"file") or not all(32 <= byte < 127 for byte in head)


def _kind_of_line(text: bytes) -> Kind:
    columns = text.split()
    if _LOG.search(text[:1000]):
        return "log"
    # Old indexes have addresses for keys: a date behind them tells.
    if len(columns) > 2 and columns[1][:4].isdigit() and (len(columns) > 8 or b" {" in text):
        return "index"
    if len(columns) == 1 or b"\t" in text or b"://" in columns[0]:
        return "urls"
    if len(columns) == 2 and _FREQUENCY.fullmatch(columns[1]):
        return "map"
    return "index"


def count_inputs(
    paths: Sequence[str | PathLike[str]],
    counter: Counter,
    report: Report,
    progress: "Progress",
    *,
    kind: Kind | None = None,
    column: int | None = None,
    host: str | None = None,
    map_like: Header,
    maps: list[Header] | None = None,
) -> None:
    """Count all that the files hold.

    kind: what the files are; told by their contents if not given.
    column: from 1, the column of a table with tabs that holds the addresses of a list.
    host: whose access log it is, where the log's lines do not tell.
    map_like: the key fields and rules that a map among the files must have.
    maps: gets the headers of the maps among the files.

    Raises InputError for a file that cannot be read at all, and OSError if there is no room for what is written.
    """
    for path in paths:
        name = fspath(path)
        try:
            what = kind or kind_of(path)
            if what == "map":
                header = map_header_like(name, map_like)
                # What a map excludes, another input may hold: merging looks at that, counting cannot.
                is_only = len(paths) == 1
                report.add(counter.add_map(name, len(header.keys), MAX_LINE_BYTES, is_only, progress), name)
                if maps is not None:
                    maps.append(header)
            else:
                _count(name, what, counter, report, progress, column, host)
        except OSError as error:
            # Nobody reads those: they are about what is written meanwhile.
            if error.errno in NO_ROOM:
                raise
            raise unread(name, error) from error
        except InputError as error:
            if str(error).startswith(name):
                raise
            if isinstance(error, UnsortedError):
                raise UnsortedError(f"{name}: {error}") from error
            raise InputError(f"{name}: {error}") from error


def _count(
    name: str,
    kind: Kind,
    counter: Counter,
    report: Report,
    progress: "Progress",
    column: int | None,
    host: str | None,
) -> None:
    if kind in ("index", "urls"):
        at = None if column is None else column - 1
        tally, damage = counter.add_file(name, progress, kind == "urls", at)
        report.add(tally, name, damage)
    elif kind == "zipnum":
        for part in _parts(name):
            tally, damage = counter.add_file(part, progress)
            report.add(tally, part, damage)
    else:
        rows = _captures(name, report.problems) if kind == "archive" else _hits(name, report.problems, host)
        for batch in _batches(rows):
            report.add(counter.add_rows(batch), name)


def map_header_like(name: str, wanted: Header) -> Header:
    """Return the header of a map that is counted. Raises InputError if its rows would mean something else."""
    header = read_map_header(name)
    if header.keys != wanted.keys:
        found, expected = ", ".join(header.keys), ", ".join(wanted.keys)
        raise InputError(
            f"has the key fields {found}, not {expected}: `--by year` goes with maps that were made by it, and only "
            "with those"
        )
    if "rules" in header.meta and rules_of(header) != rules_of(wanted):
        raise InputError(
            f"made by other rules ({rules_of(header)}) than are asked for ({rules_of(wanted)}): give the map's own "
            "as `--rules`"
        )
    if is_rolled_up(header):
        raise InputError("everything in it was rolled up, so there are no keys to count: `unlost map merge` takes it")
    return header


def _parts(name: str) -> Iterable[str]:
    """Return the files of a ZipNum in the order of their first blocks."""
    from unlost.formats.zipnum import ZipNum  # noqa: PLC0415

    with ZipNum(name) as index:
        return dict.fromkeys(fspath(block.part) for block in index.blocks())


def _captures(name: str, problems: Problems) -> "Iterator[RowColumns]":
    from unlost.formats import warcindex  # noqa: PLC0415

    for capture in warcindex.read_archive(name, problems):
        status = "" if capture.status is None else str(capture.status)
        yield (
            b"",
            capture.uri.encode("utf-8", "surrogateescape"),
            capture.datetime.encode(),
            (capture.mime or "").encode("utf-8", "surrogateescape"),
            status.encode(),
        )


def _hits(name: str, problems: Problems, host: str | None) -> "Iterator[RowColumns]":
    from unlost.formats import accesslog  # noqa: PLC0415

    for hit in accesslog.read_access_log(name, problems, host=host):
        status = "" if hit.status is None else str(hit.status)
        yield b"", hit.uri.encode(), hit.datetime.encode(), b"", status.encode()


def _batches(rows: "Iterator[RowColumns]") -> "Iterator[list[RowColumns]]":
    while batch := list(islice(rows, _BATCH)):
        yield batch
