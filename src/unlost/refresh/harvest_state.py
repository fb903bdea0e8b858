"""The state of a harvest in SQLite.

Pages with their last stored capture, measured behaviour of hosts, and the pending queue.
"""

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
"""Answers to conditions before they are believed: one may be chance, a host of two back ends takes turns."""
_CONTRADICTION_WEIGHT = (
    20  # one contradiction weighs as much as so many answers that were right: 5 %, as much as is audited at most
)


@dataclass(frozen=True, slots=True)
class HostBehaviour:
    """What a host did so far.

    spared: 304 where the scheme skips, too. sent: the page where the scheme downloads, too.
    needless: the page where the scheme would have skipped it. against: 304 where the scheme, or an audit, found a
        change.
    head_alike, head_unlike: HEAD with and without the headers that GET then had.
    unasked: 304 to a request without a condition.
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
        """Return what was written by `values`; whatever is no count is 0."""
        known = values if isinstance(values, dict) else {}
        counts = {each.name: known.get(each.name) for each in fields(cls)}
        return cls(**{name: count for name, count in counts.items() if type(count) is int and 0 <= count < 2**60})

    @property
    def to_json(self) -> dict[str, int]:
        """Its counts by name, those that are not 0."""
        return {name: count for name, count in asdict(self).items() if count}

    def increment(self, name: str) -> Self:
        """Return the same with one more of a count."""
        return replace(self, **{name: getattr(self, name) + 1})

    @property
    def matches_scheme(self) -> bool:
        """Whether a condition does on this host what the scheme would do: only then 304 may take its place.

        >>> HostBehaviour(spared=3, sent=1).matches_scheme, HostBehaviour(spared=3).matches_scheme
        (True, False)
        >>> HostBehaviour(spared=9, sent=1, against=1).matches_scheme, HostBehaviour(spared=3, sent=1, needless=4).matches_scheme
        (False, False)
        """
        is_measured = self.spared >= MIN_SAMPLES and self.sent >= 1
        return (
            is_measured
            and self.spared > self.needless
            and self.against * _CONTRADICTION_WEIGHT <= self.spared + self.sent
        )

    @property
    def needs_skip_probe(self) -> bool:
        """Whether to send a condition where the scheme skips, to see whether 304 comes."""
        return self.spared + self.needless < MIN_SAMPLES and not self.against

    @property
    def needs_download_probe(self) -> bool:
        """Whether to send a condition where the scheme downloads, to see whether the page comes."""
        return self.sent < MIN_SAMPLES and not self.against

    @property
    def head_differs(self) -> bool:
        """Whether HEAD does not show what GET has: one that did is believed until another did not.

        >>> HostBehaviour(head_alike=9, head_unlike=1).head_differs, HostBehaviour().head_differs
        (True, False)
        """
        return self.head_unlike > 0


_HEADER_VALUE = re.compile(r"[\x20-\x7e\x80-\xff]{1,4096}")


@dataclass(frozen=True, slots=True)
class HarvestedCapture:
    """A record with a body, in a WARC of ours or of another archive.

    uri: of the record: where redirects ended. moment: 14 digits. digest: as the record says it; None if nobody knows.
    file, offset, size: where it is stored, as far as that is known. mime, status: of the answer.
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
    """What is held of a page.

    visit: the last successful one, whose headers are compared with those that come next.
    copy: what has its body; None if it was not to be kept.
    final: where redirects ended, and conditions can be sent to.
    size: bytes of the body; None if nobody knows.
    is_ours: whether the digest was made here, of the body without codings. One of another archive that differs proves
        nothing: it may be of a body in gzip.
    text: what the text of the next one is compared with; None if it has none, or nobody looked.
    """

    visit: Visit
    capture: HarvestedCapture | None
    final_url: str
    size: int | None = None
    is_ours: bool = True
    text: PageTextSketch | None = None

    @property
    def validators(self) -> tuple[tuple[str, str], ...]:
        """The headers that ask whether it changed, verbatim: some servers compare dates as texts.

        What cannot be sent is left out: a server, or an index, may have said anything.
        """
        told = (("If-None-Match", self.visit.etag), ("If-Modified-Since", self.visit.last_modified))
        return tuple((name, value) for name, value in told if value and _HEADER_VALUE.fullmatch(value))


def has_body_changed(snapshot: PageSnapshot, visit: Visit, *, by_text: bool) -> bool | None:
    """Return whether a body that came is another one than that which is held; None if nobody can tell."""
    if by_text and snapshot.visit.text_digest and visit.text_digest:
        return snapshot.visit.text_digest != visit.text_digest
    if snapshot.visit.digest is None or visit.digest is None:
        return None
    if snapshot.visit.digest == visit.digest:
        return False
    return True if snapshot.is_ours else None


def merge_not_modified(previous: Visit, response: Visit) -> Visit:
    """Return the visit that an answer 304 stands for: what it says, and of the rest what was said before.

    >>> merge_not_modified(Visit("http://a.example/", "sha1:A", etag='"1"'), Visit("http://a.example/", time=9, status=304)).etag
    '"1"'
    """
    fields = {name: getattr(previous, name) for name in _RETAINED_FIELDS if getattr(response, name) is None}
    return replace(response, **fields)


_RETAINED_FIELDS = ("etag", "last_modified", "repr_digest", "cache_control", "expires", "server", "content_length")


STATE_VERSION = 1
STATE_KIND = "harvests"
APPLICATION_ID = 0x756E6C68
"""What SQLite files of harvests are told by: `unlh`. Crawls and recoveries have files of the same name."""
MAX_INTERVALS = 32
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
_PAGE_COLUMNS = "id, uri, key, tries, looked, intervals, visit, final, size, ours, sketch, copy, outcome, round"


def create_harvest_tables(connection: sqlite3.Connection, file: Path) -> None:
    """Make the tables of harvests, or refuse those that are there."""
    prepare_state(connection, file, STATE_KIND, APPLICATION_ID, STATE_VERSION, _SCHEMA)


@dataclass(frozen=True, slots=True)
class HarvestPage:
    """A page that is harvested.

    key: what it is known by in indexes. tries: how often it broke off in this round.
    looked: when it was asked for last, milliseconds since 1970; None if never.
    intervals: between the last visits, in seconds, with whether it had changed.
    outcome: of the last visit, as docs/harvest.md lists them; None before the first. round: in which that was.
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
    """The state of the harvests in a folder, which must exist. Nothing lasts before `commit`.

    Raises InputError, OSError as every StateFile does; InputError also for a row that nobody here wrote.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder
        super().__init__(folder, STATE_KIND, create_harvest_tables)

    # Pages

    def add_pages(self, pages: Iterable[tuple[str, str, str]], *, is_given: bool) -> None:
        """Take pages, each as address, key and host. is_given: whether a person named them; they are listed then."""
        self.begin()
        rows = ((encode_text(uri), encode_text(key), encode_text(host), is_given, is_given) for uri, key, host in pages)
        sql = (
            "INSERT INTO page (uri, key, host, given, listed) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (uri) DO UPDATE SET given = max(given, excluded.given), listed = max(listed, excluded.listed)"
        )
        self.connection.executemany(sql, rows)

    def clear_listed(self) -> None:
        """Forget which pages were listed."""
        self.begin()
        self._execute("UPDATE page SET listed = 0 WHERE listed")

    def given_urls(self) -> list[str]:
        """Return an address of every place that a person named."""
        rows = self._execute("SELECT min(uri) FROM page WHERE given GROUP BY host, substr(uri, 1, 5)")
        return [decode_text(uri) for (uri,) in rows]

    def page(self, uri: str) -> HarvestPage | None:
        """Return a page by its address."""
        row = self._execute(f"SELECT {_PAGE_COLUMNS} FROM page WHERE uri = ?", (encode_text(uri),)).fetchone()  # noqa: S608
        return None if row is None else self._page_from_row(row)

    def pages_by_key(self, key: str) -> list[HarvestPage]:
        """Return the pages that are known by a key."""
        rows = self._execute(f"SELECT {_PAGE_COLUMNS} FROM page WHERE key = ?", (encode_text(key),)).fetchall()  # noqa: S608
        return [self._page_from_row(row) for row in rows]

    def pages(self, *, only_listed: bool = False) -> Iterator[HarvestPage]:
        """Yield all pages, or those that are listed, in the order in which they came."""
        last, which = 0, "listed AND " if only_listed else ""
        sql = f"SELECT {_PAGE_COLUMNS} FROM page WHERE {which}id > ? ORDER BY id LIMIT 500"  # noqa: S608
        while rows := self._execute(sql, (last,)).fetchall():
            last = rows[-1][0]
            for row in rows:
                yield self._page_from_row(row)

    def _page_from_row(self, row: tuple[object, ...]) -> HarvestPage:
        number, uri, key, tries, looked, intervals, visit, final, size, ours, sketch, copy, outcome, round_ = row
        try:
            held = None
            if visit is not None:
                known = None if copy is None else HarvestedCapture(*json.loads(require_text(copy)))
                last = Visit(*parse_visit_row(json.loads(require_text(visit))))  # type: ignore[arg-type]  # each by its field
                text = None
                if isinstance(sketch, bytes) and last.text_digest is not None:
                    text = PageTextSketch(last.text_digest, struct.unpack(f">{len(sketch) // 8}Q", sketch))
                held = PageSnapshot(last, known, require_text(final), size, bool(ours), text)  # type: ignore[arg-type]
            spans = self._parse_intervals(intervals)
            return HarvestPage(
                int(number), require_text(uri), require_text(key), int(tries),  # type: ignore[call-overload]
                None if looked is None else int(looked), spans, held, decode_text(outcome), int(round_),  # type: ignore[call-overload]
            )  # fmt: skip
        except (ValueError, TypeError, OverflowError, RecursionError, struct.error, InputError) as error:
            message = f"{self._file}: not the state of {STATE_KIND}: a page that nobody here wrote: {str(error)[:100]}"
            raise InputError(message) from error

    @staticmethod
    def _parse_intervals(text: object) -> tuple[tuple[float, bool], ...]:
        return tuple((float(seconds), bool(changed)) for seconds, changed in json.loads(require_text(text)))

    # The round

    def begin_round(self) -> int:
        """Begin a round; return its number. Nothing is pending then."""
        self.begin()
        self._execute("UPDATE page SET pending = 0, tries = 0, far = 0")
        self._execute(
            "INSERT INTO fact VALUES ('round', '1') ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
        )
        return self.round()

    def round(self) -> int:
        """Return the number of the last round; 0 before the first."""
        row = self._execute("SELECT value FROM fact WHERE name = 'round'").fetchone()
        return 0 if row is None else int(row[0])

    def enqueue(self, number: int) -> None:
        """Have a page visited in this round."""
        self.begin()
        self._execute("UPDATE page SET pending = 1, tries = 0, far = 0 WHERE id = ?", (number,))

    def count_pending(self) -> int:
        """Return how many pages are still to be visited."""
        return int(self._execute("SELECT count(*) FROM page WHERE pending").fetchone()[0])

    def pending_hosts(self) -> list[str]:
        """Return the hosts on which something is to be visited."""
        rows = self._execute("SELECT host FROM page WHERE pending GROUP BY host ORDER BY min(far), min(id)")
        return [decode_text(host) for (host,) in rows]

    def next_page(self, host: str) -> HarvestPage | None:
        """Return what is to be visited next on a host; None if there is nothing."""
        sql = f"SELECT {_PAGE_COLUMNS} FROM page WHERE pending AND host = ? ORDER BY far, id LIMIT 1"  # noqa: S608
        row = self._execute(sql, (encode_text(host),)).fetchone()
        return None if row is None else self._page_from_row(row)

    def requeue(self, number: int) -> None:
        """Put a page behind all others of its host."""
        self.begin()
        self._execute("UPDATE page SET tries = tries + 1, far = far + 1 WHERE id = ?", (number,))

    def finish(self, number: int, outcome: str) -> None:
        """Say how the visit of a page ended in this round."""
        self.begin()
        sql = "UPDATE page SET pending = 0, outcome = ?, round = ? WHERE id = ?"
        self._execute(sql, (outcome, self.round(), number))

    def count_outcomes(self) -> dict[str, int]:
        """Return how many pages ended how in the last round."""
        sql = "SELECT outcome, count(*) FROM page WHERE outcome IS NOT NULL AND round = ? GROUP BY outcome"
        rows = self._execute(sql, (self.round(),))
        return {decode_text(outcome): count for outcome, count in rows}

    def host_intervals(self, host: str, limit: int) -> list[tuple[float, bool]]:
        """Return intervals between visits to the pages of a host, of the last ones that were added to it."""
        sql = "SELECT intervals FROM page WHERE host = ? AND intervals != '[]' ORDER BY id DESC LIMIT ?"
        rows = self._execute(sql, (encode_text(host), limit)).fetchall()
        return [interval for row in rows for interval in self._parse_intervals(row[0])][:limit]

    # What is held

    def record_visit(self, page: HarvestPage, now: int, changed: bool | None) -> None:
        """Keep when a page was looked at, and whether it had changed; None if nobody can tell."""
        self.begin()
        intervals = list(page.intervals)
        if changed is not None and page.last_visit is not None and now > page.last_visit:
            intervals.append(((now - page.last_visit) / 1000, changed))
        text = json.dumps(intervals[-MAX_INTERVALS:], separators=(",", ":"))
        self._execute("UPDATE page SET looked = ?, intervals = ? WHERE id = ?", (now, text, page.id))

    def store_snapshot(self, number: int, snapshot: PageSnapshot) -> None:
        """Keep what is held of a page from now on."""
        self.begin()
        copy = snapshot.capture
        values = None
        if copy is not None:
            values = json.dumps(
                [copy.uri, copy.timestamp, copy.digest, copy.file, copy.offset, copy.size, copy.mime, copy.status]
            )
        columns = "visit = ?, final = ?, size = ?, ours = ?, sketch = ?, copy = ?, copy_file = ?, copy_end = ?"
        sql = f"UPDATE page SET {columns} WHERE id = ?"  # noqa: S608
        # Of other archives only what is read from here can be lost from here.
        is_here = copy is not None and snapshot.is_ours and copy.offset is not None and copy.size is not None
        end = copy.offset + copy.size if is_here else None  # type: ignore[union-attr, operator]
        file = copy.file if is_here and copy is not None else None
        line = serialize_visit(snapshot.visit).decode()
        sketch = snapshot.text and struct.pack(f">{len(snapshot.text.sketch)}Q", *snapshot.text.sketch)
        self._execute(
            sql,
            (line, encode_text(snapshot.final_url), snapshot.size, snapshot.is_ours, sketch, values, file, end, number),
        )

    def add_record(self, place: WarcLocation, number: int) -> None:
        """Keep where a record is that was written for a page."""
        self.begin()
        self._execute(
            "INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)", (place.file, place.offset, place.size, number)
        )

    # Hosts

    def host_behaviour(self, host: str) -> HostBehaviour:
        """Return how a host was measured."""
        row = self._execute("SELECT treatment FROM host WHERE name = ?", (encode_text(host),)).fetchone()
        try:
            return HostBehaviour() if row is None else HostBehaviour.from_json(json.loads(row[0]))
        except (ValueError, TypeError, RecursionError):
            return HostBehaviour()  # measured again

    def store_host_behaviour(self, host: str, behaviour: HostBehaviour) -> None:
        """Keep how a host was measured."""
        self.begin()
        text = json.dumps(behaviour.to_json)
        self._execute("INSERT OR REPLACE INTO host VALUES (?, ?)", (encode_text(host), text))

    def add_false_claim(self, host: str, group: int) -> None:
        """Keep that a page had changed in a group of cells in which it was downloaded or audited."""
        self.begin()
        sql = "INSERT INTO seen VALUES (?, ?, 1) ON CONFLICT (host, grouped) DO UPDATE SET changed = changed + 1"
        self._execute(sql, (encode_text(host), group))

    def set_scheme(self, digest: str) -> None:
        """Say by which scheme is decided: one that was learned since knows what was found by the one before."""
        self.begin()
        row = self._execute("SELECT value FROM fact WHERE name = 'scheme'").fetchone()
        if row is None or row[0] != digest:
            self._execute("DELETE FROM seen")
            self._execute("INSERT OR REPLACE INTO fact VALUES ('scheme', ?)", (digest,))

    def false_claims(self) -> dict[str, HostChanges]:
        """Return what `note_lie` kept, as a policy has it."""
        found: dict[str, HostChanges] = {}
        for host, group, changed in self._execute("SELECT host, grouped, changed FROM seen"):
            found.setdefault(decode_text(host), {})[int(group)] = (int(changed), int(changed))
        return found

    # The log, and WARCs: this is a KnownRecords.

    def log_end(self) -> int:
        """Return up to which byte the log is known."""
        row = self._execute("SELECT value FROM fact WHERE name = 'log end'").fetchone()
        return 0 if row is None else int(row[0])

    def store_log_end(self, end: int) -> None:
        """Keep where it ends now."""
        self.begin()
        self._execute("INSERT OR REPLACE INTO fact VALUES ('log end', ?)", (str(end),))

    def warc_ends(self) -> dict[str, int]:
        """Return for each WARC up to which byte its records are known."""
        return dict(self._execute("SELECT file, max(offset + size) FROM record GROUP BY file"))

    def last_record_end(self, file: str, size: int) -> int:
        """Return where the last record of a WARC ends that lies within so many bytes."""
        sql = "SELECT max(offset + size) FROM record WHERE file = ? AND offset + size <= ?"
        return int(self._execute(sql, (file, size)).fetchone()[0] or 0)

    def requeue_lost_records(self, file: str, end: int) -> int:
        """Forget what is held in records that a WARC has lost behind a byte, and visit it again; return how many."""
        self.begin()
        lost = "SELECT page FROM record WHERE file = ? AND offset + size > ?"
        count = self._execute(f"UPDATE page SET pending = 1, tries = 0 WHERE id IN ({lost})", (file, end)).rowcount  # noqa: S608
        sql = "UPDATE page SET visit = NULL, copy = NULL, copy_file = NULL WHERE copy_file = ? AND copy_end > ?"
        self._execute(sql, (file, end))
        self._execute("DELETE FROM record WHERE file = ? AND offset + size > ?", (file, end))
        return count
