"""Captures that archives list, and what came of asking for them."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from unlost import uri as addresses
from unlost.formats.capture import Capture
from unlost.recover.state.file import RecoveryStateFile
from unlost.state_file import encode_text, decode_text


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
