"""The state of a harvest in SQLite: pages with their latest stored capture, host behaviour, and the pending queue."""

import json
import re
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Self

from unlost.crawl.state import FACT_TABLE, ROBOTS_TABLE, FetchState, prepare_state
from unlost.crawl.warc_store import WarcLocation
from unlost.errors import InputError
from unlost.refresh.page_text_digest import PageTextSketch
from unlost.refresh.policy import HostChanges
from unlost.refresh.visit import Visit, parse_visit_row, serialize_visit
from unlost.sqlite import decode_text, encode_text, require_text

MIN_SAMPLES = 3
"""Conditional requests before a host's behaviour is relied on. One response may be chance: a host may have several
servers that behave differently.
"""
_CONTRADICTION_WEIGHT = 20  # correct responses required per contradiction: at most 5 % may be wrong

_HEADER_VALUE = re.compile(r"[\x20-\x7e\x80-\xff]{1,4096}")
_RETAINED_FIELDS = ("etag", "last_modified", "repr_digest", "cache_control", "expires", "server", "content_length")
"""Headers of the previous response that apply if a 304 response omits them (RFC 9111, section 4.3.4)."""
STATE_VERSION = 1
STATE_KIND = "harvests"
APPLICATION_ID = 0x756E6C68
"""SQLite application_id of harvest states: `unlh`. States of crawls and recoveries have the same file name."""
MAX_INTERVALS = 32
"""Intervals stored per page: enough for a rate, and older ones are less relevant."""
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
_PAGE_COLUMNS = "id, uri, key, tries, looked, intervals, visit, final, size, ours, sketch, copy, outcome, round"


@dataclass(frozen=True, slots=True)
class HostBehaviour:
    """How a host responded to conditional requests and HEAD, compared with the decisions of the scheme.

    The field names are stored in the state.

    Attributes:
        spared: 304 responses where the scheme skips, too.
        sent: Full responses where the scheme downloads, too.
        needless: Full responses where the scheme skips.
        against: 304 responses where the scheme downloads, or an audit found a change.
        head_alike: HEAD responses with the headers of the following GET.
        head_unlike: HEAD responses with other validators present than in GET, or with an error status.
        unasked: 304 responses to unconditional requests.
    """

    spared: int = 0
    sent: int = 0
    needless: int = 0
    against: int = 0
    head_alike: int = 0
    head_unlike: int = 0
    unasked: int = 0

    @classmethod
    def from_json(cls, values: object) -> Self:
        """Reverse `to_json`. Invalid values count as 0."""
        stored = values if isinstance(values, dict) else {}
        counts = {each.name: stored.get(each.name) for each in fields(cls)}
        return cls(**{name: count for name, count in counts.items() if type(count) is int and 0 <= count < 2**60})

    @property
    def to_json(self) -> dict[str, int]:
        """The counts by name, without zeros."""
        return {name: count for name, count in asdict(self).items() if count}

    def increment(self, name: str) -> Self:
        """Return a copy with one count increased by 1."""
        return replace(self, **{name: getattr(self, name) + 1})

    @property
    def matches_scheme(self) -> bool:
        """Whether conditional requests give the same result as the scheme, so that a 304 can replace its decision.

        >>> HostBehaviour(spared=3, sent=1).matches_scheme, HostBehaviour(spared=3).matches_scheme
        (True, False)
        >>> HostBehaviour(spared=9, sent=1, against=1).matches_scheme
        False
        >>> HostBehaviour(spared=3, sent=1, needless=4).matches_scheme
        False
        """
        is_measured = self.spared >= MIN_SAMPLES and self.sent >= 1
        return (
            is_measured
            and self.spared > self.needless
            and self.against * _CONTRADICTION_WEIGHT <= self.spared + self.sent
        )

    @property
    def needs_skip_probe(self) -> bool:
        """Whether to send a conditional request where the scheme skips, to learn whether the host responds 304."""
        return self.spared + self.needless < MIN_SAMPLES and not self.against

    @property
    def needs_download_probe(self) -> bool:
        """Whether to send a conditional request where the scheme downloads, to learn whether the host responds 200."""
        return self.sent < MIN_SAMPLES and not self.against

    @property
    def head_differs(self) -> bool:
        """Whether headers of HEAD cannot be relied on: true after one difference.

        >>> HostBehaviour(head_alike=9, head_unlike=1).head_differs, HostBehaviour().head_differs
        (True, False)
        """
        return self.head_unlike > 0


@dataclass(frozen=True, slots=True)
class HarvestedCapture:
    """A record with a body, in a WARC file of the harvest or of another archive.

    Attributes:
        uri: URL of the record, after redirects.
        timestamp: 14 digits, UTC.
        digest: Payload digest of the record; None if unknown.
        file: Name of the WARC file; None if unknown.
        offset: Offset of the record in bytes; None if unknown.
        size: Size of the record in bytes; None if unknown.
        mime: Media type.
        status: HTTP status.
    """

    uri: str
    timestamp: str
    digest: str | None = None
    file: str | None = None
    offset: int | None = None
    size: int | None = None
    mime: str | None = None
    status: int | None = 200


@dataclass(frozen=True, slots=True)
class PageSnapshot:
    """The latest known content of a page.

    Attributes:
        visit: The last successful visit, whose headers are compared with those of the next one.
        capture: The stored body; None if it may not be stored (`noarchive`).
        final_url: URL after redirects, to which conditional requests are sent.
        size: Bytes of the body; None if unknown.
        is_ours: Whether the digest was computed by the harvest, over the body without content codings. A different
            digest from another archive does not prove a change: it may be of a compressed body.
        text: Sketch of the visible text; None if there is none.
    """

    visit: Visit
    capture: HarvestedCapture | None
    final_url: str
    size: int | None = None
    is_ours: bool = True
    text: PageTextSketch | None = None

    @property
    def validators(self) -> tuple[tuple[str, str], ...]:
        """Headers of a conditional request. Invalid header values are omitted.

        Last-Modified is sent back verbatim: nginx responds 200 to any other If-Modified-Since date, even a later one.
        """
        candidates = (("If-None-Match", self.visit.etag), ("If-Modified-Since", self.visit.last_modified))
        return tuple((name, value) for name, value in candidates if value and _HEADER_VALUE.fullmatch(value))


def has_body_changed(snapshot: PageSnapshot, visit: Visit, *, by_text: bool) -> bool | None:
    """Return whether the body of a visit differs from the snapshot; None if it cannot be determined."""
    if by_text and snapshot.visit.text_digest and visit.text_digest:
        return snapshot.visit.text_digest != visit.text_digest
    if snapshot.visit.digest is None or visit.digest is None:
        return None
    if snapshot.visit.digest == visit.digest:
        return False
    return True if snapshot.is_ours else None


def merge_not_modified(previous: Visit, response: Visit) -> Visit:
    """Return the visit of a 304 response: its own headers, completed by those of the previous response.

    >>> previous = Visit("http://a.example/", "sha1:A", etag='"1"')
    >>> merge_not_modified(previous, Visit("http://a.example/", time=9, status=304)).etag
    '"1"'
    """
    fields = {name: getattr(previous, name) for name in _RETAINED_FIELDS if getattr(response, name) is None}
    return replace(response, **fields)


def create_harvest_tables(connection: sqlite3.Connection, file: Path) -> None:
    """Create the tables of a harvest, or check those that exist. Raises InputError."""
    prepare_state(connection, file, STATE_KIND, APPLICATION_ID, STATE_VERSION, _SCHEMA)


@dataclass(frozen=True, slots=True)
class HarvestPage:
    """A page that is harvested.

    Attributes:
        id: Id in the state.
        uri: The requested URL.
        key: SURT key, as in CDX indexes.
        attempts: Number of interrupted attempts in this round.
        last_visit: Time of the last visit in milliseconds since 1970; None before the first.
        intervals: Seconds between the last visits, and whether the page had changed.
        snapshot: Its latest known content; None if there is none.
        outcome: Outcome of the last visit, as listed in docs/refresh.md; None before the first.
        round: Number of the round of that visit.
    """

    id: int
    uri: str
    key: str
    attempts: int
    last_visit: int | None
    intervals: tuple[tuple[float, bool], ...]
    snapshot: PageSnapshot | None
    outcome: str | None
    round: int


class HarvestState(FetchState):
    """The state of the harvests in a folder, which must exist. Changes last only after `commit`.

    Raises:
        InputError: The state is damaged, of another version, or of another application.
        OSError: The file cannot be read or written.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder
        super().__init__(folder, STATE_KIND, create_harvest_tables)

    # Pages

    def add_pages(self, pages: Iterable[tuple[str, str, str]], *, is_given: bool) -> None:
        """Add pages.

        Args:
            pages: URL, key and host of each page.
            is_given: Whether the user named them; they are then listed, too.
        """
        self.begin()
        rows = ((encode_text(uri), encode_text(key), encode_text(host), is_given, is_given) for uri, key, host in pages)
        sql = (
            "INSERT INTO page (uri, key, host, given, listed) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (uri) DO UPDATE SET given = max(given, excluded.given), listed = max(listed, excluded.listed)"
        )
        self.connection.executemany(sql, rows)

    def clear_listed(self) -> None:
        """Clear the list of pages of this round."""
        self.begin()
        self._execute("UPDATE page SET listed = 0 WHERE listed")

    def given_urls(self) -> list[str]:
        """Return one URL of each origin that the user named."""
        rows = self._execute("SELECT min(uri) FROM page WHERE given GROUP BY host, substr(uri, 1, 5)")
        return [decode_text(uri) for (uri,) in rows]

    def page(self, uri: str) -> HarvestPage | None:
        """Return the page with a URL; None if it is unknown."""
        row = self._execute(f"SELECT {_PAGE_COLUMNS} FROM page WHERE uri = ?", (encode_text(uri),)).fetchone()  # noqa: S608
        return None if row is None else self._page_from_row(row)

    def pages_by_key(self, key: str) -> list[HarvestPage]:
        """Return the pages with a SURT key."""
        rows = self._execute(f"SELECT {_PAGE_COLUMNS} FROM page WHERE key = ?", (encode_text(key),)).fetchall()  # noqa: S608
        return [self._page_from_row(row) for row in rows]

    def pages(self, *, only_listed: bool = False) -> Iterator[HarvestPage]:
        """Yield all pages, or the listed ones, in the order of their addition."""
        last_id, condition = 0, "listed AND " if only_listed else ""
        sql = f"SELECT {_PAGE_COLUMNS} FROM page WHERE {condition}id > ? ORDER BY id LIMIT 500"  # noqa: S608
        while rows := self._execute(sql, (last_id,)).fetchall():
            last_id = rows[-1][0]
            for row in rows:
                yield self._page_from_row(row)

    def _page_from_row(self, row: tuple[object, ...]) -> HarvestPage:
        (
            page_id,
            uri,
            key,
            tries,
            visited,
            intervals,
            visit,
            final,
            size,
            is_ours,
            sketch,
            capture_json,
            outcome,
            round_,
        ) = row
        try:
            snapshot = None
            if visit is not None:
                capture = None if capture_json is None else HarvestedCapture(*json.loads(require_text(capture_json)))
                last_visit = Visit(*parse_visit_row(json.loads(require_text(visit))))  # type: ignore[arg-type]  # each by its field
                text = None
                if isinstance(sketch, bytes) and last_visit.text_digest is not None:
                    text = PageTextSketch(last_visit.text_digest, struct.unpack(f">{len(sketch) // 8}Q", sketch))
                snapshot = PageSnapshot(last_visit, capture, require_text(final), size, bool(is_ours), text)  # type: ignore[arg-type]
            parsed_intervals = self._parse_intervals(intervals)
            return HarvestPage(
                int(page_id), require_text(uri), require_text(key), int(tries),  # type: ignore[call-overload]
                None if visited is None else int(visited), parsed_intervals, snapshot,  # type: ignore[call-overload]
                decode_text(outcome), int(round_),  # type: ignore[call-overload]
            )  # fmt: skip
        except (ValueError, TypeError, OverflowError, RecursionError, struct.error, InputError) as error:
            message = f"{self._file}: not the state of {STATE_KIND}: a page that nobody here wrote: {str(error)[:100]}"
            raise InputError(message) from error

    @staticmethod
    def _parse_intervals(text: object) -> tuple[tuple[float, bool], ...]:
        return tuple((float(seconds), bool(changed)) for seconds, changed in json.loads(require_text(text)))

    # Rounds

    def begin_round(self) -> int:
        """Begin a round without pending pages; return its number."""
        self.begin()
        self._execute("UPDATE page SET pending = 0, tries = 0, far = 0")
        self._execute(
            "INSERT INTO fact VALUES ('round', '1') ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
        )
        return self.round()

    def round(self) -> int:
        """Return the number of the current round; 0 before the first."""
        row = self._execute("SELECT value FROM fact WHERE name = 'round'").fetchone()
        return 0 if row is None else int(row[0])

    def enqueue(self, page_id: int) -> None:
        """Add a page to this round."""
        self.begin()
        self._execute("UPDATE page SET pending = 1, tries = 0, far = 0 WHERE id = ?", (page_id,))

    def count_pending(self) -> int:
        """Return the number of pages still to be visited."""
        return int(self._execute("SELECT count(*) FROM page WHERE pending").fetchone()[0])

    def pending_hosts(self) -> list[str]:
        """Return the hosts with pending pages."""
        rows = self._execute("SELECT host FROM page WHERE pending GROUP BY host ORDER BY min(far), min(id)")
        return [decode_text(host) for (host,) in rows]

    def next_page(self, host: str) -> HarvestPage | None:
        """Return the next pending page of a host; None if there is none."""
        sql = f"SELECT {_PAGE_COLUMNS} FROM page WHERE pending AND host = ? ORDER BY far, id LIMIT 1"  # noqa: S608
        row = self._execute(sql, (encode_text(host),)).fetchone()
        return None if row is None else self._page_from_row(row)

    def requeue(self, page_id: int) -> None:
        """Enqueue a page for another attempt, after all other pages of its host."""
        self.begin()
        self._execute("UPDATE page SET tries = tries + 1, far = far + 1 WHERE id = ?", (page_id,))

    def finish(self, page_id: int, outcome: str) -> None:
        """Store the outcome of a page in this round."""
        self.begin()
        sql = "UPDATE page SET pending = 0, outcome = ?, round = ? WHERE id = ?"
        self._execute(sql, (outcome, self.round(), page_id))

    def count_outcomes(self) -> dict[str, int]:
        """Return the number of pages by outcome in this round."""
        sql = "SELECT outcome, count(*) FROM page WHERE outcome IS NOT NULL AND round = ? GROUP BY outcome"
        rows = self._execute(sql, (self.round(),))
        return {decode_text(outcome): count for outcome, count in rows}

    def host_intervals(self, host: str, limit: int) -> list[tuple[float, bool]]:
        """Return up to `limit` intervals of a host's pages, those of the pages added last."""
        sql = "SELECT intervals FROM page WHERE host = ? AND intervals != '[]' ORDER BY id DESC LIMIT ?"
        rows = self._execute(sql, (encode_text(host), limit)).fetchall()
        return [interval for row in rows for interval in self._parse_intervals(row[0])][:limit]

    # Snapshots

    def record_visit(self, page: HarvestPage, now: int, changed: bool | None) -> None:
        """Store the time of a visit, and whether the page had changed (None if unknown)."""
        self.begin()
        intervals = list(page.intervals)
        if changed is not None and page.last_visit is not None and now > page.last_visit:
            intervals.append(((now - page.last_visit) / 1000, changed))
        text = json.dumps(intervals[-MAX_INTERVALS:], separators=(",", ":"))
        self._execute("UPDATE page SET looked = ?, intervals = ? WHERE id = ?", (now, text, page.id))

    def store_snapshot(self, page_id: int, snapshot: PageSnapshot) -> None:
        """Replace the snapshot of a page."""
        self.begin()
        capture = snapshot.capture
        capture_json = None
        if capture is not None:
            capture_json = json.dumps(
                [
                    capture.uri,
                    capture.timestamp,
                    capture.digest,
                    capture.file,
                    capture.offset,
                    capture.size,
                    capture.mime,
                    capture.status,
                ]
            )
        columns = "visit = ?, final = ?, size = ?, ours = ?, sketch = ?, copy = ?, copy_file = ?, copy_end = ?"
        sql = f"UPDATE page SET {columns} WHERE id = ?"  # noqa: S608
        # Records in WARC files of other archives are not checked by `CrawlWarcStore.reconcile`.
        is_own_record = (
            capture is not None and snapshot.is_ours and capture.offset is not None and capture.size is not None
        )
        end = capture.offset + capture.size if is_own_record else None  # type: ignore[union-attr, operator]
        file = capture.file if is_own_record and capture is not None else None
        visit_json = serialize_visit(snapshot.visit).decode()
        sketch = snapshot.text and struct.pack(f">{len(snapshot.text.sketch)}Q", *snapshot.text.sketch)
        self._execute(
            sql,
            (
                visit_json,
                encode_text(snapshot.final_url),
                snapshot.size,
                snapshot.is_ours,
                sketch,
                capture_json,
                file,
                end,
                page_id,
            ),
        )

    def add_record(self, location: WarcLocation, page_id: int) -> None:
        """Store the location of a record written for a page."""
        self.begin()
        self._execute(
            "INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)",
            (location.file, location.offset, location.size, page_id),
        )

    # Hosts

    def host_behaviour(self, host: str) -> HostBehaviour:
        """Return the behaviour of a host."""
        row = self._execute("SELECT treatment FROM host WHERE name = ?", (encode_text(host),)).fetchone()
        try:
            return HostBehaviour() if row is None else HostBehaviour.from_json(json.loads(row[0]))
        except (ValueError, TypeError, RecursionError):
            return HostBehaviour()  # invalid: it is measured again

    def store_host_behaviour(self, host: str, behaviour: HostBehaviour) -> None:
        """Store the behaviour of a host."""
        self.begin()
        text = json.dumps(behaviour.to_json)
        self._execute("INSERT OR REPLACE INTO host VALUES (?, ?)", (encode_text(host), text))

    def add_false_claim(self, host: str, group: int) -> None:
        """Count a page that had changed although the scheme's group of cells predicted otherwise."""
        self.begin()
        sql = "INSERT INTO seen VALUES (?, ?, 1) ON CONFLICT (host, grouped) DO UPDATE SET changed = changed + 1"
        self._execute(sql, (encode_text(host), group))

    def set_scheme(self, digest: str) -> None:
        """Store the digest of the scheme in use. If it is new, delete the false claims, from which it was learned."""
        self.begin()
        row = self._execute("SELECT value FROM fact WHERE name = 'scheme'").fetchone()
        if row is None or row[0] != digest:
            self._execute("DELETE FROM seen")
            self._execute("INSERT OR REPLACE INTO fact VALUES ('scheme', ?)", (digest,))

    def false_claims(self) -> dict[str, HostChanges]:
        """Return the counted false claims, as a policy stores them."""
        claims: dict[str, HostChanges] = {}
        for host, group, changed in self._execute("SELECT host, grouped, changed FROM seen"):
            claims.setdefault(decode_text(host), {})[int(group)] = (int(changed), int(changed))
        return claims

    # Visit log and WARC files: implements `warc_store.RecordedWarcs`

    def log_end(self) -> int:
        """Return the end of the last known line of the log, in bytes."""
        row = self._execute("SELECT value FROM fact WHERE name = 'log end'").fetchone()
        return 0 if row is None else int(row[0])

    def store_log_end(self, end: int) -> None:
        """Store the end of the log."""
        self.begin()
        self._execute("INSERT OR REPLACE INTO fact VALUES ('log end', ?)", (str(end),))

    def warc_ends(self) -> dict[str, int]:
        """Return the end of the last known record of each WARC file, in bytes."""
        return dict(self._execute("SELECT file, max(offset + size) FROM record GROUP BY file"))

    def last_record_end(self, file: str, size: int) -> int:
        """Return the end of the last known record of a WARC file within its first `size` bytes."""
        sql = "SELECT max(offset + size) FROM record WHERE file = ? AND offset + size <= ?"
        return int(self._execute(sql, (file, size)).fetchone()[0] or 0)

    def requeue_lost_records(self, file: str, end: int) -> int:
        """Enqueue pages whose records a WARC file has lost after byte `end`, without snapshots; return their number."""
        self.begin()
        lost = "SELECT page FROM record WHERE file = ? AND offset + size > ?"
        count = self._execute(f"UPDATE page SET pending = 1, tries = 0 WHERE id IN ({lost})", (file, end)).rowcount  # noqa: S608
        sql = "UPDATE page SET visit = NULL, copy = NULL, copy_file = NULL WHERE copy_file = ? AND copy_end > ?"
        self._execute(sql, (file, end))
        self._execute("DELETE FROM record WHERE file = ? AND offset + size > ?", (file, end))
        return count
