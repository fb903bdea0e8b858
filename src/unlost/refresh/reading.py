"""Logs and archive files into a history: NDJSON, Parquet, WARC, whatever is given."""

import json
from collections.abc import Callable, Iterator
from itertools import islice
from os import PathLike, fspath
from pathlib import Path

from unlost._core import Inflated, VisitPairing, is_compressed
from unlost.errors import InputError
from unlost.formats.problems import Problem, Problems
from unlost.formats.textfile import read_source_lines
from unlost.formats.unread import require_rereadable, unreadable_error
from unlost.refresh.history import ChangeHistory
from unlost.refresh.page_text import TextDigestCache
from unlost.refresh.parquet_log import add_parquet_log
from unlost.refresh.visit import FIELDS, VisitRow, parse_visit_row
from unlost.refresh.warc_log import iter_warc_rows

LOG_PROBLEMS = {
    "bad-json": "expected a JSON object",
    "bad-visit": "a value that the field cannot have",
}
"""The kinds of problems of a log beside those of its lines. Each loses its line."""

HARVEST_LOG_FIELDS = ("way", "outcome")
"""Fields of the logs of harvests that are for people: how a page was asked for, and what came of it."""

_HEAD_BYTES = 64 << 10
_BATCH_SIZE = 4096


class VisitLogReader:
    """Reads logs, one after the other, and pairs all their visits.

    problems: what could not be read. unknown: fields of logs that are none of a visit, with how many lines or files
    have them; they are not looked at. texts: whether the texts of pages in archive files are compared, too.
    """

    def __init__(self, problems: Problems, *, texts: bool = True) -> None:
        self.problems = problems
        self.unknown_fields: dict[str, int] = {}
        self._texts = TextDigestCache() if texts else None
        self._pairing = VisitPairing()

    def read(self, path: str | PathLike[str], on_read: Callable[[int], object] | None = None) -> None:
        """Read one file. on_read: is told how many bytes of it have been read. Raises InputError, OSError."""
        kind = detect_log_kind(path)
        if kind == "parquet":
            add_parquet_log(self._pairing, path, self.problems, self.unknown_fields, on_read)
            return
        if kind == "warc":
            rows = iter_warc_rows(path, self.problems, texts=self._texts, on_read=on_read)
        else:
            rows = self._iter_lines(path, on_read)
        while batch := list(islice(rows, _BATCH_SIZE)):
            self._pairing.add_rows(batch)

    def build_history(self) -> ChangeHistory:
        """Return the history of everything that was read. Raises OSError if the disk is full."""
        return ChangeHistory(self._pairing.finish())

    def _iter_lines(self, path: str | PathLike[str], on_read: Callable[[int], object] | None) -> Iterator[VisitRow]:
        known = {*FIELDS, *HARVEST_LOG_FIELDS}
        for line in read_source_lines(path, self.problems, on_read=on_read):
            if not line.text.strip():
                continue
            try:
                values = json.loads(line.text)
                row = parse_visit_row(values)
            except (ValueError, RecursionError):
                self._report_lost_line("bad-json", path, line.number, line.offset, LOG_PROBLEMS["bad-json"])
            except InputError as error:
                self._report_lost_line("bad-visit", path, line.number, line.offset, str(error))
            else:
                if not values.keys() <= known:
                    for name in values.keys() - known:
                        count_unknown_field(self.unknown_fields, name)
                yield row

    def _report_lost_line(self, kind: str, path: str | PathLike[str], line: int, offset: int, message: str) -> None:
        self.problems.add(Problem(kind, fspath(path), line, offset, message))


def count_unknown_field(counts: dict[str, int], name: str) -> None:
    """Count a field; of a log that has no end of them, not all are named."""
    most = 50
    shown = name[:40] if name[:40] in counts or len(counts) < most else "others"
    counts[shown] = counts.get(shown, 0) + 1


def detect_log_kind(path: str | PathLike[str]) -> str:
    """Return what a file is by its first bytes, compressed or not: `parquet`, `warc` or `lines`.

    Raises InputError if it cannot be read, or only once.
    """
    require_rereadable(path)
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise unreadable_error(path, error) from error
    if head.startswith(b"PAR1"):
        return "parquet"
    text = Inflated(head).read(64) if is_compressed(head[:4]) else head
    return "warc" if text.startswith((b"WARC/", b"filedesc:")) else "lines"
