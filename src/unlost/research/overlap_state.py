"""State file of an overlap survey: pages, listings, fetched captures, live pages. A survey can be resumed."""

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

STATE_VERSION = 1
LISTING_OUTCOMES = ("hit", "miss", "excluded")
"""Final outcomes of a query for a page. Any other outcome is a failure; the next run queries the page again."""
FETCH_OUTCOMES = ("copy", "absent", "http-4xx", "http-5xx", "malformed", "redirect", "excluded", "archive-error")
"""Final outcomes of fetching a capture; all but the first are misses.

Any other outcome is a transient failure; the next run fetches the capture again.
"""
VISIT_OUTCOMES = ("answered", "absent", "forbidden")
"""Final outcomes of visiting a live page."""
LIVENESS_OUTCOMES = ("answered", "absent", "silent")
"""Outcomes that show whether a page is live. A silent page counts as not live, but the next run visits it again."""
_BATCH_ROWS = 200  # pages per database query
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


class TimeMapSummary:
    """Summary of the captures that an archive lists for a page.

    Attributes:
        mementos: Number of captures.
        good: Captures that are neither errors nor redirects. Captures without a status in the listing count as good.
        years: Captures by year, 4 digits.
        first: Date of the first capture, 14 digits.
        last: Date of the last capture, 14 digits.
        last_good: Last good capture.
        is_cut: Whether the listing is truncated.
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
        """Add a capture."""
        date = capture.datetime
        self.mementos += 1
        self.years[date[:4]] += 1
        self.first = date if self.first is None else min(self.first, date)
        self.last = date if self.last is None else max(self.last, date)
        if capture.status is None or 200 <= capture.status < _REDIRECT:
            self.good += 1
            if self.last_good is None or date > self.last_good.datetime:
                self.last_good = capture


# ruff: noqa: S608  statements are built from constants only


class OverlapPage(NamedTuple):
    """A page of the survey. `number` is its position in the list, from 1."""

    number: int
    key: str
    uri: str


@dataclass(frozen=True, slots=True)
class ArchiveListing:
    """The stored listing of a page by an archive.

    Attributes:
        number: Number of the page.
        good: Captures that are neither errors nor redirects.
        cut: Whether the listing is truncated.
    """

    number: int
    archive: str
    outcome: str
    mementos: int
    good: int
    cut: bool
    first: str | None
    last: str | None


class OverlapState(ProgressFile):
    """SQLite state of one survey, a `ProgressFile`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "measurement", STATE_VERSION, _STATEMENTS)
        # There are many small transactions. WAL avoids waiting for the disk, and a killed process loses none of them.
        self._connection.execute("PRAGMA journal_mode = WAL")

    def begin(
        self,
        plan: Callable[[], Mapping[str, object]],
        pages: Iterable[tuple[str, bytes]],
        seed: int,
        sample: int | None = None,
    ) -> None:
        """Store the pages to survey: all of them, or a random sample.

        Args:
            plan: As in `SampleState.begin`.
            pages: Keys and URLs. The first page with a key is used.
            seed: Seed of the random order.
            sample: Sample size; None for all pages.
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
        """Number of pages."""
        return int(self._connection.execute("SELECT count(*) FROM page").fetchone()[0])

    def register_archive(self, archive: str, url: str) -> None:
        """Store the URL of an archive.

        Raises:
            UsageError: Another URL is stored for this archive.
        """
        name = f"archive {archive}"
        stored = self._fact(name)
        if stored is None:
            with self._transaction() as data:
                data.execute("INSERT INTO fact VALUES (?, ?)", (name, url))
        elif stored != url:
            raise UsageError(
                f"{self._path}: under the name {archive} another archive was asked, {stored[:100]}: give the same "
                "registry as before, or --restart to ask everything anew"
            )

    # ---------------------------------------------------------------- pending work

    def unanswered(self, archive: str) -> Iterator[OverlapPage]:
        """Yield the pages without a final listing of an archive, each once. Listings may be recorded meanwhile."""
        condition = f"outcome IN {LISTING_OUTCOMES}"
        yield from self._pages(
            f"NOT EXISTS (SELECT 1 FROM answer WHERE page = number AND archive = ? AND {condition})", archive
        )

    def count_unanswered(self, archive: str) -> int:
        """Return the number of pages without a final listing of an archive."""
        answered = self._connection.execute(
            f"SELECT count(*) FROM answer WHERE archive = ? AND outcome IN {LISTING_OUTCOMES}",
            (archive,),
        )
        return self.size - int(answered.fetchone()[0])

    def unfetched(self, archive: str, most: int) -> list[tuple[OverlapPage, Capture]]:
        """Return the captures still to be fetched among the first `most` archived pages, in random order."""
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
        """Yield the sampled pages of all archives whose live version has not been visited."""
        samples = " UNION ".join(
            "SELECT * FROM (SELECT page FROM answer JOIN page ON page = number WHERE archive = ? AND outcome = 'hit' "
            "AND capture IS NOT NULL ORDER BY rank, number LIMIT ?)"
            for _ in archives
        )
        values = [value for archive in archives for value in (archive, most)]
        yield from self._pages(
            f"number IN ({samples}) AND NOT EXISTS (SELECT 1 FROM live WHERE page = number AND outcome IN "
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

    # ---------------------------------------------------------------- recording

    def record_listing(self, page: OverlapPage, archive: str, outcome: str, summary: TimeMapSummary) -> None:
        """Store the listing of a page by an archive."""
        capture = None if summary.last_good is None else json.dumps(asdict(summary.last_good))
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
                    capture,
                ),
            )
            data.execute("DELETE FROM year WHERE page = ? AND archive = ?", (page.number, archive))
            rows = ((page.number, archive, year, count) for year, count in summary.years.items())
            data.executemany("INSERT INTO year VALUES (?, ?, ?, ?)", rows)

    def record_fetch(self, page: OverlapPage, archive: str, outcome: str, snapshot: PageObservation | None) -> None:
        """Store the result of fetching a capture."""
        values = _snapshot_to_row(snapshot)
        placeholders = ", ".join("?" * (3 + len(values)))
        with self._transaction() as data:
            data.execute(
                f"INSERT OR REPLACE INTO copy VALUES ({placeholders})", (page.number, archive, outcome, *values)
            )

    def record_visit(self, page: OverlapPage, outcome: str, snapshot: PageObservation | None) -> None:
        """Store the result of visiting a live page."""
        values = _snapshot_to_row(snapshot)
        placeholders = ", ".join("?" * (2 + len(values)))
        with self._transaction() as data:
            data.execute(f"INSERT OR REPLACE INTO live VALUES ({placeholders})", (page.number, outcome, *values))

    # ---------------------------------------------------------------- results

    def listings_by_page(self) -> Iterator[tuple[OverlapPage, list[ArchiveListing]]]:
        """Yield each page with its listings, including failures, in list order."""
        rows = iter(
            self._connection.execute(
                "SELECT page, archive, outcome, mementos, good, cut, first, last FROM answer ORDER BY page, archive"
            )
        )
        row = next(rows, None)
        for number, key, uri in self._connection.execute(
            "SELECT number, key, CAST(uri AS BLOB) FROM page ORDER BY number"
        ):
            listings = []
            while row is not None and row[0] <= number:
                if row[0] == number:
                    listings.append(ArchiveListing(*row))
                row = next(rows, None)
            yield _page_from_row(number, key, uri), listings

    def mementos_by_year(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield archive, year, number of pages with mementos of the year, and number of mementos."""
        yield from self._connection.execute(
            "SELECT year.archive, year, count(*), sum(year.mementos) FROM year GROUP BY 1, 2 ORDER BY 2, 1"
        )

    def pages_by_year(self, archives: Sequence[str]) -> dict[str, int]:
        """Return the number of pages with mementos of each year in any of these archives."""
        placeholders = ", ".join("?" * len(archives))
        rows = self._connection.execute(
            f"SELECT year, count(DISTINCT page) FROM year WHERE archive IN ({placeholders}) GROUP BY 1 ORDER BY 1",
            tuple(archives),
        )
        return dict(rows.fetchall())

    def fetched_captures(self, archive: str, most: int) -> Iterator[tuple[int, str, PageObservation | None]]:
        """Yield page number, outcome and snapshot for the first `most` pages of an archive's sample."""
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
        """Return outcome and snapshot of a live page; None if it was not visited."""
        row = self._connection.execute("SELECT * FROM live WHERE page = ?", (number,)).fetchone()
        return None if row is None else (row[1], _snapshot_from_row(row[2:]))

    def count_postponed(self) -> int:
        """Return the number of live pages to visit later, because their sites asked to wait."""
        final = {*VISIT_OUTCOMES, *LIVENESS_OUTCOMES}
        rows = self._connection.execute("SELECT outcome, count(*) FROM live GROUP BY outcome")
        return sum(int(count) for outcome, count in rows if outcome not in final)

    def has_live(self) -> bool:
        """Return whether any live page was visited."""
        return self._connection.execute("SELECT 1 FROM live LIMIT 1").fetchone() is not None


def random_rank(seed: int, key: str) -> bytes:
    """Return the sort key of a page in a reproducible random order.

    A hash of seed and key: nothing has to be stored, a resumed survey draws the same pages, and a larger sample
    contains the smaller ones.
    """
    return sha256(f"{seed} {key}".encode("utf-8", "surrogatepass")).digest()[:8]


def _page_from_row(number: int, key: str, uri: bytes) -> OverlapPage:
    return OverlapPage(number, key, uri.decode("utf-8", "surrogateescape"))


def _snapshot_to_row(snapshot: PageObservation | None) -> tuple[object, ...]:
    empty = (None,) * len(PageObservation.__dataclass_fields__)
    return (
        empty if snapshot is None else tuple(getattr(snapshot, name) for name in PageObservation.__dataclass_fields__)
    )


def _snapshot_from_row(values: Sequence[object]) -> PageObservation | None:
    return None if values[3] is None else PageObservation(*values)  # type: ignore[arg-type]  # written by `_snapshot_to_row`
