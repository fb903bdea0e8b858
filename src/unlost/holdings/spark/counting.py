"""Pieces of files counted by the core, whatever is made of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Protocol

from unlost._core import Progress
from unlost.errors import InputError, UsageError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.ukvs import UkvsHeader
from unlost.holdings.inputs import read_compatible_map_header
from unlost.holdings.rows import InputOptions
from unlost.holdings.spark.engine import SparkEngine
from unlost.holdings.spark.pieces import SparkFiles, Split, read_files, read_parquet
from unlost.holdings.spark.rows import TaskReport

if TYPE_CHECKING:
    from unlost import _core
    from unlost._core import Tally


class _FileCounter(Protocol):
    def add_file(
        self, path: str | PathLike[str], progress: Progress, urls: bool = False, column: int | None = None
    ) -> "tuple[Tally, str | None]": ...


def read_inputs(
    engine: SparkEngine, inputs: Sequence[str | PathLike[str]], kind: object, columns: Mapping[str, str] | None
) -> SparkFiles:
    """Return what is counted: lines, or the rows of Parquet files if columns are given."""
    if columns is not None:
        return read_parquet(engine.session, inputs, columns)
    return read_files(engine.session, inputs, kind)  # type: ignore[arg-type]


def refuse_partial(options: InputOptions) -> None:
    """Raise UsageError if damaged files are to be read as far as possible: Spark reads them whole or not at all."""
    if options.allow_partial:
        raise UsageError("--allow-partial is not supported on a cluster: leave it out, or leave out --engine spark")


def count_split(
    split: Split,
    builder: "_core.MapBuilder | _core.FilterBuilder",
    expected_header: UkvsHeader,
    options: InputOptions,
    *,
    is_only: bool,
    map_headers: list[str] | None = None,
) -> "Tally":
    """Count what a piece of a file holds, and return what became of its lines. Raises InputError.

    maps: gets the `!meta` of a map, as JSON.
    """
    if split.kind != "map":
        return count_split_rows(split, builder, options)
    try:
        header = read_compatible_map_header(str(split.path), expected_header, is_whole=False)
        if map_headers is not None:
            map_headers.append(json.dumps(header.meta))
        return builder.add_map(split.path, len(header.keys), MAX_LINE_BYTES, is_only, Progress())
    except InputError as error:
        raise _add_name(split, error) from error


def collect_map_headers(notes: Iterable[TaskReport]) -> list[UkvsHeader]:
    """Return what the maps say about themselves that were counted, some of them more than once."""
    return [UkvsHeader(meta=json.loads(text)) for note in notes for text in note.maps]


def merge_capture_dates(notes: Iterable[TaskReport]) -> tuple[str, str] | None:
    """Return the dates of the first and the last capture of all that was counted."""
    found = [note.dates for note in notes if note.dates]
    return (min(first for first, _ in found), max(last for _, last in found)) if found else None


def count_split_rows(split: Split, builder: _FileCounter, options: InputOptions) -> "Tally":
    """Do the same for a piece of an index or a list."""
    at = None if options.column is None else options.column - 1
    try:
        tally, _ = builder.add_file(split.path, Progress(), split.kind == "urls", at)
    except InputError as error:
        raise _add_name(split, error) from error
    if split.has_hint:
        lines, counted, foreign, filtered, repaired, problems = tally
        is_foreign = hint_is_foreign(options)
        tally = (lines, counted, foreign - is_foreign, filtered - (not is_foreign), repaired, problems)
    return tally


def hint_is_foreign(options: InputOptions) -> bool:
    """Return whether a hint counts as no web page: a row that is not asked for is left out before anybody looks."""
    return "-" in (options.status or "-") and "text/dns" in (options.mime or ["text/dns"])


def _add_name(piece: Split, error: InputError) -> InputError:
    return InputError(f"{piece.name}: {str(error).removeprefix(f'{piece.path}: ')}")
