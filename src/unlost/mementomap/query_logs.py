"""Reads query logs: URL lists, access logs and logs of upstream responses.

`count_queries` counts what was requested; `MissLogReader` says which requests hit and which missed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from unlost import _core
from unlost._core import Progress
from unlost.errors import InputError, UriError, UsageError
from unlost.index.detection import detect_query_format
from unlost.index.ukvs import UkvsHeader, format_header
from unlost.logs.access import read_access_log
from unlost.logs.upstream import read_upstream_log
from unlost.mementomap.readers import InputReport, QueryKind, RowSink, count_inputs, run_with_progress
from unlost.problems import Problem, Problems, require_rereadable
from unlost.text_lines import MAX_LINE_BYTES, read_urls
from unlost.uri import DEFAULT_RULES, key_many

if TYPE_CHECKING:
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
    from unlost.logs.upstream import read_upstream_log  # noqa: PLC0415  most logs are others

    rows = (
        (b"", answer.uri.encode(), re.sub(r"\D", "", answer.time)[:14].encode(), b"", b"")
        for answer in read_upstream_log(name, problems)
    )
    while batch := list(islice(rows, _BATCH)):
        yield batch


MissLogKind = Literal["answers", "log", "urls"]
MISS_LOG_KINDS: tuple[MissLogKind, ...] = get_args(MissLogKind)
"""Upstream answers, one JSON object a line; an access log; pages that were missed, one a line."""
_NOT_FOUND = 404


class LoggedRequest(NamedTuple):
    """A page that was asked for. key: its normal key, without query. has_query: it had one. held: it was found."""

    key: str
    has_query: bool
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MissLogOptions:
    """How logs are read.

    rules: by which addresses become keys.
    archive: whose answers count, in a log of upstream answers; needed if there are several.
    since: misses before that day are too old to be believed; None for all. Lists have no days.
    kind: what the files are; told by their contents if not given.
    column: from 1, of a list with tabs.
    host: whose access log it is, where its lines do not tell.
    replay: the access log is an archive's own: the page is the one whose copy was asked for.
    """

    rules: str = DEFAULT_RULES
    archive: str | None = None
    since: date | None = None
    kind: MissLogKind | None = None
    column: int | None = None
    host: str | None = None
    replay: bool = False


@dataclass(slots=True)
class MissLogReader:
    """Files that tell what was missed; iterating reads them, in bounded memory.

    read: answers, hits or addresses so far.
    unsaid: those that say nothing about holdings: failures, other statuses and methods, answers of other archives.
    old: misses that are too old to be believed.
    problems: lines that cannot be read, by kind; addresses that are none, too.
    """

    files: tuple[str | PathLike[str], ...]
    options: MissLogOptions
    problems: Problems
    read_count: int = 0
    inconclusive_count: int = 0
    outdated_count: int = 0

    def __iter__(self) -> Iterator[LoggedRequest]:
        """Yield what the files tell, in their order. Raises InputError for one that cannot be read at all."""
        for file in self.files:
            name = fspath(file)
            told = self._outcomes(name, self.options.kind or _detect_miss_log_kind(name))
            while batch := list(islice(told, _BATCH)):
                keys = key_many((uri for uri, _ in batch), self.options.rules)
                for (uri, held), key in zip(batch, keys, strict=True):
                    if isinstance(key, UriError):
                        self.problems.add(Problem(key.kind, name, None, 0, f"{key}: {ascii(uri)[:60]}"))
                    else:
                        page, mark, _ = key.partition("?")
                        yield LoggedRequest(page, bool(mark), held)

    def _outcomes(self, name: str, kind: MissLogKind) -> Iterator[tuple[str | bytes, bool]]:
        """Yield addresses, and whether they were held."""
        for uri, day, held in self._records(name, kind):
            self.read_count += 1
            if held is None:
                self.inconclusive_count += 1
            elif not held and day and self.options.since and day < self.options.since.isoformat():
                self.outdated_count += 1
            else:
                yield uri, held

    def _records(self, name: str, kind: MissLogKind) -> Iterator[tuple[str | bytes, str, bool | None]]:
        """Yield addresses, the days on which they were asked for, if known, and whether they were held, if said."""
        if kind == "urls":
            return self._listed_misses(name)
        return self._upstream_records(name) if kind == "answers" else self._access_log_records(name)

    def _upstream_records(self, name: str) -> Iterator[tuple[str | bytes, str, bool | None]]:
        wanted = self.options.archive
        for answer in read_upstream_log(name, self.problems):
            if self.options.archive is None and wanted not in (None, answer.archive):
                raise UsageError(
                    f"{name}: answers of several archives, {wanted[:40]!a} and {answer.archive[:40]!a}: "
                    "say by --archive which one the map is of"
                )
            wanted = wanted or answer.archive
            # A failure is no answer: only an archive that says so holds nothing.
            said = {"hit": True, "miss": False}.get(answer.outcome) if answer.archive == wanted else None
            yield answer.uri, answer.time[:10], said

    def _access_log_records(self, name: str) -> Iterator[tuple[str | bytes, str, bool | None]]:
        options = self.options
        for hit in read_access_log(name, self.problems, host=options.host, is_archive=options.replay):
            said = None
            if hit.method in ("GET", "HEAD") and hit.status is not None:
                said = False if hit.status == _NOT_FOUND else True if 200 <= hit.status < 400 else None
            yield hit.uri, f"{hit.datetime[:4]}-{hit.datetime[4:6]}-{hit.datetime[6:8]}", said

    def _listed_misses(self, name: str) -> Iterator[tuple[str | bytes, str, bool | None]]:
        for line in read_urls(name, self.problems, column=self.options.column):
            yield line.text, "", False


def _detect_miss_log_kind(name: str) -> MissLogKind:
    """Detect what a file is from its first lines. Raises InputError if it cannot be read."""
    require_rereadable(name)
    kind = detect_query_format(name)
    return "answers" if kind == "json" else kind
