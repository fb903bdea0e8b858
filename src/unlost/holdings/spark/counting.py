"""Pieces of files counted by the core, whatever is made of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Protocol

from unlost._core import Progress
from unlost.errors import InputError, UsageError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.ukvs import Header
from unlost.holdings.inputs import map_header_like
from unlost.holdings.rows import RowOptions
from unlost.holdings.spark.engine import Engine
from unlost.holdings.spark.pieces import Files, Piece, read_files, read_parquet
from unlost.holdings.spark.rows import Note

if TYPE_CHECKING:
    from unlost import _core
    from unlost._core import Tally


class _CountsFiles(Protocol):
    def add_file(
        self, path: str | PathLike[str], progress: Progress, urls: bool = False, column: int | None = None
    ) -> "tuple[Tally, str | None]": ...


def read_inputs(
    engine: Engine, inputs: Sequence[str | PathLike[str]], kind: object, columns: Mapping[str, str] | None
) -> Files:
    """Return what is counted: lines, or the rows of Parquet files if columns are given."""
    if columns is not None:
        return read_parquet(engine.session, inputs, columns)
    return read_files(engine.session, inputs, kind)  # type: ignore[arg-type]


def refuse_partial(options: RowOptions) -> None:
    """Raise UsageError if damaged files are to be read as far as possible: Spark reads them whole or not at all."""
    if options.allow_partial:
        raise UsageError("--allow-partial is not supported on a cluster: leave it out, or leave out --engine spark")


def count_piece(
    piece: Piece,
    builder: "_core.MapBuilder | _core.FilterBuilder",
    like: Header,
    options: RowOptions,
    *,
    is_only: bool,
    maps: list[str] | None = None,
) -> "Tally":
    """Count what a piece of a file holds, and return what became of its lines. Raises InputError.

    maps: gets the `!meta` of a map, as JSON.
    """
    if piece.kind != "map":
        return count_rows(piece, builder, options)
    try:
        header = map_header_like(str(piece.path), like, is_whole=False)
        if maps is not None:
            maps.append(json.dumps(header.meta))
        return builder.add_map(piece.path, len(header.keys), MAX_LINE_BYTES, is_only, Progress())
    except InputError as error:
        raise _named(piece, error) from error


def headers_of(notes: Iterable[Note]) -> list[Header]:
    """Return what the maps say about themselves that were counted, some of them more than once."""
    return [Header(meta=json.loads(text)) for note in notes for text in note.maps]


def joined_dates(notes: Iterable[Note]) -> tuple[str, str] | None:
    """Return the dates of the first and the last capture of all that was counted."""
    found = [note.dates for note in notes if note.dates]
    return (min(first for first, _ in found), max(last for _, last in found)) if found else None


def count_rows(piece: Piece, builder: _CountsFiles, options: RowOptions) -> "Tally":
    """Do the same for a piece of an index or a list."""
    at = None if options.column is None else options.column - 1
    try:
        tally, _ = builder.add_file(piece.path, Progress(), piece.kind == "urls", at)
    except InputError as error:
        raise _named(piece, error) from error
    if piece.has_hint:
        lines, counted, foreign, filtered, repaired, problems = tally
        is_foreign = hint_is_foreign(options)
        tally = (lines, counted, foreign - is_foreign, filtered - (not is_foreign), repaired, problems)
    return tally


def hint_is_foreign(options: RowOptions) -> bool:
    """Return whether a hint counts as no web page: a row that is not asked for is left out before anybody looks."""
    return "-" in (options.status or "-") and "text/dns" in (options.mime or ["text/dns"])


def _named(piece: Piece, error: InputError) -> InputError:
    return InputError(f"{piece.name}: {str(error).removeprefix(f'{piece.path}: ')}")
