"""Logs and archive files into a history: NDJSON, Parquet, WARC, whatever is given."""

import json
from collections.abc import Callable, Iterator
from itertools import islice
from os import PathLike, fspath
from pathlib import Path

from unlost._core import Inflated, VisitPairing, is_compressed
from unlost.errors import InputError
from unlost.formats.problems import Problem, Problems
from unlost.formats.textfile import lines_of
from unlost.formats.unread import refuse_pipe, unread
from unlost.refresh.history import History
from unlost.refresh.page_text import KnownTexts
from unlost.refresh.parquet_log import add_parquet
from unlost.refresh.visit import FIELDS, Row, row_of
from unlost.refresh.warc_log import warc_rows

KINDS = {
    "bad-json": "expected a JSON object",
    "bad-visit": "a value that the field cannot have",
}
"""The kinds of problems of a log beside those of its lines. Each loses its line."""

TOLD = ("way", "outcome")
"""Fields of the logs of harvests that are for people: how a page was asked for, and what came of it."""

_HEAD_BYTES = 64 << 10
_AT_ONCE = 4096


class Reading:
    """Reads logs, one after the other, and pairs all their visits.

    problems: what could not be read. unknown: fields of logs that are none of a visit, with how many lines or files
    have them; they are not looked at. texts: whether the texts of pages in archive files are compared, too.
    """

    def __init__(self, problems: Problems, *, texts: bool = True) -> None:
        self.problems = problems
        self.unknown: dict[str, int] = {}
        self._texts = KnownTexts() if texts else None
        self._pairing = VisitPairing()

    def read(self, path: str | PathLike[str], on_read: Callable[[int], object] | None = None) -> None:
        """Read one file. on_read: is told how many bytes of it have been read. Raises InputError, OSError."""
        kind = kind_of(path)
        if kind == "parquet":
            add_parquet(self._pairing, path, self.problems, self.unknown, on_read)
            return
        if kind == "warc":
            rows = warc_rows(path, self.problems, texts=self._texts, on_read=on_read)
        else:
            rows = self._lines(path, on_read)
        while batch := list(islice(rows, _AT_ONCE)):
            self._pairing.add_rows(batch)

    def finish(self) -> History:
        """Return the history of everything that was read. Raises OSError if the disk is full."""
        return History(self._pairing.finish())

    def _lines(self, path: str | PathLike[str], on_read: Callable[[int], object] | None) -> Iterator[Row]:
        known = {*FIELDS, *TOLD}
        for line in lines_of(path, self.problems, on_read=on_read):
            if not line.text.strip():
                continue
            try:
                values = json.loads(line.text)
                row = row_of(values)
            except (ValueError, RecursionError):
                self._lost("bad-json", path, line.number, line.offset, KINDS["bad-json"])
            except InputError as error:
                self._lost("bad-visit", path, line.number, line.offset, str(error))
            else:
                if not values.keys() <= known:
                    for name in values.keys() - known:
                        note_unknown(self.unknown, name)
                yield row

    def _lost(self, kind: str, path: str | PathLike[str], line: int, offset: int, message: str) -> None:
        self.problems.add(Problem(kind, fspath(path), line, offset, message))


def note_unknown(unknown: dict[str, int], name: str) -> None:
    """Count a field; of a log that has no end of them, not all are named."""
    most = 50
    shown = name[:40] if name[:40] in unknown or len(unknown) < most else "others"
    unknown[shown] = unknown.get(shown, 0) + 1


def kind_of(path: str | PathLike[str]) -> str:
    """Return what a file is by its first bytes, compressed or not: `parquet`, `warc` or `lines`.

    Raises InputError if it cannot be read, or only once.
    """
    refuse_pipe(path)
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise unread(path, error) from error
    if head.startswith(b"PAR1"):
        return "parquet"
    text = Inflated(head).read(64) if is_compressed(head[:4]) else head
    return "warc" if text.startswith((b"WARC/", b"filedesc:")) else "lines"
