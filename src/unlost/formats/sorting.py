"""Sorting more lines than fit in memory: sorted runs in temporary files, then one merge."""

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO

RUN_BYTES = 64 << 20
"""How many bytes of lines are sorted at a time; Python needs about twice that for them."""


def sorted_lines(lines: Iterable[bytes], run_bytes: int = RUN_BYTES) -> Iterator[bytes]:
    r"""Yield lines, each with its end, in byte order, equal ones once. Memory is bounded by `run_bytes`.

    >>> list(sorted_lines([b"b\n", b"a\n", b"b\n"]))
    [b'a\n', b'b\n']
    """
    runs: list[BinaryIO] = []
    try:
        run: list[bytes] = []
        held = 0
        for line in lines:
            run.append(line)
            held += len(line)
            if held >= run_bytes:
                runs.append(_spilled(run))
                run, held = [], 0
        run.sort()
        last = None
        for line in heapq.merge(run, *runs):
            if line != last:
                yield line
            last = line
    finally:
        for file in runs:
            file.close()


def _spilled(run: list[bytes]) -> BinaryIO:
    """Write a run to a file without a name, which the system removes whatever happens to us."""
    file = tempfile.TemporaryFile(prefix="unlost-sort-")  # noqa: SIM115  closed by whoever merges
    run.sort()
    file.writelines(run)
    file.seek(0)
    return file
