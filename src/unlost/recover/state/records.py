"""Records: the copies that are kept in WARCs, as the state knows them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from unlost import uri as addresses
from unlost.formats.capture import Capture
from unlost.recover.record import RecoveryRecord
from unlost.recover.state.file import RecoveryStateFile
from unlost.state_file import encode_text, decode_text


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
            number for (number,) in self._execute(f"SELECT DISTINCT resource FROM record WHERE {where}", (file, end))
        ]  # noqa: S608
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
