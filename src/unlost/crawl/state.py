"""All that a crawl knows, so that it can go on: what was visited, what is still to be, and who links to what."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from unlost.crawl.plan import ADJUSTABLE, Plan
from unlost.crawl.resource import Outcome
from unlost.crawl.visiting_state import FACT_TABLE, ROBOTS_TABLE, VisitingState, prepared
from unlost.errors import UsageError
from unlost.pages.link import Use
from unlost.state_file import storable

VERSION = 1
"""Of the tables."""

WHAT = "a crawl"
APPLICATION = 0x756E6C63
"""What SQLite files of crawls are told by: `unlc`. Recoveries have files of the same name."""

_SCHEMA = f"""
{FACT_TABLE}CREATE TABLE address (
    id INTEGER PRIMARY KEY, uri TEXT NOT NULL UNIQUE, name TEXT NOT NULL, key TEXT NOT NULL, host TEXT NOT NULL,
    use TEXT NOT NULL, standing TEXT NOT NULL, far INTEGER NOT NULL, redirects INTEGER NOT NULL DEFAULT 0,
    is_start INTEGER NOT NULL DEFAULT 0, is_guess INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0,
    hops INTEGER, in_sitemap INTEGER NOT NULL DEFAULT 0, is_sitemap INTEGER NOT NULL DEFAULT 0,
    status INTEGER, mime TEXT, length INTEGER, digest TEXT, seen TEXT, last_modified TEXT, redirect TEXT,
    redirect_id INTEGER, noarchive INTEGER NOT NULL DEFAULT 0, cache_control TEXT, etag TEXT, reason TEXT,
    truncated TEXT, file TEXT, offset INTEGER, size INTEGER
);
CREATE INDEX address_name ON address (name);
CREATE INDEX address_turn ON address (host, far, id) WHERE standing = 'queued';
CREATE INDEX address_standing ON address (standing);
CREATE INDEX address_hops ON address (hops);
CREATE INDEX address_file ON address (file, offset) WHERE file IS NOT NULL;
CREATE INDEX address_redirect ON address (redirect_id) WHERE redirect_id IS NOT NULL;
CREATE TABLE link (
    source INTEGER NOT NULL, target INTEGER NOT NULL, use TEXT NOT NULL, PRIMARY KEY (source, target, use)
) WITHOUT ROWID;
CREATE INDEX link_target ON link (target, source);
{ROBOTS_TABLE}CREATE TABLE left_out (reason TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
"""
_AT_ONCE = 500
QUEUED = "queued"


@dataclass(frozen=True, slots=True)
class Wanted:
    """An address that is to be visited. far: how many links away from a beginning, for limits and the order."""

    uri: str
    name: str
    key: str
    host: str
    use: Use
    far: int
    in_sitemap: bool = False
    is_sitemap: bool = False
    redirects: int = 0
    is_start: bool = False
    is_guess: bool = False


@dataclass(frozen=True, slots=True)
class Queued:
    """An address whose turn it is. redirects: how many led there, one behind the other."""

    id: int
    uri: str
    use: Use
    far: int
    redirects: int
    tries: int
    is_sitemap: bool
    is_guess: bool


_ADD = """
INSERT INTO address (
    uri, name, key, host, use, standing, far, redirects, is_start, is_guess, in_sitemap, is_sitemap, reason, hops
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_QUEUED = "id, uri, use, far, redirects, tries, is_sitemap, is_guess"


def prepare(connection: sqlite3.Connection, file: Path) -> None:
    """Make the tables of a crawl, or refuse those that are there."""
    prepared(connection, file, WHAT, APPLICATION, VERSION, _SCHEMA)


class CrawlState(VisitingState):
    """The state of the crawl in a folder, which must exist. Nothing lasts before `commit`.

    Raises InputError, OSError as every StateFile does.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, WHAT, prepare)

    def keep_plan(self, plan: Plan) -> None:
        """Say what is visited here. Raises UsageError if that is another crawl, so that its limits do not matter."""
        row = self._run("SELECT value FROM fact WHERE name = 'plan'").fetchone()
        now = {name: value for name, value in asdict(plan).items() if name not in ADJUSTABLE}
        text = json.dumps(now, sort_keys=True)
        if row is not None and row[0] != text:
            raise UsageError("the folder has a crawl with another plan: give another folder, or the same plan")
        self.begin()
        self._run("INSERT OR REPLACE INTO fact VALUES ('plan', ?)", (text,))

    def has_begun(self, origin: str) -> bool:
        """Return whether the sitemaps of a site were looked for."""
        return self._run("SELECT 1 FROM fact WHERE name = ?", (f"lists {origin}",)).fetchone() is not None

    def note_begun(self, origin: str) -> None:
        """Say that they were."""
        self.begin()
        self._run("INSERT OR REPLACE INTO fact VALUES (?, '')", (f"lists {origin}",))

    # What is to be visited

    def known(self, names: Iterable[str], uris: Iterable[str]) -> tuple[dict[str, int], dict[str, int]]:
        """Return the ids of addresses that are known, by these names, and by these spellings."""
        # The last of a name is where redirects ended.
        return self._ids("name", names), self._ids("uri", uris)

    def _ids(self, column: str, values: Iterable[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        left = list(dict.fromkeys(values))
        for start in range(0, len(left), _AT_ONCE):
            part = left[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(part))
            sql = f"SELECT {column}, max(id) FROM address WHERE {column} IN ({marks}) GROUP BY {column}"  # noqa: S608
            found.update(self._run(sql, part))
        return found

    def want(self, wanted: Wanted) -> int:
        """Put an address into the queue, which must not be known; return its id."""
        return self._added(wanted, QUEUED, None)

    def leave_out(self, wanted: Wanted, reason: str) -> int:
        """Note an address that is not visited, which must not be known; return its id."""
        return self._added(wanted, Outcome.LEFT_OUT.value, reason)

    def _added(self, wanted: Wanted, standing: str, reason: str | None) -> int:
        self.begin()
        values = (
            wanted.uri, wanted.name, wanted.key, wanted.host, wanted.use.value, standing, wanted.far, wanted.redirects,
            wanted.is_start, wanted.is_guess, wanted.in_sitemap, wanted.is_sitemap, reason,
            0 if wanted.is_start else None,
        )  # fmt: skip
        return int(self._run(_ADD, values).lastrowid or 0)

    def note_sitemap(self, ids: Iterable[int]) -> None:
        """Say that a sitemap names addresses."""
        self.begin()
        self.connection.executemany("UPDATE address SET in_sitemap = 1 WHERE id = ?", ((each,) for each in ids))

    def want_after_all(self, number: int, wanted: Wanted) -> bool:
        """Put an address into the queue that was left out before; return whether it was."""
        self.begin()
        sql = (
            "UPDATE address SET standing = 'queued', reason = NULL, far = ?, use = ?, in_sitemap = max(in_sitemap, ?) "
            "WHERE id = ? AND standing = 'left-out'"
        )
        return self._run(sql, (wanted.far, wanted.use.value, wanted.in_sitemap, number)).rowcount > 0

    def link(self, source: int, targets: Iterable[tuple[int, Use]]) -> None:
        """Say what a page links to."""
        self.begin()
        rows = ((source, target, use.value) for target, use in targets if target != source)
        self.connection.executemany("INSERT OR IGNORE INTO link VALUES (?, ?, ?)", rows)

    def take(self, host: str) -> Queued | None:
        """Return what is to be visited next on a host; None if there is nothing."""
        sql = f"SELECT {_QUEUED} FROM address WHERE standing = 'queued' AND host = ? ORDER BY far, id LIMIT 1"  # noqa: S608
        row = self._run(sql, (host,)).fetchone()
        if row is None:
            return None
        number, uri, use, far, redirects, tries, is_sitemap, is_guess = row
        return Queued(number, uri, Use(use), far, redirects, tries, bool(is_sitemap), bool(is_guess))

    def hosts(self) -> list[str]:
        """Return the hosts on which something is to be visited, those first that are nearest to a beginning."""
        sql = "SELECT host FROM address WHERE standing = 'queued' GROUP BY host ORDER BY min(far), min(id)"
        return [host for (host,) in self._run(sql)]

    # What was visited

    def finish(self, number: int, outcome: Outcome, **told: object) -> None:
        """Say how a visit ended. told: columns of LiveResource, and `size` and `redirect_id`."""
        self.begin()
        columns = {"standing": outcome.value, **told}
        names = ", ".join(f"{name} = ?" for name in columns)
        values = [storable(value) for value in columns.values()]
        self._run(f"UPDATE address SET {names} WHERE id = ?", (*values, number))  # noqa: S608  names are ours

    def try_again(self, number: int) -> None:
        """Put an address behind all others that are as far away: it is tried once more."""
        self.begin()
        self._run("UPDATE address SET tries = tries + 1, far = far + 1 WHERE id = ?", (number,))

    def forget(self, number: int) -> None:
        """Forget an address that was only guessed, and is not there."""
        self.begin()
        self._run("DELETE FROM address WHERE id = ?", (number,))

    def requeue_for_now(self) -> int:
        """Put those back into the queue that nobody could tell of in the last run; return how many."""
        self.begin()
        sql = (
            "UPDATE address SET standing = 'queued', reason = NULL, tries = 0 WHERE (standing = 'forbidden' AND "
            "reason = 'robots-unreachable')"
        )
        return self._run(sql).rowcount

    def for_now(self) -> int:
        """Return how many addresses are forbidden only since robots.txt could not be had."""
        sql = "SELECT count(*) FROM address WHERE standing = 'forbidden' AND reason = 'robots-unreachable'"
        return int(self._run(sql).fetchone()[0])

    def chain(self, number: int, most: int) -> list[int]:
        """Return the addresses from which redirects led to one, the last first; at most so many."""
        found: list[int] = []
        while len(found) < most:
            row = self._run("SELECT id FROM address WHERE redirect_id = ? LIMIT 1", (number,)).fetchone()
            if row is None or row[0] in found or row[0] == number:
                return found
            number = row[0]
            found.append(number)
        return found

    # Counts

    def counts(self) -> dict[str, int]:
        """Return how many addresses there are of each standing."""
        return dict(self._run("SELECT standing, count(*) FROM address GROUP BY standing"))

    def total(self) -> int:
        """Return how many addresses are known."""
        return int(self._run("SELECT count(*) FROM address").fetchone()[0])

    def bytes(self) -> int:
        """Return how many bytes were fetched."""
        return int(self._run("SELECT total(length) FROM address WHERE standing = 'fetched'").fetchone()[0])

    def sitemaps(self) -> int:
        """Return how many sitemaps are known."""
        return int(self._run("SELECT count(*) FROM address WHERE is_sitemap").fetchone()[0])

    def listed(self) -> int:
        """Return how many addresses are known that a sitemap names."""
        return int(self._run("SELECT count(*) FROM address WHERE in_sitemap").fetchone()[0])

    def keep_left_out(self, reasons: Mapping[str, int]) -> None:
        """Keep how many links were not followed, by the reason."""
        self.begin()
        self.connection.executemany("INSERT OR REPLACE INTO left_out VALUES (?, ?)", reasons.items())

    def left_out(self) -> dict[str, int]:
        """Return how many links were not followed, by the reason."""
        return dict(self._run("SELECT reason, count FROM left_out ORDER BY reason"))

    def names(self) -> Iterator[str]:
        """Yield the names of all pages that only links led to, in the order in which they were found."""
        sql = "SELECT name FROM address WHERE standing != 'left-out' AND NOT in_sitemap AND NOT is_start ORDER BY id"
        return (name for (name,) in self._run(sql))

    def settle_hops(self) -> None:
        """Count for each address the links that lead there from a start: the fewest, whatever order it was found in."""
        self.begin()
        self._run("UPDATE address SET hops = CASE WHEN is_start THEN 0 END")
        hops = 0
        while True:
            while self._spread(hops, _SAME_HOPS):
                pass
            if not self._spread(hops, _NEXT_HOPS):
                return
            hops += 1

    def _spread(self, hops: int, sql: str) -> int:
        return self._run(sql, {"hops": hops}).rowcount

    # Where copies are kept

    def ends(self) -> dict[str, int]:
        """Return for each WARC up to which byte its records are known."""
        return dict(self._run("SELECT file, max(offset + size) FROM address WHERE file IS NOT NULL GROUP BY file"))

    def whole_end(self, file: str, size: int) -> int:
        """Return where the last record of a WARC ends that lies within so many bytes."""
        sql = "SELECT max(offset + size) FROM address WHERE file = ? AND offset + size <= ?"
        return int(self._run(sql, (file, size)).fetchone()[0] or 0)

    def visit_again(self, file: str, end: int) -> int:
        """Put those back into the queue whose records a WARC has lost behind a byte; return how many."""
        self.begin()
        sql = (
            "UPDATE address SET standing = 'queued', file = NULL, offset = NULL, size = NULL, tries = 0 "
            "WHERE file = ? AND offset + size > ?"
        )
        return self._run(sql, (file, end)).rowcount


# Parts of a page, and where a redirect leads, are as far away as what leads there.
_SAME_HOPS = """
UPDATE address SET hops = :hops WHERE hops IS NULL AND (
    id IN (SELECT redirect_id FROM address WHERE hops = :hops AND redirect_id IS NOT NULL) OR
    id IN (
        SELECT target FROM link JOIN address AS page ON page.id = source
        WHERE page.hops = :hops AND link.use = 'requisite'
    )
)
"""
_NEXT_HOPS = """
UPDATE address SET hops = :hops + 1 WHERE hops IS NULL AND
    id IN (SELECT target FROM link JOIN address AS page ON page.id = source WHERE page.hops = :hops)
"""
