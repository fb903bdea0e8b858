"""All that a crawl knows, so that it can go on: what was visited, what is still to be, and who links to what."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from unlost.crawl.plan import ADJUSTABLE_FIELDS, CrawlConfig
from unlost.crawl.resource import CrawlOutcome
from unlost.crawl.visiting_state import FACT_TABLE, ROBOTS_TABLE, FetchState, prepare_state
from unlost.errors import UsageError
from unlost.pages.link import LinkKind
from unlost.state_file import encode_text

CRAWL_STATE_VERSION = 1
"""Of the tables."""

CRAWL_DESCRIPTION = "a crawl"
CRAWL_APPLICATION_ID = 0x756E6C63
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
_MAX_SQL_VARIABLES = 500
QUEUED_STATUS = "queued"


@dataclass(frozen=True, slots=True)
class DiscoveredUrl:
    """An address that is to be visited. far: how many links away from a beginning, for limits and the order."""

    uri: str
    name: str
    key: str
    host: str
    use: LinkKind
    distance: int
    in_sitemap: bool = False
    is_sitemap: bool = False
    redirects: int = 0
    is_start: bool = False
    is_guess: bool = False


@dataclass(frozen=True, slots=True)
class QueuedUrl:
    """An address whose turn it is. redirects: how many led there, one behind the other."""

    id: int
    uri: str
    use: LinkKind
    distance: int
    redirects: int
    attempts: int
    is_sitemap: bool
    is_guess: bool


_INSERT_URL = """
INSERT INTO address (
    uri, name, key, host, use, standing, far, redirects, is_start, is_guess, in_sitemap, is_sitemap, reason, hops
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_QUEUED_COLUMNS = "id, uri, use, far, redirects, tries, is_sitemap, is_guess"


def prepare_crawl_state(connection: sqlite3.Connection, file: Path) -> None:
    """Make the tables of a crawl, or refuse those that are there."""
    prepare_state(connection, file, CRAWL_DESCRIPTION, CRAWL_APPLICATION_ID, CRAWL_STATE_VERSION, _SCHEMA)


class CrawlState(FetchState):
    """The state of the crawl in a folder, which must exist. Nothing lasts before `commit`.

    Raises InputError, OSError as every StateFile does.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, CRAWL_DESCRIPTION, prepare_crawl_state)

    def record_config(self, config: CrawlConfig) -> None:
        """Say what is visited here. Raises UsageError if that is another crawl, so that its limits do not matter."""
        row = self._execute("SELECT value FROM fact WHERE name = 'plan'").fetchone()
        now = {name: value for name, value in asdict(config).items() if name not in ADJUSTABLE_FIELDS}
        text = json.dumps(now, sort_keys=True)
        if row is not None and row[0] != text:
            raise UsageError("the folder has a crawl with another plan: give another folder, or the same plan")
        self.begin()
        self._execute("INSERT OR REPLACE INTO fact VALUES ('plan', ?)", (text,))

    def has_searched_sitemaps(self, origin: str) -> bool:
        """Return whether the sitemaps of a site were looked for."""
        return self._execute("SELECT 1 FROM fact WHERE name = ?", (f"lists {origin}",)).fetchone() is not None

    def mark_sitemaps_searched(self, origin: str) -> None:
        """Say that they were."""
        self.begin()
        self._execute("INSERT OR REPLACE INTO fact VALUES (?, '')", (f"lists {origin}",))

    # What is to be visited

    def find_known(self, names: Iterable[str], uris: Iterable[str]) -> tuple[dict[str, int], dict[str, int]]:
        """Return the ids of addresses that are known, by these names, and by these spellings."""
        # The last of a name is where redirects ended.
        return self._find_ids("name", names), self._find_ids("uri", uris)

    def _find_ids(self, column: str, values: Iterable[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        left = list(dict.fromkeys(values))
        for start in range(0, len(left), _MAX_SQL_VARIABLES):
            part = left[start : start + _MAX_SQL_VARIABLES]
            marks = ", ".join("?" * len(part))
            sql = f"SELECT {column}, max(id) FROM address WHERE {column} IN ({marks}) GROUP BY {column}"  # noqa: S608
            found.update(self._execute(sql, part))
        return found

    def enqueue(self, found: DiscoveredUrl) -> int:
        """Put an address into the queue, which must not be known; return its id."""
        return self._insert(found, QUEUED_STATUS, None)

    def record_excluded(self, found: DiscoveredUrl, reason: str) -> int:
        """Note an address that is not visited, which must not be known; return its id."""
        return self._insert(found, CrawlOutcome.EXCLUDED.value, reason)

    def _insert(self, found: DiscoveredUrl, status: str, reason: str | None) -> int:
        self.begin()
        values = (
            found.uri, found.name, found.key, found.host, found.use.value, status, found.distance, found.redirects,
            found.is_start, found.is_guess, found.in_sitemap, found.is_sitemap, reason,
            0 if found.is_start else None,
        )  # fmt: skip
        return int(self._execute(_INSERT_URL, values).lastrowid or 0)

    def mark_in_sitemap(self, ids: Iterable[int]) -> None:
        """Say that a sitemap names addresses."""
        self.begin()
        self.connection.executemany("UPDATE address SET in_sitemap = 1 WHERE id = ?", ((each,) for each in ids))

    def enqueue_excluded(self, number: int, found: DiscoveredUrl) -> bool:
        """Put an address into the queue that was left out before; return whether it was."""
        self.begin()
        sql = (
            "UPDATE address SET standing = 'queued', reason = NULL, far = ?, use = ?, in_sitemap = max(in_sitemap, ?) "
            "WHERE id = ? AND standing = 'left-out'"
        )
        return self._execute(sql, (found.distance, found.use.value, found.in_sitemap, number)).rowcount > 0

    def add_links(self, source: int, targets: Iterable[tuple[int, LinkKind]]) -> None:
        """Say what a page links to."""
        self.begin()
        rows = ((source, target, use.value) for target, use in targets if target != source)
        self.connection.executemany("INSERT OR IGNORE INTO link VALUES (?, ?, ?)", rows)

    def next_queued(self, host: str) -> QueuedUrl | None:
        """Return what is to be visited next on a host; None if there is nothing."""
        sql = f"SELECT {_QUEUED_COLUMNS} FROM address WHERE standing = 'queued' AND host = ? ORDER BY far, id LIMIT 1"  # noqa: S608
        row = self._execute(sql, (host,)).fetchone()
        if row is None:
            return None
        number, uri, use, far, redirects, tries, is_sitemap, is_guess = row
        return QueuedUrl(number, uri, LinkKind(use), far, redirects, tries, bool(is_sitemap), bool(is_guess))

    def queued_hosts(self) -> list[str]:
        """Return the hosts on which something is to be visited, those first that are nearest to a beginning."""
        sql = "SELECT host FROM address WHERE standing = 'queued' GROUP BY host ORDER BY min(far), min(id)"
        return [host for (host,) in self._execute(sql)]

    # What was visited

    def finish(self, number: int, outcome: CrawlOutcome, **details: object) -> None:
        """Say how a visit ended. told: columns of LiveResource, and `size` and `redirect_id`."""
        self.begin()
        columns = {"standing": outcome.value, **details}
        names = ", ".join(f"{name} = ?" for name in columns)
        values = [encode_text(value) for value in columns.values()]
        self._execute(f"UPDATE address SET {names} WHERE id = ?", (*values, number))  # noqa: S608  names are ours

    def requeue(self, number: int) -> None:
        """Put an address behind all others that are as far away: it is tried once more."""
        self.begin()
        self._execute("UPDATE address SET tries = tries + 1, far = far + 1 WHERE id = ?", (number,))

    def delete(self, number: int) -> None:
        """Forget an address that was only guessed, and is not there."""
        self.begin()
        self._execute("DELETE FROM address WHERE id = ?", (number,))

    def requeue_robots_unreachable(self) -> int:
        """Put those back into the queue that nobody could tell of in the last run; return how many."""
        self.begin()
        sql = (
            "UPDATE address SET standing = 'queued', reason = NULL, tries = 0 WHERE (standing = 'forbidden' AND "
            "reason = 'robots-unreachable')"
        )
        return self._execute(sql).rowcount

    def count_robots_unreachable(self) -> int:
        """Return how many addresses are forbidden only since robots.txt could not be had."""
        sql = "SELECT count(*) FROM address WHERE standing = 'forbidden' AND reason = 'robots-unreachable'"
        return int(self._execute(sql).fetchone()[0])

    def redirect_chain(self, number: int, limit: int) -> list[int]:
        """Return the addresses from which redirects led to one, the last first; at most so many."""
        found: list[int] = []
        while len(found) < limit:
            row = self._execute("SELECT id FROM address WHERE redirect_id = ? LIMIT 1", (number,)).fetchone()
            if row is None or row[0] in found or row[0] == number:
                return found
            number = row[0]
            found.append(number)
        return found

    # Counts

    def counts_by_status(self) -> dict[str, int]:
        """Return how many addresses there are of each standing."""
        return dict(self._execute("SELECT standing, count(*) FROM address GROUP BY standing"))

    def count_urls(self) -> int:
        """Return how many addresses are known."""
        return int(self._execute("SELECT count(*) FROM address").fetchone()[0])

    def fetched_bytes(self) -> int:
        """Return how many bytes were fetched."""
        return int(self._execute("SELECT total(length) FROM address WHERE standing = 'fetched'").fetchone()[0])

    def count_sitemaps(self) -> int:
        """Return how many sitemaps are known."""
        return int(self._execute("SELECT count(*) FROM address WHERE is_sitemap").fetchone()[0])

    def count_in_sitemaps(self) -> int:
        """Return how many addresses are known that a sitemap names."""
        return int(self._execute("SELECT count(*) FROM address WHERE in_sitemap").fetchone()[0])

    def record_excluded_links(self, reasons: Mapping[str, int]) -> None:
        """Keep how many links were not followed, by the reason."""
        self.begin()
        self.connection.executemany("INSERT OR REPLACE INTO left_out VALUES (?, ?)", reasons.items())

    def excluded_links(self) -> dict[str, int]:
        """Return how many links were not followed, by the reason."""
        return dict(self._execute("SELECT reason, count FROM left_out ORDER BY reason"))

    def linked_names(self) -> Iterator[str]:
        """Yield the names of all pages that only links led to, in the order in which they were found."""
        sql = "SELECT name FROM address WHERE standing != 'left-out' AND NOT in_sitemap AND NOT is_start ORDER BY id"
        return (name for (name,) in self._execute(sql))

    def compute_hops(self) -> None:
        """Count for each address the links that lead there from a start: the fewest, whatever order it was found in."""
        self.begin()
        self._execute("UPDATE address SET hops = CASE WHEN is_start THEN 0 END")
        hops = 0
        while True:
            while self._propagate_hops(hops, _SAME_HOPS):
                pass
            if not self._propagate_hops(hops, _NEXT_HOPS):
                return
            hops += 1

    def _propagate_hops(self, hops: int, sql: str) -> int:
        return self._execute(sql, {"hops": hops}).rowcount

    # Where copies are kept

    def warc_ends(self) -> dict[str, int]:
        """Return for each WARC up to which byte its records are known."""
        return dict(self._execute("SELECT file, max(offset + size) FROM address WHERE file IS NOT NULL GROUP BY file"))

    def last_record_end(self, file: str, size: int) -> int:
        """Return where the last record of a WARC ends that lies within so many bytes."""
        sql = "SELECT max(offset + size) FROM address WHERE file = ? AND offset + size <= ?"
        return int(self._execute(sql, (file, size)).fetchone()[0] or 0)

    def requeue_lost_records(self, file: str, end: int) -> int:
        """Put those back into the queue whose records a WARC has lost behind a byte; return how many."""
        self.begin()
        sql = (
            "UPDATE address SET standing = 'queued', file = NULL, offset = NULL, size = NULL, tries = 0 "
            "WHERE file = ? AND offset + size > ?"
        )
        return self._execute(sql, (file, end)).rowcount


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
