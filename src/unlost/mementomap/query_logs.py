"""Reads query logs: URL lists, access logs and logs of upstream responses.

`count_queries` counts requested pages, for `budget`; `MissLogReader` yields hits and misses, for `exclude`.
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


_BATCH_ROWS = 10_000

MissLogKind = Literal["answers", "log", "urls"]
MISS_LOG_KINDS: tuple[MissLogKind, ...] = get_args(MissLogKind)
"""Upstream responses as JSON Lines; an access log; a list of missed URLs, one per line."""
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLogOptions:
    """Format of query logs, where it cannot be detected.

    Attributes:
        kind: URL list, access log, or log of upstream responses (docs/formats.md).
        column: Column of the URLs in a tab-separated file, from 1.
        host: Host of an access log whose lines do not name it.
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
    """Write a map of the requested pages with their numbers of requests, and return the counts of lines.

    Every line with a URL counts as a request, whatever the response was. Raises InputError for a file that cannot be
    read or has no request.
    """
    builder = _core.MapBuilder(rules=rules, line_limit=MAX_LINE_BYTES)
    report = add_queries(files, builder, rules, options)
    Path(output).touch()  # the Rust core writes to an existing file
    run_with_progress(lambda progress: builder.write(output, format_header(_header_with_rules(rules)), None, progress))
    return report


def add_queries(
    files: Sequence[str | PathLike[str]], sink: RowSink, rules: str, options: QueryLogOptions | None = None
) -> InputReport:
    """Count requests with a sink, and return the counts of lines. Raises as `count_queries`.

    Args:
        files: The query logs.
        sink: Counts the requests.
        rules: Rule set of the sink.
        options: Format of the logs.
    """
    format_options = options or QueryLogOptions()
    report = InputReport()
    header = _header_with_rules(rules)

    def work(progress: Progress) -> None:
        for file in files:
            counted_before = report.counted
            kind = format_options.kind or detect_query_kind(file)
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
                    column=format_options.column,
                    host=format_options.host,
                    expected_header=header,
                    allow_partial=True,  # fewer queries make the map no less correct
                )
            if report.counted == counted_before:
                raise InputError(f"{fspath(file)}: no question in it: expected addresses, or lines of a log")

    run_with_progress(work)
    return report


def _header_with_rules(rules: str) -> UkvsHeader:
    return UkvsHeader(meta={"rules": rules})


def detect_query_kind(file: str | PathLike[str]) -> QueryKind:
    """Detect the kind of a query log from its first lines. Raises InputError if it is a pipe or cannot be read."""
    require_rereadable(file)
    kind = detect_query_format(file)
    return "upstream" if kind == "json" else kind


def _upstream_rows(name: str, problems: Problems) -> "Iterator[list[RowColumns]]":
    rows = (
        (b"", entry.uri.encode(), re.sub(r"\D", "", entry.time)[:14].encode(), b"", b"")
        for entry in read_upstream_log(name, problems)
    )
    while batch := list(islice(rows, _BATCH_ROWS)):
        yield batch


class LoggedRequest(NamedTuple):
    """A requested page.

    Attributes:
        key: Normalized key, without the query string.
        has_query: Whether the URL had a query string.
        held: Whether the page was found.
    """

    key: str
    has_query: bool
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MissLogOptions:
    """How logs of misses are read.

    Attributes:
        rules: Rule set of the keys.
        archive: ID of the archive whose responses are read from a log of upstream responses; required if the log has
            several archives.
        since: Ignore misses before that day; None to read all. URL lists have no dates.
        kind: Kind of the files; detected if None.
        column: Column of the URLs in a tab-separated list, from 1.
        host: Host of an access log whose lines do not name it.
        replay: The access log is that of the archive, so the page is the URI-R of the requested memento.
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
    """Iterates over logs of misses in bounded memory.

    Attributes:
        files: The logs.
        options: How they are read.
        problems: Unreadable lines and invalid URLs, by kind.
        read_count: Number of records read so far.
        inconclusive_count: Records that say nothing about holdings: failures, other statuses and methods, other
            archives.
        outdated_count: Misses before `options.since`.
    """

    files: tuple[str | PathLike[str], ...]
    options: MissLogOptions
    problems: Problems
    read_count: int = 0
    inconclusive_count: int = 0
    outdated_count: int = 0

    def __iter__(self) -> Iterator[LoggedRequest]:
        """Yield the requests of all files, in order. Raises InputError for a file that cannot be read."""
        for file in self.files:
            name = fspath(file)
            outcomes = self._outcomes(name, self.options.kind or _detect_miss_log_kind(name))
            while batch := list(islice(outcomes, _BATCH_ROWS)):
                keys = key_many((uri for uri, _ in batch), self.options.rules)
                for (uri, is_held), key in zip(batch, keys, strict=True):
                    if isinstance(key, UriError):
                        self.problems.add(Problem(key.kind, name, None, 0, f"{key}: {ascii(uri)[:60]}"))
                    else:
                        page, separator, _ = key.partition("?")
                        yield LoggedRequest(page, bool(separator), is_held)

    def _outcomes(self, name: str, kind: MissLogKind) -> Iterator[tuple[str | bytes, bool]]:
        """Yield URLs, and whether they were held."""
        for uri, day, is_held in self._records(name, kind):
            self.read_count += 1
            if is_held is None:
                self.inconclusive_count += 1
            elif not is_held and day and self.options.since and day < self.options.since.isoformat():
                self.outdated_count += 1
            else:
                yield uri, is_held

    def _records(self, name: str, kind: MissLogKind) -> Iterator[tuple[str | bytes, str, bool | None]]:
        """Yield URLs, the days of the requests (empty if unknown), and whether they were held (None if unknown)."""
        if kind == "urls":
            return self._listed_misses(name)
        return self._upstream_records(name) if kind == "answers" else self._access_log_records(name)

    def _upstream_records(self, name: str) -> Iterator[tuple[str | bytes, str, bool | None]]:
        archive = self.options.archive
        for entry in read_upstream_log(name, self.problems):
            if self.options.archive is None and archive not in (None, entry.archive):
                raise UsageError(
                    f"{name}: answers of several archives, {archive[:40]!a} and {entry.archive[:40]!a}: "
                    "say by --archive which one the map is of"
                )
            archive = archive or entry.archive
            # Only hits and misses say something about holdings; failures do not.
            is_held = {"hit": True, "miss": False}.get(entry.outcome) if entry.archive == archive else None
            yield entry.uri, entry.time[:10], is_held

    def _access_log_records(self, name: str) -> Iterator[tuple[str | bytes, str, bool | None]]:
        options = self.options
        for request in read_access_log(name, self.problems, host=options.host, is_archive=options.replay):
            is_held = None
            if request.method in ("GET", "HEAD") and request.status is not None:
                is_held = False if request.status == _NOT_FOUND else True if 200 <= request.status < 400 else None
            yield request.uri, f"{request.datetime[:4]}-{request.datetime[4:6]}-{request.datetime[6:8]}", is_held

    def _listed_misses(self, name: str) -> Iterator[tuple[str | bytes, str, bool | None]]:
        for line in read_urls(name, self.problems, column=self.options.column):
            yield line.text, "", False


def _detect_miss_log_kind(name: str) -> MissLogKind:
    """Detect the kind of a log from its first lines. Raises InputError if it cannot be read."""
    require_rereadable(name)
    kind = detect_query_format(name)
    return "answers" if kind == "json" else kind
