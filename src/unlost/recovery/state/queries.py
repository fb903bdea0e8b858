"""Read-only queries for finished, missing and linked resources and their captures. The file is not trusted."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

from unlost import dates
from unlost.capture import Capture
from unlost.errors import DateError
from unlost.recovery.warc_records import RecoveryRecord
from unlost.sqlite import decode_text, require_text

_DATE_LENGTH = 14


class InvalidRecordError(Exception):
    """A record has invalid data.

    Attributes:
        uri: URL of its resource.
    """

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.uri = uri


@dataclass(frozen=True, slots=True)
class ChosenCapture:
    """The capture that was chosen for a resource.

    Attributes:
        name: Page name of the resource.
        uri: URL of the capture.
        datetime: Datetime of the capture, 14 digits.
        status: HTTP status.
        mime: Media type.
        migrated: Whether the archive changed the content.
        digest: Digest of the stored body.
        file: Name of the WARC file.
        offset: Offset of the record in bytes.
        is_revisit: Whether the record has no body of its own.
        archive: Id of the archive.
        urim: URI-M of the capture.
        recovered: When it was stored, 14 digits.
    """

    name: str
    uri: str
    datetime: str
    status: int | None
    mime: str | None
    migrated: bool | None
    digest: str | None
    file: str
    offset: int
    is_revisit: bool
    archive: str | None
    urim: str | None
    recovered: str


def parse_chosen(name: object, uri: str, file: object, offset: object, data: str) -> ChosenCapture:
    """Return a chosen capture from untrusted columns. Raises InvalidRecordError."""
    with _raise_invalid_record(uri):
        values = json.loads(data)
        chosen = _chosen_capture(name, values["capture"], file, offset, values["recovered"])
        dates.to_datetime(chosen.recovered)
        return chosen


def parse_record(
    name: str, listed_digest: object, file: object, offset: object, size: object, data: str
) -> RecoveryRecord:
    """Return the record of a chosen capture from untrusted columns, without a key. Raises InvalidRecordError."""
    with _raise_invalid_record(name):
        values = json.loads(data)
        capture = values["capture"]
        chosen = _chosen_capture(name, capture, file, offset, values["recovered"])
        if not isinstance(size, int):
            raise TypeError
        length, revisited = capture.get("length"), capture.get("revisit_of")
        return RecoveryRecord(
            Capture(
                chosen.uri,
                None,
                chosen.datetime,
                status=chosen.status,
                mime=chosen.mime,
                digest=chosen.digest,
                length=length if isinstance(length, int) else None,
                redirect=_text_or_none(capture.get("redirect")),
                archive=chosen.archive,
                urim=chosen.urim,
                migrated=chosen.migrated,
                revisit=chosen.is_revisit,
                revisit_of=None if revisited is None else (_text(revisited[0]), _text(revisited[1])),
            ),
            _text_or_none(decode_text(listed_digest)),
            _text_or_none(values.get("source")),
            _text_or_none(values.get("truncated")),
            chosen.recovered,
            chosen.file,
            chosen.offset,
            size,
        )


@contextmanager
def _raise_invalid_record(uri: str) -> Iterator[None]:
    """Translate all errors caused by invalid data into InvalidRecordError."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, DateError):
        raise InvalidRecordError(uri) from None


def _chosen_capture(
    name: object, capture: dict[str, object], file: object, offset: object, recovered: object
) -> ChosenCapture:
    """Build the capture. Invalid data raises an error that `_raise_invalid_record` translates."""
    status, migrated = capture.get("status"), capture.get("migrated")
    if not isinstance(status, int | None) or not isinstance(migrated, bool | None) or not isinstance(offset, int):
        raise TypeError
    mime, digest, archive, urim = (_text_or_none(capture.get(each)) for each in ("mime", "digest", "archive", "urim"))
    return ChosenCapture(
        _text(name), _text(capture["uri"]), _date(capture["datetime"]), status, mime, migrated, digest, _text(file),
        offset, bool(capture.get("revisit")), archive, urim, _date(recovered),
    )  # fmt: skip


def check_date(value: object, uri: str) -> None:
    """Check a datetime.

    Args:
        value: The value.
        uri: URL of its resource.

    Raises:
        InvalidRecordError: The value is not a valid datetime of 14 digits.
    """
    with _raise_invalid_record(uri):
        dates.to_datetime(_text(value))


def _date(value: object) -> str:
    text = _text(value)
    if len(text) != _DATE_LENGTH or not text.isascii() or not text.isdigit():
        raise ValueError(text)
    return text


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


IS_RECOVERED = (
    "resource.standing != 'listed' AND resource.changed IS NOT NULL AND resource.reason IS NULL "
    "AND resource.record IS NOT NULL"
)
"""SQL condition on the resource table: recovered, or recovered earlier and queued again."""
_FINISHED = """
SELECT resource.id, resource.name, resource.uri, resource.use, resource.standing = 'missing', resource.reason,
    resource.changed, record.file, record.offset, record.data, other.uri, {doubt}
FROM resource LEFT JOIN substitute ON resource.standing = 'substituted' AND substitute.resource = resource.id
LEFT JOIN resource AS other ON other.id = substitute.other
LEFT JOIN record ON record.id = coalesce(other.record, resource.record)
WHERE resource.standing = 'missing' OR ({recovered})
    OR (resource.standing = 'substituted' AND other.record IS NOT NULL) ORDER BY resource.id
"""
_DOUBTFUL_KIND = "(SELECT kind FROM rejected WHERE rejected.record = record.id)"
# In the order of the index on captures, so that SQLite need not sort.
_HOLDERS = "SELECT resource, archive, max(datetime) FROM capture GROUP BY resource, archive ORDER BY resource, archive"


@dataclass(frozen=True, slots=True)
class FinishedResource:
    """A recovered or missing resource.

    Attributes:
        uri: URL of the resource in its first spelling.
        link_kind: The `LinkKind` value.
        finished_at: When it was last recovered or found missing, 14 digits.
        reason: Why it is missing, as an error code; None if it is not.
        chosen: The chosen capture; None if it is missing.
        holders: The archives that list it, with the datetimes of their last captures, by id.
        substitute: The URL whose capture replaces it; None if it has its own.
        doubtful_kind: The kind of the classifier's verdict against its capture; None without one.
    """

    uri: str
    link_kind: str
    finished_at: str
    reason: str | None
    chosen: ChosenCapture | None
    holders: tuple[tuple[str, str], ...]
    substitute: str | None = None
    doubtful_kind: str | None = None


def finished_resources(connection: sqlite3.Connection) -> Iterator[FinishedResource]:
    """Yield recovered and missing resources in order of discovery, in bounded memory.

    Raises:
        InvalidRecordError: A record is invalid.
        ValueError: A column is not text.
        sqlite3.Error: The file cannot be read.
    """
    groups = groupby(connection.execute(_HOLDERS), _resource_id)
    group = next(groups, None)
    has_verdicts = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'rejected'").fetchone()
    sql = _FINISHED.format(doubt=_DOUBTFUL_KIND if has_verdicts else "NULL", recovered=IS_RECOVERED)
    for (
        id_,
        name,
        uri,
        link_kind,
        is_missing,
        reason,
        changed,
        file,
        offset,
        data,
        substitute_uri,
        doubtful_kind,
    ) in connection.execute(sql):
        while group is not None and group[0] < id_:
            group = next(groups, None)
        is_held = group is not None and group[0] == id_
        holders = tuple(_holder(*each) for each in group[1]) if group and is_held else ()
        chosen = None if is_missing else parse_chosen(name, uri, file, offset, data)
        if is_missing:
            check_date(changed, uri)
        missing_reason = None if reason is None or not is_missing else require_text(reason)
        substitute = None if substitute_uri is None else require_text(substitute_uri)
        kind = None if doubtful_kind is None or is_missing else require_text(doubtful_kind)
        yield FinishedResource(
            require_text(uri),
            require_text(link_kind),
            require_text(changed or ""),
            missing_reason,
            chosen,
            holders,
            substitute,
            kind,
        )


def _resource_id(row: tuple[object, ...]) -> int:
    if not isinstance(row[0], int):
        raise ValueError("no number")  # noqa: TRY004  like all invalid columns
    return row[0]


def _holder(_: int, archive: object, last: object) -> tuple[str, str]:
    return require_text(archive), require_text(last)


_DATE = "json_extract(record.data, '$.capture.datetime')"
_LINKED = f"""
SELECT name, uri, use, hops, standing = 'missing', (SELECT count(*) FROM link WHERE target = resource.id), (
    SELECT min({_DATE}) FROM link JOIN resource AS source ON source.id = link.source
    JOIN record ON record.id = source.record WHERE link.target = resource.id
)
FROM resource WHERE standing = 'missing' OR ({IS_RECOVERED}) ORDER BY resource.id
"""  # noqa: S608  no external input in it
_LAST_CAPTURE = f"SELECT max({_DATE}) FROM resource JOIN record ON record.id = resource.record"  # noqa: S608
_YEARS = """
WITH seen AS (SELECT DISTINCT resource, substr(datetime, 1, 4) AS year FROM capture),
born AS (SELECT resource, min(year) AS year FROM seen GROUP BY resource)
SELECT count(*), sum(seen.year = born.year) FROM seen JOIN born ON born.resource = seen.resource
GROUP BY seen.year ORDER BY seen.year
"""


@dataclass(frozen=True, slots=True)
class LinkedResource:
    """A recovered or missing resource with its links.

    Attributes:
        name: Page name of the resource.
        uri: URL of the resource in its first spelling.
        link_kind: The `LinkKind` value.
        hops: Number of links between a start URL and the resource.
        is_recovered: Whether it was recovered.
        links: Number of resources that link to it.
        since: Datetime of the oldest stored capture that links to it, 14 digits; None without one.
    """

    name: str
    uri: str
    link_kind: str
    hops: int
    is_recovered: bool
    links: int
    since: str | None


def linked_resources(connection: sqlite3.Connection) -> Iterator[LinkedResource]:
    """Yield recovered and missing resources in order of discovery. Raises ValueError or sqlite3.Error."""
    for name, uri, link_kind, hops, is_missing, links, since in connection.execute(_LINKED):
        if not isinstance(hops, int):
            raise ValueError(hops)  # noqa: TRY004  like all invalid columns
        yield LinkedResource(
            require_text(name),
            require_text(uri),
            require_text(link_kind),
            hops,
            not is_missing,
            links,
            decode_text(since),
        )


def last_capture_datetime(connection: sqlite3.Connection) -> str | None:
    """Return the datetime of the latest chosen capture, 14 digits, or None."""
    datetime = decode_text(connection.execute(_LAST_CAPTURE).fetchone()[0])
    return datetime if isinstance(datetime, str) else None


def captures_by_year(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    """Return for each year the number of resources captured, and how many of them for the first time."""
    return [(int(count), int(new or 0)) for count, new in connection.execute(_YEARS)]


FAILED_REASON = "failed"
"""The reason of resources that are missing because an archive failed; a later run may recover them."""
_LINKS = "(SELECT count(*) FROM link WHERE target = missing.id)"
_MISSING = f"""
SELECT missing.uri, missing.reason, {_LINKS}, source.uri
FROM resource AS missing LEFT JOIN resource AS source
ON source.id = (SELECT min(source) FROM link WHERE target = missing.id)
WHERE missing.standing = 'missing' ORDER BY missing.id
"""  # noqa: S608  no external input in it
_MOST_LINKED_MISSING = f"""
SELECT id, uri, reason, {_LINKS} AS links FROM resource AS missing
WHERE standing = 'missing' AND (coalesce(reason, '') = '{FAILED_REASON}') = ? ORDER BY links DESC, id LIMIT ?
"""  # noqa: S608
_SOURCES = """
SELECT source.uri, record.data FROM link JOIN resource AS source ON source.id = link.source
LEFT JOIN record ON record.id = source.record WHERE link.target = ? ORDER BY link.source LIMIT ?
"""
_CAPTURES = "SELECT archive, datetime, urim FROM capture WHERE resource = ? ORDER BY datetime DESC, id LIMIT ?"


@dataclass(frozen=True, slots=True)
class MissingResourceRow:
    """A missing resource.

    Attributes:
        uri: URL of the resource.
        reason: Error code, as in the event `missing` of `unlost recover`.
        links: Number of resources that link to it.
        source: URL of the first of them; None without one.
    """

    uri: str
    reason: str
    links: int
    source: str | None


@dataclass(frozen=True, slots=True)
class MissingResourceDetails:
    """A missing resource with some of its linking pages and captures.

    Attributes:
        uri: URL of the resource.
        reason: Error code, as in the event `missing` of `unlost recover`.
        links: Number of resources that link to it.
        sources: URLs of linking pages, with the URI-M of their captures if known.
        captures: Archive, datetime (14 digits), and URI-M if known; latest first.
    """

    uri: str
    reason: str
    links: int
    sources: tuple[tuple[str, str | None], ...]
    captures: tuple[tuple[str, str, str | None], ...]


def missing_resources(connection: sqlite3.Connection) -> Iterator[MissingResourceRow]:
    """Yield all missing resources in order of discovery. Raises ValueError if a column is not text."""
    for uri, reason, links, source in connection.execute(_MISSING):
        yield MissingResourceRow(require_text(uri), require_text(reason or ""), links, source and require_text(source))


def most_linked_missing(
    connection: sqlite3.Connection, limit: int, each: int, *, is_failed: bool
) -> Iterator[MissingResourceDetails]:
    """Yield up to `limit` missing resources, most linked first, with up to `each` linking pages and captures.

    Args:
        connection: The database.
        limit: Number of resources.
        each: Number of linking pages and captures per resource.
        is_failed: Whether to yield resources that are missing because an archive failed, or all others.
    """
    for id_, uri, reason, links in connection.execute(_MOST_LINKED_MISSING, (is_failed, limit)):
        # Two queries per resource, but only for those that are displayed.
        sources = tuple(
            (require_text(source), _urim(data)) for source, data in connection.execute(_SOURCES, (id_, each))
        )
        captures = tuple(
            (require_text(archive), require_text(datetime), decode_text(urim))
            for archive, datetime, urim in connection.execute(_CAPTURES, (id_, each))
        )
        yield MissingResourceDetails(require_text(uri), require_text(reason or ""), links, sources, captures)


def skipped_urls(connection: sqlite3.Connection, limit: int = -1) -> Iterator[tuple[str, str]]:
    """Yield the listed URLs that were not fetched, with the reason; at most `limit`, -1 for all."""
    for uri, reason in connection.execute(
        "SELECT uri, coalesce(reason, '') FROM resource WHERE standing = 'listed' ORDER BY id LIMIT ?", (limit,)
    ):
        yield require_text(uri), require_text(reason)


def _urim(data: str | None) -> str | None:
    """Return the URI-M in the JSON of a record, or None."""
    try:
        urim = None if data is None else json.loads(data)["capture"].get("urim")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return urim if isinstance(urim, str) else None
