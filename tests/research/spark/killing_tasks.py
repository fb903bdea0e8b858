"""Tasks that kill their executor."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unlost.research.spark import PartialRow, Split, SplitTask


def executor() -> int:
    """Return the process of the executor of this task: the Java ancestor."""
    process = os.getpid()
    while b"java" not in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0]:
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return process


@dataclass(frozen=True, slots=True)
class KillingTask:
    """Counts, and kills its executor in the middle: once if there is a mark, or always.

    Attributes:
        mark: A file that records the kill.
    """

    counting: SplitTask
    mark: Path | None

    def __call__(self, splits: Iterator[Split], task: int) -> Iterator[PartialRow]:
        """Yield the counts, unless the executor is killed first."""
        rows = self.counting(splits, task)
        yield next(rows)
        if self.mark is None or not self.mark.exists():
            if self.mark is not None:
                self.mark.touch()
            os.kill(executor(), signal.SIGKILL)
        yield from rows
