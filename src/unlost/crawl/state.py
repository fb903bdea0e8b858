"""State of a crawl in SQLite: the queue, fetched resources, links, robots.txt; and its read-only reader.

`FetchState` is what every state of live fetches has in common (also harvests). Nothing lasts before `commit`.
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


def prepare_state(
    connection: sqlite3.Connection, file: Path, description: str, application: int, version: int, schema: str
) -> None:
    """Make the tables of a state, or refuse those that are there.

    application: what SQLite files of this kind are told by, since others have the same name. Raises InputError.
    """
    sqlite.reject_views_and_triggers(connection, file, description)
    found = sqlite.schema_version(connection)
    if found is None:
        connection.execute(f"PRAGMA application_id = {application}")
        sqlite.migrate_schema(connection, schema, version)
    elif (found, connection.execute("PRAGMA application_id").fetchone()[0]) != (version, application):
        raise InputError(f"{file}: expected the state of {description} in version {version}, found another one")


class FetchState(sqlite.StateFile):
    """A state with the tables `FACT_TABLE` and `ROBOTS_TABLE`, and others. It is a RobotsStore."""

    def __init__(self, folder: Path, what: str, prepare: Callable[[sqlite3.Connection, Path], None]) -> None:
        super().__init__(folder, what, prepare)
        self._execute = self.connection.execute

    def files_before_state(self, files: Iterable[str]) -> frozenset[str]:
        """Return which WARCs were there before this state was: `files`, when it is asked for the first time."""
        self.begin()
        text = json.dumps(sorted(files))
        self._execute("INSERT OR IGNORE INTO fact VALUES ('files before', ?)", (text,))
        (kept,) = self._execute("SELECT value FROM fact WHERE name = 'files before'").fetchone()
        return frozenset(json.loads(kept))

    def get(self, origin: str) -> RobotsResponse | None:
        """Return what robots.txt of a site said."""
        row = self._execute("SELECT asked, status, text FROM robots WHERE origin = ?", (origin,)).fetchone()
        return None if row is None else RobotsResponse(float(row[0]), row[1], bytes(row[2]))

    def put(self, origin: str, response: RobotsResponse) -> None:
        """Keep what it said."""
        self.begin()
        self._execute(
            "INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?)",
            (origin, response.requested_at, response.status, response.text),
        )

    def forget_failed_robots(self) -> None:
        """Forget which sites gave no robots.txt, so that another run asks for it."""
        self.begin()
        self._execute("DELETE FROM robots WHERE status IS NULL OR status >= 500 OR status = 429")


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


_BUSY_SECONDS = 10.0  # others write for moments only
_SELECT_RESOURCES = """
SELECT uri, key, standing, status, mime, length, digest, seen, last_modified, redirect, hops,
    (SELECT count(DISTINCT source) FROM link WHERE target = address.id), in_sitemap, noarchive, cache_control, etag,
    reason, truncated, file, offset
FROM address ORDER BY id
"""
_SELECT_LINKS = """
SELECT source.uri, target.uri, link.use FROM link JOIN address AS source ON source.id = link.source
JOIN address AS target ON target.id = link.target
"""


@dataclass(frozen=True, slots=True)
class CrawledLink:
    """A link between two addresses of a site, as resources have them. use: what it is for."""

    source: str
    target: str
    use: LinkKind


def read_resources(folder: Path) -> Iterator[LiveResource]:
    """Yield what the crawl in a folder knows of each address, in the order in which they were found.

    What is still to be visited is left out, as its outcome says, with the reason `not-visited`. Memory is that of one
    row. Raises InputError for a folder that has no crawl, or a state that is none; OSError where it cannot be read.
    """
    with _open_read_only(folder) as connection:
        for row in connection.execute(_SELECT_RESOURCES):
            yield _parse_resource(folder, row)


def read_links(folder: Path, target: str | None = None) -> Iterator[CrawledLink]:
    """Yield who links to what, as far as both belong to the site, in the order in which they were found.

    target: only the links to this address, as its resource has it. Raises as `read_resources`.
    """
    with _open_read_only(folder) as connection:
        if target is None:
            rows = connection.execute(f"{_SELECT_LINKS} ORDER BY link.source, link.target, link.use")
        else:
            rows = connection.execute(f"{_SELECT_LINKS} WHERE target.uri = ? ORDER BY link.source, link.use", (target,))
        for source, found, use in rows:
            yield CrawledLink(source, found, LinkKind(use))


def _parse_resource(folder: Path, row: tuple[object, ...]) -> LiveResource:
    (uri, key, standing, status, mime, length, digest, seen, last_modified, redirect, hops, linked_from, in_sitemap,
     noarchive, cache_control, etag, reason, truncated, file, offset) = map(decode_text, row)  # fmt: skip
    is_queued = standing == QUEUED_STATUS
    try:
        return LiveResource(
            require_text(uri), require_text(key), CrawlOutcome.EXCLUDED if is_queued else CrawlOutcome(standing),
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
    # Where nobody is at work on it there is nothing beside the file, and it can be read as it stands.
    is_quiet = not file.with_name(f"{STATE_FILE_NAME}-wal").exists()
    address = f"file:{quote(str(file))}?{'immutable=1' if is_quiet else 'mode=ro'}"
    with translate_sqlite_errors(file, CRAWL_DESCRIPTION):
        opened = sqlite3.connect(address, uri=True, isolation_level=None, timeout=_BUSY_SECONDS)
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
