"""Copies that came and were rejected, and why."""

from collections.abc import Iterator
from dataclasses import dataclass

from unlost.recover.state.file import RecoveryStateFile


@dataclass(frozen=True, slots=True)
class RejectionRow:
    """A record that was rejected.

    record, resource: their ids. kind: as `unlost.pages.verdicts.Kind` has it. reason: in words.
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
