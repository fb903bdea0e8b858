"""Readers of visit logs: JSON Lines, Parquet and WARC.

`VisitLogReader` passes the visits to the Rust core, which pairs them into a `ChangeHistory`.
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

from unlost._core import Inflated, VisitPairer, WarcBody, WarcRecord, WarcScanner, is_compressed
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

_MAX_REDIRECT_SECONDS = 600  # allows for politeness delays between a redirect and its target
_MAX_PENDING_REDIRECTS = 10_000  # redirects without a target so far
_REDIRECT_STATUSES = range(300, 400)

_Item = TypeVar("_Item")
_Batch = tuple[int, list[Any], list[Any]]
"""Number of rows, and columns of texts and of numbers as the core reads them."""
_BATCH_ROWS = 16 << 10  # about 4 MB of text
# Headers with values that many responses share.
_DICTIONARY_FIELDS = ("last_modified", "date", "cache_control", "expires", "server")
LOG_PROBLEMS = {
    "bad-json": "expected a JSON object",
    "bad-visit": "a value that the field cannot have",
}
"""Kinds of problems of a log in addition to those of lines. The line is ignored."""
HARVEST_LOG_FIELDS = ("way", "outcome")
"""Fields of harvest logs that are not attributes of a visit: fetch method and outcome."""
_HEAD_BYTES = 64 << 10  # beginning of a file that is read to detect its kind
_BATCH_SIZE = 4096


@dataclass(frozen=True, slots=True)
class _PendingRedirect:
    """A redirect whose target has not been read yet."""

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

    A redirect is not a visit of its own: the response at its end counts as a visit to the first URL if it follows
    within ten minutes in the same file; otherwise the redirect is a failed visit. A revisit record has the digest and
    headers that it contains; with the server-not-modified profile it counts as a 304 response. Truncated responses
    count as failed, because their digest would be that of an incomplete page.

    Args:
        path: The file.
        problems: Collects unreadable records; reading continues after them.
        texts: Cache for the comparison of texts; None to ignore texts.
        on_read: Called with the number of bytes read.

    Raises:
        OSError: The file cannot be read.
    """
    pending: dict[str, _PendingRedirect] = {}
    for visit, target in _iter_visits(path, problems, texts, on_read):
        redirect = pending.pop(visit.uri, None)
        is_late = redirect is not None and visit.time - redirect.since > _MAX_REDIRECT_SECONDS * 1000
        first_url = redirect.first if redirect is not None and not is_late else visit.uri
        if redirect is not None and is_late:
            yield Visit(redirect.first, time=redirect.since, status=302).row
        if target is not None and target != visit.uri:
            while len(pending) >= _MAX_PENDING_REDIRECTS:
                lost = pending.pop(next(iter(pending)))
                yield Visit(lost.first, time=lost.since, status=302).row
            pending[target] = _PendingRedirect(first_url, visit.time)
        else:
            yield replace(visit, uri=first_url).row
    for lost in pending.values():
        yield Visit(lost.first, time=lost.since, status=302).row


def original_headers(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the headers as the server sent them, by lower-case name; the first one if a name is repeated.

    Records written by unlost have the length of the decoded body in Content-Length, and the original value under
    another name.

    >>> original_headers([("X-Archive-Orig-Content-Length", "90"), ("Content-Length", "300")])["content-length"]
    '90'
    """
    by_name = {name.lower(): value for name, value in reversed(headers)}
    original = ORIGINAL_HEADER_PREFIX.lower()
    return by_name | {name.removeprefix(original): by_name[name] for name in by_name if name.startswith(original)}


def _iter_visits(
    path: str | PathLike[str],
    problems: Problems,
    texts: TextDigestCache | None,
    on_read: Callable[[int], object] | None,
) -> Iterator[tuple[Visit, str | None]]:
    """Yield visits, each with its redirect target or None."""
    name = fspath(path)
    scanner = WarcScanner(path, True, list(CAPTURE_RECORD_TYPES), bodies=True)
    while (batch := scanner.next_batch()) is not None:
        records, record_problems = batch
        for kind, offset, message in record_problems:
            problems.add(Problem(kind, name, None, offset, message))
        damaged = {offset for _, offset, _ in record_problems}
        for record in records:
            if record.type == "resource":
                continue  # a resource record has no response headers
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
    # The record's own digest is preferred, because revisit records repeat it, in the same notation.
    body_digest = normalize_digest(digest) if digest else f"body-sha1:{body[0].hex()}"
    text_digest = None
    if texts is not None and 200 <= status < 300 and body[1] <= MAX_TEXT_BYTES:
        # The record is opened again, because the scanner has consumed its body.
        source = WarcBody.open(path, record.offset, record.skip)
        if source is not None:
            sketch = sketch_page_text(source.read_decoded(MAX_TEXT_BYTES)[0], record.mime, uri)
            text_digest = None if sketch is None else texts.digest(uri, sketch)
    return replace(visit, digest=body_digest, text_digest=text_digest), None


def add_parquet_log(
    pairer: VisitPairer,
    path: str | PathLike[str],
    problems: Problems,
    unknown_fields: dict[str, int],
    on_read: Callable[[int], object] | None = None,
) -> None:
    """Add the visits of a Parquet file to a pairer.

    Missing columns count as missing on every visit. Columns of a wrong type are ignored and reported as `bad-column`.
    If a row group is damaged, the rest of it is lost and reported as `damaged`; other row groups are read.

    Args:
        pairer: Receives the visits.
        path: The file.
        problems: Collects what cannot be read.
        unknown_fields: Counts columns that are not fields of a visit.
        on_read: Called with the number of bytes read.

    Raises:
        InputError: The file is unreadable, or has no column `uri` or `time`.
        UsageError: pyarrow is not installed.
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
        names = file.schema_arrow.names
        for column in names:
            if column not in FIELDS:
                unknown_fields[column[:40]] = unknown_fields.get(column[:40], 0) + 1
        present = [column for column in FIELDS if column in names]
        for required in ("uri", "time"):
            if required not in present:
                raise InputError(f"{name}: expected a column `{required}`")
        usable = _usable_columns(pa, file.schema_arrow, present, name, problems)
        _add_row_groups(pa, pairer, file, usable, name, problems, on_read)
    pa.default_memory_pool().release_unused()  # pairing needs the memory


def _add_row_groups(
    pa: Any,  # noqa: ANN401  pyarrow has no types
    pairer: VisitPairer,
    file: Any,  # noqa: ANN401
    columns: list[str],
    name: str,
    problems: Problems,
    on_read: Callable[[int], object] | None,
) -> None:
    rows_read, size = 0, sum(_row_group_sizes(file))
    # A second thread reads while this one pairs; both release the GIL most of the time.
    for item in read_ahead(_iter_batches(pa, file, columns, name)):
        if isinstance(item, Problem):
            problems.add(item)
            continue
        count, texts, numbers = item
        pairer.add_columns(count, 0, texts, numbers)
        rows_read += count
        if on_read is not None:
            on_read(rows_read * size // file.metadata.num_rows)


def _iter_batches(pa: Any, file: Any, columns: list[str], name: str) -> Iterator[_Batch | Problem]:  # noqa: ANN401
    """Yield all batches of one row group after the other, or a problem for the lost rest of a damaged row group."""
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
    """Iterate over a source that a separate thread reads ahead by at most three items.

    Exceptions of the source are raised by this generator. Closing the generator stops the thread.
    """
    queue: Queue[tuple[bool, Any]] = Queue(1)
    stopped = Event()

    def put(is_item: bool, item: Any) -> None:  # noqa: ANN401
        while not stopped.is_set():
            with suppress(Full):
                queue.put((is_item, item), timeout=0.1)
                return

    def read() -> None:
        try:
            for item in source:
                put(True, item)
                if stopped.is_set():
                    return
            put(False, None)
        except BaseException as error:  # noqa: BLE001  raised again in the consumer's thread
            put(False, error)

    thread = Thread(target=read, daemon=True)
    thread.start()
    try:
        while True:
            is_item, item = queue.get()
            if is_item:
                yield item
            elif item is None:
                return
            else:
                raise item
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
    """Return the text columns that are dictionary-encoded in every row group; the core reads these without decoding."""
    dictionary_columns = []
    for index in range(meta.num_columns):
        column = meta.schema.column(index)
        if column.path in _DICTIONARY_FIELDS and column.physical_type == "BYTE_ARRAY":
            chunks = (meta.row_group(group).column(index) for group in range(meta.num_row_groups))
            if all(part.has_dictionary_page for part in chunks):
                dictionary_columns.append(column.path)
    return dictionary_columns


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
        # Timestamps without a zone are UTC.
        columns["time"] = columns["time"].cast(pa.timestamp("ms"), safe=False)
    texts = [_text_column(pa, columns.get(column)) for column in TEXT_FIELDS]
    numbers = [_plain_column(pa, columns.get(column), pa.int64()) for column in NUMBER_FIELDS]
    return batch.num_rows, texts, [None if column is None else _column_buffers(column) for column in numbers]


def _text_column(pa: Any, column: Any) -> Any:  # noqa: ANN401
    """Return a text column as the core reads it, dictionary-encoded if it is in Arrow; None if it has no values."""
    if column is None or column.null_count == len(column):
        return None
    if not pa.types.is_dictionary(column.type):
        return *_column_buffers(_plain_column(pa, column, pa.string())), None
    indices = _plain_column(pa, column.indices, pa.int32())
    if indices is None or column.dictionary.null_count:  # nulls in the dictionary are not supported by the core
        return *_column_buffers(_plain_column(pa, column, pa.string())), None
    _, ends, texts = _column_buffers(_plain_column(pa, column.dictionary, pa.string()))
    valid, indices = _column_buffers(indices)
    return valid, ends, texts, indices


def _plain_column(pa: Any, column: Any, kind: Any) -> Any:  # noqa: ANN401
    """Return a column of this type whose buffers start at its first value; None if it has no values."""
    if column is None or column.null_count == len(column):
        return None
    if column.type != kind:
        column = column.cast(kind)
    # A slice starts inside its buffers; concatenation with an empty array copies it to the start of new ones.
    return column if column.offset == 0 else pa.concat_arrays([column, column.slice(0, 0)])


def _column_buffers(column: Any) -> Any:  # noqa: ANN401
    """Return the buffers of a column as bytes; the validity bitmap is None if there are no nulls."""
    return tuple(None if part is None else part.to_pybytes() for part in column.buffers())


class VisitLogReader:
    """Reads logs one after the other and pairs all their visits.

    Args:
        problems: Collects what cannot be read.
        texts: Whether to compare the texts of pages in archive files.

    Attributes:
        unknown_fields: Fields that are not part of a visit, with the number of lines or files that have them.
    """

    def __init__(self, problems: Problems, *, texts: bool = True) -> None:
        self.problems = problems
        self.unknown_fields: dict[str, int] = {}
        self._texts = TextDigestCache() if texts else None
        self._pairing = VisitPairer()

    def read(self, path: str | PathLike[str], on_read: Callable[[int], object] | None = None) -> None:
        """Read one file.

        Args:
            path: The file.
            on_read: Called with the number of bytes read.

        Raises:
            InputError: The file is not a log.
            OSError: The file cannot be read.
        """
        kind = detect_visit_log_kind(path)
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
        """Return the history of all visits read. Raises OSError if the disk is full."""
        return ChangeHistory(self._pairing.finish())

    def _iter_lines(self, path: str | PathLike[str], on_read: Callable[[int], object] | None) -> Iterator[VisitRow]:
        known_fields = {*FIELDS, *HARVEST_LOG_FIELDS}
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
                if not values.keys() <= known_fields:
                    for name in values.keys() - known_fields:
                        count_unknown_field(self.unknown_fields, name)
                yield row

    def _report_lost_line(self, kind: str, path: str | PathLike[str], line: int, offset: int, message: str) -> None:
        self.problems.add(Problem(kind, fspath(path), line, offset, message))


def count_unknown_field(counts: dict[str, int], name: str) -> None:
    """Count a field by name; after 50 different names, others are counted together."""
    max_names = 50
    name_or_others = name[:40] if name[:40] in counts or len(counts) < max_names else "others"
    counts[name_or_others] = counts.get(name_or_others, 0) + 1


def detect_visit_log_kind(path: str | PathLike[str]) -> str:
    """Return the kind of a file by its first bytes, after decompression: `parquet`, `warc` or `lines`.

    Raises:
        InputError: The file cannot be read, or is not a regular file that can be read twice.
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
