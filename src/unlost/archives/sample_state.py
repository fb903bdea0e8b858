"""The state of a sample: what was queried and what was found, in an SQLite file that survives kill -9."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from unlost.progress_file import ProgressFile, split_statements

VERSION = 1

ANSWERED_OUTCOMES = ("hit", "miss", "excluded")
"""Outcomes that are answers. Any other is a kind of failure: such a page is asked for again by the next run."""

UNKNOWN = "-"
"""What stands in a key field for what nobody tells, as `map build` writes a year that is none."""

_BATCH_PAGES = 200  # pages that are looked up at a time
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
    """A page of the sample. number: from 1, in the order of the list. key: with its query."""

    number: int
    key: str
    uri: str


class SearchTerm(NamedTuple):
    """A search. offset: of the results that have not been seen yet. pages: of results so far. last_page: a digest."""

    number: int
    term: str
    offset: int
    pages: int
    last_page: str | None


@dataclass(frozen=True, slots=True)
class SampledMementos:
    """So many mementos of a page. datetime: 14 digits, or only a year. All but the number may be `UNKNOWN`."""

    datetime: str
    mime: str
    language: str
    mementos: int


@dataclass(frozen=True, slots=True)
class SampleOutcome:
    """What came of asking for a page.

    outcome: one of `ANSWERS`, or how it failed.
    time: when the answer was there, ISO 8601. first, last: dates of 14 digits.
    """

    outcome: str
    time: str
    duration_ms: float
    mementos: int | None = None
    first: str | None = None
    last: str | None = None


class SampleState(ProgressFile):
    """The state of one sample, as `ProgressFile` has it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "sample", VERSION, _STATEMENTS)

    # ---------------------------------------------------------------- what is asked

    def begin(
        self,
        plan: Callable[[], Mapping[str, object]],
        pages: Iterable[tuple[str, bytes]] = (),
        terms: Sequence[str] = (),
    ) -> None:
        """Keep what is to be asked for: all of it, or if this is interrupted nothing.

        plan: what must be the same when the sample is gone on with; it is asked for when the pages have been read.
        pages: keys and addresses; of those with one key, the first is asked for.
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
        """Return how many pages there are, of the first `limit`."""
        return int(
            self._connection.execute("SELECT count(*) FROM page WHERE number <= ?", (_max_number(limit),)).fetchone()[0]
        )

    def iter_unanswered(self, limit: int | None = None) -> Iterator[SampledPage]:
        """Yield the pages that were not answered yet, each once, while answers may be added."""
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
        """Keep what came of asking for a page."""
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
        """Return how many pages have which outcome; `""` for those that were not asked for yet."""
        rows = self._connection.execute(
            "SELECT coalesce(outcome, ''), count(*) FROM page WHERE number <= ? GROUP BY 1 ORDER BY 1",
            (_max_number(limit),),
        )
        return dict(rows.fetchall())

    def iter_outcomes(self, limit: int | None = None) -> Iterator[tuple[SampledPage, SampleOutcome]]:
        """Yield the pages that were asked for, with what came of it, in their order."""
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
        """How many searches were sent, over all runs."""
        return int(self._fact("requests") or 0)

    def retry_failed(self) -> None:
        """Let searches that failed have their turn again."""
        with self._transaction() as data:
            data.execute("UPDATE term SET failed = NULL")

    def next_term(self) -> SearchTerm | None:
        """Return the search whose turn it is: those that were given first, then the words that were found."""
        row = self._connection.execute(
            "SELECT number, term, offset, pages, last_page FROM term WHERE done = 0 AND failed IS NULL "
            "ORDER BY followed, rank LIMIT 1"
        ).fetchone()
        return None if row is None else SearchTerm(*row)

    def count_terms(self) -> tuple[int, int, dict[str, int]]:
        """Return how many searches are done, how many wait, and how many failed, by kind."""
        done, waiting = self._connection.execute(
            "SELECT total(done), total(done = 0 AND failed IS NULL) FROM term"
        ).fetchone()
        failed = self._connection.execute(
            "SELECT failed, count(*) FROM term WHERE failed IS NOT NULL GROUP BY 1 ORDER BY 1"
        )
        return int(done), int(waiting), dict(failed.fetchall())

    def record_search_failure(self, term: SearchTerm, kind: str) -> None:
        """Keep that a search failed, which was a request all the same."""
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
        """Keep a page of results.

        found: keys, addresses, and what of each; a memento that was found before is not counted again.
        offset, digest: where the next page begins, and what this one was like.
        words: that may be searched for, too, with the rank by which they get their turn.
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
        """Yield key, fields, mementos and pages of everything that is held, with the totals, in the order of bytes.

        fields: of `year`, `mime` and `language`. Keys have no query. Sorting is on the disk where it has to be.
        """
        columns = {"year": "substr(datetime, 1, 4)", "mime": "mime", "language": "language"}
        chosen = [columns[field] for field in fields]
        places = ", ".join(str(number) for number in range(1, len(chosen) + 2))

        def counted(key: str) -> str:
            selected = ", ".join([key, *chosen])
            return (
                f"SELECT {selected}, sum(held.mementos), count(DISTINCT page) FROM held JOIN page ON number = page "  # noqa: S608  names of our own
                f"WHERE number <= :limit AND outcome = 'hit' GROUP BY {places}"
            )

        whole = "substr(key, 1, instr(key || '?', '?') - 1)"
        query = f"{counted(quote_sql('*'))} UNION ALL {counted(whole)} ORDER BY {places}"
        for row in self._connection.execute(query, {"limit": _max_number(limit)}):
            yield tuple(str(value) for value in row)

    def count_mementos(self, limit: int | None = None) -> tuple[int, int]:
        """Return how many mementos of how many pages are known."""
        row = self._connection.execute(
            "SELECT total(held.mementos), count(DISTINCT page) FROM held JOIN page ON number = page WHERE number <= ?",
            (_max_number(limit),),
        ).fetchone()
        return int(row[0]), int(row[1])


def quote_sql(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def digest_lines(lines: Iterable[str]) -> str:
    """Return what tells one list from another."""
    whole = sha256()
    for line in lines:
        whole.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return whole.hexdigest()


def _max_number(limit: int | None) -> int:
    return 2**62 if limit is None else limit
