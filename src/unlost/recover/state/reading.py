"""The state of a recovery, read by somebody else, who changes nothing and keeps nobody from going on."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from unlost.errors import InputError
from unlost.recover.state.file import NAME, VERSION, explained

REQUESTS = "requests"
"""The fact that tells how many requests were sent over all runs: by archive, then by kind, as JSON."""

_DIGITS = 14
_BUSY_SECONDS = 10.0  # others write for moments only
_WAS_RECOVERED = "standing != 'listed' AND changed IS NOT NULL AND reason IS NULL AND record IS NOT NULL"
_CHOSEN = f"""
SELECT resource.name, resource.uri, record.file, record.offset, record.data
FROM resource JOIN record ON record.id = resource.record WHERE {_WAS_RECOVERED} ORDER BY resource.id
"""  # noqa: S608  no text of others in it
# What came back as an error, or is listed as one, is not what a page is; what is not there after all, nobody holds.
_LISTED = f"""
SELECT name, uri FROM resource WHERE NOT ({_WAS_RECOVERED}) AND EXISTS (
    SELECT 1 FROM capture WHERE capture.resource = resource.id
    AND coalesce(outcome, '') NOT IN ('stored', 'absent') AND coalesce(status, 200) BETWEEN 200 AND 299
) ORDER BY id
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Chosen:
    """The copy that a recovery chose for a resource.

    name: as the state has it. uri, datetime, status, mime, migrated: of the copy. digest: of its body as it is kept.
    file, offset: of its record. is_revisit: whether that has no body of its own.
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


class StateReading:
    """What is in the state of the recovery in a folder, as it is when it is opened. Use it as a context manager.

    Raises InputError for a file of another kind or version, OSError where it cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / NAME
        if self._file.is_symlink():
            raise InputError(f"{self._file}: a link, which is not followed: remove it")

    def __enter__(self) -> Self:
        """Open it."""
        with explained(self._file):
            self._connection = self._opened()
        return self

    def _opened(self) -> sqlite3.Connection:
        # Where nobody is at work on it there is nothing beside the file, and it can be read as it stands, also from a
        # disk that cannot be written.
        is_quiet = not self._file.with_name(f"{NAME}-wal").exists()
        mode = "immutable=1" if is_quiet else "mode=ro"
        connection = sqlite3.connect(
            f"file:{quote(str(self._file))}?{mode}", uri=True, isolation_level=None, timeout=_BUSY_SECONDS
        )
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            raise InputError(f"{self._file}: expected the state of a recovery in version {VERSION}, found {version}")
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM fact").fetchone()  # from here on it stays as it is

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Close it."""
        self._connection.close()

    @property
    def ignore_case(self) -> bool:
        """Whether letter case does not count in its names."""
        plan = self._fact("plan")
        return isinstance(plan, dict) and bool(plan.get("ignore_case"))

    def requests(self) -> int | None:
        """Return how many requests were sent over all runs; None if nobody counted."""
        found = self._fact(REQUESTS)
        return None if found is None else total_requests(found)

    def chosen(self) -> Iterator[Chosen]:
        """Yield the copies that were chosen, in the order in which their resources were found."""
        with explained(self._file):
            for name, uri, file, offset, data in self._connection.execute(_CHOSEN):
                try:
                    yield _chosen(name, json.loads(data)["capture"], file, offset)
                except (ValueError, KeyError, TypeError, RecursionError):
                    raise InputError(f"{self._file}: not the state of a recovery: the record of {uri!a:.100}") from None

    def listed(self) -> Iterator[tuple[str, str]]:
        """Yield name and address of what archives list, and may hold, and was not recovered."""
        with explained(self._file):
            yield from self._connection.execute(_LISTED)

    def _fact(self, name: str) -> object:
        with explained(self._file):
            row = self._connection.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
        try:
            return None if row is None else json.loads(row[0])
        except (ValueError, TypeError, RecursionError):
            raise InputError(f"{self._file}: not the state of a recovery: its fact `{name}`") from None


def _chosen(name: object, capture: dict[str, object], file: object, offset: object) -> Chosen:
    """Return a copy as a state has it, of which nothing is believed. Raises ValueError, KeyError, TypeError."""
    datetime = _text(capture["datetime"])
    if len(datetime) != _DIGITS or not datetime.isascii() or not datetime.isdigit():
        raise ValueError(datetime)
    status, migrated = capture.get("status"), capture.get("migrated")
    if not isinstance(status, int | None) or not isinstance(migrated, bool | None) or not isinstance(offset, int):
        raise TypeError
    mime, digest = (None if value is None else _text(value) for value in (capture.get("mime"), capture.get("digest")))
    is_revisit = bool(capture.get("revisit"))
    uri = _text(capture["uri"])
    return Chosen(_text(name), uri, datetime, status, mime, migrated, digest, _text(file), offset, is_revisit)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def total_requests(found: object) -> int:
    """Return the sum over all archives and kinds; what is no number counts nothing."""
    if isinstance(found, int):
        return found
    return sum(map(total_requests, found.values())) if isinstance(found, Mapping) else 0
