"""Reads inputs of maps, filters, profiles and statistics: indexes, archive files, URL lists, access logs, other maps.

Detects the kind of each input, feeds its rows to a `RowSink` (usually the Rust core), counts lines and problems in an
`InputReport`, and runs long work in a thread with progress and cancellation.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, get_args

from unlost._core import Progress
from unlost.atomic import DISK_FULL_ERRNOS
from unlost.errors import InputError, UnsortedError
from unlost.index.detection import detect_line_kind, is_table, reject_unsupported_formats
from unlost.index.ukvs import UkvsHeader
from unlost.mementomap.map_file import header_rules, is_fully_rolled_up, read_map_header
from unlost.problems import Problem, Problems, require_rereadable, unreadable_error
from unlost.text_lines import MAX_LINE_BYTES
from unlost.uri import DEFAULT_RULES

if TYPE_CHECKING:
    from unlost._core import CompactionStats, LineStats, RowColumns
    from unlost.index.cdx import IndexRow


QueryKind = Literal["urls", "log", "upstream"]
QUERY_KINDS: tuple[QueryKind, ...] = get_args(QueryKind)


ProgressCallback = Callable[[int, int], None]
"""Called periodically with the numbers of bytes and lines read."""
T = TypeVar("T")
_POLL_SECONDS = 0.1  # between two calls of a ProgressCallback

LINE_PROBLEM_MESSAGES = {
    "too-long": "a line longer than unlost.text_lines.MAX_LINE_BYTES was left out",
    "bad-row": "expected a key, a date, and columns or an object",
    "bad-header": "expected ` CDX` and one letter for each column",
    "binary": "expected text, found a NUL byte",
    "bad-frequency": "expected a frequency such as 300+/20-; kept, as unknown",
    "unsorted": "a key that belongs before the one above it, or is the same; put in order",
    "truncated": "the compressed file ends in the middle",
    "corrupt": "the compressed data is damaged",
    "trailing-garbage": "bytes behind the end of the compressed data were left out",
}
"""Messages for the kinds of problems that the Rust core reports."""

InputKind = Literal["index", "zipnum", "archive", "urls", "log", "map", "mixed"]
INPUT_KINDS: tuple[InputKind, ...] = get_args(InputKind)
_BATCH_ROWS = 10_000


def run_with_progress(
    work: Callable[[Progress], T], on_progress: ProgressCallback | None = None, progress: Progress | None = None
) -> T:
    """Run `work` in a thread, and return its result or raise its exception.

    This thread stays responsive to Ctrl-C, which cancels the work within moments.

    Args:
        work: The function; it reports to the progress object and is cancelled by it.
        on_progress: Called periodically with bytes and lines read.
        progress: Progress object to use; a new one by default.
    """
    tracker = progress or Progress()
    results: list[T] = []
    failures: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            results.append(work(tracker))
        except BaseException as error:  # noqa: BLE001  re-raised in the calling thread
            failures.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=run, name="unlost-work")
    thread.start()
    try:
        while not done.wait(_POLL_SECONDS):
            if on_progress is not None:
                on_progress(tracker.bytes, tracker.lines)
    except BaseException:
        tracker.cancel()
        raise
    finally:
        thread.join()
    if on_progress is not None:
        on_progress(tracker.bytes, tracker.lines)
    if failures:
        raise failures[0]
    return results[0]


@dataclass(slots=True)
class InputReport:
    """Counts of lines, and problems.

    Attributes:
        lines: Lines read.
        counted: Lines counted as holdings.
        foreign: Lines that are not web pages, such as `dns:` rows.
        filtered: Lines excluded by the options.
        repaired: Lines whose key disagreed with their URL, so that the key was computed from the URL.
        problems: Problems by kind.
        shape: Shape of the map's tree, and what compaction changed; None without compaction.
    """

    lines: int = 0
    counted: int = 0
    foreign: int = 0
    filtered: int = 0
    repaired: int = field(default=0, kw_only=True)
    problems: Problems = field(default_factory=Problems)
    shape: "CompactionStats | None" = None

    def add_line_stats(self, stats: "LineStats", name: str, damage: str | None = None) -> None:
        """Add the statistics of one file from the Rust core."""
        lines, counted, foreign, filtered, repaired, problems = stats
        self.lines += lines
        self.counted += counted
        self.foreign += foreign
        self.filtered += filtered
        self.repaired += repaired
        for kind, count, line, offset, example in problems:
            excerpt = ascii(example.decode("utf-8", "replace"))[1:-1][:60]
            message = LINE_PROBLEM_MESSAGES.get(kind, "no key can be made of it")
            self.problems.add(Problem(kind, name, line, offset, f"{message}: `{excerpt}`"), count)
        if damage is not None:
            self.problems.add(Problem(damage, name, lines, 0, LINE_PROBLEM_MESSAGES[damage]))

    @property
    def understood(self) -> int:
        """Number of lines that were parsed, whether or not they were counted."""
        return self.counted + self.foreign + self.filtered

    def refuse_damage(self, *, allow_partial: bool, index: str | PathLike[str] | None = None) -> None:
        """Raise InputError if an input is damaged, unless that is allowed.

        How many rows a damaged file lacks is unknown, and a map without them would deny pages for as long as it is
        used.

        Args:
            allow_partial: Accept damaged inputs.
            index: A CDX or CDXJ file to check for a partial last row.
        """
        if allow_partial:
            return
        damage: object = self.problems.damage
        if damage is None and index is not None and self.problems.total:
            from unlost.index.reader import ends_within_row  # noqa: PLC0415  start-up time

            if ends_within_row(index):
                damage = f"{fspath(index)}: the file ends in the middle of a row"
        if damage is not None:
            raise InputError(
                f"{damage}: nothing was written: repair the file, or give --allow-partial to use what can be read"
            )

    def refuse_empty(self, inputs: Sequence[str | PathLike[str]]) -> None:
        """Raise InputError if no line of any input was understood."""
        if not self.understood:
            reasons = [str(problem) for problem in self.problems.first.values()]
            reasons += [f"{fspath(name)}: nothing in it" for name in inputs]
            raise InputError(f"{next(iter(reasons), 'no inputs')}: nothing was written")

    def refuse_bad(self, max_bad: float | None) -> None:
        """Raise InputError if the share of bad lines exceeds `max_bad`."""
        bad = self.problems.total
        if max_bad is not None and bad > max_bad * (self.understood + bad):
            share = f"{bad} of {self.understood + bad} lines are bad, more than {max_bad:g} of them"
            first = next(iter(self.problems.first.values()))
            raise InputError(f"{share}: nothing was written; first: {first}")


class RowSink(Protocol):
    """Counts rows: `unlost._core.MapBuilder`, or an object with the same methods."""

    def add_file(
        self, path: str, progress: "Progress", urls: bool = False, column: int | None = None
    ) -> "tuple[LineStats, str | None]":
        """Count the rows of an index, or the URLs of a list."""

    def add_rows(self, rows: "list[RowColumns]") -> "LineStats":
        """Count rows that were parsed in Python."""

    def add_map(self, path: str, fields: int, line_limit: int, exclusions: bool, progress: "Progress") -> "LineStats":
        """Add the rows of another map."""


def refuse_pipes(paths: Iterable[str | PathLike[str]]) -> None:
    """Raise InputError for pipes, which cannot be read twice."""
    for path in paths:
        require_rereadable(path)


def detect_input_kind(path: str | PathLike[str], name: str | None = None) -> InputKind:
    """Detect the kind of a file from its contents; a ZipNum from its extension `.idx`.

    A pipe counts as an index, because bytes read from it are lost; the Rust core rejects other lines.

    Args:
        path: The file.
        name: Name for messages, if not the path.

    Raises:
        InputError: The file cannot be read, has an unsupported format, or has lines of unknown or several kinds.
    """
    if Path(path).exists() and not Path(path).is_file():
        return "index"
    if Path(path).suffix == ".idx":
        return "zipnum"
    reject_unsupported_formats(path, name)
    if _may_be_archive(path):
        from unlost.index import warc_index  # noqa: PLC0415  slow to import

        if warc_index.is_archive_file(path):
            return "archive"
    return detect_line_kind(path, name)


def refuse_mixed_kinds(kinds: Mapping[str, InputKind]) -> None:
    """Raise InputError if some files are URL lists and others are indexes or archive files."""
    lists = [name for name, kind in kinds.items() if kind == "urls"]
    indexes = [name for name, kind in kinds.items() if kind in ("index", "zipnum", "archive")]
    if lists and indexes:
        raise InputError(
            f"{lists[0]}: a list of URLs, but {indexes[0]} is an index: one of them may be a mistake: read them "
            "separately, or give --input mixed"
        )


def _may_be_archive(path: str | PathLike[str]) -> bool:
    """Return whether the first bytes could be those of an archive file. Raises InputError.

    Avoids importing the WARC reader for plain text.
    """
    try:
        with Path(path).open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise unreadable_error(path, error) from error
    return not head.isascii() or head in (b"WARC", b"file") or not all(32 <= byte < 127 for byte in head)


def count_inputs(
    paths: Sequence[str | PathLike[str]],
    sink: RowSink,
    report: InputReport,
    progress: "Progress",
    *,
    kind: InputKind | None = None,
    column: int | None = None,
    host: str | None = None,
    expected_header: UkvsHeader,
    map_headers: list[UkvsHeader] | None = None,
    allow_partial: bool = False,
    max_bad: float | None = None,
) -> None:
    """Count the rows of files.

    Args:
        paths: The files.
        sink: Counts the rows.
        report: Receives counts and problems.
        progress: Progress object of the Rust core.
        kind: Kind of all files; detected if None. `mixed` is detected, too, and allows URL lists next to indexes.
        column: Column of the URLs in a tab-separated list, from 1.
        host: Host of an access log whose lines do not name it.
        expected_header: Key fields and rules that a map among the files must have.
        map_headers: Receives the headers of the maps among the files.
        allow_partial: Count the readable part of damaged files, and skip unreadable files.
        max_bad: Maximum share of bad lines in all files, from 0 to 1.

    Raises:
        InputError: A file cannot be read or is damaged (unless that is allowed), has no valid line, or too many lines
            are bad.
        OSError: The disk is full.
    """
    is_detected = kind in (None, "mixed")
    kinds = _detect_kinds(paths, kind, report, allow_partial=allow_partial) if is_detected else [kind] * len(paths)
    for path, file_kind in zip(paths, kinds, strict=True):
        name = fspath(path)
        if file_kind is None:
            continue
        understood_before = report.understood
        problems_before = report.problems.total
        try:
            _count_file(
                name, file_kind, sink, report, progress, column, host, expected_header, len(paths) == 1, map_headers
            )
        except OSError as error:
            # A full disk concerns temporary files, not the input.
            if error.errno in DISK_FULL_ERRNOS:
                raise
            raise unreadable_error(name, error) from error
        except InputError as error:
            if str(error).startswith(name):
                raise
            if isinstance(error, UnsortedError):
                raise UnsortedError(f"{name}: {error}") from error
            raise InputError(f"{name}: {error}") from error
        if report.understood == understood_before and report.problems.total > problems_before:
            raise InputError(
                f"{name}: no line of it can be read: {_last_problem(report.problems)}: nothing was written"
            )
        report.refuse_damage(allow_partial=allow_partial, index=name if file_kind == "index" else None)
    report.refuse_bad(max_bad)


def _last_problem(problems: Problems) -> Problem:
    return list(problems.first.values())[-1]


def _detect_kinds(
    paths: Sequence[str | PathLike[str]], kind: InputKind | None, report: InputReport, *, allow_partial: bool
) -> "list[InputKind | None]":
    """Return the kind of each file; None for a skipped one."""
    kinds: dict[str, InputKind] = {}
    for path in paths:
        try:
            kinds[fspath(path)] = detect_input_kind(path)
        except InputError as error:
            if not allow_partial:
                raise
            report.problems.add_unreadable(fspath(path), error)
    if kind != "mixed":
        refuse_mixed_kinds(kinds)
    return [kinds.get(fspath(path)) for path in paths]


def _count_file(
    name: str,
    kind: InputKind,
    sink: RowSink,
    report: InputReport,
    progress: "Progress",
    column: int | None,
    host: str | None,
    expected_header: UkvsHeader,
    is_only: bool,
    map_headers: list[UkvsHeader] | None,
) -> None:
    if kind in ("index", "urls"):
        if kind == "urls" and column is None and Path(name).is_file() and is_table(name):
            raise InputError("a table with tabs: give the column of its URLs with --column")
        index = None if column is None else column - 1
        stats, damage = sink.add_file(name, progress, kind == "urls", index)
        report.add_line_stats(stats, name, damage)
    elif kind == "zipnum" and (parts := _contiguous_zipnum_files(name)) is not None:
        for part in parts:
            stats, damage = sink.add_file(part, progress)
            report.add_line_stats(stats, part, damage)
    elif kind == "map":
        header = read_compatible_map_header(name, expected_header)
        # Exclusions count only if the map is the only input: another input may hold the pages.
        report.add_line_stats(sink.add_map(name, len(header.keys), MAX_LINE_BYTES, is_only, progress), name)
        if map_headers is not None:
            map_headers.append(header)
    else:
        if kind == "log":
            rows = _access_log_rows(name, report.problems, host)
        else:
            rows = (_warc_rows if kind == "archive" else _index_rows)(name, report.problems)
        for batch in _batches(rows):
            report.add_line_stats(sink.add_rows(batch), name)


def read_compatible_map_header(name: str, expected_header: UkvsHeader, *, is_whole: bool = True) -> UkvsHeader:
    """Return the header of a map to be counted. Raises InputError if its rows have another meaning.

    `is_whole` is as in `read_map_header`.
    """
    header = read_map_header(name, is_whole=is_whole)
    if header.keys != expected_header.keys:
        fields, expected = ", ".join(header.keys), ", ".join(expected_header.keys)
        raise InputError(
            f"has the key fields {fields}, not {expected}: `--by year` goes with maps that were made by it, and only "
            "with those"
        )
    if "rules" in header.meta and header_rules(header) != header_rules(expected_header):
        raise InputError(
            f"made by other rules ({header_rules(header)}) than are asked for ({header_rules(expected_header)}): "
            "give the map's own "
            "as `--rules`"
        )
    if is_fully_rolled_up(header):
        raise InputError("everything in it was rolled up, so there are no keys to count: `unlost map merge` takes it")
    return header


def _contiguous_zipnum_files(name: str) -> list[str] | None:
    """Return the files of a ZipNum in the order of their blocks; None if they are not exactly the listed blocks.

    Contiguous files are read as a whole, which is much faster than block by block.
    """
    from unlost.index.zipnum import ZipNumIndex  # noqa: PLC0415

    end_offsets: dict[Path, int] = {}
    problems = Problems()
    with ZipNumIndex(name) as index:
        for block in index.blocks(problems=problems):
            if block.offset != end_offsets.get(block.part, 0):
                return None
            end_offsets[block.part] = block.offset + block.length
    if problems.total or any(not part.is_file() or part.stat().st_size != end for part, end in end_offsets.items()):
        return None
    return [fspath(part) for part in end_offsets]


def _index_rows(name: str, problems: Problems) -> "Iterator[RowColumns]":
    from unlost.index.reader import read_index_rows  # noqa: PLC0415

    return map(to_row_columns, read_index_rows(name, problems))


def to_row_columns(row: "IndexRow") -> "RowColumns":
    """Return the columns of an index row that counting needs."""
    texts = (
        row.key,
        row.fields.get("url", ""),
        row.timestamp,
        row.fields.get("mime", ""),
        row.fields.get("status", ""),
    )
    key, url, date, mime, status = (text.encode("utf-8", "surrogateescape") for text in texts)
    return key, url, date, mime, status


def _warc_rows(name: str, problems: Problems) -> "Iterator[RowColumns]":
    from unlost.index import warc_index  # noqa: PLC0415

    for capture in warc_index.read_archive_captures(name, problems):
        status = "" if capture.status is None else str(capture.status)
        yield (
            b"",
            capture.uri.encode("utf-8", "surrogateescape"),
            capture.datetime.encode(),
            (capture.mime or "").encode("utf-8", "surrogateescape"),
            status.encode(),
        )


def _access_log_rows(name: str, problems: Problems, host: str | None) -> "Iterator[RowColumns]":
    from unlost.logs import access  # noqa: PLC0415

    for request in access.read_access_log(name, problems, host=host):
        status = "" if request.status is None else str(request.status)
        yield b"", request.uri.encode(), request.datetime.encode(), b"", status.encode()


def _batches(rows: "Iterator[RowColumns]") -> "Iterator[list[RowColumns]]":
    while batch := list(islice(rows, _BATCH_ROWS)):
        yield batch


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """Selection and format of the rows of maps, filters and statistics.

    Attributes:
        status: Status codes of the rows to count; empty for all.
        mime: Media types of the rows to count; empty for all.
        exclude: Kinds of pages to exclude, of `EXCLUDABLE_PAGES`.
        rules: Rule set of the keys.
        kind: As in `count_inputs`.
        column: As in `count_inputs`.
        host: As in `count_inputs`.
        allow_partial: As in `count_inputs`.
        max_bad: As in `count_inputs`; None for any share.
        threads: Maximum number of threads.
        memory: Maximum bytes of entries in memory.
        block: Bytes of text that a thread processes at a time.
    """

    status: frozenset[str] = frozenset()
    mime: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()
    rules: str = DEFAULT_RULES
    kind: InputKind | None = None
    column: int | None = None
    host: str | None = None
    allow_partial: bool = False
    max_bad: float | None = None
    threads: int | None = None
    memory: int | None = None
    block: int | None = None

    def statuses(self) -> list[bytes]:
        """Return the status codes for the Rust core."""
        return sorted(status.encode() for status in self.status)

    def media_types(self) -> list[bytes]:
        """Return the media types for the Rust core."""
        return sorted(mime.encode() for mime in self.mime)
