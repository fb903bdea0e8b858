"""Records: the copies that are kept in WARCs, as the state knows them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from unlost import uri as addresses
from unlost.formats.capture import Capture
from unlost.recover.record import Record
from unlost.recover.state.file import StateFile
from unlost.state_file import storable, text_of


@dataclass(frozen=True, slots=True)
class Kept:
    """A record of a resource. worth: as `choice.Worth` has it; the lower, the better."""

    id: int
    resource: int
    worth: int
    record: Record


_OF_RECORD = ("source", "truncated", "recovered")
_OF_CAPTURE = tuple(field.name for field in fields(Capture) if field.name != "key")
_FIELDS = "id, resource, worth, listed_digest, file, offset, size, data"


class Records:
    """The table of records."""

    def __init__(self, file: StateFile) -> None:
        self._file = file
        self._run = file.connection.execute

    def add(self, resource: int, worth: int, record: Record) -> int:
        """Keep a record of a resource; return its id."""
        self._file.begin()
        row = (
            resource,
            worth,
            storable(record.listed_digest),
            record.file,
            record.offset,
            record.size,
            _packed(record),
        )
        added = self._run(
            f"INSERT INTO record ({_FIELDS.partition(', ')[2]}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            row,
        )
        return int(added.lastrowid or 0)

    def value(self, number: int, worth: int) -> None:
        """Give a record another worth."""
        self._file.begin()
        self._run("UPDATE record SET worth = ? WHERE id = ?", (worth, number))

    def of(self, resource: int) -> list[Kept]:
        """Return all records of a resource, the best first; of equally good ones, the first that came."""
        rows = self._run(f"SELECT {_FIELDS} FROM record WHERE resource = ? ORDER BY worth, id", (resource,))  # noqa: S608
        return [_kept(row) for row in rows]

    def best(self, resource: int) -> int | None:
        """Return the id of the first that `of` would return, however many there are; None if there is none."""
        sql = "SELECT id FROM record WHERE resource = ? ORDER BY worth, id LIMIT 1"
        row = self._run(sql, (resource,)).fetchone()
        return None if row is None else int(row[0])

    def get(self, number: int) -> Kept:
        """Return a record."""
        return _kept(self._run(f"SELECT {_FIELDS} FROM record WHERE id = ?", (number,)).fetchone())  # noqa: S608

    def archive_of_source(self, resource: int) -> str | None:
        """Return the archive that the first page came from which links to a resource; None if none does."""
        sql = """SELECT json_extract(record.data, '$.capture.archive') FROM link
            JOIN resource AS source ON source.id = link.source JOIN record ON record.id = source.record
            WHERE link.target = ? ORDER BY link.source LIMIT 1"""
        row = self._run(sql, (resource,)).fetchone()
        return None if row is None else row[0]

    def good(self, limit: int) -> list[Kept]:
        """Return some records that are pages as they were captured, the first that came."""
        where = "worth = 0 AND json_extract(data, '$.capture.mime') LIKE '%html%'"
        sql = f"SELECT {_FIELDS} FROM record WHERE {where} ORDER BY id LIMIT ?"  # noqa: S608
        return [_kept(row) for row in self._run(sql, (limit,))]

    def with_digest(self, digest: str) -> list[Kept]:
        """Return some records with bytes of their own, of which an index gives this digest."""
        # Those that only refer to another have no bytes: they would hide who has, after some.
        where = "listed_digest = ? AND NOT json_extract(data, '$.capture.revisit')"
        sql = f"SELECT {_FIELDS} FROM record WHERE {where} ORDER BY id LIMIT 10"  # noqa: S608
        return [_kept(row) for row in self._run(sql, (storable(digest),))]

    def ends(self) -> Mapping[str, int]:
        """Return for each WARC up to which byte its records are known."""
        return dict(self._run("SELECT file, max(offset + size) FROM record GROUP BY file"))

    def all(self) -> Iterator[Kept]:
        """Yield all, in the order in which they came."""
        for row in self._run(f"SELECT {_FIELDS} FROM record ORDER BY id").fetchall():  # noqa: S608
            yield _kept(row)

    def forget_behind(self, file: str, end: int) -> list[int]:
        """Forget the records of a file that end behind a byte; return their resources, which have lost them."""
        self._file.begin()
        where = "file = ? AND offset + size > ?"
        lost = [number for (number,) in self._run(f"SELECT DISTINCT resource FROM record WHERE {where}", (file, end))]  # noqa: S608
        self._run(f"DELETE FROM record WHERE {where}", (file, end))  # noqa: S608
        self._run("DELETE FROM rejected WHERE record NOT IN (SELECT id FROM record)")
        return lost


def _packed(record: Record) -> str:
    """Return what has no column of its own, as text."""
    capture = {name: value for name in _OF_CAPTURE if (value := getattr(record.capture, name)) is not None}
    return json.dumps({**{name: getattr(record, name) for name in _OF_RECORD}, "capture": capture})


def _kept(row: tuple[int, int, int, str | None, str, int, int, str]) -> Kept:
    number, resource, worth, listed_digest, file, offset, size, data = row
    values = json.loads(data)
    known = values.pop("capture")
    if "revisit_of" in known:
        known["revisit_of"] = tuple(known["revisit_of"])
    capture = Capture(key=addresses.key(known["uri"]), **known)
    return Kept(
        number, resource, worth, Record(capture, text_of(listed_digest), file=file, offset=offset, size=size, **values)
    )
