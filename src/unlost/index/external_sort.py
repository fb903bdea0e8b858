"""External merge sort: more lines than fit in memory, sorted in runs that are spilled to temporary files and merged."""

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import BinaryIO

SORT_RUN_BYTES = 64 << 20
"""How much memory lines take, sorted at a time; Python needs a little more to sort them."""

_LINE_OVERHEAD_BYTES = 41  # of an object and the place in its list: short lines are mostly that

MAX_SORT_RUNS = 64
"""So many runs become one: a process may have 1024 files open, on most systems, and others of its own."""


def sort_lines(lines: Iterable[bytes], run_bytes: int = SORT_RUN_BYTES) -> Iterator[bytes]:
    r"""Yield lines, each with its end, in byte order, equal ones once. Memory is bounded by `run_bytes`.

    Every line is written to disk once for each power of `MAX_RUNS` in the number of runs: 64 runs are some 4 GB.
    Raises OSError if the folder for temporary files, which is that of TMPDIR, is full.

    >>> list(sort_lines([b"b\n", b"a\n", b"b\n"]))
    [b'a\n', b'b\n']
    """
    # Runs of the same level are of about the same size, so that no line is merged more often than it must be.
    levels: list[list[BinaryIO]] = []
    try:
        run: list[bytes] = []
        held = 0
        for line in lines:
            run.append(line)
            held += len(line) + _LINE_OVERHEAD_BYTES
            if held >= run_bytes:
                run.sort()
                _add_run(levels, 0, _spill_run(run))
                run, held = [], 0
        run.sort()
        last = None
        for line in heapq.merge(run, *chain(*levels)):
            if line != last:
                yield line
            last = line
    finally:
        for file in chain(*levels):
            file.close()


def _add_run(levels: list[list[BinaryIO]], level: int, run: BinaryIO) -> None:
    """Add a run to a level; if that has enough, they become one of the level above."""
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
    """Write a sorted run to a file without a name, which the system removes whatever happens to us."""
    file = tempfile.TemporaryFile(prefix="unlost-sort-")  # noqa: SIM115  closed by whoever merges
    try:
        file.writelines(run)
        file.seek(0)
    except OSError as error:
        with suppress(OSError):  # it would like to write the rest
            file.close()
        # A full disk is no use to anybody who does not know which.
        raise OSError(error.errno, error.strerror, tempfile.gettempdir()) from error
    return file
