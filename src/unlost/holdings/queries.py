"""What was asked for: lists of addresses, access logs, logs of upstream answers, counted by key."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from unlost import _core
from unlost._core import Progress
from unlost.errors import InputError
from unlost.formats.detection import detect_query_format
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.problems import Problems
from unlost.formats.ukvs import UkvsHeader, format_header
from unlost.formats.unread import require_rereadable
from unlost.holdings.inputs import RowSink, count_inputs
from unlost.holdings.query_kinds import QueryKind
from unlost.holdings.report import InputReport
from unlost.holdings.work import run_with_progress

if TYPE_CHECKING:
    # Names of types, which the extension itself does not have.
    from unlost._core import RowColumns

_BATCH = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLogOptions:
    """What files of questions are, where looking at them does not tell.

    kind: a list of addresses, an access log, or a log of upstream answers (docs/formats.md).
    column: from 1, the column of a table with tabs that holds the addresses of a list.
    host: whose access log it is, where the log's lines do not tell.
    """

    kind: QueryKind | None = None
    column: int | None = None
    host: str | None = None


def count_queries(
    files: Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    rules: str,
    options: QueryLogOptions | None = None,
) -> InputReport:
    """Write a map of what was asked, with how often, and return what became of the lines.

    Every line that names a page is a question, whatever was answered. Raises InputError for a file that cannot be read
    at all, or without any question.
    """
    counter = _core.MapBuilder(rules=rules, line_limit=MAX_LINE_BYTES)
    report = add_queries(files, counter, rules, options)
    Path(output).touch()  # the core writes to a file that is there
    run_with_progress(lambda progress: counter.write(output, format_header(_header_with_rules(rules)), None, progress))
    return report


def add_queries(
    files: Sequence[str | PathLike[str]], sink: RowSink, rules: str, options: QueryLogOptions | None = None
) -> InputReport:
    """Count what was asked with whatever counts, and return what became of the lines. Raises as `count_queries` does.

    rules: those of the counter.
    """
    how = options or QueryLogOptions()
    report = InputReport()
    header = _header_with_rules(rules)

    def work(progress: Progress) -> None:
        for file in files:
            before = report.counted
            kind = how.kind or detect_query_kind(file)
            if kind == "upstream":
                for batch in _upstream_rows(fspath(file), report.problems):
                    report.add_line_stats(sink.add_rows(batch), fspath(file))
            else:
                count_inputs(
                    [file],
                    sink,
                    report,
                    progress,
                    kind=kind,
                    column=how.column,
                    host=how.host,
                    expected_header=header,
                    allow_partial=True,  # fewer queries make the map no less correct
                )
            if report.counted == before:
                raise InputError(f"{fspath(file)}: no question in it: expected addresses, or lines of a log")

    run_with_progress(work)
    return report


def _header_with_rules(rules: str) -> UkvsHeader:
    return UkvsHeader(meta={"rules": rules})


def detect_query_kind(file: str | PathLike[str]) -> QueryKind:
    """Tell what a file of questions is by its first lines. Raises InputError if it cannot be read, or only once."""
    require_rereadable(file)
    kind = detect_query_format(file)
    return "upstream" if kind == "json" else kind


def _upstream_rows(name: str, problems: Problems) -> "Iterator[list[RowColumns]]":
    from unlost.formats.upstream import read_upstream_log  # noqa: PLC0415  most logs are others

    rows = (
        (b"", answer.uri.encode(), re.sub(r"\D", "", answer.time)[:14].encode(), b"", b"")
        for answer in read_upstream_log(name, problems)
    )
    while batch := list(islice(rows, _BATCH)):
        yield batch
