"""What archives, and the live web, answered about the pages of a list, in a file that survives whoever writes it."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from unlost.archives.sampling.progress_file import ProgressFile, statements
from unlost.errors import UsageError
from unlost.formats.capture import Capture
from unlost.measure.overlap.copies import Seen
from unlost.measure.overlap.tally import Tally

# ruff: noqa: S608  no text of others is in any statement

VERSION = 1

ANSWERS = ("hit", "miss", "excluded")
"""What an archive says of a page. Any other outcome is a failure: such a page is asked for again by the next run."""

FETCHED = ("copy", "absent", "http-4xx", "http-5xx", "malformed", "redirect", "excluded", "archive-error")
"""What came of fetching a copy, where that says something of the archive; all but the first are misses. Any other
outcome is a failure on the way: the copy is fetched again by the next run."""

VISITED = ("answered", "absent", "forbidden")
"""What came of looking at a live page, where that need not be done again."""

LIVE_OR_NOT = ("answered", "absent", "silent")
"""What tells whether a page is live. One without an answer is not, as far as anybody can see, and looked at again."""

_AT_ONCE = 200  # pages that are looked up at a time
_SEEN = """datetime TEXT, status INTEGER, mime TEXT, size INTEGER, truncated TEXT, modified TEXT,
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
    page INTEGER NOT NULL, archive TEXT NOT NULL, outcome TEXT NOT NULL, {_SEEN}, PRIMARY KEY (page, archive)
);
CREATE TABLE live (page INTEGER PRIMARY KEY, outcome TEXT NOT NULL, {_SEEN})
"""
_STATEMENTS = statements(_SCHEMA)


class Page(NamedTuple):
    """A page of the list. number: from 1, in its order."""

    number: int
    key: str
    uri: str


@dataclass(frozen=True, slots=True)
class Answer:
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
        super().__init__(path, "measurement", VERSION, _STATEMENTS)
        # Many small answers: so they need not wait for the disk, and whoever is killed loses none.
        self._data.execute("PRAGMA journal_mode = WAL")

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
        with self._beginning(plan) as data:
            rows = ((key, uri, rank(seed, key)) for key, uri in pages)
            data.executemany("INSERT OR IGNORE INTO page (key, uri, rank) VALUES (?, ?, ?)", rows)
            if sample is not None:
                data.execute(
                    "DELETE FROM page WHERE number NOT IN (SELECT number FROM page ORDER BY rank, number LIMIT ?)",
                    (sample,),
                )

    @property
    def size(self) -> int:
        """How many pages there are."""
        return int(self._data.execute("SELECT count(*) FROM page").fetchone()[0])

    def know(self, archive: str, address: str) -> None:
        """Keep where an archive is asked. Raises UsageError if another one has been asked under its name."""
        name = f"archive {archive}"
        before = self._fact(name)
        if before is None:
            with self._change() as data:
                data.execute("INSERT INTO fact VALUES (?, ?)", (name, address))
        elif before != address:
            raise UsageError(
                f"{self._path}: under the name {archive} another archive was asked, {before[:100]}: give the same "
                "registry as before, or --restart to ask everything anew"
            )

    # ---------------------------------------------------------------- what is to be asked

    def unanswered(self, archive: str) -> Iterator[Page]:
        """Yield the pages that an archive has not answered yet, each once, while answers may be added."""
        answers = f"outcome IN {ANSWERS}"
        yield from self._pages(
            f"NOT EXISTS (SELECT 1 FROM answer WHERE page = number AND archive = ? AND {answers})", archive
        )

    def unasked(self, archive: str) -> int:
        """Return how many those are."""
        answered = self._data.execute(
            f"SELECT count(*) FROM answer WHERE archive = ? AND outcome IN {ANSWERS}",
            (archive,),
        )
        return self.size - int(answered.fetchone()[0])

    def unfetched(self, archive: str, most: int) -> list[tuple[Page, Capture]]:
        """Return of the first `most` pages that an archive holds, in an order at random, those not fetched yet."""
        rows = self._data.execute(
            f"""
            SELECT number, key, uri, capture FROM (
                SELECT number, key, CAST(uri AS BLOB) AS uri, capture FROM page JOIN answer ON page = number
                WHERE archive = ?1 AND outcome = 'hit' AND capture IS NOT NULL ORDER BY rank, number LIMIT ?2
            ) WHERE NOT EXISTS (
                SELECT 1 FROM copy WHERE copy.page = number AND copy.archive = ?1 AND copy.outcome IN {FETCHED}
            )
            """,
            (archive, most),
        )
        return [(_page(number, key, uri), self._capture(text)) for number, key, uri, text in rows]

    def unvisited(self, archives: Sequence[str], most: int) -> Iterator[Page]:
        """Yield the pages whose live version is wanted and was not looked at: those of the samples of all archives."""
        wanted = " UNION ".join(
            "SELECT * FROM (SELECT page FROM answer JOIN page ON page = number WHERE archive = ? AND outcome = 'hit' "
            "AND capture IS NOT NULL ORDER BY rank, number LIMIT ?)"
            for _ in archives
        )
        values = [value for archive in archives for value in (archive, most)]
        yield from self._pages(
            f"number IN ({wanted}) AND NOT EXISTS (SELECT 1 FROM live WHERE page = number AND outcome IN {VISITED})",
            *values,
        )

    def _pages(self, condition: str, *values: object) -> Iterator[Page]:
        last = 0
        while True:
            rows = self._data.execute(
                f"SELECT number, key, CAST(uri AS BLOB) FROM page WHERE number > ? AND {condition} "
                "ORDER BY number LIMIT ?",
                (last, *values, _AT_ONCE),
            ).fetchall()
            if not rows:
                return
            yield from (_page(*row) for row in rows)
            last = rows[-1][0]

    def _capture(self, text: object) -> Capture:
        try:
            values = json.loads(str(text))
            if values.get("revisit_of") is not None:
                values["revisit_of"] = tuple(values["revisit_of"])
            return Capture(**values)
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise self._foreign() from None

    # ---------------------------------------------------------------- what came

    def answer(self, page: Page, archive: str, outcome: str, tally: Tally) -> None:
        """Keep what an archive said of a page."""
        shown = None if tally.last_good is None else json.dumps(asdict(tally.last_good))
        with self._change() as data:
            data.execute(
                "INSERT OR REPLACE INTO answer VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    page.number,
                    archive,
                    outcome,
                    tally.mementos,
                    tally.good,
                    tally.is_cut,
                    tally.first,
                    tally.last,
                    shown,
                ),
            )
            data.execute("DELETE FROM year WHERE page = ? AND archive = ?", (page.number, archive))
            rows = ((page.number, archive, year, count) for year, count in tally.years.items())
            data.executemany("INSERT INTO year VALUES (?, ?, ?, ?)", rows)

    def fetched(self, page: Page, archive: str, outcome: str, seen: Seen | None) -> None:
        """Keep what came of fetching a copy."""
        values = _row(seen)
        marks = ", ".join("?" * (3 + len(values)))
        with self._change() as data:
            data.execute(f"INSERT OR REPLACE INTO copy VALUES ({marks})", (page.number, archive, outcome, *values))

    def visited(self, page: Page, outcome: str, seen: Seen | None) -> None:
        """Keep what the live web has of a page."""
        values = _row(seen)
        marks = ", ".join("?" * (2 + len(values)))
        with self._change() as data:
            data.execute(f"INSERT OR REPLACE INTO live VALUES ({marks})", (page.number, outcome, *values))

    # ---------------------------------------------------------------- what is told

    def answers(self) -> Iterator[tuple[Page, list[Answer]]]:
        """Yield every page with what was said of it, failures too, in the order of the list."""
        rows = iter(
            self._data.execute(
                "SELECT page, archive, outcome, mementos, good, cut, first, last FROM answer ORDER BY page, archive"
            )
        )
        row = next(rows, None)
        for number, key, uri in self._data.execute("SELECT number, key, CAST(uri AS BLOB) FROM page ORDER BY number"):
            said = []
            while row is not None and row[0] <= number:
                if row[0] == number:
                    said.append(Answer(*row))
                row = next(rows, None)
            yield _page(number, key, uri), said

    def years(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield archive, year, how many pages have mementos of that year there, and how many mementos that are."""
        yield from self._data.execute(
            "SELECT year.archive, year, count(*), sum(year.mementos) FROM year GROUP BY 1, 2 ORDER BY 2, 1"
        )

    def pages_by_year(self, archives: Sequence[str]) -> dict[str, int]:
        """Return how many pages have mementos of each year in any of these archives."""
        marks = ", ".join("?" * len(archives))
        rows = self._data.execute(
            f"SELECT year, count(DISTINCT page) FROM year WHERE archive IN ({marks}) GROUP BY 1 ORDER BY 1",
            tuple(archives),
        )
        return dict(rows.fetchall())

    def copies(self, archive: str, most: int) -> Iterator[tuple[int, str, Seen | None]]:
        """Yield the number of the page, outcome, and what was seen, of the first `most` that were to be fetched."""
        rows = self._data.execute(
            """
            SELECT copy.* FROM (
                SELECT number, rank FROM page JOIN answer ON page = number
                WHERE archive = ?1 AND outcome = 'hit' AND capture IS NOT NULL ORDER BY rank, number LIMIT ?2
            ) JOIN copy ON copy.page = number AND copy.archive = ?1 ORDER BY rank, number
            """,
            (archive, most),
        )
        for number, _, outcome, *values in rows:
            yield number, outcome, _seen(values)

    def live(self, number: int) -> tuple[str, Seen | None] | None:
        """Return what the live web has of a page; None if nobody looked."""
        row = self._data.execute("SELECT * FROM live WHERE page = ?", (number,)).fetchone()
        return None if row is None else (row[1], _seen(row[2:]))

    def postponed(self) -> int:
        """Return how many live pages are to be looked at another time, since their sites said so."""
        settled = {*VISITED, *LIVE_OR_NOT}
        rows = self._data.execute("SELECT outcome, count(*) FROM live GROUP BY outcome")
        return sum(int(count) for outcome, count in rows if outcome not in settled)

    def has_live(self) -> bool:
        """Return whether anybody looked at the live web."""
        return self._data.execute("SELECT 1 FROM live LIMIT 1").fetchone() is not None


def rank(seed: int, key: str) -> bytes:
    """Return the place of a page in an order at random, which is the same for the same seed everywhere."""
    return sha256(f"{seed} {key}".encode("utf-8", "surrogatepass")).digest()[:8]


def _page(number: int, key: str, uri: bytes) -> Page:
    return Page(number, key, uri.decode("utf-8", "surrogateescape"))


def _row(seen: Seen | None) -> tuple[object, ...]:
    empty = (None,) * len(Seen.__dataclass_fields__)
    return empty if seen is None else tuple(getattr(seen, name) for name in Seen.__dataclass_fields__)


def _seen(values: Sequence[object]) -> Seen | None:
    return None if values[3] is None else Seen(*values)  # type: ignore[arg-type]  # as `_row` wrote them
