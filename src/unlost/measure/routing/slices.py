"""Cutting an index by the dates of its captures: a part for each year, or parts with as many rows each."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO

from unlost.errors import InputError, UsageError
from unlost.formats.problems import Problem, Problems
from unlost.formats.textfile import read_lines
from unlost.holdings.inputs import detect_input_kind, refuse_pipes

MAX_SLICES = 200
"""Files are written to all of them at once."""

_DAY_DIGITS = 8  # digits


@dataclass(frozen=True, slots=True)
class IndexSlice:
    """A part of an index: its name (a year, or the days from and to), its file, and how many rows it has."""

    name: str
    path: Path
    rows: int


def slice_index(
    files: Sequence[str | PathLike[str]], folder: Path, problems: Problems, *, parts: int | None = None
) -> list[IndexSlice]:
    """Write the rows of index files to parts, the oldest first, and return those.

    parts: so many, of about as many rows each; without, one for each year. Rows of one day stay together. Rows without
    a date are counted among the problems, as `bad-date`, and left out. Raises InputError for what is no CDX or CDXJ, or
    has no dated row, UsageError for more parts than files can be written to.
    """
    if parts is not None and not 1 <= parts <= MAX_SLICES:
        raise UsageError(f"{parts} slices: expected 1 to {MAX_SLICES}")
    refuse_pipes(files)  # each is read twice
    days: Counter[bytes] = Counter(day for day, _ in _dated_rows(files, problems) if day)
    if not days:
        raise InputError(f"{fspath(files[0])}: no row with a date: expected a CDX or CDXJ")
    names = _slice_by_year(days) if parts is None else _slice_evenly(days, parts)
    rows: Counter[str] = Counter()
    with ExitStack() as stack:
        outputs: dict[str, BinaryIO] = {}
        for name in dict.fromkeys(names[day] for day in sorted(names)):
            outputs[name] = stack.enter_context((folder / f"{name}.cdx").open("wb"))
        if len(outputs) > MAX_SLICES:
            raise UsageError(f"{len(outputs)} years: expected at most {MAX_SLICES}: give --slices")
        for day, text in _dated_rows(files, Problems()):
            if day is None:
                # A line that says what the columns are holds for all rows behind it.
                for output in outputs.values():
                    output.write(text + b"\n")
            elif day:
                outputs[names[day]].write(text + b"\n")
                rows[names[day]] += 1
    return [IndexSlice(name, folder / f"{name}.cdx", rows[name]) for name in outputs]


def _slice_by_year(days: Counter[bytes]) -> dict[bytes, str]:
    return {day: day[:4].decode() for day in days}


def _slice_evenly(days: Counter[bytes], parts: int) -> dict[bytes, str]:
    """Return for each day the name of its part: that in which the middle of its rows falls."""
    order = sorted(days)
    ends = list(accumulate(days[day] for day in order))
    places = [
        min(parts - 1, (2 * end - days[day]) * parts // (2 * ends[-1])) for day, end in zip(order, ends, strict=True)
    ]
    first: dict[int, str] = {}
    last: dict[int, str] = {}
    for day, place in zip(order, places, strict=True):
        first.setdefault(place, day.decode())
        last[place] = day.decode()
    return {day: f"{first[place]}-{last[place]}" for day, place in zip(order, places, strict=True)}


def _dated_rows(files: Sequence[str | PathLike[str]], problems: Problems) -> Iterator[tuple[bytes | None, bytes]]:
    """Yield the day of each row with its text; no day for one that has none, None for a line about columns."""
    for file in files:
        kind = detect_input_kind(file)
        if kind != "index":
            raise InputError(f"{fspath(file)}: cannot be cut by dates ({kind}): expected a CDX or CDXJ")
        column = 1
        for line in read_lines(file, problems):
            text = line.text
            if text[1:4] == b"CDX" and not text[:1].isalnum():
                column = _date_column(text)
                yield None, text
                continue
            if not text.strip() or text[:1] in b"!@#":
                continue
            cells = text.split(None, column + 1)
            day = cells[column][:_DAY_DIGITS] if len(cells) > column else b""
            if len(day) != _DAY_DIGITS or not day.isdigit():
                problems.add(Problem("bad-date", fspath(file), line.number, line.offset, "expected 14 digits"))
                day = b""
            yield day, text


def _date_column(text: bytes) -> int:
    letters = text[4:].split()
    return letters.index(b"b") if b"b" in letters else 1
