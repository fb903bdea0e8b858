"""Read-only queries: finished, missing and linked resources with their captures. Nothing in the file is trusted."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

from unlost import dates
from unlost.capture import Capture
from unlost.errors import DateError
from unlost.recover.warc_records import RecoveryRecord
from unlost.sqlite import decode_text, require_text

_DATE_LENGTH = 14


class InvalidRecordError(Exception):
    """A record that is not as a recovery writes it. uri: of its resource."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.uri = uri


@dataclass(frozen=True, slots=True)
class ChosenCapture:
    """The copy that a recovery chose for a resource.

    name: as the state has it. uri, datetime, status, mime, migrated: of the copy. digest: of its body as it is kept.
    file, offset: of its record. is_revisit: whether that has no body of its own.
    archive: that it came from; urim: its address there. recovered: when it was kept, 14 digits.
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
    """Return a copy as a state has it, of which nothing is believed. Raises OddError."""
    with _raise_invalid_record(uri):
        values = json.loads(data)
        chosen = _chosen_capture(name, values["capture"], file, offset, values["recovered"])
        dates.to_datetime(chosen.recovered)
        return chosen


def parse_record(
    name: str, listed_digest: object, file: object, offset: object, size: object, data: str
) -> RecoveryRecord:
    """Return the whole record of a copy in the same way; its capture has no key. Raises OddError."""
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
    """Turn whatever is wrong with a record into an OddError."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, DateError):
        raise InvalidRecordError(uri) from None


def _chosen_capture(
    name: object, capture: dict[str, object], file: object, offset: object, recovered: object
) -> ChosenCapture:
    """Raise what `_odd` turns into an OddError for what is none."""
    status, migrated = capture.get("status"), capture.get("migrated")
    if not isinstance(status, int | None) or not isinstance(migrated, bool | None) or not isinstance(offset, int):
        raise TypeError
    mime, digest, archive, urim = (_text_or_none(capture.get(each)) for each in ("mime", "digest", "archive", "urim"))
    return ChosenCapture(
        _text(name), _text(capture["uri"]), _date(capture["datetime"]), status, mime, migrated, digest, _text(file),
        offset, bool(capture.get("revisit")), archive, urim, _date(recovered),
    )  # fmt: skip


def check_date(value: object, uri: str) -> None:
    """Raise OddError for what is no moment of any calendar. uri: of its resource."""
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
"""Of a row of the table of resources: whether it is recovered, or was before it was put back into the queue."""
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
# In the order of the index of captures, so that nothing has to be sorted.
_HOLDERS = "SELECT resource, archive, max(datetime) FROM capture GROUP BY resource, archive ORDER BY resource, archive"


@dataclass(frozen=True, slots=True)
class FinishedResource:
    """A resource that was recovered, or is missing.

    uri: as somebody spelled it. use: as `unlost.html.links.Use` has it. chosen: the copy; None if it is missing.
    reason: why it is missing, one word; None if it is not. when: it was found missing, or last looked at, 14 digits.
    holders: the archives that list it, with the dates of their last captures, by id.
    substitute: the URL whose capture is shown in its place; None if it has its own.
    doubt: the kind of the quality verdict against its capture; None if there is none.
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
    """Yield them in the order in which they were found, in bounded memory.

    Raises OddError, ValueError for what is no text, sqlite3.Error.
    """
    groups = groupby(connection.execute(_HOLDERS), _resource_id)
    group = next(groups, None)
    has_verdicts = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'rejected'").fetchone()
    sql = _FINISHED.format(doubt=_DOUBTFUL_KIND if has_verdicts else "NULL", recovered=IS_RECOVERED)
    for number, name, uri, use, is_missing, reason, changed, file, offset, data, other, doubt in connection.execute(
        sql
    ):
        while group is not None and group[0] < number:
            group = next(groups, None)
        is_held = group is not None and group[0] == number
        holders = tuple(_holder(*each) for each in group[1]) if group and is_held else ()
        copy = None if is_missing else parse_chosen(name, uri, file, offset, data)
        if is_missing:
            check_date(changed, uri)
        why = None if reason is None or not is_missing else require_text(reason)
        by = None if other is None else require_text(other)
        kind = None if doubt is None or is_missing else require_text(doubt)
        yield FinishedResource(
            require_text(uri), require_text(use), require_text(changed or ""), why, copy, holders, by, kind
        )


def _resource_id(row: tuple[object, ...]) -> int:
    if not isinstance(row[0], int):
        raise ValueError("no number")  # noqa: TRY004  as for what is no text
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
"""  # noqa: S608  no text of others in it
_LAST_CAPTURE = f"SELECT max({_DATE}) FROM resource JOIN record ON record.id = resource.record"  # noqa: S608
_YEARS = """
WITH seen AS (SELECT DISTINCT resource, substr(datetime, 1, 4) AS year FROM capture),
born AS (SELECT resource, min(year) AS year FROM seen GROUP BY resource)
SELECT count(*), sum(seen.year = born.year) FROM seen JOIN born ON born.resource = seen.resource
GROUP BY seen.year ORDER BY seen.year
"""


@dataclass(frozen=True, slots=True)
class LinkedResource:
    """A resource that was recovered, or is missing.

    name, uri, use: as in `Ended`. hops: links from a beginning. links: how many resources of the site link to it.
    since: the date of the oldest copy that is kept and links to it, 14 digits; None if there is none.
    """

    name: str
    uri: str
    link_kind: str
    hops: int
    is_recovered: bool
    links: int
    since: str | None


def linked_resources(connection: sqlite3.Connection) -> Iterator[LinkedResource]:
    """Yield them in the order in which they were found. Raises ValueError for what is no text, sqlite3.Error."""
    for name, uri, use, hops, is_missing, links, since in connection.execute(_LINKED):
        if not isinstance(hops, int):
            raise ValueError(hops)  # noqa: TRY004  as for what is no text
        yield LinkedResource(
            require_text(name), require_text(uri), require_text(use), hops, not is_missing, links, decode_text(since)
        )


def last_capture_datetime(connection: sqlite3.Connection) -> str | None:
    """Return the date of the newest copy that was chosen, 14 digits; None if there is none."""
    found = decode_text(connection.execute(_LAST_CAPTURE).fetchone()[0])
    return found if isinstance(found, str) else None


def captures_by_year(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    """Return for each year how many resources archives list, and how many of them for the first time."""
    return [(int(count), int(new or 0)) for count, new in connection.execute(_YEARS)]


FAILED_REASON = "failed"
"""The reason of what is missing since an archive failed: it may be had another time."""
_LINKS = "(SELECT count(*) FROM link WHERE target = missing.id)"
_MISSING = f"""
SELECT missing.uri, missing.reason, {_LINKS}, source.uri
FROM resource AS missing LEFT JOIN resource AS source
ON source.id = (SELECT min(source) FROM link WHERE target = missing.id)
WHERE missing.standing = 'missing' ORDER BY missing.id
"""  # noqa: S608  no text of others in it
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
    """A resource that is missing. reason: one word, as in the event `missing` of `unlost recover`.

    links: how many resources link to it. source: the address of the first of them; None if there is none.
    """

    uri: str
    reason: str
    links: int
    source: str | None


@dataclass(frozen=True, slots=True)
class MissingResourceDetails:
    """The same, with some of the resources that link to it, and some captures of it that archives list.

    sources: their addresses, and those of their copies in an archive, if they are known.
    copies: archive, date (14 digits), and address there if it is known; the last first.
    """

    uri: str
    reason: str
    links: int
    sources: tuple[tuple[str, str | None], ...]
    captures: tuple[tuple[str, str, str | None], ...]


def missing_resources(connection: sqlite3.Connection) -> Iterator[MissingResourceRow]:
    """Yield all that is missing, in the order in which it was found. Raises ValueError for what is no text."""
    for uri, reason, links, source in connection.execute(_MISSING):
        yield MissingResourceRow(require_text(uri), require_text(reason or ""), links, source and require_text(source))


def most_linked_missing(
    connection: sqlite3.Connection, limit: int, each: int, *, is_failed: bool
) -> Iterator[MissingResourceDetails]:
    """Yield so many of the missing, those first to which most link; of links and captures `each` at most.

    is_failed: whether those are wanted that are missing since an archive failed, or all others.
    """
    for number, uri, reason, links in connection.execute(_MOST_LINKED_MISSING, (is_failed, limit)):
        # A question for each, but for no more than are shown.
        sources = tuple(
            (require_text(source), _urim(data)) for source, data in connection.execute(_SOURCES, (number, each))
        )
        copies = tuple(
            (require_text(archive), require_text(datetime), decode_text(urim))
            for archive, datetime, urim in connection.execute(_CAPTURES, (number, each))
        )
        yield MissingResourceDetails(require_text(uri), require_text(reason or ""), links, sources, copies)


def skipped_urls(connection: sqlite3.Connection, limit: int = -1) -> Iterator[tuple[str, str]]:
    """Yield the URLs that archives list and that were not fetched, each with the reason. limit: -1 for all."""
    for uri, reason in connection.execute(
        "SELECT uri, coalesce(reason, '') FROM resource WHERE standing = 'listed' ORDER BY id LIMIT ?", (limit,)
    ):
        yield require_text(uri), require_text(reason)


def _urim(data: str | None) -> str | None:
    """Return the address of a copy in its archive, by its record; None if that has none."""
    try:
        found = None if data is None else json.loads(data)["capture"].get("urim")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return found if isinstance(found, str) else None
