"""External merge sort of lines.

Lines are sorted in memory in runs, spilled to temporary files, and merged.
"""

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import BinaryIO

SORT_RUN_BYTES = 64 << 20
"""Memory of one run; Python needs a little more to sort it."""

_LINE_OVERHEAD_BYTES = 41  # of a bytes object (33) and its list entry (8) in CPython

MAX_SORT_RUNS = 64
"""Number of runs that are merged into one. Most systems limit a process to 1024 open files."""


def sort_lines(lines: Iterable[bytes], run_bytes: int = SORT_RUN_BYTES) -> Iterator[bytes]:
    r"""Yield lines, each with its line end, in byte order without duplicates.

    Memory is bounded by `run_bytes`. Every line is written to disk once for each level of merging: with the defaults,
    once up to 4 GB, twice up to 256 GB. Raises OSError if the temporary directory (TMPDIR) is full.

    >>> list(sort_lines([b"b\n", b"a\n", b"b\n"]))
    [b'a\n', b'b\n']
    """
    # Runs of one level have about the same size, which minimizes how often a line is merged.
    levels: list[list[BinaryIO]] = []
    try:
        run: list[bytes] = []
        run_size = 0
        for line in lines:
            run.append(line)
            run_size += len(line) + _LINE_OVERHEAD_BYTES
            if run_size >= run_bytes:
                run.sort()
                _add_run(levels, 0, _spill_run(run))
                run, run_size = [], 0
        run.sort()
        previous = None
        for line in heapq.merge(run, *chain(*levels)):
            if line != previous:
                yield line
            previous = line
    finally:
        for file in chain(*levels):
            file.close()


def _add_run(levels: list[list[BinaryIO]], level: int, run: BinaryIO) -> None:
    """Add a run to a level, and merge the level into a run of the next one when it is full."""
    if level == len(levels):
        levels.append([])
    levels[level].append(run)
    if len(levels[level]) == MAX_SORT_RUNS:
        merged = _spill_run(heapq.merge(*levels[level]))
        for file in levels[level]:
            file.close()
        levels[level].clear()
        _add_run(levels, level + 1, merged)


def _spill_run(run: Iterable[bytes]) -> BinaryIO:
    """Write a sorted run to an unnamed temporary file, which disappears with the process."""
    file = tempfile.TemporaryFile(prefix="unlost-sort-")  # noqa: SIM115  closed after merging
    try:
        file.writelines(run)
        file.seek(0)
    except OSError as error:
        with suppress(OSError):  # closing flushes the buffer
            file.close()
        # Name the temporary directory, so that the user knows which disk is full.
        raise OSError(error.errno, error.strerror, tempfile.gettempdir()) from error
    return file
