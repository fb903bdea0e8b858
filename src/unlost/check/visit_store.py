# ruff: noqa: S608  only names of tables and columns are inserted into statements
"""The SQLite database of visits, opened by one process at a time, and the tables of the visit in progress."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from errno import ENOENT
from hashlib import sha256
from pathlib import Path
from typing import Self

from unlost import dates
from unlost.check.availability import ArchiveHolding, ResourceAvailability, is_countable, is_live_resource
from unlost.crawl.models import CrawlOutcome, LiveResource
from unlost.errors import InputError
from unlost.problems import unreadable_error_for_errno
from unlost.sqlite import decode_text, encode_text, os_error_of, transaction

SCHEMA_VERSION = 1
"""Version of the schema, stored in `user_version`."""
_APPLICATION_ID = 0x756E6C77  # "unlw": identifies the database as ours
_CACHE_KIB = 16 << 10  # page cache of SQLite, whatever the size of the file
# `live`, `held`, `asked` and `listed` belong to the current or the last visit; the spans belong to all visits. A span
# is a run of consecutive visits with the same observation, so the file grows with changes and not with time.
_SCHEMA = """
CREATE TABLE site (id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE);
CREATE TABLE visit (
    id INTEGER PRIMARY KEY, site INTEGER NOT NULL, time REAL NOT NULL, is_dated INTEGER NOT NULL DEFAULT 1,
    stage TEXT NOT NULL, look TEXT, reason TEXT, before INTEGER, fresh INTEGER NOT NULL DEFAULT 0,
    replicated INTEGER NOT NULL DEFAULT 0, endangered INTEGER NOT NULL DEFAULT 0, vulnerable INTEGER NOT NULL DEFAULT 0,
    unrecoverable INTEGER NOT NULL DEFAULT 0, unknown INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX visit_site ON visit (site, id);
CREATE TABLE resource (
    id INTEGER PRIMARY KEY, site INTEGER NOT NULL, key TEXT NOT NULL, uri TEXT NOT NULL, mime TEXT, first_live INTEGER,
    downloads INTEGER NOT NULL DEFAULT 0, changes INTEGER NOT NULL DEFAULT 0, digest TEXT, UNIQUE (site, key)
);
CREATE TABLE live (
    resource INTEGER PRIMARY KEY, uri TEXT NOT NULL, outcome TEXT NOT NULL, status INTEGER, mime TEXT, length INTEGER,
    digest TEXT, seen TEXT, last_modified TEXT, redirect TEXT, hops INTEGER, linked_from INTEGER NOT NULL,
    is_in_sitemap INTEGER NOT NULL, is_noarchive INTEGER NOT NULL, cache_control TEXT,
    is_drawn INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE held (
    resource INTEGER NOT NULL, archive TEXT NOT NULL, copies INTEGER NOT NULL, first TEXT NOT NULL, last TEXT NOT NULL,
    digest TEXT, migrated INTEGER, PRIMARY KEY (resource, archive)
) WITHOUT ROWID;
CREATE TABLE asked (
    resource INTEGER NOT NULL, archive TEXT NOT NULL, has_answered INTEGER NOT NULL, PRIMARY KEY (resource, archive)
) WITHOUT ROWID;
CREATE TABLE listed (
    site INTEGER NOT NULL, archive TEXT NOT NULL, prefix TEXT NOT NULL, is_whole INTEGER NOT NULL,
    rows INTEGER NOT NULL, beside INTEGER NOT NULL, message TEXT, PRIMARY KEY (site, archive, prefix)
) WITHOUT ROWID;
CREATE TABLE live_span (
    resource INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, is_live INTEGER NOT NULL,
    PRIMARY KEY (resource, first)
) WITHOUT ROWID;
CREATE INDEX live_span_last ON live_span (resource, last);
CREATE TABLE held_span (
    resource INTEGER NOT NULL, archive TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    is_held INTEGER NOT NULL, PRIMARY KEY (resource, archive, first)
) WITHOUT ROWID;
CREATE INDEX held_span_last ON held_span (resource, archive, last);
CREATE TABLE page (
    site INTEGER NOT NULL, place INTEGER NOT NULL, uri TEXT NOT NULL, datetime TEXT NOT NULL, digest TEXT,
    text TEXT NOT NULL, PRIMARY KEY (site, place)
) WITHOUT ROWID;
CREATE TABLE loss (
    id INTEGER PRIMARY KEY, site INTEGER NOT NULL, visit INTEGER NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL,
    since INTEGER NOT NULL, over INTEGER, is_told INTEGER NOT NULL DEFAULT 0
);
"""
_ADDED_TABLES = "CREATE TABLE IF NOT EXISTS judged (resource INTEGER PRIMARY KEY, verdict TEXT NOT NULL)"
"""A table that databases of the first version lack; created when one is opened for writing."""


class VisitDatabase:
    """The database. A context manager.

    Args:
        file: Path of the database.
        is_read_only: Open for reading only: nothing is created or changed.

    Raises:
        InputError: The file is of another kind or version, is a symbolic link, or is locked by another process.
        OSError: The file cannot be written.
    """

    def __init__(self, file: Path, *, is_read_only: bool = False) -> None:
        self.path = file
        companions = [file.with_name(f"{file.name}-{end}") for end in ("journal", "wal", "shm")]
        for each in (file, *companions):
            if each.is_symlink():
                raise InputError(f"{each}: a link, which is not followed: remove it, or name another file")
        if is_read_only and not file.exists():
            raise unreadable_error_for_errno(file, ENOENT, "nothing was watched into it yet")
        with translate_visit_errors(file):
            # The WAL of a killed process must be replayed, which needs write access. Without a WAL, the file is opened
            # as immutable, because any other mode creates files next to it.
            mode = "mode=rw" if companions[1].exists() else "immutable=1"
            database_uri = f"{file.absolute().as_uri()}?{mode if is_read_only else 'mode=rwc'}"
            self.connection = sqlite3.connect(database_uri, uri=True, isolation_level=None, timeout=0)
            try:
                _prepare_database(self.connection, file, is_read_only=is_read_only)
            except BaseException:
                self.connection.close()
                raise

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the database."""
        self.close()

    def close(self) -> None:
        """Close the database and release its lock."""
        self.connection.close()

    def get_or_add_site(self, url: str) -> int:
        """Return the id of a site, which is added if it is new."""
        row = self.connection.execute("SELECT id FROM site WHERE url = ?", (url,)).fetchone()
        if row is None:
            row = self.connection.execute("INSERT INTO site (url) VALUES (?) RETURNING id", (url,)).fetchone()
        return int(row[0])

    def sites(self) -> list[tuple[int, str]]:
        """Return the id and the URL of all sites, in the order in which they were added."""
        return [
            (int(site_id), str(url)) for site_id, url in self.connection.execute("SELECT id, url FROM site ORDER BY id")
        ]


@contextmanager
def translate_visit_errors(file: Path) -> Iterator[None]:
    """Translate SQLite errors to InputError, or to OSError if the disk is full."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_BUSY:
            raise InputError(
                f"{file}: another process is at work on it: wait for that one, or name another file"
            ) from None
        if isinstance(error, sqlite3.OperationalError):
            raise os_error_of(error, file) from error
        raise InputError(f"{file}: not a file of visits: {error}") from error


def _prepare_database(connection: sqlite3.Connection, file: Path, *, is_read_only: bool) -> None:
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute("PRAGMA temp_store = MEMORY")
    if not is_read_only:
        # Exclusive from the first write on, so that two processes do not visit the site twice.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        # A power failure may lose the last responses, which are then requested again; a killed process loses nothing.
        connection.execute("PRAGMA synchronous = NORMAL")
        with transaction(connection):
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != _APPLICATION_ID:
        raise InputError(f"{file}: a database, but not of visits: name another file")
    if version != SCHEMA_VERSION:
        raise InputError(
            f"{file}: expected visits in version {SCHEMA_VERSION}, found {version}: it is of another unlost"
        )
    if not is_read_only:
        connection.execute(_ADDED_TABLES)


_LIVE_COLUMNS = (
    "uri, outcome, status, mime, length, digest, seen, last_modified, redirect, hops, linked_from, is_in_sitemap, "
    "is_noarchive, cache_control"
)
_LIVE_UPDATES = ", ".join(f"{name} = excluded.{name}" for name in _LIVE_COLUMNS.split(", "))
_QUALIFIED_LIVE_COLUMNS = ", ".join(f"live.{name}" for name in _LIVE_COLUMNS.split(", "))
_FROM_LIVE = "live JOIN resource ON resource.id = live.resource WHERE resource.site = ?"
_BATCH_ROWS = 500  # keys per query


class VisitStage(StrEnum):
    """Progress of a visit."""

    BEGUN = "begun"
    CRAWLED = "crawled"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class SiteVisit:
    """One visit of a site.

    Attributes:
        id: The visit's id.
        site: The site's id.
        time: Start of the visit, in seconds since 1970.
        stage: Progress of the visit.
        before: Id of the previous visit; None for the first.
    """

    id: int
    site: int
    time: float
    stage: VisitStage
    before: int | None


@dataclass(frozen=True, slots=True)
class ListingResult:
    """The result of a CDX listing.

    Attributes:
        archive: The archive's id.
        prefix: The URL prefix that was listed.
        is_whole: Whether the listing is complete.
        rows: Number of rows.
        beside: Number of listed URLs that the crawl did not find. The name is part of the JSON output.
        message: The error; None if the listing is complete.
    """

    archive: str
    prefix: str
    is_whole: bool
    rows: int = 0
    beside: int = 0
    message: str | None = None


class CurrentVisit:
    """The tables of the visit in progress, or of the last one."""

    def __init__(self, file: VisitDatabase, visit: SiteVisit) -> None:
        self.visit = visit
        self._data = file.connection

    def _transaction(self) -> AbstractContextManager[None]:
        return transaction(self._data)

    def record_live(self, resources: Sequence[LiveResource]) -> None:
        """Store crawled resources.

        URLs with the same key are one resource, of which the best response counts: `http://` often redirects to
        `https://`.
        """
        with self._transaction():
            for each in resources:
                resource_id = self._get_or_add_resource(each)
                before = self._load_live(resource_id)
                if before is None or before.uri == each.uri or _response_rank(before) < _response_rank(each):
                    self._data.execute(
                        f"INSERT INTO live (resource, {_LIVE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                        "?, ?, ?) "
                        f"ON CONFLICT (resource) DO UPDATE SET {_LIVE_UPDATES}",
                        (resource_id, *_live_values(each)),
                    )

    def mark_crawled(self) -> None:
        """Record that the crawl is complete."""
        self._data.execute("UPDATE visit SET stage = ? WHERE id = ?", (VisitStage.CRAWLED, self.visit.id))

    def filter_seen(self, keys: Sequence[str]) -> set[str]:
        """Return those of the keys that were crawled, whatever the outcome."""
        seen: set[str] = set()
        for start in range(0, len(keys), _BATCH_ROWS):
            batch = keys[start : start + _BATCH_ROWS]
            placeholders = ", ".join("?" * len(batch))
            rows = self._data.execute(
                f"SELECT key FROM {_FROM_LIVE} AND key IN ({placeholders})", (self.visit.site, *batch)
            )
            seen.update(str(key) for (key,) in rows)
        return seen

    def record_listing(self, result: ListingResult, held: Mapping[str, ArchiveHolding]) -> None:
        """Store the holdings of a listing and its result, in one transaction.

        Holdings of resources that were not crawled are dropped.
        """
        with self._transaction():
            resource_ids = dict(self._seen_ids(held))
            self._insert_holdings((resource_ids[key], each) for key, each in held.items() if key in resource_ids)
            self._data.execute(
                "INSERT OR REPLACE INTO listed VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    self.visit.site,
                    result.archive,
                    result.prefix,
                    result.is_whole,
                    result.rows,
                    result.beside,
                    encode_text(result.message),
                ),
            )

    def record_holdings(self, held: Mapping[str, ArchiveHolding]) -> None:
        """Store holdings by key. Holdings of resources that were not crawled are dropped."""
        with self._transaction():
            resource_ids = dict(self._seen_ids(held))
            self._insert_holdings((resource_ids[key], each) for key, each in held.items() if key in resource_ids)

    def listings(self) -> list[ListingResult]:
        """Return the results of all listings."""
        rows = self._data.execute(
            "SELECT archive, prefix, is_whole, rows, beside, message FROM listed WHERE site = ? ORDER BY 1, 2",
            (self.visit.site,),
        )
        return [
            ListingResult(archive, prefix, bool(whole), count, beside, decode_text(message))
            for archive, prefix, whole, count, beside, message in rows
        ]

    def record_query(self, resource: int, archive: str, held: ArchiveHolding | None, *, has_answered: bool) -> None:
        """Store the response of one archive about one resource."""
        with self._transaction():
            if held is not None:
                self._insert_holdings([(resource, held)])
            self._data.execute("INSERT OR REPLACE INTO asked VALUES (?, ?, ?)", (resource, archive, has_answered))

    def draw_sample(self, max_size: int | None, *, include_held: bool) -> None:
        """Choose the resources that archives are queried for one by one.

        Resources with the lowest hashes of their keys are chosen: a pseudo-random sample that is the same at every
        visit, so that it shows how resources change from one visit to the next.

        Args:
            max_size: Size of the sample; None for all resources.
            include_held: Whether resources that an archive is known to hold may be sampled.
        """
        rows = self._data.execute(
            f"SELECT resource, key, {_QUALIFIED_LIVE_COLUMNS} FROM {_FROM_LIVE}", (self.visit.site,)
        ).fetchall()
        held = {resource_id for (resource_id,) in self._data.execute("SELECT DISTINCT resource FROM held")}
        candidates = [
            (sha256(str(key).encode("utf-8", "surrogatepass")).digest(), resource_id)
            for resource_id, key, *fields in rows
            if is_countable(_make_live_resource(str(key), fields)) and (include_held or resource_id not in held)
        ]
        candidates.sort()
        chosen = candidates if max_size is None else candidates[:max_size]
        with self._transaction():
            self._data.execute(
                "UPDATE live SET is_drawn = 0 WHERE resource IN (SELECT id FROM resource WHERE site = ?)",
                (self.visit.site,),
            )
            self._data.executemany(
                "UPDATE live SET is_drawn = 1 WHERE resource = ?", [(resource_id,) for _, resource_id in chosen]
            )

    def sample(self) -> list[tuple[int, str, str | None]]:
        """Return id, URL and media type of the sampled resources."""
        rows = self._data.execute(
            f"SELECT live.resource, live.uri, live.mime FROM {_FROM_LIVE} AND is_drawn ORDER BY live.resource",
            (self.visit.site,),
        )
        return [(int(resource_id), decode_text(uri), decode_text(mime)) for resource_id, uri, mime in rows]

    def record_verdict(self, resource_id: int, verdict: str) -> None:
        """Store why the captures of a resource are bad; `GOOD_CAPTURE` if one is good."""
        self._data.execute("INSERT OR REPLACE INTO judged VALUES (?, ?)", (resource_id, verdict))

    def verdicts(self) -> dict[int, str]:
        """Return the verdicts by resource id."""
        rows = self._data.execute(
            "SELECT judged.resource, verdict FROM judged JOIN resource ON resource.id = judged.resource WHERE site = ?",
            (self.visit.site,),
        )
        return {int(resource_id): str(verdict) for resource_id, verdict in rows}

    def answered_queries(self) -> set[tuple[int, str]]:
        """Return the resource id and the archive of every query that was answered."""
        rows = self._data.execute(
            "SELECT asked.resource, archive FROM asked JOIN resource ON resource.id = asked.resource "
            "WHERE site = ? AND has_answered",
            (self.visit.site,),
        )
        return {(int(resource_id), str(archive)) for resource_id, archive in rows}

    def availabilities(self, archives: Iterable[str]) -> Iterator[ResourceAvailability]:
        """Yield all countable resources, by URL key, with their holdings.

        A resource is settled if each of `archives` has listed the whole site, or responded about the resource.
        """
        for _, availability in self.numbered_availabilities(archives):
            yield availability

    def numbered_availabilities(self, archives: Iterable[str]) -> Iterator[tuple[int, ResourceAvailability]]:
        """Yield all countable resources as `availabilities` does, each with its id."""
        queried = frozenset(archives)
        listed, verdicts = self.complete_listings(), self.verdicts()
        rows = self._data.execute(
            "SELECT resource.id, key, (SELECT time FROM visit WHERE id = first_live), is_drawn, "
            f"{_QUALIFIED_LIVE_COLUMNS} "
            f"FROM {_FROM_LIVE} ORDER BY key",
            (self.visit.site,),
        ).fetchall()
        for resource_id, key, first, is_drawn, *fields in rows:
            live = _make_live_resource(str(key), fields)
            # A redirect counts only if its URL was a resource at an earlier visit, which is gone now.
            if live.outcome is CrawlOutcome.EXCLUDED or (first is None and not is_countable(live)):
                continue
            held = tuple(
                ArchiveHolding(archive, captures, begin, end, digest, None if migrated is None else bool(migrated))
                for archive, captures, begin, end, digest, migrated in self._data.execute(
                    "SELECT archive, copies, first, last, digest, migrated FROM held WHERE resource = ? "
                    "ORDER BY archive",
                    (resource_id,),
                )
            )
            answered = self._archives_answered(resource_id)
            is_settled = queried <= listed | answered
            first_seen = None if first is None else dates.from_epoch(str(int(first)))
            yield (
                int(resource_id),
                ResourceAvailability(
                    live, held, is_settled, bool(is_drawn), first_seen, verdicts.get(int(resource_id))
                ),
            )

    def complete_listings(self) -> frozenset[str]:
        """Return the archives that have listed the whole site."""
        complete: dict[str, bool] = {}
        for each in self.listings():
            complete[each.archive] = complete.get(each.archive, True) and each.is_whole
        return frozenset(archive for archive, is_whole in complete.items() if is_whole)

    def _archives_answered(self, resource_id: int) -> set[str]:
        rows = self._data.execute("SELECT archive FROM asked WHERE resource = ? AND has_answered", (resource_id,))
        return {str(archive) for (archive,) in rows}

    def _insert_holdings(self, rows: Iterable[tuple[int, ArchiveHolding]]) -> None:
        self._data.executemany(
            "INSERT OR REPLACE INTO held VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (resource_id, each.archive, each.captures, each.first, each.last, each.digest, each.migrated)
                for resource_id, each in rows
            ],
        )

    def _seen_ids(self, keys: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Yield key and id of those of the keys that were crawled."""
        for key in keys:
            row = self._data.execute(f"SELECT id FROM {_FROM_LIVE} AND key = ?", (self.visit.site, key)).fetchone()
            if row is not None:
                yield key, int(row[0])

    def _get_or_add_resource(self, resource: LiveResource) -> int:
        """Return the id of a resource, which is added if it is new."""
        row = self._data.execute(
            "INSERT INTO resource (site, key, uri) VALUES (?, ?, ?) "
            "ON CONFLICT (site, key) DO UPDATE SET uri = uri RETURNING id",
            (self.visit.site, resource.key, encode_text(resource.uri)),
        ).fetchone()
        return int(row[0])

    def _load_live(self, resource_id: int) -> LiveResource | None:
        row = self._data.execute(f"SELECT {_LIVE_COLUMNS} FROM live WHERE resource = ?", (resource_id,)).fetchone()
        return None if row is None else _make_live_resource("", row)


def _response_rank(resource: LiveResource) -> int:
    """Return the rank of a response among those at one key: page, forbidden by robots.txt, error, other."""
    if not is_countable(resource):
        return 0
    if is_live_resource(resource):
        return 3 if resource.outcome is CrawlOutcome.FETCHED else 2
    return 1


def _live_values(each: LiveResource) -> tuple[object, ...]:
    return (
        encode_text(each.uri),
        each.outcome.value,
        each.status,
        encode_text(each.mime),
        each.length,
        each.digest,
        each.seen,
        each.last_modified,
        encode_text(each.redirect),
        each.hops,
        each.linked_from,
        each.is_in_sitemap,
        each.is_noarchive,
        encode_text(each.cache_control),
    )


def _make_live_resource(key: str, fields: Sequence[object]) -> LiveResource:
    uri, outcome, status, mime, length, digest, seen, modified, redirect, hops, links, sitemap, noarchive, cache = map(
        decode_text, fields
    )
    return LiveResource(
        uri, key, CrawlOutcome(outcome), status, mime, length, digest, seen, modified, redirect, hops, links,
        bool(sitemap), bool(noarchive), cache,
    )  # fmt: skip
