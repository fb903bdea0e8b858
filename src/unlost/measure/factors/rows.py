"""Many rows of numbers, on the disk, read again column by column: models go through them several times."""

from array import array
from collections.abc import Iterator, Sequence
from math import isnan
from tempfile import TemporaryFile
from types import TracebackType
from typing import Self

UNKNOWN_VALUE = float("nan")
"""Stands for a number that nobody knows."""

_BLOCK_ROWS = 4096  # of a block: what is in memory


class ColumnFile:
    """Rows of so many numbers. Use it as a context manager.

    known: how many rows know the number of each column. count: of all rows.
    """

    def __init__(self, width: int) -> None:
        self.count = 0
        self.known = [0] * width
        self._width = width
        self._file = TemporaryFile()  # noqa: SIM115  closed at the end
        self._buffer: list[Sequence[float]] = []

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Give the disk back."""
        self._file.close()

    def add(self, row: Sequence[float]) -> None:
        """Add one row."""
        self._buffer.append(row)
        self.count += 1
        for column, value in enumerate(row):
            self.known[column] += not isnan(value)
        if len(self._buffer) == _BLOCK_ROWS:
            self._spill()

    def _spill(self) -> None:
        self._file.seek(0, 2)
        self._file.write(len(self._buffer).to_bytes(4))
        for column in zip(*self._buffer, strict=True):
            self._file.write(array("d", column).tobytes())
        self._buffer.clear()

    def blocks(self, chosen: Sequence[int]) -> Iterator[list[list[float]]]:
        """Yield some rows at a time, as the chosen columns; rows in which one of them is not known are left out."""
        if self._buffer:
            self._spill()
        place = 0
        while True:
            self._file.seek(place)
            size = int.from_bytes(self._file.read(4))
            if not size:
                return
            columns = []
            for column in chosen:
                self._file.seek(place + 4 + column * size * 8)
                columns.append(array("d", self._file.read(size * 8)))
            place += 4 + self._width * size * 8
            if any(map(isnan, (value for column in columns for value in column))):
                whole = [row for row in zip(*columns, strict=True) if not any(map(isnan, row))]
                yield [list(column) for column in zip(*whole, strict=True)] if whole else [[] for _ in chosen]
            else:
                yield [list(column) for column in columns]
