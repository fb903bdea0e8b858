# ruff: noqa: S608  what is put into statements are names of our own tables and columns
"""The SQLite file of visits, opened by one process at a time, and the tables of the visit in progress."""

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
"""Of the tables."""
_APPLICATION_ID = 0x756E6C77  # "unlw": so that another program's database is not taken for one of ours
_CACHE_KIB = 16 << 10  # of the file, in memory, however large it is
# What stands behind `live` is of the visit that goes on, or was the last; the spans are of all visits. A span is a run
# of visits, one after the other, that saw the same: so the file grows with what changes, not with the days.
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
"""What the first files did not have."""


class VisitDatabase:
    """The file. Use it as a context manager, or close it.

    Raises InputError for a file of another kind or version, a link in its place, and where another process has it;
    OSError where it cannot be written. is_read_only: only for looking: nothing is made or changed.
    """

    def __init__(self, file: Path, *, is_read_only: bool = False) -> None:
        self.path = file
        besides = [file.with_name(f"{file.name}-{end}") for end in ("journal", "wal", "shm")]
        for each in (file, *besides):
            if each.is_symlink():
                raise InputError(f"{each}: a link, which is not followed: remove it, or name another file")
        if is_read_only and not file.exists():
            raise unreadable_error_for_errno(file, ENOENT, "nothing was watched into it yet")
        with translate_sqlite_errors(file):
            # What a killed process left has to be put into the file before anybody can read it; where nothing was left,
            # it is read as it stands, since anything else would write beside it.
            reading = "mode=rw" if besides[1].exists() else "immutable=1"
            where = f"{file.absolute().as_uri()}?{reading if is_read_only else 'mode=rwc'}"
            self.connection = sqlite3.connect(where, uri=True, isolation_level=None, timeout=0)
            try:
                _prepare_database(self.connection, file, is_read_only=is_read_only)
            except BaseException:
                self.connection.close()
                raise

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Let others have it."""
        self.connection.close()

    def get_or_add_site(self, url: str) -> int:
        """Return the number of a site, which is noted if it is new."""
        row = self.connection.execute("SELECT id FROM site WHERE url = ?", (url,)).fetchone()
        if row is None:
            row = self.connection.execute("INSERT INTO site (url) VALUES (?) RETURNING id", (url,)).fetchone()
        return int(row[0])

    def sites(self) -> list[tuple[int, str]]:
        """Return all sites: their numbers and addresses, in the order in which they came."""
        return [
            (int(number), str(url)) for number, url in self.connection.execute("SELECT id, url FROM site ORDER BY id")
        ]


@contextmanager
def translate_sqlite_errors(file: Path) -> Iterator[None]:
    """Turn what SQLite says into words about a file. Raises InputError, OSError for a full disk."""
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
        # From the first change on nobody else has it: two processes would visit the site twice.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        # A power cut may take the last answers, which are asked for again; a kill takes nothing.
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
_BATCH_ROWS = 500  # rows at once


class VisitStage(StrEnum):
    """How far a visit has come."""

    BEGUN = "begun"
    CRAWLED = "crawled"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class SiteVisit:
    """One visit of a site. time: when it was begun, in seconds since 1970. before: the visit before it."""

    id: int
    site: int
    time: float
    stage: VisitStage
    before: int | None


@dataclass(frozen=True, slots=True)
class ListingResult:
    """How a lister query ended.

    is_whole: whether everything was listed. rows: captures. beside: addresses that it has and the site was not seen to.
    """

    archive: str
    prefix: str
    is_whole: bool
    rows: int = 0
    beside: int = 0
    message: str | None = None


class CurrentVisit:
    """The tables of the visit that goes on."""

    def __init__(self, file: VisitDatabase, visit: SiteVisit) -> None:
        self.visit = visit
        self._data = file.connection

    def _transaction(self) -> AbstractContextManager[None]:
        return transaction(self._data)

    def record_live(self, resources: Sequence[LiveResource]) -> None:
        """Keep what was seen on the web.

        Addresses with one key are one resource, and the best answer counts: `http://` often redirects to `https://`.
        """
        with self._transaction():
            for each in resources:
                number = self._get_or_add_resource(each)
                before = self._load_live(number)
                if before is None or before.uri == each.uri or _response_rank(before) < _response_rank(each):
                    self._data.execute(
                        f"INSERT INTO live (resource, {_LIVE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                        "?, ?, ?) "
                        f"ON CONFLICT (resource) DO UPDATE SET {_LIVE_UPDATES}",
                        (number, *_live_values(each)),
                    )

    def mark_crawled(self) -> None:
        """Note that all was seen that there is to see."""
        self._data.execute("UPDATE visit SET stage = ? WHERE id = ?", (VisitStage.CRAWLED, self.visit.id))

    def count_seen(self) -> int:
        """Return how many addresses were seen."""
        return int(self._data.execute(f"SELECT count(*) FROM {_FROM_LIVE}", (self.visit.site,)).fetchone()[0])

    def filter_seen(self, keys: Sequence[str]) -> set[str]:
        """Return which of these were seen on the web, or at least looked for."""
        found: set[str] = set()
        for start in range(0, len(keys), _BATCH_ROWS):
            part = keys[start : start + _BATCH_ROWS]
            marks = ", ".join("?" * len(part))
            rows = self._data.execute(f"SELECT key FROM {_FROM_LIVE} AND key IN ({marks})", (self.visit.site, *part))
            found.update(str(key) for (key,) in rows)
        return found

    def record_listing(self, result: ListingResult, held: Mapping[str, ArchiveHolding]) -> None:
        """Keep what an archive lists, by key, and how that ended: all at once. Only what was seen is kept."""
        with self._transaction():
            numbers = dict(self._seen_numbers(held))
            self._insert_holdings((numbers[key], each) for key, each in held.items() if key in numbers)
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
        """Keep what an archive has, by key, of what was seen meanwhile."""
        with self._transaction():
            numbers = dict(self._seen_numbers(held))
            self._insert_holdings((numbers[key], each) for key, each in held.items() if key in numbers)

    def listings(self) -> list[ListingResult]:
        """Return how all lister queries ended."""
        rows = self._data.execute(
            "SELECT archive, prefix, is_whole, rows, beside, message FROM listed WHERE site = ? ORDER BY 1, 2",
            (self.visit.site,),
        )
        return [
            ListingResult(archive, prefix, bool(whole), count, beside, decode_text(message))
            for archive, prefix, whole, count, beside, message in rows
        ]

    def record_query(self, resource: int, archive: str, held: ArchiveHolding | None, *, has_answered: bool) -> None:
        """Keep what one archive said of one resource."""
        with self._transaction():
            if held is not None:
                self._insert_holdings([(resource, held)])
            self._data.execute("INSERT OR REPLACE INTO asked VALUES (?, ?, ?)", (resource, archive, has_answered))

    def draw_sample(self, max_size: int | None, *, include_held: bool) -> None:
        """Choose which resources archives are asked for one by one.

        most: how many; None for all. also_held: whether those are, too, that an archive is known to have.
        Those with the lowest hashes of their keys are chosen: the same ones at every visit, and as good as at random.
        """
        rows = self._data.execute(
            f"SELECT resource, key, {_QUALIFIED_LIVE_COLUMNS} FROM {_FROM_LIVE}", (self.visit.site,)
        ).fetchall()
        held = {number for (number,) in self._data.execute("SELECT DISTINCT resource FROM held")}
        there = [
            (sha256(str(key).encode("utf-8", "surrogatepass")).digest(), number)
            for number, key, *fields in rows
            if is_countable(_make_live_resource(str(key), fields)) and (include_held or number not in held)
        ]
        there.sort()
        chosen = there if max_size is None else there[:max_size]
        with self._transaction():
            self._data.execute(
                "UPDATE live SET is_drawn = 0 WHERE resource IN (SELECT id FROM resource WHERE site = ?)",
                (self.visit.site,),
            )
            self._data.executemany(
                "UPDATE live SET is_drawn = 1 WHERE resource = ?", [(number,) for _, number in chosen]
            )

    def sample(self) -> list[tuple[int, str, str | None]]:
        """Return those that were chosen: number, address, media type; in an order that says nothing of them."""
        rows = self._data.execute(
            f"SELECT live.resource, live.uri, live.mime FROM {_FROM_LIVE} AND is_drawn ORDER BY live.resource",
            (self.visit.site,),
        )
        return [(int(number), decode_text(uri), decode_text(mime)) for number, uri, mime in rows]

    def record_verdict(self, number: int, verdict: str) -> None:
        """Keep what is wrong with the copies of a resource, in a word; empty if nothing is."""
        self._data.execute("INSERT OR REPLACE INTO judged VALUES (?, ?)", (number, verdict))

    def verdicts(self) -> dict[int, str]:
        """Return what came of judging copies, by the number of the resource."""
        rows = self._data.execute(
            "SELECT judged.resource, verdict FROM judged JOIN resource ON resource.id = judged.resource WHERE site = ?",
            (self.visit.site,),
        )
        return {int(number): str(verdict) for number, verdict in rows}

    def answered_queries(self) -> set[tuple[int, str]]:
        """Return which archives have answered which single questions: number of the resource, and archive."""
        rows = self._data.execute(
            "SELECT asked.resource, archive FROM asked JOIN resource ON resource.id = asked.resource "
            "WHERE site = ? AND has_answered",
            (self.visit.site,),
        )
        return {(int(number), str(archive)) for number, archive in rows}

    def availabilities(self, archives: Iterable[str]) -> Iterator[ResourceAvailability]:
        """Yield all resources that count, by address, with what these archives have of them.

        archives: those that might have it: a resource is settled if each has listed the site, or answered for it.
        """
        for _, standing in self.numbered_availabilities(archives):
            yield standing

    def numbered_availabilities(self, archives: Iterable[str]) -> Iterator[tuple[int, ResourceAvailability]]:
        """Yield the same, each with its number."""
        asked_of = frozenset(archives)
        whole, verdicts = self.complete_listings(), self.verdicts()
        rows = self._data.execute(
            "SELECT resource.id, key, (SELECT time FROM visit WHERE id = first_live), is_drawn, "
            f"{_QUALIFIED_LIVE_COLUMNS} "
            f"FROM {_FROM_LIVE} ORDER BY key",
            (self.visit.site,),
        ).fetchall()
        for number, key, first, is_drawn, *fields in rows:
            live = _make_live_resource(str(key), fields)
            # What was there once and is a redirect now has gone; what was left out was not looked at.
            if live.outcome is CrawlOutcome.EXCLUDED or (first is None and not is_countable(live)):
                continue
            held = tuple(
                ArchiveHolding(archive, copies, begin, end, digest, None if migrated is None else bool(migrated))
                for archive, copies, begin, end, digest, migrated in self._data.execute(
                    "SELECT archive, copies, first, last, digest, migrated FROM held WHERE resource = ? "
                    "ORDER BY archive",
                    (number,),
                )
            )
            answers = self._archives_answered(number)
            is_settled = asked_of <= whole | answers
            seen_first = None if first is None else dates.from_epoch(str(int(first)))
            yield (
                int(number),
                ResourceAvailability(live, held, is_settled, bool(is_drawn), seen_first, verdicts.get(int(number))),
            )

    def complete_listings(self) -> frozenset[str]:
        """Return which archives have listed all of the site."""
        found: dict[str, bool] = {}
        for each in self.listings():
            found[each.archive] = found.get(each.archive, True) and each.is_whole
        return frozenset(archive for archive, is_whole in found.items() if is_whole)

    def _archives_answered(self, number: int) -> set[str]:
        rows = self._data.execute("SELECT archive FROM asked WHERE resource = ? AND has_answered", (number,))
        return {str(archive) for (archive,) in rows}

    def _insert_holdings(self, rows: Iterable[tuple[int, ArchiveHolding]]) -> None:
        self._data.executemany(
            "INSERT OR REPLACE INTO held VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (number, each.archive, each.copies, each.first, each.last, each.digest, each.migrated)
                for number, each in rows
            ],
        )

    def _seen_numbers(self, keys: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Yield the numbers of those that were seen, by key."""
        for key in keys:
            row = self._data.execute(f"SELECT id FROM {_FROM_LIVE} AND key = ?", (self.visit.site, key)).fetchone()
            if row is not None:
                yield key, int(row[0])

    def _get_or_add_resource(self, resource: LiveResource) -> int:
        """Return the number of a resource, which is noted if it is new."""
        row = self._data.execute(
            "INSERT INTO resource (site, key, uri) VALUES (?, ?, ?) "
            "ON CONFLICT (site, key) DO UPDATE SET uri = uri RETURNING id",
            (self.visit.site, resource.key, encode_text(resource.uri)),
        ).fetchone()
        return int(row[0])

    def _load_live(self, number: int) -> LiveResource | None:
        row = self._data.execute(f"SELECT {_LIVE_COLUMNS} FROM live WHERE resource = ?", (number,)).fetchone()
        return None if row is None else _make_live_resource("", row)


def _response_rank(resource: LiveResource) -> int:
    """Return which of several answers at one key counts: a page, then what is forbidden, then what is missing."""
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
