"""All that harvests of a folder know: what is held of each page, how hosts behave, and what is still to be visited."""

import json
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from unlost.crawl.visiting_state import FACT_TABLE, ROBOTS_TABLE, VisitingState, prepared
from unlost.crawl.warcs import Place
from unlost.errors import InputError
from unlost.refresh.harvest.held import Copy, Held
from unlost.refresh.harvest.treatment import Treatment
from unlost.refresh.page_text import PageText
from unlost.refresh.policy import Seen
from unlost.refresh.visit import Visit, row_of, visit_line
from unlost.state_file import certain_text, storable, text_of

VERSION = 1
WHAT = "harvests"
APPLICATION = 0x756E6C68
"""What SQLite files of harvests are told by: `unlh`. Crawls and recoveries have files of the same name."""

INTERVALS = 32
"""Between visits, that are kept of each page: enough for a rate, and the older ones say less."""

_SCHEMA = f"""
{FACT_TABLE}
{ROBOTS_TABLE}
CREATE TABLE page (
    id INTEGER PRIMARY KEY, uri TEXT NOT NULL UNIQUE, key TEXT NOT NULL, host TEXT NOT NULL,
    given INTEGER NOT NULL DEFAULT 0, listed INTEGER NOT NULL DEFAULT 0, round INTEGER NOT NULL DEFAULT 0,
    pending INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0, far INTEGER NOT NULL DEFAULT 0,
    outcome TEXT, looked INTEGER, intervals TEXT NOT NULL DEFAULT '[]',
    visit TEXT, final TEXT, size INTEGER, ours INTEGER NOT NULL DEFAULT 1, sketch BLOB,
    copy TEXT, copy_file TEXT, copy_end INTEGER
);
CREATE INDEX page_key ON page (key);
CREATE INDEX page_host ON page (host, id);
CREATE INDEX page_turn ON page (host, far, id) WHERE pending;
CREATE TABLE record (
    file TEXT NOT NULL, offset INTEGER NOT NULL, size INTEGER NOT NULL, page INTEGER NOT NULL,
    PRIMARY KEY (file, offset)
) WITHOUT ROWID;
CREATE TABLE host (name TEXT PRIMARY KEY, treatment TEXT NOT NULL DEFAULT '{{}}') WITHOUT ROWID;
CREATE TABLE seen (
    host TEXT NOT NULL, grouped INTEGER NOT NULL, changed INTEGER NOT NULL, PRIMARY KEY (host, grouped)
) WITHOUT ROWID;
"""
_PAGE = "id, uri, key, tries, looked, intervals, visit, final, size, ours, sketch, copy, outcome, round"


def prepare(connection: sqlite3.Connection, file: Path) -> None:
    """Make the tables of harvests, or refuse those that are there."""
    prepared(connection, file, WHAT, APPLICATION, VERSION, _SCHEMA)


@dataclass(frozen=True, slots=True)
class Page:
    """A page that is harvested.

    key: what it is known by in indexes. tries: how often it broke off in this round.
    looked: when it was asked for last, milliseconds since 1970; None if never.
    intervals: between the last visits, in seconds, with whether it had changed.
    outcome: of the last visit, as docs/harvest.md lists them; None before the first. round: in which that was.
    """

    id: int
    uri: str
    key: str
    tries: int
    looked: int | None
    intervals: tuple[tuple[float, bool], ...]
    held: Held | None
    outcome: str | None
    round: int


class HarvestState(VisitingState):
    """The state of the harvests in a folder, which must exist. Nothing lasts before `commit`.

    Raises InputError, OSError as every StateFile does; InputError also for a row that nobody here wrote.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder
        super().__init__(folder, WHAT, prepare)

    # Pages

    def add(self, pages: Iterable[tuple[str, str, str]], *, is_given: bool) -> None:
        """Take pages, each as address, key and host. is_given: whether a person named them; they are listed then."""
        self.begin()
        rows = ((storable(uri), storable(key), storable(host), is_given, is_given) for uri, key, host in pages)
        sql = (
            "INSERT INTO page (uri, key, host, given, listed) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (uri) DO UPDATE SET given = max(given, excluded.given), listed = max(listed, excluded.listed)"
        )
        self.connection.executemany(sql, rows)

    def unlist(self) -> None:
        """Forget which pages were listed."""
        self.begin()
        self._run("UPDATE page SET listed = 0 WHERE listed")

    def given(self) -> list[str]:
        """Return an address of every place that a person named."""
        rows = self._run("SELECT min(uri) FROM page WHERE given GROUP BY host, substr(uri, 1, 5)")
        return [text_of(uri) for (uri,) in rows]

    def page(self, uri: str) -> Page | None:
        """Return a page by its address."""
        row = self._run(f"SELECT {_PAGE} FROM page WHERE uri = ?", (storable(uri),)).fetchone()  # noqa: S608
        return None if row is None else self._page(row)

    def of_key(self, key: str) -> list[Page]:
        """Return the pages that are known by a key."""
        rows = self._run(f"SELECT {_PAGE} FROM page WHERE key = ?", (storable(key),)).fetchall()  # noqa: S608
        return [self._page(row) for row in rows]

    def pages(self, *, only_listed: bool = False) -> Iterator[Page]:
        """Yield all pages, or those that are listed, in the order in which they came."""
        last, which = 0, "listed AND " if only_listed else ""
        sql = f"SELECT {_PAGE} FROM page WHERE {which}id > ? ORDER BY id LIMIT 500"  # noqa: S608
        while rows := self._run(sql, (last,)).fetchall():
            last = rows[-1][0]
            for row in rows:
                yield self._page(row)

    def _page(self, row: tuple[object, ...]) -> Page:
        number, uri, key, tries, looked, intervals, visit, final, size, ours, sketch, copy, outcome, round_ = row
        try:
            held = None
            if visit is not None:
                known = None if copy is None else Copy(*json.loads(certain_text(copy)))
                last = Visit(*row_of(json.loads(certain_text(visit))))  # type: ignore[arg-type]  # each by its field
                text = None
                if isinstance(sketch, bytes) and last.text_digest is not None:
                    text = PageText(last.text_digest, struct.unpack(f">{len(sketch) // 8}Q", sketch))
                held = Held(last, known, certain_text(final), size, bool(ours), text)  # type: ignore[arg-type]
            spans = self._intervals(intervals)
            return Page(
                int(number), certain_text(uri), certain_text(key), int(tries),  # type: ignore[call-overload]
                None if looked is None else int(looked), spans, held, text_of(outcome), int(round_),  # type: ignore[call-overload]
            )  # fmt: skip
        except (ValueError, TypeError, OverflowError, RecursionError, struct.error, InputError) as error:
            message = f"{self._file}: not the state of {WHAT}: a page that nobody here wrote: {str(error)[:100]}"
            raise InputError(message) from error

    @staticmethod
    def _intervals(text: object) -> tuple[tuple[float, bool], ...]:
        return tuple((float(seconds), bool(changed)) for seconds, changed in json.loads(certain_text(text)))

    # The round

    def begin_round(self) -> int:
        """Begin a round; return its number. Nothing is pending then."""
        self.begin()
        self._run("UPDATE page SET pending = 0, tries = 0, far = 0")
        self._run(
            "INSERT INTO fact VALUES ('round', '1') ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
        )
        return self.round()

    def round(self) -> int:
        """Return the number of the last round; 0 before the first."""
        row = self._run("SELECT value FROM fact WHERE name = 'round'").fetchone()
        return 0 if row is None else int(row[0])

    def want(self, number: int) -> None:
        """Have a page visited in this round."""
        self.begin()
        self._run("UPDATE page SET pending = 1, tries = 0, far = 0 WHERE id = ?", (number,))

    def pending(self) -> int:
        """Return how many pages are still to be visited."""
        return int(self._run("SELECT count(*) FROM page WHERE pending").fetchone()[0])

    def hosts(self) -> list[str]:
        """Return the hosts on which something is to be visited."""
        rows = self._run("SELECT host FROM page WHERE pending GROUP BY host ORDER BY min(far), min(id)")
        return [text_of(host) for (host,) in rows]

    def take(self, host: str) -> Page | None:
        """Return what is to be visited next on a host; None if there is nothing."""
        sql = f"SELECT {_PAGE} FROM page WHERE pending AND host = ? ORDER BY far, id LIMIT 1"  # noqa: S608
        row = self._run(sql, (storable(host),)).fetchone()
        return None if row is None else self._page(row)

    def try_again(self, number: int) -> None:
        """Put a page behind all others of its host."""
        self.begin()
        self._run("UPDATE page SET tries = tries + 1, far = far + 1 WHERE id = ?", (number,))

    def finish(self, number: int, outcome: str) -> None:
        """Say how the visit of a page ended in this round."""
        self.begin()
        sql = "UPDATE page SET pending = 0, outcome = ?, round = ? WHERE id = ?"
        self._run(sql, (outcome, self.round(), number))

    def outcomes(self) -> dict[str, int]:
        """Return how many pages ended how in the last round."""
        sql = "SELECT outcome, count(*) FROM page WHERE outcome IS NOT NULL AND round = ? GROUP BY outcome"
        rows = self._run(sql, (self.round(),))
        return {text_of(outcome): count for outcome, count in rows}

    def host_intervals(self, host: str, most: int) -> list[tuple[float, bool]]:
        """Return intervals between visits to the pages of a host, of the last ones that were added to it."""
        sql = "SELECT intervals FROM page WHERE host = ? AND intervals != '[]' ORDER BY id DESC LIMIT ?"
        rows = self._run(sql, (storable(host), most)).fetchall()
        return [interval for row in rows for interval in self._intervals(row[0])][:most]

    # What is held

    def note_look(self, page: Page, now: int, changed: bool | None) -> None:
        """Keep when a page was looked at, and whether it had changed; None if nobody can tell."""
        self.begin()
        intervals = list(page.intervals)
        if changed is not None and page.looked is not None and now > page.looked:
            intervals.append(((now - page.looked) / 1000, changed))
        text = json.dumps(intervals[-INTERVALS:], separators=(",", ":"))
        self._run("UPDATE page SET looked = ?, intervals = ? WHERE id = ?", (now, text, page.id))

    def hold(self, number: int, held: Held) -> None:
        """Keep what is held of a page from now on."""
        self.begin()
        copy = held.copy
        values = None
        if copy is not None:
            values = json.dumps(
                [copy.uri, copy.moment, copy.digest, copy.file, copy.offset, copy.size, copy.mime, copy.status]
            )
        columns = "visit = ?, final = ?, size = ?, ours = ?, sketch = ?, copy = ?, copy_file = ?, copy_end = ?"
        sql = f"UPDATE page SET {columns} WHERE id = ?"  # noqa: S608
        # Of other archives only what is read from here can be lost from here.
        is_here = copy is not None and held.is_ours and copy.offset is not None and copy.size is not None
        end = copy.offset + copy.size if is_here else None  # type: ignore[union-attr, operator]
        file = copy.file if is_here and copy is not None else None
        line = visit_line(held.visit).decode()
        sketch = held.text and struct.pack(f">{len(held.text.sketch)}Q", *held.text.sketch)
        self._run(sql, (line, storable(held.final), held.size, held.is_ours, sketch, values, file, end, number))

    def note_record(self, place: Place, number: int) -> None:
        """Keep where a record is that was written for a page."""
        self.begin()
        self._run("INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)", (place.file, place.offset, place.size, number))

    # Hosts

    def treatment(self, host: str) -> Treatment:
        """Return how a host was measured."""
        row = self._run("SELECT treatment FROM host WHERE name = ?", (storable(host),)).fetchone()
        try:
            return Treatment() if row is None else Treatment.of(json.loads(row[0]))
        except (ValueError, TypeError, RecursionError):
            return Treatment()  # measured again

    def keep_treatment(self, host: str, treatment: Treatment) -> None:
        """Keep how a host was measured."""
        self.begin()
        text = json.dumps(treatment.values)
        self._run("INSERT OR REPLACE INTO host VALUES (?, ?)", (storable(host), text))

    def note_lie(self, host: str, group: int) -> None:
        """Keep that a page had changed in a group of cells in which it was downloaded or audited."""
        self.begin()
        sql = "INSERT INTO seen VALUES (?, ?, 1) ON CONFLICT (host, grouped) DO UPDATE SET changed = changed + 1"
        self._run(sql, (storable(host), group))

    def for_scheme(self, digest: str) -> None:
        """Say by which scheme is decided: one that was learned since knows what was found by the one before."""
        self.begin()
        row = self._run("SELECT value FROM fact WHERE name = 'scheme'").fetchone()
        if row is None or row[0] != digest:
            self._run("DELETE FROM seen")
            self._run("INSERT OR REPLACE INTO fact VALUES ('scheme', ?)", (digest,))

    def lies(self) -> dict[str, Seen]:
        """Return what `note_lie` kept, as a policy has it."""
        found: dict[str, Seen] = {}
        for host, group, changed in self._run("SELECT host, grouped, changed FROM seen"):
            found.setdefault(text_of(host), {})[int(group)] = (int(changed), int(changed))
        return found

    # The log, and WARCs: this is a KnownRecords.

    def log_end(self) -> int:
        """Return up to which byte the log is known."""
        row = self._run("SELECT value FROM fact WHERE name = 'log end'").fetchone()
        return 0 if row is None else int(row[0])

    def keep_log_end(self, end: int) -> None:
        """Keep where it ends now."""
        self.begin()
        self._run("INSERT OR REPLACE INTO fact VALUES ('log end', ?)", (str(end),))

    def ends(self) -> dict[str, int]:
        """Return for each WARC up to which byte its records are known."""
        return dict(self._run("SELECT file, max(offset + size) FROM record GROUP BY file"))

    def whole_end(self, file: str, size: int) -> int:
        """Return where the last record of a WARC ends that lies within so many bytes."""
        sql = "SELECT max(offset + size) FROM record WHERE file = ? AND offset + size <= ?"
        return int(self._run(sql, (file, size)).fetchone()[0] or 0)

    def visit_again(self, file: str, end: int) -> int:
        """Forget what is held in records that a WARC has lost behind a byte, and visit it again; return how many."""
        self.begin()
        lost = "SELECT page FROM record WHERE file = ? AND offset + size > ?"
        count = self._run(f"UPDATE page SET pending = 1, tries = 0 WHERE id IN ({lost})", (file, end)).rowcount  # noqa: S608
        sql = "UPDATE page SET visit = NULL, copy = NULL, copy_file = NULL WHERE copy_file = ? AND copy_end > ?"
        self._run(sql, (file, end))
        self._run("DELETE FROM record WHERE file = ? AND offset + size > ?", (file, end))
        return count
