"""Tables of listings, listed captures with their outcomes, stored records, and rejected records."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from unlost.capture import Capture
from unlost.recovery.state.schema import RecoveryStateFile
from unlost.recovery.warc_records import RecoveryRecord
from unlost.sqlite import decode_text, encode_text
from unlost.uri import key as uri_key


class ListingStatus(StrEnum):
    """Status of a listing query."""

    DONE = "done"
    TRUNCATED = "cut"
    """The listing was cut at a limit; the archive may hold more."""
    UNSUPPORTED = "unsupported"
    """The archive has no listing API."""
    EXCLUDED = "excluded"
    """The archive excludes the site."""
    FAILED = "failed"
    """The listing is incomplete; the next run requests it again."""
    NOT_NOW = "not-now"
    """The listing was not completed because of a rate limit or a block."""


@dataclass(frozen=True, slots=True)
class ListingRow:
    """The result of one listing query, over all its pages.

    Attributes:
        archive: Id of the archive.
        prefix: The prefix that was listed.
        outcome: The status.
        captures: Number of captures not listed before.
        message: The error message; None without an error.
        until: When the archive may be queried again, seconds since 1970.
    """

    archive: str
    prefix: str
    outcome: ListingStatus
    captures: int
    message: str | None = None
    until: float | None = None


class ListingTable:
    """The table of listing queries."""

    def __init__(self, file: RecoveryStateFile) -> None:
        self._file = file

    def store(self, listing: ListingRow) -> None:
        """Store the result of a listing query; replaces an earlier one."""
        self._file.begin()
        row = (listing.archive, listing.prefix, listing.outcome.value, listing.captures, listing.message, listing.until)
        self._file.connection.execute("INSERT OR REPLACE INTO listing VALUES (?, ?, ?, ?, ?, ?)", row)

    def all(self) -> list[ListingRow]:
        """Return all results."""
        rows = self._file.connection.execute("SELECT archive, prefix, outcome, captures, message, until FROM listing")
        return [ListingRow(archive, prefix, ListingStatus(outcome), *more) for archive, prefix, outcome, *more in rows]

    def clear(self) -> None:
        """Delete all results, so that listings are queried again. Listed captures are retained."""
        self._file.begin()
        self._file.connection.execute("DELETE FROM listing")


class CaptureOutcome(StrEnum):
    """Outcome of fetching a capture."""

    STORED = "stored"
    REJECTED = "rejected"
    """It was stored, and the quality classifier rejected it."""
    ABSENT = "absent"
    """It is listed, but the archive does not have it."""
    EXCLUDED = "excluded"
    """The archive excludes it."""
    DEFERRED = "put-off"
    """The archive requested a wait (429, 503). It is requested once more, because pywb also sends 503 for a record that
    it cannot read."""
    FAILED = "failed"
    """The request failed; the next run repeats it."""
    RETRY = "again"
    """It failed in an earlier run and was not requested in this one yet."""


@dataclass(frozen=True, slots=True)
class CaptureRow:
    """A capture listed by an archive.

    Attributes:
        id: Id in the database.
        capture: The capture as in the archive's index.
        outcome: Outcome of fetching it; None if it was not requested yet.
    """

    id: int
    capture: Capture
    outcome: CaptureOutcome | None


_CAPTURE_FIELDS = (
    "archive, datetime, uri, status, mime, digest, length, redirect, urim, migrated, revisit, revisit_uri, "
    "revisit_datetime, filename, offset, skip"
)
_PLACEHOLDERS = ", ".join("?" * (_CAPTURE_FIELDS.count(",") + 2))
_INSERT_CAPTURE = f"INSERT OR IGNORE INTO capture (resource, {_CAPTURE_FIELDS}) VALUES ({_PLACEHOLDERS})"  # noqa: S608  no external input in it
_SELECT_CAPTURES = f"SELECT id, outcome, {_CAPTURE_FIELDS} FROM capture WHERE resource = ? ORDER BY id"  # noqa: S608
# Session ids that `unlost.uri.names` removes from page names.
_SESSION_ID = re.compile(r"(?:[?&]|;)(?:jsessionid|phpsessid|sid|aspsessionid\w*)=[0-9a-z]{20,32}", re.IGNORECASE)


class CaptureTable:
    """The tables of captures, and of queries for single URLs."""

    def __init__(self, file: RecoveryStateFile) -> None:
        self._file = file
        self._execute = file.connection.execute

    def add(self, captures: Iterable[tuple[int, Capture]]) -> int:
        """Store captures of resources; return the number of new ones."""
        self._file.begin()
        return max(
            0,
            self._file.connection.executemany(
                _INSERT_CAPTURE, [_capture_values(resource, capture) for resource, capture in captures]
            ).rowcount,
        )

    def of_resource(self, resource: int) -> list[CaptureRow]:
        """Return all captures of a resource in the order of listing."""
        return [_capture_row(row) for row in self._execute(_SELECT_CAPTURES, (resource,))]

    def set_outcome(self, capture_id: int, outcome: CaptureOutcome) -> None:
        """Store the outcome of fetching a capture."""
        self._file.begin()
        self._execute("UPDATE capture SET outcome = ? WHERE id = ?", (outcome.value, capture_id))

    def digests(self, resources: Collection[int]) -> dict[int, set[str]]:
        """Return the digests of successful captures, by resource id.

        A digest without an algorithm is qualified by its archive, because others may use another algorithm.
        """
        digests_by_resource: dict[int, set[str]] = {resource: set() for resource in resources}
        for resource in resources:
            rows = self._execute(
                "SELECT DISTINCT CASE WHEN instr(digest, ':') THEN digest ELSE archive || ' ' || digest END "
                "FROM capture WHERE resource = ? AND digest IS NOT NULL AND coalesce(status, 200) BETWEEN 200 AND 299",
                (resource,),
            )
            digests_by_resource[resource].update(str(decode_text(digest)) for (digest,) in rows)
        return digests_by_resource

    def count_session_ids(self) -> int:
        """Return the number of listed URLs with a session id, which are captures of the URL without it."""
        rows = self._execute("SELECT DISTINCT uri FROM capture WHERE uri LIKE '%sid=%' OR uri LIKE '%sessionid%'")
        return sum(_SESSION_ID.search(str(decode_text(uri))) is not None for (uri,) in rows)

    def is_distinctive(self, digests: Collection[str], resources: Collection[int]) -> bool:
        """Return whether one of these digests occurs only in captures of these resources."""
        placeholders = ", ".join("?" * len(resources))
        sql = f"SELECT 1 FROM capture WHERE digest = ? AND resource NOT IN ({placeholders}) LIMIT 1"  # noqa: S608
        return any(self._execute(sql, (encode_text(digest), *resources)).fetchone() is None for digest in digests)

    def archives_with_captures(self) -> set[str]:
        """Return the archives that hold captures of the site."""
        return {str(archive) for (archive,) in self._execute("SELECT DISTINCT archive FROM capture")}

    def reset_stored(self, resource: int, stored: Collection[tuple[str | None, str]]) -> None:
        """Reset stored captures of a resource to unrequested, except those of these archives and datetimes."""
        self._file.begin()
        for each in self.of_resource(resource):
            if (
                each.outcome in (CaptureOutcome.STORED, CaptureOutcome.REJECTED)
                and (each.capture.archive, each.capture.datetime) not in stored
            ):
                self._execute("UPDATE capture SET outcome = NULL WHERE id = ?", (each.id,))

    def reset_failed(self) -> Sequence[int]:
        """Mark failed captures and queries for retry; return the ids of their resources."""
        self._file.begin()
        failed = {
            resource
            for (resource,) in self._execute("SELECT resource FROM capture WHERE outcome IN ('failed', 'again')")
        }
        failed |= {resource for (resource,) in self._execute("SELECT resource FROM asked WHERE outcome = 'failed'")}
        self._execute("UPDATE capture SET outcome = 'again' WHERE outcome = 'failed'")
        self._execute("DELETE FROM asked WHERE outcome = 'failed'")
        return sorted(failed)

    def clear_queries(self) -> None:
        """Delete all queries for single URLs, so that archives are queried again."""
        self._file.begin()
        self._execute("DELETE FROM asked")

    def query_outcomes(self, resource: int) -> dict[str, str]:
        """Return the outcomes of queries for this resource alone, by archive."""
        return dict(self._execute("SELECT archive, outcome FROM asked WHERE resource = ?", (resource,)))

    def set_query_outcome(self, resource: int, archive: str, outcome: str) -> None:
        """Store the outcome of a query for a resource: `done`, `excluded` or `failed`."""
        self._file.begin()
        self._execute("INSERT OR REPLACE INTO asked VALUES (?, ?, ?)", (resource, archive, outcome))


def _capture_values(resource: int, capture: Capture) -> tuple[object, ...]:
    original = capture.revisit_of or (None, None)
    return tuple(encode_text(value) for value in (
        resource, capture.archive, capture.datetime, capture.uri, capture.status, capture.mime, capture.digest,
        capture.length, capture.redirect, capture.urim, capture.migrated, capture.revisit, *original, capture.filename,
        capture.offset, capture.skip,
    ))  # fmt: skip


def _capture_row(row: tuple[Any, ...]) -> CaptureRow:
    if bytes in set(map(type, row)):
        row = tuple(map(decode_text, row))
    id_, outcome, archive, datetime, uri, status, mime, digest, length, redirect, urim, migrated, revisit, *more = row
    of_uri, of_datetime, filename, offset, skip = more
    capture = Capture(
        uri, uri_key(uri), datetime, status, mime, digest, length, redirect, archive, urim,
        None if migrated is None else bool(migrated), bool(revisit),
        None if of_uri is None else (of_uri, of_datetime), filename, offset, skip,
    )  # fmt: skip
    return CaptureRow(id_, capture, None if outcome is None else CaptureOutcome(outcome))


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A stored record of a resource.

    Attributes:
        id: Id in the database.
        resource: Id of the resource.
        quality: A `CaptureQuality`; lower is better.
        record: The record.
    """

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
        """Store a record of a resource; return its id."""
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

    def set_quality(self, record_id: int, quality: int) -> None:
        """Change the quality of a record."""
        self._file.begin()
        self._execute("UPDATE record SET worth = ? WHERE id = ?", (quality, record_id))

    def of_resource(self, resource: int) -> list[RecordRow]:
        """Return all records of a resource, best first; of equal ones, the first stored."""
        rows = self._execute(f"SELECT {_RECORD_FIELDS} FROM record WHERE resource = ? ORDER BY worth, id", (resource,))  # noqa: S608
        return [_record_row(row) for row in rows]

    def best(self, resource: int) -> int | None:
        """Return the id of the first record of `of_resource`, or None."""
        sql = "SELECT id FROM record WHERE resource = ? ORDER BY worth, id LIMIT 1"
        row = self._execute(sql, (resource,)).fetchone()
        return None if row is None else int(row[0])

    def get(self, record_id: int) -> RecordRow:
        """Return a record."""
        return _record_row(self._execute(f"SELECT {_RECORD_FIELDS} FROM record WHERE id = ?", (record_id,)).fetchone())  # noqa: S608

    def archive_of_linking_page(self, resource: int) -> str | None:
        """Return the archive of the first page that links to a resource, or None."""
        sql = """SELECT json_extract(record.data, '$.capture.archive') FROM link
            JOIN resource AS source ON source.id = link.source JOIN record ON record.id = source.record
            WHERE link.target = ? ORDER BY link.source LIMIT 1"""
        row = self._execute(sql, (resource,)).fetchone()
        return None if row is None else row[0]

    def good_pages(self, limit: int) -> list[RecordRow]:
        """Return up to `limit` unmodified HTML records, the first stored."""
        where = "worth = 0 AND json_extract(data, '$.capture.mime') LIKE '%html%'"
        sql = f"SELECT {_RECORD_FIELDS} FROM record WHERE {where} ORDER BY id LIMIT ?"  # noqa: S608
        return [_record_row(row) for row in self._execute(sql, (limit,))]

    def with_digest(self, digest: str) -> list[RecordRow]:
        """Return up to 10 records that have their own body and this digest in an archive's index."""
        # Revisits are excluded, because they have no body and would use up the limit.
        where = "listed_digest = ? AND NOT json_extract(data, '$.capture.revisit')"
        sql = f"SELECT {_RECORD_FIELDS} FROM record WHERE {where} ORDER BY id LIMIT 10"  # noqa: S608
        return [_record_row(row) for row in self._execute(sql, (encode_text(digest),))]

    def known_ends(self) -> Mapping[str, int]:
        """Return by WARC file the offset at which its last known record ends."""
        return dict(self._execute("SELECT file, max(offset + size) FROM record GROUP BY file"))

    def all(self) -> Iterator[RecordRow]:
        """Yield all records in the order of storing."""
        for row in self._execute(f"SELECT {_RECORD_FIELDS} FROM record ORDER BY id").fetchall():  # noqa: S608
            yield _record_row(row)

    def delete_after(self, file: str, end: int) -> list[int]:
        """Delete the records of a file that end after an offset; return the ids of the affected resources."""
        self._file.begin()
        where = "file = ? AND offset + size > ?"
        lost = [
            resource
            for (resource,) in self._execute(f"SELECT DISTINCT resource FROM record WHERE {where}", (file, end))  # noqa: S608
        ]
        self._execute(f"DELETE FROM record WHERE {where}", (file, end))  # noqa: S608
        self._execute("DELETE FROM rejected WHERE record NOT IN (SELECT id FROM record)")
        return lost


def _record_json(record: RecoveryRecord) -> str:
    """Return the attributes without a column of their own as JSON."""
    capture = {name: value for name in _CAPTURE_ATTRIBUTES if (value := getattr(record.capture, name)) is not None}
    return json.dumps({**{name: getattr(record, name) for name in _RECORD_ATTRIBUTES}, "capture": capture})


def _record_row(row: tuple[int, int, int, str | None, str, int, int, str]) -> RecordRow:
    id_, resource, quality, listed_digest, file, offset, size, data = row
    values = json.loads(data)
    fields = values.pop("capture")
    if "revisit_of" in fields:
        fields["revisit_of"] = tuple(fields["revisit_of"])
    capture = Capture(key=uri_key(fields["uri"]), **fields)
    return RecordRow(
        id_,
        resource,
        quality,
        RecoveryRecord(capture, decode_text(listed_digest), file=file, offset=offset, size=size, **values),
    )


@dataclass(frozen=True, slots=True)
class RejectionRow:
    """A rejected record.

    Attributes:
        record: Id of the record.
        resource: Id of the resource.
        kind: The `VerdictKind` value.
        reason: Explanation in English.
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
        """Store why a record was rejected.

        Args:
            record: Id of the record.
            quality: Its quality without the rejection.
            kind: The `VerdictKind` value.
            reason: Explanation in English.
        """
        self._file.begin()
        self._execute("INSERT OR REPLACE INTO rejected VALUES (?, ?, ?, ?)", (record, quality, kind, reason))

    def all(self) -> Iterator[RejectionRow]:
        """Yield all rejections whose records still exist, in the order of storing."""
        sql = """SELECT record.id, record.resource, rejected.kind, rejected.reason
            FROM rejected JOIN record ON record.id = rejected.record ORDER BY record.id"""
        for row in self._execute(sql).fetchall():
            yield RejectionRow(*row)

    def set_quality(self, quality: int) -> list[int]:
        """Change the quality of all rejected records; return the ids of resources whose records changed."""
        sql = """SELECT DISTINCT record.resource FROM rejected JOIN record ON record.id = rejected.record
            WHERE record.worth != ? ORDER BY record.resource"""
        resources = [int(resource) for (resource,) in self._execute(sql, (quality,))]
        if resources:
            self._file.begin()
            self._execute("UPDATE record SET worth = ? WHERE id IN (SELECT record FROM rejected)", (quality,))
        return resources
