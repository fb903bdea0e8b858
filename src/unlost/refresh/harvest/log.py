"""The log of harvests: a line for each visit, skips among them, as `unlost refresh learn` reads it."""

import json
import os
from pathlib import Path
from typing import Self

from unlost.errors import InputError
from unlost.refresh.harvest.state import HarvestState
from unlost.refresh.visit import Visit, serialize_visit

LOG_NAME = "visits.ndjson"


class VisitLog:
    """The log in a folder. The state knows where it ends: what lies behind was written by somebody who was killed.

    Use it as a context manager. Raises OSError, and InputError for a link in its place.
    """

    def __init__(self, folder: Path, state: HarvestState) -> None:
        path = folder / LOG_NAME
        if path.is_symlink():
            raise InputError(f"{path}: a link, which is not followed: remove it")
        self._state = state
        self._file = path.open("r+b" if path.exists() else "w+b")
        self._file.seek(0, os.SEEK_END)
        size = self._file.tell()
        end = min(size, state.log_end())
        if end < state.log_end():  # a power cut took lines: what is left of the last one goes, too
            end = _last_line_end(self._file.fileno(), end)
        self._file.truncate(end)
        self._file.seek(end)
        self._end = end

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()

    def add(self, visit: Visit, method: str, outcome: str) -> None:
        """Write a visit, with how the page was asked for and what came of it; lasts when the state is committed."""
        line = serialize_visit(visit)
        told = json.dumps({"way": method, "outcome": outcome}, separators=(",", ":")).encode()
        self._file.write(line.removesuffix(b"}\n") + b"," + told.removeprefix(b"{") + b"\n")
        self._file.flush()
        self._end = self._file.tell()
        self._state.store_log_end(self._end)


def _last_line_end(file: int, end: int) -> int:
    """Return where the last whole line ends."""
    step = 1 << 16
    while end > 0:
        begin = max(0, end - step)
        found = os.pread(file, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0
