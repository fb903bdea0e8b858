"""Statistics of access logs: hits, misses and errors by archive, missing pages, archived versus requested pages."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from json import dumps
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, get_args

from unlost import _core
from unlost.errors import UriError
from unlost.logs.access import read_access_log
from unlost.logs.upstream import is_memgator_log, read_memgator_log, read_upstream_log
from unlost.mementomap.profile_builder import ProfileHeader, build_profiles
from unlost.mementomap.readers import ProgressCallback
from unlost.problems import Problems, require_rereadable
from unlost.report.charts import STYLE, ChartAxis, bar_chart
from unlost.report.format import ReportTable
from unlost.report.html_templates import make_template_environment
from unlost.research.table_export import NumberFormat, table_to_csv, table_to_json, write_text_files
from unlost.text_lines import read_lines
from unlost.uri import DEFAULT_RULES, key

LogKind = Literal["access", "upstream", "memgator"]
LOG_KINDS: tuple[LogKind, ...] = get_args(LogKind)
"""Common or combined log format of an archive's web server; the upstream log of unlost; MemGator's log."""
MAX_TRACKED_PAGES = 1 << 16
"""Number of pages tracked to find the most requested missing pages; see `AccessStats.missing_error`."""
_MAX_ARCHIVES = 10_000  # further names are counted as "…", which bounds the memory for a hostile log
_MAX_NAME_LENGTH = 200  # of an archive name
_MAX_URL_LENGTH = 2_000  # longer URLs are truncated; bounds the memory for a hostile log
_DETECTION_LINES = 100
_NOT_FOUND = (404, 410)

MAGNITUDES = ("Zero", "Ones", "Tens", "Hundreds", "Thousands", "Ten thousands", "More")
"""Orders of magnitude of memento and request counts: 0, 1 to 9, 10 to 99 and so on."""
_BATCH_REQUESTS = 10_000
AccessMatrix = tuple[tuple[int, ...], ...]
"""Number of URI-Rs by magnitude of mementos (rows) and of requests (columns). The first cell is always 0."""

_MAX_MISSING_PAGES = 1_000  # in reports


@dataclass(slots=True)
class ArchiveOutcomes:
    """Request outcomes of an archive. `sleeps` counts how often MemGator made it dormant after errors."""

    hits: int = 0
    misses: int = 0
    errors: int = 0
    sleeps: int = 0

    @property
    def requests(self) -> int:
        """Number of requests."""
        return self.hits + self.misses + self.errors


@dataclass(slots=True)
class AccessStats:
    """Statistics of one or more logs.

    Attributes:
        archives: Outcomes by archive name.
        request_count: Page requests, including those for which the log does not name the archive.
        cached_count: Responses from a cache; not counted anywhere else.
        missing: Sketch of the most requested missing pages.
        pages: Sketch of the number of different pages.
    """

    archives: dict[str, ArchiveOutcomes] = field(default_factory=dict)
    request_count: int = 0
    cached_count: int = 0
    missing: "_core.FrequentTexts" = field(default_factory=lambda: _core.FrequentTexts(MAX_TRACKED_PAGES))
    pages: "_core.DistinctTexts" = field(default_factory=_core.DistinctTexts)

    @property
    def total(self) -> ArchiveOutcomes:
        """Outcomes of all archives together."""
        outcomes = list(self.archives.values())
        return ArchiveOutcomes(
            sum(a.hits for a in outcomes), sum(a.misses for a in outcomes), sum(a.errors for a in outcomes),
            sum(a.sleeps for a in outcomes),
        )  # fmt: skip

    @property
    def missing_error(self) -> int:
        """Upper bound of the undercount of a missing page. Pages with at most this many misses may be absent."""
        return self.missing.error

    def for_archive(self, archive: str) -> ArchiveOutcomes:
        """Return the outcomes of an archive, creating them if needed."""
        archive = archive[:_MAX_NAME_LENGTH]
        if archive not in self.archives and len(self.archives) >= _MAX_ARCHIVES:
            archive = "…"
        return self.archives.setdefault(archive, ArchiveOutcomes())


def detect_access_log_kind(path: str | PathLike[str]) -> LogKind:
    """Detect the kind of a log from its first lines.

    Raises:
        InputError: The log cannot be read, or can be read only once (a pipe).
    """
    require_rereadable(path)
    for line in islice(read_lines(path, Problems()), _DETECTION_LINES):
        text = line.text.strip()
        if is_memgator_log(text):
            return "memgator"
        if text.startswith(b"{"):
            return "upstream"
        if text:
            return "access"
    return "access"


def collect_access_stats(
    logs: Sequence[str | PathLike[str]],
    problems: Problems,
    *,
    kind: LogKind | None = None,
    on_request: Callable[[str], object] | None = None,
    wrap_urls: Callable[[Iterator[str]], Iterable[str]] = iter,
) -> AccessStats:
    """Read logs and return their statistics.

    Args:
        logs: Log files.
        problems: Collects the lines that cannot be parsed.
        kind: Kind of all logs; None to detect each.
        on_request: Called with the URL of each page request.
        wrap_urls: Wraps the iterator over the URLs of each log, such as for a progress bar.

    Raises:
        InputError: A log cannot be read.
    """
    accesses = AccessStats()
    for log in logs:
        for uri in wrap_urls(_read_log(log, kind or detect_access_log_kind(log), accesses, problems)):
            accesses.request_count += 1
            accesses.pages.add(uri)
            if on_request is not None:
                on_request(uri)
    return accesses


def _read_log(log: str | PathLike[str], kind: LogKind, accesses: AccessStats, problems: Problems) -> Iterator[str]:
    """Count the outcomes in a log and yield the URLs of page requests."""
    name = fspath(log)
    if kind == "memgator":
        for event in read_memgator_log(name, problems):
            if event.event == "asked":
                yield event.name
            else:
                _count_outcome(accesses.for_archive(event.name), event.event)
    elif kind == "upstream":
        for response in read_upstream_log(name, problems):
            if response.from_cache:
                accesses.cached_count += 1
                continue
            outcome = response.outcome if response.outcome in ("hit", "miss") else "error"
            _count_outcome(accesses.for_archive(response.archive), outcome)
            if outcome == "miss":
                accesses.missing.add(response.uri[:_MAX_URL_LENGTH])
            yield response.uri
    else:
        for request in read_access_log(name, problems, is_archive=True):
            is_miss = request.status in _NOT_FOUND
            is_hit = request.status is not None and 200 <= request.status < 400
            _count_outcome(accesses.for_archive(Path(name).name), "hit" if is_hit else "miss" if is_miss else "error")
            if is_miss:
                accesses.missing.add(request.uri[:_MAX_URL_LENGTH])
            yield request.uri


def _count_outcome(outcomes: ArchiveOutcomes, outcome: str) -> None:
    match outcome:
        case "hit":
            outcomes.hits += 1
        case "miss":
            outcomes.misses += 1
        case "sleep":
            outcomes.sleeps += 1
        case _:
            outcomes.errors += 1


def magnitude_of(number: int) -> int:
    """Return the index of a number's order of magnitude in `MAGNITUDES`.

    >>> [magnitude_of(number) for number in (0, 1, 9, 10, 99, 100, 10**9)]
    [0, 1, 1, 2, 2, 3, 6]
    """
    return min(len(str(number)), len(MAGNITUDES) - 1) if number else 0


class RequestCounter:
    """Counts requests by URI-R in an SQLite file, so that memory does not limit the number of URI-Rs."""

    def __init__(self, file: Path, rules: str = DEFAULT_RULES) -> None:
        self._rules = rules
        self._batch: list[tuple[str]] = []
        # The file is temporary and private to this process, so durability is not needed.
        self._database = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._database.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
            "CREATE TABLE asked (key TEXT PRIMARY KEY, times INTEGER, held INTEGER DEFAULT 0) WITHOUT ROWID;"
        )

    def add(self, uri: str) -> None:
        """Count a request. URLs without a valid key are ignored."""
        try:
            self._batch.append((key(uri, self._rules),))
        except UriError:
            return
        if len(self._batch) >= _BATCH_REQUESTS:
            self._flush()

    def _flush(self) -> None:
        self._database.execute("BEGIN")
        self._database.executemany(
            "INSERT INTO asked (key, times) VALUES (?, 1) ON CONFLICT DO UPDATE SET times = times + 1", self._batch
        )
        self._database.execute("COMMIT")
        self._batch.clear()

    def cross_tabulate(self, held: Iterator[tuple[str, int]]) -> AccessMatrix:
        """Return the matrix of requests and mementos.

        Args:
            held: Keys of archived URI-Rs, each once, with the number of mementos.
        """
        self._flush()
        rows = [[0] * len(MAGNITUDES) for _ in MAGNITUDES]
        self._database.execute("BEGIN")
        for name, mementos in held:
            matches = self._database.execute(
                "UPDATE asked SET held = 1 WHERE key = ? RETURNING times", (name,)
            ).fetchall()
            rows[magnitude_of(mementos)][magnitude_of(matches[0][0] if matches else 0)] += 1
        self._database.execute("COMMIT")
        for times, count in self._database.execute("SELECT times, count(*) FROM asked WHERE held = 0 GROUP BY times"):
            rows[0][magnitude_of(times)] += count
        return tuple(tuple(row) for row in rows)

    def close(self) -> None:
        """Close the database."""
        self._database.close()


@contextmanager
def open_request_counter(rules: str = DEFAULT_RULES) -> Iterator[RequestCounter]:
    """Yield a request counter in a temporary file."""
    with (
        TemporaryDirectory(prefix="unlost-") as folder,
        closing(RequestCounter(Path(folder, "requests"), rules)) as requests,
    ):
        yield requests


def tabulate_holdings(
    indexes: Sequence[str | PathLike[str]],
    problems: Problems,
    tabulate: Callable[[Iterator[tuple[str, int]]], AccessMatrix],
    on_progress: ProgressCallback | None = None,
) -> AccessMatrix:
    """Pass the URI-Rs of indexes with their memento counts, each once, to `tabulate` and return its result.

    Raises:
        InputError: An index cannot be read.
    """
    with TemporaryDirectory(prefix="unlost-") as folder:
        profile = Path(folder, "uris.cdxj")
        build_profiles(indexes, {"URIR": profile}, ProfileHeader("URIR"), problems, on_progress=on_progress)
        return tabulate(_read_profile(profile))


def _read_profile(profile: Path) -> Iterator[tuple[str, int]]:
    for line in read_lines(profile, Problems()):
        if line.text[:1] in (b"@", b"!"):
            continue
        name, _, rest = line.text.partition(b" ")
        yield name.decode("utf-8", "surrogateescape"), _parse_frequency(rest)


def _parse_frequency(rest: bytes) -> int:
    digits = rest.partition(b'"frequency":')[2].strip()
    end = next((at for at, byte in enumerate(digits) if not 48 <= byte <= 57), len(digits))
    return int(digits[:end] or b"0")


def access_tables(
    accesses: AccessStats, matrix: AccessMatrix | None = None, *, machine_readable: bool = False
) -> dict[str, ReportTable]:
    """Return the non-empty tables by file name.

    Args:
        accesses: Statistics to show.
        matrix: Archived versus requested URI-Rs, if known.
        machine_readable: Include all rows and write plain numbers.
    """
    show = NumberFormat(machine_readable=machine_readable)
    tables = {"archives": _archives_table(accesses, show), "missing": _missing_table(accesses, show)}
    if matrix is not None:
        tables["matrix"] = _matrix_table(matrix, show)
    return {name: table for name, table in tables.items() if table.rows}


def _archives_table(accesses: AccessStats, show: NumberFormat) -> ReportTable:
    order = sorted(accesses.archives.items(), key=lambda item: (-_hit_rate(item[1]), item[0]))
    named = [*order, ("All", accesses.total)] if order else []
    rows = [
        (
            name, show.number(outcomes.requests),
            *(show.percent(part, outcomes.requests) for part in _outcome_counts(outcomes)),
            show.number(outcomes.sleeps),
        )
        for name, outcomes in named
    ]  # fmt: skip
    note = "Hit: a memento was found. Miss: the archive has none. Sleep: number of pauses after errors."
    return ReportTable(
        "Requests and responses", ("archive", "requests", "hit %", "miss %", "error %", "sleep"), rows, note
    )


def _outcome_counts(outcomes: ArchiveOutcomes) -> tuple[int, int, int]:
    return outcomes.hits, outcomes.misses, outcomes.errors


def _hit_rate(outcomes: ArchiveOutcomes) -> float:
    return outcomes.hits / outcomes.requests if outcomes.requests else 0.0


def _missing_table(accesses: AccessStats, show: NumberFormat) -> ReportTable:
    rows = [(uri, show.number(least)) for uri, least, _ in accesses.missing.first(_MAX_MISSING_PAGES)]
    error = accesses.missing_error
    note = f"Lower bounds; each may be at most {error:,} higher." if error else "Exact numbers."
    return ReportTable("Most requested missing pages", ("URI-R", "misses"), show.limit_rows(rows), note)


def _matrix_table(matrix: AccessMatrix, show: NumberFormat) -> ReportTable:
    rows = [
        (name, *(show.number(cell) for cell in row)) for name, row in zip(MAGNITUDES, matrix, strict=True) if any(row)
    ]
    note = (
        "URI-Rs by number of mementos (rows) and of requests (columns): 1 to 9, 10 to 99 and so on. First row: "
        "requested but not archived. First column: archived but never requested."
    )
    return ReportTable("Mementos and requests", ("mementos", *MAGNITUDES), rows, note)


def access_stats_to_json(accesses: AccessStats, matrix: AccessMatrix | None = None) -> dict[str, object]:
    """Return the JSON document."""
    total = accesses.total
    different, low, high = accesses.pages.estimate()
    return {
        "requests": total.requests,
        "hits": total.hits,
        "misses": total.misses,
        "errors": total.errors,
        "from_cache": accesses.cached_count,
        "asked": accesses.request_count,
        "different_pages": {"about": different, "from": low, "to": high},
        "archives": {
            name: {"requests": each.requests, "hits": each.hits, "misses": each.misses, "errors": each.errors,
                   "sleeps": each.sleeps}
            for name, each in sorted(accesses.archives.items())
        },
        "missing_error": accesses.missing_error,
        "missing": [
            {"uri": uri, "at_least": least, "at_most": most}
            for uri, least, most in accesses.missing.first(_MAX_MISSING_PAGES)
        ],
        "matrix": matrix,
        "tables": {name: table_to_json(each) for name, each in access_tables(accesses, matrix,
        machine_readable=True).items()},
    }  # fmt: skip


def render_access_page(accesses: AccessStats, matrix: AccessMatrix | None, name: str) -> str:
    """Return the report as a self-contained HTML page.

    Args:
        accesses: Statistics to show.
        matrix: Archived versus requested URI-Rs, if known.
        name: Title of the logs.
    """
    rates = sorted(accesses.archives.items(), key=lambda item: (-_hit_rate(item[1]), item[0]))[:14]
    chart = bar_chart(
        "Hits", [(archive[:12], 100 * _hit_rate(outcomes)) for archive, outcomes in rates], ChartAxis("hits, %")
    )
    return (
        make_template_environment("unlost.research")
        .get_template("accesses.html")
        .render(
            name=name,
            total=accesses.total,
            asked=accesses.request_count,
            pages=accesses.pages.estimate()[0],
            chart=chart,
            tables=list(access_tables(accesses, matrix).values()),
            style=STYLE,
        )
    )


def write_access_report(accesses: AccessStats, matrix: AccessMatrix | None, folder: Path, name: str) -> list[Path]:
    """Write `accesses.json`, a CSV file for each table and `index.html`; return the paths.

    Raises:
        OSError: A file could not be written.
    """
    documents = {"accesses.json": dumps(access_stats_to_json(accesses, matrix), ensure_ascii=False, indent=1) + "\n"}
    documents |= {
        f"{each}.csv": table_to_csv(table)
        for each, table in access_tables(accesses, matrix, machine_readable=True).items()
    }
    documents["index.html"] = render_access_page(accesses, matrix, name)
    return write_text_files(folder, documents)
