"""The state of a sample: what was queried and what was found, in an SQLite file that survives SIGKILL.

Each response is one transaction. The map is a query of this file, so its fields can be chosen later, and the order of
responses has no effect.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from unlost.progress_file import ProgressFile, split_statements

VERSION = 1

ANSWERED_OUTCOMES = ("hit", "miss", "excluded")
"""Outcomes that are responses. Any other outcome is a kind of failure, and the next run queries the page again."""

UNKNOWN = "-"
"""Value of a key field that the archive does not report, as `map build` writes an invalid year."""

_BATCH_PAGES = 200  # pages read at once
_SCHEMA = """
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE page (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, uri BLOB NOT NULL, outcome TEXT, time TEXT,
    duration_ms REAL, mementos INTEGER, first TEXT, last TEXT
);
CREATE TABLE held (
    page INTEGER NOT NULL, datetime TEXT NOT NULL, mime TEXT NOT NULL, language TEXT NOT NULL,
    mementos INTEGER NOT NULL, PRIMARY KEY (page, datetime, mime, language)
) WITHOUT ROWID;
CREATE TABLE term (
    number INTEGER PRIMARY KEY, term TEXT NOT NULL UNIQUE, followed INTEGER NOT NULL, rank BLOB NOT NULL,
    offset INTEGER NOT NULL DEFAULT 0, pages INTEGER NOT NULL DEFAULT 0, last_page TEXT, failed TEXT,
    done INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX term_turn ON term (done, followed, rank);
"""
_STATEMENTS = split_statements(_SCHEMA)


class SampledPage(NamedTuple):
    """A page of the sample. `number` begins at 1, in the order of the list; `key` includes the query."""

    number: int
    key: str
    uri: str


class SearchTerm(NamedTuple):
    """A search.

    Attributes:
        number: Its number.
        term: The search term.
        offset: Offset of the next result.
        pages: Number of result pages so far.
        last_page: Digest of the last result page.
    """

    number: int
    term: str
    offset: int
    pages: int
    last_page: str | None


@dataclass(frozen=True, slots=True)
class SampledMementos:
    """A number of mementos of a page. `datetime` has 14 digits, or is a year; all but the number may be `UNKNOWN`."""

    datetime: str
    mime: str
    language: str
    mementos: int


@dataclass(frozen=True, slots=True)
class SampleOutcome:
    """The outcome of querying a page.

    Attributes:
        outcome: One of `ANSWERED_OUTCOMES`, or a kind of failure.
        time: When the response was received, ISO 8601.
        duration_ms: Duration of the query in milliseconds.
        mementos: Number of mementos; None if unknown.
        first: Date of the earliest memento, 14 digits.
        last: Date of the latest memento, 14 digits.
    """

    outcome: str
    time: str
    duration_ms: float
    mementos: int | None = None
    first: str | None = None
    last: str | None = None


class SampleState(ProgressFile):
    """The state of one sample, in a `ProgressFile`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "sample", VERSION, _STATEMENTS)

    # ---------------------------------------------------------------- the plan

    def begin(
        self,
        plan: Callable[[], Mapping[str, object]],
        pages: Iterable[tuple[str, bytes]] = (),
        terms: Sequence[str] = (),
    ) -> None:
        """Store the plan and what to query, in one transaction.

        Args:
            plan: Returns what must not change when the sample is resumed. It is called after the pages were read.
            pages: Keys and URLs. Of several URLs with one key, the first is queried.
            terms: Search terms.
        """
        with self._initialize(plan) as data:
            data.executemany("INSERT OR IGNORE INTO page (key, uri) VALUES (?, ?)", pages)
            data.executemany(
                "INSERT OR IGNORE INTO term (term, followed, rank) VALUES (?, 0, ?)",
                ((term, number.to_bytes(8)) for number, term in enumerate(terms)),
            )
            data.execute("INSERT INTO fact VALUES ('requests', '0')")

    # ---------------------------------------------------------------- pages of a list

    def count_pages(self, limit: int | None = None) -> int:
        """Return the number of pages, at most `limit`."""
        return int(
            self._connection.execute("SELECT count(*) FROM page WHERE number <= ?", (_max_number(limit),)).fetchone()[0]
        )

    def iter_unanswered(self, limit: int | None = None) -> Iterator[SampledPage]:
        """Yield the pages without a response, each once. Outcomes may be recorded meanwhile."""
        last = 0
        while True:
            rows = self._connection.execute(
                "SELECT number, key, CAST(uri AS BLOB) FROM page WHERE number > ? AND number <= ? "
                "AND (outcome IS NULL OR outcome NOT IN (?, ?, ?)) ORDER BY number LIMIT ?",
                (last, _max_number(limit), *ANSWERED_OUTCOMES, _BATCH_PAGES),
            ).fetchall()
            if not rows:
                return
            for number, key, uri in rows:
                yield SampledPage(number, key, uri.decode("utf-8", "surrogateescape"))
            last = rows[-1][0]

    def record_outcome(self, page: SampledPage, outcome: SampleOutcome, held: Iterable[SampledMementos] = ()) -> None:
        """Store the outcome of a page, and its mementos."""
        with self._transaction() as data:
            data.execute(
                "UPDATE page SET outcome = ?, time = ?, duration_ms = ?, mementos = ?, first = ?, last = ? "
                "WHERE number = ?",
                (
                    outcome.outcome, outcome.time, outcome.duration_ms, outcome.mementos, outcome.first, outcome.last,
                    page.number,
                ),
            )  # fmt: skip
            data.execute("DELETE FROM held WHERE page = ?", (page.number,))
            rows = ((page.number, each.datetime, each.mime, each.language, each.mementos) for each in held)
            data.executemany("INSERT INTO held VALUES (?, ?, ?, ?, ?)", rows)

    def count_outcomes(self, limit: int | None = None) -> dict[str, int]:
        """Return the number of pages for each outcome; `""` is for pages that were not queried."""
        rows = self._connection.execute(
            "SELECT coalesce(outcome, ''), count(*) FROM page WHERE number <= ? GROUP BY 1 ORDER BY 1",
            (_max_number(limit),),
        )
        return dict(rows.fetchall())

    def iter_outcomes(self, limit: int | None = None) -> Iterator[tuple[SampledPage, SampleOutcome]]:
        """Yield the queried pages with their outcomes, in the order of the list."""
        rows = self._connection.execute(
            "SELECT number, key, CAST(uri AS BLOB), outcome, time, duration_ms, mementos, first, last FROM page "
            "WHERE number <= ? AND outcome IS NOT NULL ORDER BY number",
            (_max_number(limit),),
        )
        for number, key, uri, *outcome in rows:
            yield SampledPage(number, key, uri.decode("utf-8", "surrogateescape")), SampleOutcome(*outcome)

    # ---------------------------------------------------------------- searches

    @property
    def requests(self) -> int:
        """Number of searches sent, over all runs."""
        return int(self._fact("requests") or 0)

    def retry_failed(self) -> None:
        """Enqueue failed searches again."""
        with self._transaction() as data:
            data.execute("UPDATE term SET failed = NULL")

    def next_term(self) -> SearchTerm | None:
        """Return the next search: given terms first, then words that were found in results."""
        row = self._connection.execute(
            "SELECT number, term, offset, pages, last_page FROM term WHERE done = 0 AND failed IS NULL "
            "ORDER BY followed, rank LIMIT 1"
        ).fetchone()
        return None if row is None else SearchTerm(*row)

    def count_terms(self) -> tuple[int, int, dict[str, int]]:
        """Return the number of finished searches, of pending ones, and of failed ones by kind."""
        done, waiting = self._connection.execute(
            "SELECT total(done), total(done = 0 AND failed IS NULL) FROM term"
        ).fetchone()
        failed = self._connection.execute(
            "SELECT failed, count(*) FROM term WHERE failed IS NOT NULL GROUP BY 1 ORDER BY 1"
        )
        return int(done), int(waiting), dict(failed.fetchall())

    def record_search_failure(self, term: SearchTerm, kind: str) -> None:
        """Store a failed search, which counts as a request, too."""
        with self._transaction() as data:
            data.execute("UPDATE term SET failed = ? WHERE number = ?", (kind, term.number))
            self._count_request()

    def record_search(
        self,
        term: SearchTerm,
        found: Iterable[tuple[str, bytes, SampledMementos]],
        *,
        offset: int,
        digest: str,
        done: bool,
        words: Iterable[tuple[str, bytes]] = (),
    ) -> None:
        """Store a page of results.

        Args:
            term: The search.
            found: Keys, URLs and mementos. A memento that was found before is not counted again.
            offset: Offset of the next page.
            digest: Digest of this page.
            done: Whether this is the last page.
            words: Further search terms, each with its rank, by which they are ordered.
        """
        with self._transaction() as data:
            for key, uri, held in found:
                data.execute("INSERT OR IGNORE INTO page (key, uri, outcome) VALUES (?, ?, 'hit')", (key, uri))
                data.execute(
                    "INSERT INTO held SELECT number, ?2, ?3, ?4, ?5 FROM page WHERE key = ?1 AND NOT EXISTS "
                    "(SELECT 1 FROM held WHERE page = number AND datetime = ?2)",
                    (key, held.datetime, held.mime, held.language, held.mementos),
                )
            data.execute(
                "UPDATE term SET offset = ?, pages = pages + 1, last_page = ?, done = ? WHERE number = ?",
                (offset, digest, done, term.number),
            )
            data.executemany("INSERT OR IGNORE INTO term (term, followed, rank) VALUES (?, 1, ?)", words)
            self._count_request()

    def _count_request(self) -> None:
        self._connection.execute("UPDATE fact SET value = value + 1 WHERE name = 'requests'")

    # ---------------------------------------------------------------- the map

    def iter_map_rows(self, fields: Sequence[str], limit: int | None = None) -> Iterator[tuple[str, ...]]:
        """Yield key, fields, number of mementos and number of pages, with the totals, in byte order.

        `fields` are among `year`, `mime` and `language`. Keys have no query. SQLite sorts on disk if necessary.
        """
        columns = {"year": "substr(datetime, 1, 4)", "mime": "mime", "language": "language"}
        selected_columns = [columns[field] for field in fields]
        positions = ", ".join(str(number) for number in range(1, len(selected_columns) + 2))

        def grouped_query(key: str) -> str:
            selected = ", ".join([key, *selected_columns])
            return (
                f"SELECT {selected}, sum(held.mementos), count(DISTINCT page) FROM held JOIN page ON number = page "  # noqa: S608  constants of this module
                f"WHERE number <= :limit AND outcome = 'hit' GROUP BY {positions}"
            )

        path_key = "substr(key, 1, instr(key || '?', '?') - 1)"
        query = f"{grouped_query(quote_sql('*'))} UNION ALL {grouped_query(path_key)} ORDER BY {positions}"
        for row in self._connection.execute(query, {"limit": _max_number(limit)}):
            yield tuple(str(value) for value in row)

    def count_mementos(self, limit: int | None = None) -> tuple[int, int]:
        """Return the number of mementos found, and of their pages."""
        row = self._connection.execute(
            "SELECT total(held.mementos), count(DISTINCT page) FROM held JOIN page ON number = page WHERE number <= ?",
            (_max_number(limit),),
        ).fetchone()
        return int(row[0]), int(row[1])


def quote_sql(text: str) -> str:
    """Return a text as SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def digest_lines(lines: Iterable[str]) -> str:
    """Return a digest of a list."""
    digest = sha256()
    for line in lines:
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def _max_number(limit: int | None) -> int:
    return 2**62 if limit is None else limit
