"""Logs in Parquet, column by column: a batch of rows is never made into objects of Python."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from os import PathLike, fspath
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

from unlost._core import VisitPairing
from unlost.errors import InputError, UsageError
from unlost.formats.problems import Problem, Problems
from unlost.refresh.visit import FIELDS, NUMBER_FIELDS, TEXT_FIELDS

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
