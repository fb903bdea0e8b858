"""State of a crawl in SQLite: queue, fetched resources, links and robots.txt; and read-only access to it.

`FetchState` is the part shared with other states of live fetches (`refresh.harvest_state`). `CrawlState` is used by the
running crawl. `read_resources` reads a state, also while a crawl is writing it. Changes are visible to other
connections after `commit`.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from unlost import sqlite
from unlost.crawl.models import ADJUSTABLE_FIELDS, CrawlConfig, CrawlOutcome, LiveResource
from unlost.crawl.robots import RobotsResponse
from unlost.errors import InputError, UsageError
from unlost.html.links import LinkKind
from unlost.sqlite import (
    STATE_FILE_NAME,
    decode_text,
    encode_text,
    reject_views_and_triggers,
    require_text,
    translate_sqlite_errors,
)

FACT_TABLE = "CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;\n"
ROBOTS_TABLE = (
    "CREATE TABLE robots (origin TEXT PRIMARY KEY, asked REAL NOT NULL, status INTEGER, text BLOB NOT NULL) "
    "WITHOUT ROWID;\n"
)

CRAWL_STATE_VERSION = 1
"""Version of the schema."""
CRAWL_DESCRIPTION = "a crawl"
CRAWL_APPLICATION_ID = 0x756E6C63
"""SQLite application_id of crawl states: `unlc`. States of recoveries have the same file name and another id."""
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
_INSERT_URL = """
INSERT INTO address (
    uri, name, key, host, use, standing, far, redirects, is_start, is_guess, in_sitemap, is_sitemap, reason, hops
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_QUEUED_COLUMNS = "id, uri, use, far, redirects, tries, is_sitemap, is_guess"
# Page requisites and redirect targets have the distance of their source.
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
_BUSY_SECONDS = 10.0  # timeout for locks, which a running crawl holds only briefly
_SELECT_RESOURCES = """
SELECT uri, key, standing, status, mime, length, digest, seen, last_modified, redirect, hops,
    (SELECT count(DISTINCT source) FROM link WHERE target = address.id), in_sitemap, noarchive, cache_control, etag,
    reason, truncated, file, offset
FROM address ORDER BY id
"""


def prepare_state(
    connection: sqlite3.Connection, file: Path, description: str, application: int, version: int, schema: str
) -> None:
    """Create the tables of a new state, or check those that exist.

    Args:
        connection: Connection to the database.
        file: Its path, for messages.
        description: What the state belongs to, for messages.
        application: SQLite application_id, which distinguishes state files of the same name.
        version: Version of the schema, stored as `user_version`.
        schema: SQL statements that create the tables.

    Raises:
        InputError: The file belongs to another application or version, or has views or triggers.
    """
    sqlite.reject_views_and_triggers(connection, file, description)
    existing_version = sqlite.schema_version(connection)
    if existing_version is None:
        connection.execute(f"PRAGMA application_id = {application}")
        sqlite.migrate_schema(connection, schema, version)
    elif (existing_version, connection.execute("PRAGMA application_id").fetchone()[0]) != (version, application):
        raise InputError(f"{file}: expected the state of {description} in version {version}, found another one")


class FetchState(sqlite.StateFile):
    """A state with the tables `FACT_TABLE` and `ROBOTS_TABLE`, among others. Implements RobotsStore."""

    def __init__(self, folder: Path, what: str, prepare: Callable[[sqlite3.Connection, Path], None]) -> None:
        super().__init__(folder, what, prepare)
        self._execute = self.connection.execute

    def files_before_state(self, files: Iterable[str]) -> frozenset[str]:
        """Return the WARC files that were older than this state: `files` on the first call, the same ones later."""
        self.begin()
        text = json.dumps(sorted(files))
        self._execute("INSERT OR IGNORE INTO fact VALUES ('files before', ?)", (text,))
        (stored,) = self._execute("SELECT value FROM fact WHERE name = 'files before'").fetchone()
        return frozenset(json.loads(stored))

    def get(self, origin: str) -> RobotsResponse | None:
        """Return the stored robots.txt of an origin; None if there is none."""
        row = self._execute("SELECT asked, status, text FROM robots WHERE origin = ?", (origin,)).fetchone()
        return None if row is None else RobotsResponse(float(row[0]), row[1], bytes(row[2]))

    def put(self, origin: str, response: RobotsResponse) -> None:
        """Store the robots.txt of an origin."""
        self.begin()
        self._execute(
            "INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?)",
            (origin, response.requested_at, response.status, response.text),
        )

    def forget_failed_robots(self) -> None:
        """Delete unreachable robots.txt responses, so that this run requests them again."""
        self.begin()
        self._execute("DELETE FROM robots WHERE status IS NULL OR status >= 500 OR status = 429")


@dataclass(frozen=True, slots=True)
class DiscoveredUrl:
    """A URL to enqueue.

    Attributes:
        uri: The URL.
        name: Its page name, which is the same for all spellings of the URL.
        key: Its SURT key, as in CDX indexes.
        host: Host without `www` and port; requests to it are sent one at a time.
        link_kind: Kind of the link to it.
        distance: Number of links from a seed as far as known; orders the queue.
        in_sitemap: Whether a sitemap lists it.
        is_sitemap: Whether it was linked as a sitemap.
        redirects: Number of consecutive redirects that led to it.
        is_start: Whether it is a seed.
        is_guess: Whether nothing refers to it, as for `/sitemap.xml`; then its absence is not recorded.
    """

    uri: str
    name: str
    key: str
    host: str
    link_kind: LinkKind
    distance: int
    in_sitemap: bool = False
    is_sitemap: bool = False
    redirects: int = 0
    is_start: bool = False
    is_guess: bool = False


@dataclass(frozen=True, slots=True)
class QueuedUrl:
    """A URL taken from the queue, with the attributes of `DiscoveredUrl`.

    Attributes:
        id: Id in the state.
        attempts: Number of earlier attempts.
    """

    id: int
    uri: str
    link_kind: LinkKind
    distance: int
    redirects: int
    attempts: int
    is_sitemap: bool
    is_guess: bool


def prepare_crawl_state(connection: sqlite3.Connection, file: Path) -> None:
    """Create the tables of a crawl, or check those that exist. Raises InputError."""
    prepare_state(connection, file, CRAWL_DESCRIPTION, CRAWL_APPLICATION_ID, CRAWL_STATE_VERSION, _SCHEMA)


class CrawlState(FetchState):
    """The state of the crawl in a folder, which must exist. Changes last only after `commit`.

    Raises:
        InputError: The state is damaged, of another version, or of another application.
        OSError: The file cannot be read or written.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, CRAWL_DESCRIPTION, prepare_crawl_state)

    def record_config(self, config: CrawlConfig) -> None:
        """Store the configuration. Raises UsageError if the state belongs to a crawl with another one.

        Adjustable fields are not stored.
        """
        row = self._execute("SELECT value FROM fact WHERE name = 'plan'").fetchone()
        fields = {name: value for name, value in asdict(config).items() if name not in ADJUSTABLE_FIELDS}
        text = json.dumps(fields, sort_keys=True)
        if row is not None and row[0] != text:
            raise UsageError("the folder has a crawl with another plan: give another folder, or the same plan")
        self.begin()
        self._execute("INSERT OR REPLACE INTO fact VALUES ('plan', ?)", (text,))

    def has_searched_sitemaps(self, origin: str) -> bool:
        """Return whether the sitemaps of an origin have been searched for."""
        return self._execute("SELECT 1 FROM fact WHERE name = ?", (f"lists {origin}",)).fetchone() is not None

    def mark_sitemaps_searched(self, origin: str) -> None:
        """Record that the sitemaps of an origin have been searched for."""
        self.begin()
        self._execute("INSERT OR REPLACE INTO fact VALUES (?, '')", (f"lists {origin}",))

    # Queue

    def find_known(self, names: Iterable[str], uris: Iterable[str]) -> tuple[dict[str, int], dict[str, int]]:
        """Return the ids of known URLs by page name, and by exact URL."""
        # Of several URLs with one name, the last one is the end of their redirects.
        return self._find_ids("name", names), self._find_ids("uri", uris)

    def _find_ids(self, column: str, values: Iterable[str]) -> dict[str, int]:
        ids: dict[str, int] = {}
        remaining = list(dict.fromkeys(values))
        for start in range(0, len(remaining), _MAX_SQL_VARIABLES):
            batch = remaining[start : start + _MAX_SQL_VARIABLES]
            placeholders = ", ".join("?" * len(batch))
            sql = f"SELECT {column}, max(id) FROM address WHERE {column} IN ({placeholders}) GROUP BY {column}"  # noqa: S608
            ids.update(self._execute(sql, batch))
        return ids

    def enqueue(self, discovered: DiscoveredUrl) -> int:
        """Enqueue a URL that is not known; return its id."""
        return self._insert(discovered, QUEUED_STATUS, None)

    def record_excluded(self, discovered: DiscoveredUrl, reason: str) -> int:
        """Record a URL that is not known and will not be fetched; return its id."""
        return self._insert(discovered, CrawlOutcome.EXCLUDED.value, reason)

    def _insert(self, url: DiscoveredUrl, status: str, reason: str | None) -> int:
        self.begin()
        values = (
            url.uri, url.name, url.key, url.host, url.link_kind.value, status, url.distance, url.redirects,
            url.is_start, url.is_guess, url.in_sitemap, url.is_sitemap, reason,
            0 if url.is_start else None,
        )  # fmt: skip
        return int(self._execute(_INSERT_URL, values).lastrowid or 0)

    def mark_in_sitemap(self, ids: Iterable[int]) -> None:
        """Record that a sitemap lists these URLs."""
        self.begin()
        self.connection.executemany("UPDATE address SET in_sitemap = 1 WHERE id = ?", ((each,) for each in ids))

    def enqueue_excluded(self, url_id: int, discovered: DiscoveredUrl) -> bool:
        """Enqueue a URL if it was excluded before; return whether it was."""
        self.begin()
        sql = (
            "UPDATE address SET standing = 'queued', reason = NULL, far = ?, use = ?, in_sitemap = max(in_sitemap, ?) "
            "WHERE id = ? AND standing = 'left-out'"
        )
        return (
            self._execute(
                sql, (discovered.distance, discovered.link_kind.value, discovered.in_sitemap, url_id)
            ).rowcount
            > 0
        )

    def add_links(self, source: int, targets: Iterable[tuple[int, LinkKind]]) -> None:
        """Store the links of a page."""
        self.begin()
        rows = ((source, target, link_kind.value) for target, link_kind in targets if target != source)
        self.connection.executemany("INSERT OR IGNORE INTO link VALUES (?, ?, ?)", rows)

    def next_queued(self, host: str) -> QueuedUrl | None:
        """Return the next URL to fetch on a host; None if there is none."""
        sql = f"SELECT {_QUEUED_COLUMNS} FROM address WHERE standing = 'queued' AND host = ? ORDER BY far, id LIMIT 1"  # noqa: S608
        row = self._execute(sql, (host,)).fetchone()
        if row is None:
            return None
        url_id, uri, link_kind, distance, redirects, attempts, is_sitemap, is_guess = row
        return QueuedUrl(
            url_id, uri, LinkKind(link_kind), distance, redirects, attempts, bool(is_sitemap), bool(is_guess)
        )

    def queued_hosts(self) -> list[str]:
        """Return the hosts with queued URLs, those nearest to a seed first."""
        sql = "SELECT host FROM address WHERE standing = 'queued' GROUP BY host ORDER BY min(far), min(id)"
        return [host for (host,) in self._execute(sql)]

    # Results

    def finish(self, url_id: int, outcome: CrawlOutcome, **details: object) -> None:
        """Store the final status of a URL.

        Args:
            url_id: Id of the URL.
            outcome: The final status.
            details: Columns of the table `address`, with their values.
        """
        self.begin()
        columns = {"standing": outcome.value, **details}
        names = ", ".join(f"{name} = ?" for name in columns)
        values = [encode_text(value) for value in columns.values()]
        self._execute(f"UPDATE address SET {names} WHERE id = ?", (*values, url_id))  # noqa: S608  names are ours

    def requeue(self, url_id: int) -> None:
        """Enqueue a URL for another attempt, after all URLs of the same distance."""
        self.begin()
        self._execute("UPDATE address SET tries = tries + 1, far = far + 1 WHERE id = ?", (url_id,))

    def delete(self, url_id: int) -> None:
        """Delete a guessed URL that does not exist."""
        self.begin()
        self._execute("DELETE FROM address WHERE id = ?", (url_id,))

    def requeue_robots_unreachable(self) -> int:
        """Enqueue URLs that were forbidden because robots.txt could not be fetched; return their number."""
        self.begin()
        sql = (
            "UPDATE address SET standing = 'queued', reason = NULL, tries = 0 WHERE (standing = 'forbidden' AND "
            "reason = 'robots-unreachable')"
        )
        return self._execute(sql).rowcount

    def count_robots_unreachable(self) -> int:
        """Return the number of URLs forbidden only because robots.txt could not be fetched."""
        sql = "SELECT count(*) FROM address WHERE standing = 'forbidden' AND reason = 'robots-unreachable'"
        return int(self._execute(sql).fetchone()[0])

    def redirect_chain(self, url_id: int, limit: int) -> list[int]:
        """Return the ids of URLs whose redirects led to this one, the last first, at most `limit`."""
        chain: list[int] = []
        while len(chain) < limit:
            row = self._execute("SELECT id FROM address WHERE redirect_id = ? LIMIT 1", (url_id,)).fetchone()
            if row is None or row[0] in chain or row[0] == url_id:
                return chain
            url_id = row[0]
            chain.append(url_id)
        return chain

    # Counts

    def counts_by_status(self) -> dict[str, int]:
        """Return the number of URLs by status."""
        return dict(self._execute("SELECT standing, count(*) FROM address GROUP BY standing"))

    def count_urls(self) -> int:
        """Return the number of known URLs."""
        return int(self._execute("SELECT count(*) FROM address").fetchone()[0])

    def fetched_bytes(self) -> int:
        """Return the total size of fetched bodies in bytes."""
        return int(self._execute("SELECT total(length) FROM address WHERE standing = 'fetched'").fetchone()[0])

    def count_sitemaps(self) -> int:
        """Return the number of known sitemaps."""
        return int(self._execute("SELECT count(*) FROM address WHERE is_sitemap").fetchone()[0])

    def count_in_sitemaps(self) -> int:
        """Return the number of known URLs that a sitemap lists."""
        return int(self._execute("SELECT count(*) FROM address WHERE in_sitemap").fetchone()[0])

    def record_excluded_links(self, reasons: Mapping[str, int]) -> None:
        """Store the numbers of excluded links by reason."""
        self.begin()
        self.connection.executemany("INSERT OR REPLACE INTO left_out VALUES (?, ?)", reasons.items())

    def excluded_links(self) -> dict[str, int]:
        """Return the numbers of excluded links by reason."""
        return dict(self._execute("SELECT reason, count FROM left_out ORDER BY reason"))

    def linked_names(self) -> Iterator[str]:
        """Yield the names of pages found by links alone, in the order of their discovery."""
        sql = "SELECT name FROM address WHERE standing != 'left-out' AND NOT in_sitemap AND NOT is_start ORDER BY id"
        return (name for (name,) in self._execute(sql))

    def compute_hops(self) -> None:
        """Compute for each URL the minimum number of links from a seed (breadth-first search)."""
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

    # WARC files

    def warc_ends(self) -> dict[str, int]:
        """Return the end of the last known record of each WARC file, in bytes."""
        return dict(self._execute("SELECT file, max(offset + size) FROM address WHERE file IS NOT NULL GROUP BY file"))

    def last_record_end(self, file: str, size: int) -> int:
        """Return the end of the last known record of a WARC file within its first `size` bytes."""
        sql = "SELECT max(offset + size) FROM address WHERE file = ? AND offset + size <= ?"
        return int(self._execute(sql, (file, size)).fetchone()[0] or 0)

    def requeue_lost_records(self, file: str, end: int) -> int:
        """Enqueue the URLs whose records a WARC file has lost after byte `end`; return their number."""
        self.begin()
        sql = (
            "UPDATE address SET standing = 'queued', file = NULL, offset = NULL, size = NULL, tries = 0 "
            "WHERE file = ? AND offset + size > ?"
        )
        return self._execute(sql, (file, end)).rowcount


def read_resources(folder: Path) -> Iterator[LiveResource]:
    """Yield the latest observation of each URL, in the order of discovery.

    URLs still in the queue have the outcome EXCLUDED and the reason `not-visited`. Uses constant memory.

    Raises:
        InputError: The folder has no crawl, or its state is damaged.
        OSError: The state cannot be read.
    """
    with _open_read_only(folder) as connection:
        for row in connection.execute(_SELECT_RESOURCES):
            yield _parse_resource(folder, row)


def _parse_resource(folder: Path, row: tuple[object, ...]) -> LiveResource:
    (uri, key, outcome, status, mime, length, digest, seen, last_modified, redirect, hops, linked_from, in_sitemap,
     noarchive, cache_control, etag, reason, truncated, file, offset) = map(decode_text, row)  # fmt: skip
    is_queued = outcome == QUEUED_STATUS
    try:
        return LiveResource(
            require_text(uri), require_text(key), CrawlOutcome.EXCLUDED if is_queued else CrawlOutcome(outcome),
            status, mime,
            length, digest, seen, last_modified, redirect, hops, linked_from, bool(in_sitemap), bool(noarchive),
            cache_control, etag, "not-visited" if is_queued else reason, truncated, file, offset,
        )  # fmt: skip
    except ValueError:
        raise InputError(
            f"{folder / STATE_FILE_NAME}: not the state of {CRAWL_DESCRIPTION}: delete it, and crawl again"
        ) from None


@contextmanager
def _open_read_only(folder: Path) -> Iterator[sqlite3.Connection]:
    file = folder / STATE_FILE_NAME
    if file.is_symlink() or not file.is_file():
        raise InputError(f"{folder}: expected the folder of a crawl, with its {STATE_FILE_NAME}")
    # Without a write-ahead log, no process uses the file: it is opened as immutable, which also works on a read-only
    # disk.
    is_idle = not file.with_name(f"{STATE_FILE_NAME}-wal").exists()
    url = f"file:{quote(str(file))}?{'immutable=1' if is_idle else 'mode=ro'}"
    with translate_sqlite_errors(file, CRAWL_DESCRIPTION):
        opened = sqlite3.connect(url, uri=True, isolation_level=None, timeout=_BUSY_SECONDS)
        with closing(opened) as connection:
            reject_views_and_triggers(connection, file, CRAWL_DESCRIPTION)
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            if (version, application) != (CRAWL_STATE_VERSION, CRAWL_APPLICATION_ID):
                raise InputError(
                    f"{file}: expected the state of {CRAWL_DESCRIPTION} in version {CRAWL_STATE_VERSION}, found "
                    "another one"
                )
            yield connection
