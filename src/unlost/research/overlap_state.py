"""The state file of an overlap survey: pages, listings by archive, fetched captures, live pages. Resumable."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from unlost.capture import Capture
from unlost.errors import UsageError
from unlost.progress_file import ProgressFile, split_statements
from unlost.research.page_snapshot import PageObservation

_REDIRECT = 300


class TimeMapSummary:
    """Counts captures.

    mementos: all of them. good: those that are neither errors nor redirects, as far as the list tells.
    years: all, by year, 4 digits. first, last: dates of 14 digits. last_good: the last that is good.
    is_cut: whether there are more than are listed.
    """

    __slots__ = ("first", "good", "is_cut", "last", "last_good", "mementos", "years")

    def __init__(self) -> None:
        self.mementos = 0
        self.good = 0
        self.years: Counter[str] = Counter()
        self.first: str | None = None
        self.last: str | None = None
        self.last_good: Capture | None = None
        self.is_cut = False

    def add(self, capture: Capture) -> None:
        """Count one."""
        moment = capture.datetime
        self.mementos += 1
        self.years[moment[:4]] += 1
        self.first = moment if self.first is None else min(self.first, moment)
        self.last = moment if self.last is None else max(self.last, moment)
        if capture.status is None or 200 <= capture.status < _REDIRECT:
            self.good += 1
            if self.last_good is None or moment > self.last_good.datetime:
                self.last_good = capture


# ruff: noqa: S608  no text of others is in any statement
STATE_VERSION = 1
LISTING_OUTCOMES = ("hit", "miss", "excluded")
"""What an archive says of a page. Any other outcome is a failure: such a page is asked for again by the next run."""
FETCH_OUTCOMES = ("copy", "absent", "http-4xx", "http-5xx", "malformed", "redirect", "excluded", "archive-error")
"""What came of fetching a copy, where that says something of the archive; all but the first are misses. Any other
outcome is a failure on the way: the copy is fetched again by the next run."""
VISIT_OUTCOMES = ("answered", "absent", "forbidden")
"""What came of looking at a live page, where that need not be done again."""
LIVENESS_OUTCOMES = ("answered", "absent", "silent")
"""What tells whether a page is live. One without an answer is not, as far as anybody can see, and looked at again."""
_BATCH_ROWS = 200  # pages that are looked up at a time
_SNAPSHOT_COLUMNS = """datetime TEXT, status INTEGER, mime TEXT, size INTEGER, truncated TEXT, modified TEXT,
    cache_control TEXT, noarchive TEXT, digest TEXT, text BLOB"""
_SCHEMA = f"""
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE page (number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, uri BLOB NOT NULL, rank BLOB NOT NULL);
CREATE TABLE answer (
    page INTEGER NOT NULL, archive TEXT NOT NULL, outcome TEXT NOT NULL, mementos INTEGER NOT NULL,
    good INTEGER NOT NULL, cut INTEGER NOT NULL, first TEXT, last TEXT, capture TEXT, PRIMARY KEY (page, archive)
) WITHOUT ROWID;
CREATE TABLE year (
    page INTEGER NOT NULL, archive TEXT NOT NULL, year TEXT NOT NULL, mementos INTEGER NOT NULL,
    PRIMARY KEY (page, archive, year)
) WITHOUT ROWID;
CREATE TABLE copy (
    page INTEGER NOT NULL, archive TEXT NOT NULL, outcome TEXT NOT NULL, {_SNAPSHOT_COLUMNS},
    PRIMARY KEY (page, archive)
);
CREATE TABLE live (page INTEGER PRIMARY KEY, outcome TEXT NOT NULL, {_SNAPSHOT_COLUMNS})
"""
_STATEMENTS = split_statements(_SCHEMA)


class OverlapPage(NamedTuple):
    """A page of the list. number: from 1, in its order."""

    number: int
    key: str
    uri: str


@dataclass(frozen=True, slots=True)
class ArchiveListing:
    """What an archive said of a page. number: of the page. good: mementos that are neither errors nor redirects."""

    number: int
    archive: str
    outcome: str
    mementos: int
    good: int
    cut: bool
    first: str | None
    last: str | None


class OverlapState(ProgressFile):
    """The state of one measurement, as `ProgressFile` has it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "measurement", STATE_VERSION, _STATEMENTS)
        # Many small answers: so they need not wait for the disk, and whoever is killed loses none.
        self._connection.execute("PRAGMA journal_mode = WAL")

    def begin(
        self,
        plan: Callable[[], Mapping[str, object]],
        pages: Iterable[tuple[str, bytes]],
        seed: int,
        sample: int | None = None,
    ) -> None:
        """Keep the pages to ask for: all of them, or `sample` of them at random by a seed.

        pages: keys and addresses; of those with one key, the first is asked for. plan: as in `SampleState.begin`.
        """
        with self._initialize(plan) as data:
            rows = ((key, uri, random_rank(seed, key)) for key, uri in pages)
            data.executemany("INSERT OR IGNORE INTO page (key, uri, rank) VALUES (?, ?, ?)", rows)
            if sample is not None:
                data.execute(
                    "DELETE FROM page WHERE number NOT IN (SELECT number FROM page ORDER BY rank, number LIMIT ?)",
                    (sample,),
                )

    @property
    def size(self) -> int:
        """How many pages there are."""
        return int(self._connection.execute("SELECT count(*) FROM page").fetchone()[0])

    def register_archive(self, archive: str, url: str) -> None:
        """Keep where an archive is asked. Raises UsageError if another one has been asked under its name."""
        name = f"archive {archive}"
        before = self._fact(name)
        if before is None:
            with self._transaction() as data:
                data.execute("INSERT INTO fact VALUES (?, ?)", (name, url))
        elif before != url:
            raise UsageError(
                f"{self._path}: under the name {archive} another archive was asked, {before[:100]}: give the same "
                "registry as before, or --restart to ask everything anew"
            )

    # ---------------------------------------------------------------- what is to be asked

    def unanswered(self, archive: str) -> Iterator[OverlapPage]:
        """Yield the pages that an archive has not answered yet, each once, while answers may be added."""
        answers = f"outcome IN {LISTING_OUTCOMES}"
        yield from self._pages(
            f"NOT EXISTS (SELECT 1 FROM answer WHERE page = number AND archive = ? AND {answers})", archive
        )

    def count_unanswered(self, archive: str) -> int:
        """Return how many those are."""
        answered = self._connection.execute(
            f"SELECT count(*) FROM answer WHERE archive = ? AND outcome IN {LISTING_OUTCOMES}",
            (archive,),
        )
        return self.size - int(answered.fetchone()[0])

    def unfetched(self, archive: str, most: int) -> list[tuple[OverlapPage, Capture]]:
        """Return of the first `most` pages that an archive holds, in an order at random, those not fetched yet."""
        rows = self._connection.execute(
            f"""
            SELECT number, key, uri, capture FROM (
                SELECT number, key, CAST(uri AS BLOB) AS uri, capture FROM page JOIN answer ON page = number
                WHERE archive = ?1 AND outcome = 'hit' AND capture IS NOT NULL ORDER BY rank, number LIMIT ?2
            ) WHERE NOT EXISTS (
                SELECT 1 FROM copy WHERE copy.page = number AND copy.archive = ?1 AND copy.outcome IN {FETCH_OUTCOMES}
            )
            """,
            (archive, most),
        )
        return [(_page_from_row(number, key, uri), self._parse_capture(text)) for number, key, uri, text in rows]

    def unvisited(self, archives: Sequence[str], most: int) -> Iterator[OverlapPage]:
        """Yield the pages whose live version is wanted and was not looked at: those of the samples of all archives."""
        wanted = " UNION ".join(
            "SELECT * FROM (SELECT page FROM answer JOIN page ON page = number WHERE archive = ? AND outcome = 'hit' "
            "AND capture IS NOT NULL ORDER BY rank, number LIMIT ?)"
            for _ in archives
        )
        values = [value for archive in archives for value in (archive, most)]
        yield from self._pages(
            f"number IN ({wanted}) AND NOT EXISTS (SELECT 1 FROM live WHERE page = number AND outcome IN "
            f"{VISIT_OUTCOMES})",
            *values,
        )

    def _pages(self, condition: str, *values: object) -> Iterator[OverlapPage]:
        last = 0
        while True:
            rows = self._connection.execute(
                f"SELECT number, key, CAST(uri AS BLOB) FROM page WHERE number > ? AND {condition} "
                "ORDER BY number LIMIT ?",
                (last, *values, _BATCH_ROWS),
            ).fetchall()
            if not rows:
                return
            yield from (_page_from_row(*row) for row in rows)
            last = rows[-1][0]

    def _parse_capture(self, text: object) -> Capture:
        try:
            values = json.loads(str(text))
            if values.get("revisit_of") is not None:
                values["revisit_of"] = tuple(values["revisit_of"])
            return Capture(**values)
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise self._foreign_file_error() from None

    # ---------------------------------------------------------------- what came

    def record_listing(self, page: OverlapPage, archive: str, outcome: str, summary: TimeMapSummary) -> None:
        """Keep what an archive said of a page."""
        shown = None if summary.last_good is None else json.dumps(asdict(summary.last_good))
        with self._transaction() as data:
            data.execute(
                "INSERT OR REPLACE INTO answer VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    page.number,
                    archive,
                    outcome,
                    summary.mementos,
                    summary.good,
                    summary.is_cut,
                    summary.first,
                    summary.last,
                    shown,
                ),
            )
            data.execute("DELETE FROM year WHERE page = ? AND archive = ?", (page.number, archive))
            rows = ((page.number, archive, year, count) for year, count in summary.years.items())
            data.executemany("INSERT INTO year VALUES (?, ?, ?, ?)", rows)

    def record_fetch(self, page: OverlapPage, archive: str, outcome: str, snapshot: PageObservation | None) -> None:
        """Keep what came of fetching a copy."""
        values = _snapshot_to_row(snapshot)
        marks = ", ".join("?" * (3 + len(values)))
        with self._transaction() as data:
            data.execute(f"INSERT OR REPLACE INTO copy VALUES ({marks})", (page.number, archive, outcome, *values))

    def record_visit(self, page: OverlapPage, outcome: str, snapshot: PageObservation | None) -> None:
        """Keep what the live web has of a page."""
        values = _snapshot_to_row(snapshot)
        marks = ", ".join("?" * (2 + len(values)))
        with self._transaction() as data:
            data.execute(f"INSERT OR REPLACE INTO live VALUES ({marks})", (page.number, outcome, *values))

    # ---------------------------------------------------------------- what is told

    def listings_by_page(self) -> Iterator[tuple[OverlapPage, list[ArchiveListing]]]:
        """Yield every page with what was said of it, failures too, in the order of the list."""
        rows = iter(
            self._connection.execute(
                "SELECT page, archive, outcome, mementos, good, cut, first, last FROM answer ORDER BY page, archive"
            )
        )
        row = next(rows, None)
        for number, key, uri in self._connection.execute(
            "SELECT number, key, CAST(uri AS BLOB) FROM page ORDER BY number"
        ):
            said = []
            while row is not None and row[0] <= number:
                if row[0] == number:
                    said.append(ArchiveListing(*row))
                row = next(rows, None)
            yield _page_from_row(number, key, uri), said

    def mementos_by_year(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield archive, year, how many pages have mementos of that year there, and how many mementos that are."""
        yield from self._connection.execute(
            "SELECT year.archive, year, count(*), sum(year.mementos) FROM year GROUP BY 1, 2 ORDER BY 2, 1"
        )

    def pages_by_year(self, archives: Sequence[str]) -> dict[str, int]:
        """Return how many pages have mementos of each year in any of these archives."""
        marks = ", ".join("?" * len(archives))
        rows = self._connection.execute(
            f"SELECT year, count(DISTINCT page) FROM year WHERE archive IN ({marks}) GROUP BY 1 ORDER BY 1",
            tuple(archives),
        )
        return dict(rows.fetchall())

    def fetched_captures(self, archive: str, most: int) -> Iterator[tuple[int, str, PageObservation | None]]:
        """Yield the number of the page, outcome, and what was seen, of the first `most` that were to be fetched."""
        rows = self._connection.execute(
            """
            SELECT copy.* FROM (
                SELECT number, rank FROM page JOIN answer ON page = number
                WHERE archive = ?1 AND outcome = 'hit' AND capture IS NOT NULL ORDER BY rank, number LIMIT ?2
            ) JOIN copy ON copy.page = number AND copy.archive = ?1 ORDER BY rank, number
            """,
            (archive, most),
        )
        for number, _, outcome, *values in rows:
            yield number, outcome, _snapshot_from_row(values)

    def live_snapshot(self, number: int) -> tuple[str, PageObservation | None] | None:
        """Return what the live web has of a page; None if nobody looked."""
        row = self._connection.execute("SELECT * FROM live WHERE page = ?", (number,)).fetchone()
        return None if row is None else (row[1], _snapshot_from_row(row[2:]))

    def count_postponed(self) -> int:
        """Return how many live pages are to be looked at another time, since their sites said so."""
        settled = {*VISIT_OUTCOMES, *LIVENESS_OUTCOMES}
        rows = self._connection.execute("SELECT outcome, count(*) FROM live GROUP BY outcome")
        return sum(int(count) for outcome, count in rows if outcome not in settled)

    def has_live(self) -> bool:
        """Return whether anybody looked at the live web."""
        return self._connection.execute("SELECT 1 FROM live LIMIT 1").fetchone() is not None


def random_rank(seed: int, key: str) -> bytes:
    """Return the place of a page in an order at random, which is the same for the same seed everywhere."""
    return sha256(f"{seed} {key}".encode("utf-8", "surrogatepass")).digest()[:8]


def _page_from_row(number: int, key: str, uri: bytes) -> OverlapPage:
    return OverlapPage(number, key, uri.decode("utf-8", "surrogateescape"))


def _snapshot_to_row(seen: PageObservation | None) -> tuple[object, ...]:
    empty = (None,) * len(PageObservation.__dataclass_fields__)
    return empty if seen is None else tuple(getattr(seen, name) for name in PageObservation.__dataclass_fields__)


def _snapshot_from_row(values: Sequence[object]) -> PageObservation | None:
    return None if values[3] is None else PageObservation(*values)  # type: ignore[arg-type]  # as `_row` wrote them
