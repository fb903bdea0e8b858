"""Tables of listings, listed captures with the outcome of fetching them, stored records, and rejected records."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from unlost import uri as addresses
from unlost.capture import Capture
from unlost.recover.state.schema import RecoveryStateFile
from unlost.recover.warc_records import RecoveryRecord
from unlost.sqlite import decode_text, encode_text


class ListingStatus(StrEnum):
    """What came of a lister query."""

    DONE = "done"
    TRUNCATED = "cut"
    """It ended at a cap: the archive may hold more."""
    UNSUPPORTED = "unsupported"
    """The archive has no such list, and may hold anything."""
    EXCLUDED = "excluded"
    """It does not show the site."""
    FAILED = "failed"
    """It gave no whole list: the next run asks again."""
    NOT_NOW = "not-now"
    """It was not asked, or not to the end: a limit, or a block."""


@dataclass(frozen=True, slots=True)
class ListingRow:
    """One lister query, over all its pages.

    captures: how many were listed that had not been listed before.
    message: what was wrong; None if nothing was. until: when the archive may be asked again, seconds since 1970.
    """

    archive: str
    prefix: str
    outcome: ListingStatus
    captures: int
    message: str | None = None
    until: float | None = None


class ListingTable:
    """The table of lister queries."""

    def __init__(self, file: RecoveryStateFile) -> None:
        self._file = file

    def store(self, listing: ListingRow) -> None:
        """Keep what came of one, in the place of what came of it before."""
        self._file.begin()
        row = (listing.archive, listing.prefix, listing.outcome.value, listing.captures, listing.message, listing.until)
        self._file.connection.execute("INSERT OR REPLACE INTO listing VALUES (?, ?, ?, ?, ?, ?)", row)

    def all(self) -> list[ListingRow]:
        """Return all of them."""
        rows = self._file.connection.execute("SELECT archive, prefix, outcome, captures, message, until FROM listing")
        return [ListingRow(archive, prefix, ListingStatus(outcome), *more) for archive, prefix, outcome, *more in rows]

    def clear(self) -> None:
        """Forget all, so that they are asked for again; captures that were listed are kept."""
        self._file.begin()
        self._file.connection.execute("DELETE FROM listing")


class CaptureOutcome(StrEnum):
    """What came of asking for a capture."""

    STORED = "stored"
    REJECTED = "rejected"
    """It is stored, and says itself that it is not the page."""
    ABSENT = "absent"
    """It is listed, and not there after all."""
    EXCLUDED = "excluded"
    """The archive does not show it."""
    DEFERRED = "put-off"
    """The archive said to wait when it was asked for: it is asked for once more. Some say so of what is damaged."""
    FAILED = "failed"
    """It may be there another time: the next run asks again."""
    RETRY = "again"
    """It failed in an earlier run, and was not asked for in this one yet."""


@dataclass(frozen=True, slots=True)
class CaptureRow:
    """A capture that an archive lists. outcome: None if it was not asked for yet."""

    id: int
    capture: Capture
    outcome: CaptureOutcome | None


_CAPTURE_FIELDS = (
    "archive, datetime, uri, status, mime, digest, length, redirect, urim, migrated, revisit, revisit_uri, "
    "revisit_datetime, filename, offset, skip"
)
_PLACEHOLDERS = ", ".join("?" * (_CAPTURE_FIELDS.count(",") + 2))
_INSERT_CAPTURE = f"INSERT OR IGNORE INTO capture (resource, {_CAPTURE_FIELDS}) VALUES ({_PLACEHOLDERS})"  # noqa: S608  no text of others in it
_SELECT_CAPTURES = f"SELECT id, outcome, {_CAPTURE_FIELDS} FROM capture WHERE resource = ? ORDER BY id"  # noqa: S608
# As `naming` leaves them out of names.
_SESSION_ID = re.compile(r"(?:[?&]|;)(?:jsessionid|phpsessid|sid|aspsessionid\w*)=[0-9a-z]{20,32}", re.IGNORECASE)


class CaptureTable:
    """The tables of captures, and of pages that archives were asked for one by one."""

    def __init__(self, file: RecoveryStateFile) -> None:
        self._file = file
        self._execute = file.connection.execute

    def add(self, found: Iterable[tuple[int, Capture]]) -> int:
        """Keep captures of resources; return how many were not known before."""
        self._file.begin()
        return max(
            0,
            self._file.connection.executemany(
                _INSERT_CAPTURE, [_capture_values(number, capture) for number, capture in found]
            ).rowcount,
        )

    def of_resource(self, resource: int) -> list[CaptureRow]:
        """Return all captures of a resource, in the order in which they were listed."""
        return [_capture_row(row) for row in self._execute(_SELECT_CAPTURES, (resource,))]

    def set_outcome(self, number: int, outcome: CaptureOutcome) -> None:
        """Say what came of asking for a capture."""
        self._file.begin()
        self._execute("UPDATE capture SET outcome = ? WHERE id = ?", (outcome.value, number))

    def digests(self, resources: Collection[int]) -> dict[int, set[str]]:
        """Return the digests of successful captures of resources, by their ids.

        One whose algorithm is not told is that of its archive alone.
        """
        found: dict[int, set[str]] = {number: set() for number in resources}
        for number in resources:
            rows = self._execute(
                "SELECT DISTINCT CASE WHEN instr(digest, ':') THEN digest ELSE archive || ' ' || digest END "
                "FROM capture WHERE resource = ? AND digest IS NOT NULL AND coalesce(status, 200) BETWEEN 200 AND 299",
                (number,),
            )
            found[number].update(str(decode_text(digest)) for (digest,) in rows)
        return found

    def count_session_ids(self) -> int:
        """Return how many listed URLs have a session id: they are captures of the URL without it."""
        rows = self._execute("SELECT DISTINCT uri FROM capture WHERE uri LIKE '%sid=%' OR uri LIKE '%sessionid%'")
        return sum(_SESSION_ID.search(str(decode_text(uri))) is not None for (uri,) in rows)

    def is_distinctive(self, digests: Collection[str], resources: Collection[int]) -> bool:
        """Return whether one of some digests is of captures of these resources alone."""
        marks = ", ".join("?" * len(resources))
        sql = f"SELECT 1 FROM capture WHERE digest = ? AND resource NOT IN ({marks}) LIMIT 1"  # noqa: S608
        return any(self._execute(sql, (encode_text(digest), *resources)).fetchone() is None for digest in digests)

    def archives_with_captures(self) -> set[str]:
        """Return the archives that hold anything of the site."""
        return {str(archive) for (archive,) in self._execute("SELECT DISTINCT archive FROM capture")}

    def reset_stored(self, resource: int, stored: Collection[tuple[str | None, str]]) -> None:
        """Forget that captures of a resource were stored, but for those of these archives and dates."""
        self._file.begin()
        for each in self.of_resource(resource):
            if (
                each.outcome in (CaptureOutcome.STORED, CaptureOutcome.REJECTED)
                and (each.capture.archive, each.capture.datetime) not in stored
            ):
                self._execute("UPDATE capture SET outcome = NULL WHERE id = ?", (each.id,))

    def reset_failed(self) -> Sequence[int]:
        """Forget which captures and lists of single pages failed; return the resources that these are of."""
        self._file.begin()
        failed = {
            number for (number,) in self._execute("SELECT resource FROM capture WHERE outcome IN ('failed', 'again')")
        }
        failed |= {number for (number,) in self._execute("SELECT resource FROM asked WHERE outcome = 'failed'")}
        self._execute("UPDATE capture SET outcome = 'again' WHERE outcome = 'failed'")
        self._execute("DELETE FROM asked WHERE outcome = 'failed'")
        return sorted(failed)

    def clear_queries(self) -> None:
        """Forget all lists of single pages, so that archives are asked for them again."""
        self._file.begin()
        self._execute("DELETE FROM asked")

    def query_outcomes(self, resource: int) -> dict[str, str]:
        """Return the archives that were asked for a list of this very page, and what came of it."""
        return dict(self._execute("SELECT archive, outcome FROM asked WHERE resource = ?", (resource,)))

    def set_query_outcome(self, resource: int, archive: str, outcome: str) -> None:
        """Say that an archive was asked for a list of a page: `done`, `excluded` or `failed`."""
        self._file.begin()
        self._execute("INSERT OR REPLACE INTO asked VALUES (?, ?, ?)", (resource, archive, outcome))


def _capture_values(resource: int, capture: Capture) -> tuple[object, ...]:
    of = capture.revisit_of or (None, None)
    return tuple(encode_text(value) for value in (
        resource, capture.archive, capture.datetime, capture.uri, capture.status, capture.mime, capture.digest,
        capture.length, capture.redirect, capture.urim, capture.migrated, capture.revisit, *of, capture.filename,
        capture.offset, capture.skip,
    ))  # fmt: skip


def _capture_row(row: tuple[Any, ...]) -> CaptureRow:
    if bytes in set(map(type, row)):
        row = tuple(map(decode_text, row))
    number, outcome, archive, datetime, uri, status, mime, digest, length, redirect, urim, migrated, revisit, *more = (
        row
    )
    of_uri, of_datetime, filename, offset, skip = more
    capture = Capture(
        uri, addresses.key(uri), datetime, status, mime, digest, length, redirect, archive, urim,
        None if migrated is None else bool(migrated), bool(revisit),
        None if of_uri is None else (of_uri, of_datetime), filename, offset, skip,
    )  # fmt: skip
    return CaptureRow(number, capture, None if outcome is None else CaptureOutcome(outcome))


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A record of a resource. worth: as `choice.Worth` has it; the lower, the better."""

    id: int
    resource: int
    quality: int
    record: RecoveryRecord


_RECORD_ATTRIBUTES = ("source", "truncated", "recovered")
_CAPTURE_ATTRIBUTES = tuple(field.name for field in fields(Capture) if field.name != "key")
_RECORD_FIELDS = "id, resource, worth, listed_digest, file, offset, size, data"


class RecordTable:
    """The table of records."""

    def __init__(self, file: RecoveryStateFile) -> None:
        self._file = file
        self._execute = file.connection.execute

    def add(self, resource: int, quality: int, record: RecoveryRecord) -> int:
        """Keep a record of a resource; return its id."""
        self._file.begin()
        row = (
            resource,
            quality,
            encode_text(record.listed_digest),
            record.file,
            record.offset,
            record.size,
            _record_json(record),
        )
        added = self._execute(
            f"INSERT INTO record ({_RECORD_FIELDS.partition(', ')[2]}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            row,
        )
        return int(added.lastrowid or 0)

    def set_quality(self, number: int, quality: int) -> None:
        """Give a record another worth."""
        self._file.begin()
        self._execute("UPDATE record SET worth = ? WHERE id = ?", (quality, number))

    def of_resource(self, resource: int) -> list[RecordRow]:
        """Return all records of a resource, the best first; of equally good ones, the first that came."""
        rows = self._execute(f"SELECT {_RECORD_FIELDS} FROM record WHERE resource = ? ORDER BY worth, id", (resource,))  # noqa: S608
        return [_record_row(row) for row in rows]

    def best(self, resource: int) -> int | None:
        """Return the id of the first that `of` would return, however many there are; None if there is none."""
        sql = "SELECT id FROM record WHERE resource = ? ORDER BY worth, id LIMIT 1"
        row = self._execute(sql, (resource,)).fetchone()
        return None if row is None else int(row[0])

    def get(self, number: int) -> RecordRow:
        """Return a record."""
        return _record_row(self._execute(f"SELECT {_RECORD_FIELDS} FROM record WHERE id = ?", (number,)).fetchone())  # noqa: S608

    def archive_of_linking_page(self, resource: int) -> str | None:
        """Return the archive that the first page came from which links to a resource; None if none does."""
        sql = """SELECT json_extract(record.data, '$.capture.archive') FROM link
            JOIN resource AS source ON source.id = link.source JOIN record ON record.id = source.record
            WHERE link.target = ? ORDER BY link.source LIMIT 1"""
        row = self._execute(sql, (resource,)).fetchone()
        return None if row is None else row[0]

    def good_pages(self, limit: int) -> list[RecordRow]:
        """Return some records that are pages as they were captured, the first that came."""
        where = "worth = 0 AND json_extract(data, '$.capture.mime') LIKE '%html%'"
        sql = f"SELECT {_RECORD_FIELDS} FROM record WHERE {where} ORDER BY id LIMIT ?"  # noqa: S608
        return [_record_row(row) for row in self._execute(sql, (limit,))]

    def with_digest(self, digest: str) -> list[RecordRow]:
        """Return some records with bytes of their own, of which an index gives this digest."""
        # Those that only refer to another have no bytes: they would hide who has, after some.
        where = "listed_digest = ? AND NOT json_extract(data, '$.capture.revisit')"
        sql = f"SELECT {_RECORD_FIELDS} FROM record WHERE {where} ORDER BY id LIMIT 10"  # noqa: S608
        return [_record_row(row) for row in self._execute(sql, (encode_text(digest),))]

    def known_ends(self) -> Mapping[str, int]:
        """Return for each WARC up to which byte its records are known."""
        return dict(self._execute("SELECT file, max(offset + size) FROM record GROUP BY file"))

    def all(self) -> Iterator[RecordRow]:
        """Yield all, in the order in which they came."""
        for row in self._execute(f"SELECT {_RECORD_FIELDS} FROM record ORDER BY id").fetchall():  # noqa: S608
            yield _record_row(row)

    def delete_after(self, file: str, end: int) -> list[int]:
        """Forget the records of a file that end behind a byte; return their resources, which have lost them."""
        self._file.begin()
        where = "file = ? AND offset + size > ?"
        lost = [
            number
            for (number,) in self._execute(f"SELECT DISTINCT resource FROM record WHERE {where}", (file, end))  # noqa: S608
        ]
        self._execute(f"DELETE FROM record WHERE {where}", (file, end))  # noqa: S608
        self._execute("DELETE FROM rejected WHERE record NOT IN (SELECT id FROM record)")
        return lost


def _record_json(record: RecoveryRecord) -> str:
    """Return what has no column of its own, as text."""
    capture = {name: value for name in _CAPTURE_ATTRIBUTES if (value := getattr(record.capture, name)) is not None}
    return json.dumps({**{name: getattr(record, name) for name in _RECORD_ATTRIBUTES}, "capture": capture})


def _record_row(row: tuple[int, int, int, str | None, str, int, int, str]) -> RecordRow:
    number, resource, worth, listed_digest, file, offset, size, data = row
    values = json.loads(data)
    known = values.pop("capture")
    if "revisit_of" in known:
        known["revisit_of"] = tuple(known["revisit_of"])
    capture = Capture(key=addresses.key(known["uri"]), **known)
    return RecordRow(
        number,
        resource,
        worth,
        RecoveryRecord(capture, decode_text(listed_digest), file=file, offset=offset, size=size, **values),
    )


@dataclass(frozen=True, slots=True)
class RejectionRow:
    """A record that was rejected.

    record, resource: their ids. kind: as `unlost.quality.Kind` has it. reason: in words.
    """

    record: int
    resource: int
    kind: str
    reason: str


class RejectionTable:
    """The table of rejected records."""

    def __init__(self, file: RecoveryStateFile) -> None:
        self._file = file
        self._execute = file.connection.execute

    def add(self, record: int, quality: int, kind: str, reason: str) -> None:
        """Keep why a record was rejected. worth: what it would be good for else."""
        self._file.begin()
        self._execute("INSERT OR REPLACE INTO rejected VALUES (?, ?, ?, ?)", (record, quality, kind, reason))

    def all(self) -> Iterator[RejectionRow]:
        """Yield all whose records are still there, in the order in which they came."""
        sql = """SELECT record.id, record.resource, rejected.kind, rejected.reason
            FROM rejected JOIN record ON record.id = rejected.record ORDER BY record.id"""
        for row in self._execute(sql).fetchall():
            yield RejectionRow(*row)

    def set_quality(self, quality: int) -> list[int]:
        """Give all rejected records another worth; return the resources that have such a record of another one."""
        sql = """SELECT DISTINCT record.resource FROM rejected JOIN record ON record.id = rejected.record
            WHERE record.worth != ? ORDER BY record.resource"""
        resources = [int(number) for (number,) in self._execute(sql, (quality,))]
        if resources:
            self._file.begin()
            self._execute("UPDATE record SET worth = ? WHERE id IN (SELECT record FROM rejected)", (quality,))
        return resources
