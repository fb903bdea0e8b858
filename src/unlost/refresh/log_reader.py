"""Readers of visit logs: JSON Lines, Parquet and WARC.

They feed the visits to the Rust core, which pairs them into a `ChangeHistory`.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar
from urllib.parse import urljoin

from unlost._core import Inflated, VisitPairing, WarcBody, WarcRecord, WarcScanner, is_compressed
from unlost.capture import normalize_digest
from unlost.dates import from_iso, pad, to_datetime
from unlost.errors import DateError, InputError, UsageError
from unlost.problems import Problem, Problems, require_rereadable, unreadable_error
from unlost.refresh.history import ChangeHistory
from unlost.refresh.page_text_digest import MAX_TEXT_BYTES, TextDigestCache, sketch_page_text
from unlost.refresh.visit import (
    FIELDS,
    NUMBER_FIELDS,
    TEXT_FIELDS,
    Visit,
    VisitRow,
    parse_visit_row,
    visit_from_headers,
)
from unlost.text_lines import read_source_lines
from unlost.warc.reader import CAPTURE_RECORD_TYPES, wrap_record
from unlost.warc.records import ORIGINAL_HEADER_PREFIX

_MAX_REDIRECT_SECONDS = 600  # a redirect and its target are asked for one after the other, politely
_MAX_PENDING_REDIRECTS = (
    10_000  # redirects whose target did not come: those of a crawl of one site at a time are far fewer
)
_REDIRECT_STATUSES = range(300, 400)


@dataclass(frozen=True, slots=True)
class _PendingRedirect:
    """A page that redirected, and has no answer yet."""

    first: str
    since: int


def iter_warc_rows(
    path: str | PathLike[str],
    problems: Problems,
    *,
    texts: TextDigestCache | None = None,
    on_read: Callable[[int], object] | None = None,
) -> Iterator[VisitRow]:
    """Yield the visits of a WARC or ARC file.

    A redirect is not a visit of its own: the answer at its end stands under the address at its beginning, if it follows
    within ten minutes in the same file; else it is a visit that failed. A revisit has the digest and the headers that
    it says; one that the server answered with 304 has no body and counts as that. Records that are cut short
    have `failed`: their digest would be that of half a page. texts: those of pages so far; None to
    look at none.

    problems: what could not be read; reading goes on behind it. Raises OSError.
    """
    waiting: dict[str, _PendingRedirect] = {}
    for visit, target in _iter_visits(path, problems, texts, on_read):
        came_from = waiting.pop(visit.uri, None)
        late = came_from is not None and visit.time - came_from.since > _MAX_REDIRECT_SECONDS * 1000
        first = came_from.first if came_from is not None and not late else visit.uri
        if came_from is not None and late:
            yield Visit(came_from.first, time=came_from.since, status=302).row
        if target is not None and target != visit.uri:
            while len(waiting) >= _MAX_PENDING_REDIRECTS:
                lost = waiting.pop(next(iter(waiting)))
                yield Visit(lost.first, time=lost.since, status=302).row
            waiting[target] = _PendingRedirect(first, visit.time)
        else:
            yield replace(visit, uri=first).row
    for lost in waiting.values():
        yield Visit(lost.first, time=lost.since, status=302).row


def original_headers(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return headers by their names in lower case, as the server sent them; of those that came twice the first.

    Records that were written here have the length of the body without codings, and that which was sent under another
    name.

    >>> original_headers([("X-Archive-Orig-Content-Length", "90"), ("Content-Length", "300")])["content-length"]
    '90'
    """
    named = {name.lower(): value for name, value in reversed(headers)}
    original = ORIGINAL_HEADER_PREFIX.lower()
    return named | {name.removeprefix(original): named[name] for name in named if name.startswith(original)}


def _iter_visits(
    path: str | PathLike[str],
    problems: Problems,
    texts: TextDigestCache | None,
    on_read: Callable[[int], object] | None,
) -> Iterator[tuple[Visit, str | None]]:
    """Yield visits, each with where it redirects to."""
    name = fspath(path)
    scanner = WarcScanner(path, True, list(CAPTURE_RECORD_TYPES), bodies=True)
    while (batch := scanner.next_batch()) is not None:
        records, found = batch
        for kind, offset, message in found:
            problems.add(Problem(kind, name, None, offset, message))
        damaged = {offset for _, offset, _ in found}
        for record in records:
            if record.type == "resource":
                continue  # no headers of a server
            try:
                yield _record_visit(path, record, texts, damaged=record.offset in damaged)
            except DateError as error:
                problems.add(Problem("bad-date", name, None, record.offset, str(error)))
        if on_read is not None:
            on_read(scanner.position)


def _record_visit(
    path: str | PathLike[str], record: WarcRecord, texts: TextDigestCache | None, *, damaged: bool
) -> tuple[Visit, str | None]:
    date = record.date or ""
    digits = pad(date) if record.is_arc else from_iso(date)
    time = int(to_datetime(digits).timestamp()) * 1000
    uri, status = record.uri or "", record.status or 0
    stored = wrap_record(WarcBody.open(path, record.offset, record.skip), fspath(path), record.offset)
    headers = original_headers(stored.http_headers)
    is_revisit = record.type == "revisit"
    if is_revisit and "not-modified" in (stored.header("WARC-Profile") or ""):
        status = 304
    visit = visit_from_headers(uri, time, status, headers)
    if status in _REDIRECT_STATUSES and status != 304 and record.location:
        return visit, urljoin(uri, record.location)
    is_cut = damaged or record.is_short or record.is_truncated
    if is_revisit:
        digest = record.digest
        return replace(visit, digest=digest and normalize_digest(digest)), None
    body = record.body
    if body is None or body[2] or is_cut:
        return replace(visit, status=0), None
    digest = record.digest
    # One notation for both: what a revisit repeats is the digest that its record says.
    known = normalize_digest(digest) if digest else f"body-sha1:{body[0].hex()}"
    text = None
    if texts is not None and 200 <= status < 300 and body[1] <= MAX_TEXT_BYTES:
        # The source again: its body is read only once.
        source = WarcBody.open(path, record.offset, record.skip)
        if source is not None:
            found = sketch_page_text(source.read_undone(MAX_TEXT_BYTES)[0], record.mime, uri)
            text = None if found is None else texts.digest(uri, found)
    return replace(visit, digest=known, text_digest=text), None


_Item = TypeVar("_Item")
_Batch = tuple[int, list[Any], list[Any]]
"""How many rows it has, and its columns of texts and of numbers as the core reads them."""
_BATCH_ROWS = 16 << 10  # rows: some 4 MB of a log's texts
_DICTIONARY_FIELDS = (
    "last_modified",
    "date",
    "cache_control",
    "expires",
    "server",
)  # headers that many answers have in common


def add_parquet_log(
    pairing: VisitPairing,
    path: str | PathLike[str],
    problems: Problems,
    unknown_fields: dict[str, int],
    on_read: Callable[[int], object] | None = None,
) -> None:
    """Read a log in Parquet into a pairing; of its columns, those that are fields of a visit.

    A column that is not there is missing on every visit; one of a type that its field cannot have is left out and
    counted in problems as `bad-column`. Of a row group that is damaged, the rest is lost and the problem is `damaged`;
    the others count. Raises InputError if nothing of it can be read, as of one that ends too early, or if it has no
    `uri` or `time`, and UsageError if pyarrow is not installed.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415  an extra, and slow to import
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise UsageError(f"{fspath(path)}: Parquet needs pyarrow: pip install 'unlost[parquet]'") from None
    name = fspath(path)
    try:
        meta = parquet.read_metadata(name)
        file = parquet.ParquetFile(name, metadata=meta, pre_buffer=False, read_dictionary=_dictionary_columns(meta))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{name}: no Parquet that can be read: {str(error)[:200]}") from error
    with file:
        there = file.schema_arrow.names
        for column in there:
            if column not in FIELDS:
                unknown_fields[column[:40]] = unknown_fields.get(column[:40], 0) + 1
        wanted = [column for column in FIELDS if column in there]
        for needed in ("uri", "time"):
            if needed not in wanted:
                raise InputError(f"{name}: expected a column `{needed}`")
        usable = _usable_columns(pa, file.schema_arrow, wanted, name, problems)
        _add_row_groups(pa, pairing, file, usable, name, problems, on_read)
    pa.default_memory_pool().release_unused()  # pairing comes next, and needs it


def _add_row_groups(
    pa: Any,  # noqa: ANN401  pyarrow has no types
    pairing: VisitPairing,
    file: Any,  # noqa: ANN401
    columns: list[str],
    name: str,
    problems: Problems,
    on_read: Callable[[int], object] | None,
) -> None:
    read, size = 0, sum(_row_group_sizes(file))
    # Read by another thread while this one pairs: neither holds Python's lock for long.
    for found in read_ahead(_iter_batches(pa, file, columns, name)):
        if isinstance(found, Problem):
            problems.add(found)
            continue
        count, texts, numbers = found
        pairing.add_columns(count, 0, texts, numbers)
        read += count
        if on_read is not None:
            on_read(read * size // file.metadata.num_rows)


def _iter_batches(pa: Any, file: Any, columns: list[str], name: str) -> Iterator[_Batch | Problem]:  # noqa: ANN401
    """Yield all batches, of one row group after the other, and what is lost of those that are damaged."""
    for group in range(file.metadata.num_row_groups):
        rows = 0
        try:
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=columns):
                yield _convert_batch(pa, batch)
                rows += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            message = f"behind {rows} rows of row group {group}, the rest of which is lost: {str(error)[:200]}"
            yield Problem("damaged", name, None, 0, message)


def read_ahead(source: Iterator[_Item]) -> Iterator[_Item]:
    """Yield what an iterator does, which a thread of its own asks for the next thing meanwhile.

    At most three things are there at a time. What the iterator raises is raised here, and nothing goes on behind an
    iterator that nobody asks any more.
    """
    waiting: Queue[tuple[bool, Any]] = Queue(1)
    stopped = Event()

    def put(is_thing: bool, thing: Any) -> None:  # noqa: ANN401
        while not stopped.is_set():
            with suppress(Full):
                waiting.put((is_thing, thing), timeout=0.1)
                return

    def read() -> None:
        try:
            for thing in source:
                put(True, thing)
                if stopped.is_set():
                    return
            put(False, None)
        except BaseException as error:  # noqa: BLE001  it is raised where it is asked for
            put(False, error)

    thread = Thread(target=read, daemon=True)
    thread.start()
    try:
        while True:
            is_thing, thing = waiting.get()
            if is_thing:
                yield thing
            elif thing is None:
                return
            else:
                raise thing
    finally:
        stopped.set()
        thread.join()


def _row_group_sizes(file: Any) -> list[int]:  # noqa: ANN401
    meta = file.metadata
    return [
        sum(meta.row_group(group).column(column).total_compressed_size for column in range(meta.num_columns))
        for group in range(meta.num_row_groups)
    ]


def _dictionary_columns(meta: Any) -> list[str]:  # noqa: ANN401
    """Return the texts that the file has once for all rows that share them; the core reads them as they are there.

    Those of a column of which any part is without a dictionary would have to be looked up one by one.
    """
    found = []
    for at in range(meta.num_columns):
        column = meta.schema.column(at)
        if column.path in _DICTIONARY_FIELDS and column.physical_type == "BYTE_ARRAY":
            parts = (meta.row_group(group).column(at) for group in range(meta.num_row_groups))
            if all(part.has_dictionary_page for part in parts):
                found.append(column.path)
    return found


def _usable_columns(pa: Any, schema: Any, columns: list[str], name: str, problems: Problems) -> list[str]:  # noqa: ANN401
    usable = []
    for column in columns:
        kind = schema.field(column).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)
        is_number = pa.types.is_integer(kind) or pa.types.is_null(kind)
        is_time = column == "time" and (pa.types.is_timestamp(kind) or is_number)
        if is_time or (is_text if column in TEXT_FIELDS else is_number):
            usable.append(column)
        elif column in {"uri", "time"}:
            raise InputError(f"{name}: `{column}` cannot be of the type {kind}")
        else:
            message = f"`{column}` is of the type {kind} and was left out"
            problems.add(Problem("bad-column", name, None, 0, message))
    return usable


def _convert_batch(pa: Any, batch: Any) -> _Batch:  # noqa: ANN401
    names = batch.schema.names
    columns = {column: batch.column(column) for column in names}
    if "time" in columns and pa.types.is_timestamp(columns["time"].type):
        # Dates without a zone are UTC, as everywhere here.
        columns["time"] = columns["time"].cast(pa.timestamp("ms"), safe=False)
    texts = [_text_column(pa, columns.get(column)) for column in TEXT_FIELDS]
    numbers = [_plain_column(pa, columns.get(column), pa.int64()) for column in NUMBER_FIELDS]
    return batch.num_rows, texts, [None if column is None else _column_buffers(column) for column in numbers]


def _text_column(pa: Any, column: Any) -> Any:  # noqa: ANN401
    """Return a column of texts as the core reads it, as a dictionary if it is one; None if nothing is in it."""
    if column is None or column.null_count == len(column):
        return None
    if not pa.types.is_dictionary(column.type):
        return *_column_buffers(_plain_column(pa, column, pa.string())), None
    places = _plain_column(pa, column.indices, pa.int32())
    if places is None or column.dictionary.null_count:  # which say in two ways that a text is missing
        return *_column_buffers(_plain_column(pa, column, pa.string())), None
    _, ends, texts = _column_buffers(_plain_column(pa, column.dictionary, pa.string()))
    valid, places = _column_buffers(places)
    return valid, ends, texts, places


def _plain_column(pa: Any, column: Any, kind: Any) -> Any:  # noqa: ANN401
    """Return a column as the core reads it: of one type, from its beginning; None if nothing is in it."""
    if column is None or column.null_count == len(column):
        return None
    if column.type != kind:
        column = column.cast(kind)
    # A slice begins somewhere in its buffers; joined with nothing, it is copied to their beginning.
    return column if column.offset == 0 else pa.concat_arrays([column, column.slice(0, 0)])


def _column_buffers(column: Any) -> Any:  # noqa: ANN401
    """Return the buffers of a column as bytes, the first None where every value is there."""
    return tuple(None if part is None else part.to_pybytes() for part in column.buffers())


LOG_PROBLEMS = {
    "bad-json": "expected a JSON object",
    "bad-visit": "a value that the field cannot have",
}
"""The kinds of problems of a log beside those of its lines. Each loses its line."""
HARVEST_LOG_FIELDS = ("way", "outcome")
"""Fields of the logs of harvests that are for people: how a page was asked for, and what came of it."""
_HEAD_BYTES = 64 << 10
_BATCH_SIZE = 4096


class VisitLogReader:
    """Reads logs, one after the other, and pairs all their visits.

    problems: what could not be read. unknown: fields of logs that are none of a visit, with how many lines or files
    have them; they are not looked at. texts: whether the texts of pages in archive files are compared, too.
    """

    def __init__(self, problems: Problems, *, texts: bool = True) -> None:
        self.problems = problems
        self.unknown_fields: dict[str, int] = {}
        self._texts = TextDigestCache() if texts else None
        self._pairing = VisitPairing()

    def read(self, path: str | PathLike[str], on_read: Callable[[int], object] | None = None) -> None:
        """Read one file. on_read: is told how many bytes of it have been read. Raises InputError, OSError."""
        kind = detect_log_kind(path)
        if kind == "parquet":
            add_parquet_log(self._pairing, path, self.problems, self.unknown_fields, on_read)
            return
        if kind == "warc":
            rows = iter_warc_rows(path, self.problems, texts=self._texts, on_read=on_read)
        else:
            rows = self._iter_lines(path, on_read)
        while batch := list(islice(rows, _BATCH_SIZE)):
            self._pairing.add_rows(batch)

    def build_history(self) -> ChangeHistory:
        """Return the history of everything that was read. Raises OSError if the disk is full."""
        return ChangeHistory(self._pairing.finish())

    def _iter_lines(self, path: str | PathLike[str], on_read: Callable[[int], object] | None) -> Iterator[VisitRow]:
        known = {*FIELDS, *HARVEST_LOG_FIELDS}
        for line in read_source_lines(path, self.problems, on_read=on_read):
            if not line.text.strip():
                continue
            try:
                values = json.loads(line.text)
                row = parse_visit_row(values)
            except (ValueError, RecursionError):
                self._report_lost_line("bad-json", path, line.number, line.offset, LOG_PROBLEMS["bad-json"])
            except InputError as error:
                self._report_lost_line("bad-visit", path, line.number, line.offset, str(error))
            else:
                if not values.keys() <= known:
                    for name in values.keys() - known:
                        count_unknown_field(self.unknown_fields, name)
                yield row

    def _report_lost_line(self, kind: str, path: str | PathLike[str], line: int, offset: int, message: str) -> None:
        self.problems.add(Problem(kind, fspath(path), line, offset, message))


def count_unknown_field(counts: dict[str, int], name: str) -> None:
    """Count a field; of a log that has no end of them, not all are named."""
    most = 50
    shown = name[:40] if name[:40] in counts or len(counts) < most else "others"
    counts[shown] = counts.get(shown, 0) + 1


def detect_log_kind(path: str | PathLike[str]) -> str:
    """Return what a file is by its first bytes, compressed or not: `parquet`, `warc` or `lines`.

    Raises InputError if it cannot be read, or only once.
    """
    require_rereadable(path)
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise unreadable_error(path, error) from error
    if head.startswith(b"PAR1"):
        return "parquet"
    text = Inflated(head).read(64) if is_compressed(head[:4]) else head
    return "warc" if text.startswith((b"WARC/", b"filedesc:")) else "lines"
