"""Reads the state of a recovery without changing it, also while another process works on it."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from errno import ENOENT, ENOTDIR
from pathlib import Path
from types import TracebackType
from typing import Self, TypeGuard
from urllib.parse import quote

from unlost.errors import InputError
from unlost.problems import RECOVERY_FOLDER_ADVICE, unreadable_error_for_errno
from unlost.recover.options import RecoverOptions, parse_options
from unlost.recover.ranking import WORST_ACCEPTED
from unlost.recover.state import queries
from unlost.recover.state.queries import (
    IS_RECOVERED,
    ChosenCapture,
    FinishedResource,
    InvalidRecordError,
    LinkedResource,
    MissingResourceDetails,
    MissingResourceRow,
    captures_by_year,
    finished_resources,
    last_capture_datetime,
    linked_resources,
    parse_chosen,
    parse_record,
)
from unlost.recover.state.schema import (
    CASE_INSENSITIVE_FACT,
    LOOKUPS_FACT,
    REQUESTS_FACT,
    SCHEMA_VERSION,
    SESSION_IDS_FACT,
    SKIPPED_LINKS_FACT,
    SUBSTITUTE_TABLE,
    check_tables,
    explain_sqlite_errors,
)
from unlost.recover.warc_records import RecoveryRecord
from unlost.sqlite import STATE_FILE_NAME, require_text

__all__ = [
    "CASE_INSENSITIVE_FACT",
    "LOOKUPS_FACT",
    "REQUESTS_FACT",
    "SESSION_IDS_FACT",
    "SKIPPED_LINKS_FACT",
    "ChosenCapture",
    "RejectedCapture",
    "StateReader",
    "sum_requests",
]
"""The fact that tells how many requests were sent over all runs: by archive, then by kind, as JSON."""
"""The fact that tells how many links were not followed over all runs, by the reason in words, as JSON."""
"""The fact that tells how many queries were sent for resources of other hosts, over all runs."""
"""The fact that tells how many listed URLs have a session id, and were taken for the URL without it."""
"""The fact that the site's server ignores letter case: `yes` once that was seen."""
_MAX_COUNT = 1 << 53  # of anything: no program counts further, and not all read larger numbers
_BUSY_TIMEOUT_SECONDS = 10.0  # others write for moments only
_CHOSEN = f"""
SELECT resource.name, resource.uri, record.file, record.offset, record.data
FROM resource JOIN record ON record.id = resource.record WHERE {IS_RECOVERED} ORDER BY resource.id
"""  # noqa: S608  no text of others in it
_RECORDS = f"""
SELECT resource.name, record.listed_digest, record.file, record.offset, record.size, record.data
FROM resource JOIN record ON record.id = resource.record
WHERE {IS_RECOVERED} AND record.worth <= {WORST_ACCEPTED.value} ORDER BY resource.id
"""  # noqa: S608
_ALIASES = """
SELECT alias.name, resource.name FROM alias JOIN resource ON resource.id = alias.resource
UNION ALL SELECT resource.name, other.name FROM substitute JOIN resource ON resource.id = substitute.resource
JOIN resource AS other ON other.id = substitute.other WHERE resource.standing = 'substituted' ORDER BY 1
"""
_SUBSTITUTES = """
SELECT resource.uri, other.uri FROM substitute JOIN resource ON resource.id = substitute.resource
JOIN resource AS other ON other.id = substitute.other WHERE resource.standing = 'substituted' ORDER BY resource.id
"""
_REJECTED = f"""
SELECT resource.name, record.file, record.offset, rejected.kind, rejected.reason, record.data,
    ({IS_RECOVERED}) AND resource.record = record.id
FROM rejected JOIN record ON record.id = rejected.record JOIN resource ON resource.id = record.resource
ORDER BY record.id
"""  # noqa: S608
_COUNTS = f"""
SELECT CASE WHEN {IS_RECOVERED} THEN 'recovered' ELSE standing END, count(*) FROM resource GROUP BY 1
"""  # noqa: S608
# What came back as an error, or is listed as one, is not what a page is; what is not there after all, nobody holds.
_UNRECOVERED_LISTED = f"""
SELECT name, uri FROM resource WHERE NOT ({IS_RECOVERED}) AND EXISTS (
    SELECT 1 FROM capture WHERE capture.resource = resource.id
    AND coalesce(outcome, '') NOT IN ('stored', 'rejected', 'absent') AND coalesce(status, 200) BETWEEN 200 AND 299
) ORDER BY id
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class RejectedCapture:
    """A copy that came and was rejected.

    name: of its resource, as the state has it. uri, archive, datetime: of the copy. file, offset: of its record.
    kind: as `unlost.quality.Kind` has it. reason: in words. urim: the copy's address in the archive.
    is_chosen: whether it was kept nevertheless, since there is no better one: its resource is doubtful.
    """

    name: str
    uri: str
    archive: str | None
    datetime: str
    file: str
    offset: int
    kind: str
    reason: str
    urim: str | None = None
    is_chosen: bool = False


class StateReader:
    """What is in the state of the recovery in a folder, as it is when it is opened. Use it as a context manager.

    Raises InputError for a folder that is none of a recovery, and for a file of another kind or version, OSError where
    it cannot be read.
    """

    def __init__(self, folder: Path, name: str = STATE_FILE_NAME) -> None:
        """name: of the file, where it is not that of a recovery at work but a copy of it."""
        if name == STATE_FILE_NAME:
            _check_recovery(folder)
        self._file = folder / name
        if self._file.is_symlink():
            raise InputError(f"{self._file}: a link, which is not followed: remove it")

    def __enter__(self) -> Self:
        """Open it."""
        with explain_sqlite_errors(self._file):
            self._connection = self._open()
        return self

    def _open(self) -> sqlite3.Connection:
        # Where nobody is at work on it there is nothing beside the file, and it can be read as it stands, also from a
        # disk that cannot be written.
        is_quiet = not self._file.with_name(f"{self._file.name}-wal").exists()
        self._mark_at_open = _file_mark(self._file) if is_quiet else None
        mode = "immutable=1" if is_quiet else "mode=ro"
        connection = sqlite3.connect(
            f"file:{quote(str(self._file))}?{mode}", uri=True, isolation_level=None, timeout=_BUSY_TIMEOUT_SECONDS
        )
        try:
            self._check_version(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def check_unchanged(self) -> None:
        """Say if what was read may be wrong, since a recovery began to change the file as it was. Raises InputError.

        Whoever reads it while a recovery is at work has it as it was; but one that begins after the reading did cannot
        know of that.
        """
        if self._mark_at_open is not None and _file_mark(self._file) != self._mark_at_open:
            raise InputError(f"{self._file}: a recovery began while it was read: try again")

    def _check_version(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if not 1 <= version <= SCHEMA_VERSION:
            hint = ": a newer unlost made it, and is needed to read it" if version > SCHEMA_VERSION else ""
            message = f"expected the state of a recovery in version {SCHEMA_VERSION}, found {version}"
            raise InputError(f"{self._file}: {message}{hint}")
        check_tables(connection, self._file)
        if version < SCHEMA_VERSION:  # it has no such table, and stays as it is
            connection.execute(SUBSTITUTE_TABLE.format(kind="TEMP TABLE"))
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM fact").fetchone()  # from here on it stays as it is

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Close it. Raises InputError as `check` does, unless something else went wrong before."""
        self._connection.close()
        if kind is None:
            self.check_unchanged()

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Turn what SQLite says, and what is no record, into words. Raises InputError, OSError."""
        try:
            with explain_sqlite_errors(self._file):
                yield
        except InvalidRecordError as error:
            raise InputError(f"{self._file}: not the state of a recovery: the record of {error.uri!a:.100}") from None
        except ValueError:
            raise InputError(f"{self._file}: not the state of a recovery: something in it is no text") from None

    @property
    def ignore_case(self) -> bool:
        """Whether letter case does not count in its names."""
        plan = self._fact("plan")
        return isinstance(plan, dict) and bool(plan.get("ignore_case"))

    def requests_by_archive(self) -> dict[str, int]:
        """Return how many requests were sent over all runs, by archive."""
        found = self._fact(REQUESTS_FACT)
        return {str(name): sum_requests(each) for name, each in found.items()} if isinstance(found, dict) else {}

    def skipped_links(self) -> dict[str, int]:
        """Return how many links were not followed, by the reason in words."""
        found = self._fact(SKIPPED_LINKS_FACT)
        return {why: n for why, n in found.items() if _is_count(n)} if isinstance(found, dict) else {}

    def total_requests(self) -> int | None:
        """Return how many requests were sent over all runs; None if nobody counted."""
        found = self._fact(REQUESTS_FACT)
        return None if found is None else sum_requests(found)

    def chosen_captures(self) -> Iterator[ChosenCapture]:
        """Yield the copies that were chosen, in the order in which their resources were found."""
        with self._explain_errors():
            for name, uri, file, offset, data in self._connection.execute(_CHOSEN):
                yield parse_chosen(name, uri, file, offset, data)

    def records(self) -> Iterator[tuple[str, RecoveryRecord]]:
        """Yield the names of resources and the records of the copies that were chosen for them, in the same order.

        The captures have no keys.
        """
        with self._explain_errors():
            for name, *record in self._connection.execute(_RECORDS):
                yield name, parse_record(name, *record)

    def aliases(self) -> Iterator[tuple[str, str]]:
        """Yield other names of resources, as links have them, and the names of those."""
        with self._explain_errors():
            for alias, name in self._connection.execute(_ALIASES):
                yield require_text(alias), require_text(name)

    def substitutes(self) -> Iterator[tuple[str, str]]:
        """Yield URLs that no archive has, and the URLs with another query whose captures are used in their place."""
        with self._explain_errors():
            for uri, other in self._connection.execute(_SUBSTITUTES):
                yield require_text(uri), require_text(other)

    def options(self) -> RecoverOptions | None:
        """Return what is recovered here; None if nobody has said so yet."""
        found = self._fact("plan")
        try:
            return None if found is None else parse_options(found)
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{self._file}: not the state of a recovery: its fact `plan`") from None

    def rejected(self) -> Iterator[RejectedCapture]:
        """Yield the copies that were rejected, in the order in which they came."""
        with self._explain_errors():
            if not self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'rejected'").fetchone():
                return  # it is from before there were verdicts
            for name, file, offset, kind, reason, data, is_chosen in self._connection.execute(_REJECTED):
                copy = parse_chosen(name, name, file, offset, data)
                yield RejectedCapture(
                    copy.name, copy.uri, copy.archive, copy.datetime, copy.file, copy.offset, require_text(kind),
                    require_text(reason), copy.urim, bool(is_chosen),
                )  # fmt: skip

    def doubtful(self) -> Iterator[RejectedCapture]:
        """Yield the rejected captures that were kept for want of a better one."""
        return (each for each in self.rejected() if each.is_chosen)

    def unrecovered_listed(self) -> Iterator[tuple[str, str]]:
        """Yield name and address of what archives list, and may hold, and was not recovered."""
        with self._explain_errors():
            for name, uri in self._connection.execute(_UNRECOVERED_LISTED):
                yield require_text(name), require_text(uri)

    def finished_resources(self) -> Iterator[FinishedResource]:
        """Yield what was recovered, and what is missing, in the order in which it was found."""
        with self._explain_errors():
            yield from finished_resources(self._connection)

    def linked_resources(self) -> Iterator[LinkedResource]:
        """Yield the same with their places in the web of links."""
        with self._explain_errors():
            yield from linked_resources(self._connection)

    def last_capture_datetime(self) -> str | None:
        """Return the date of the newest copy that was chosen, 14 digits; None if there is none."""
        with self._explain_errors():
            return last_capture_datetime(self._connection)

    def captures_by_year(self) -> list[tuple[int, int]]:
        """Return for each year how many resources archives list, and how many of them for the first time."""
        with self._explain_errors():
            return captures_by_year(self._connection)

    def missing_resources(self) -> Iterator[MissingResourceRow]:
        """Yield what is missing, in the order in which it was found."""
        with self._explain_errors():
            yield from queries.missing_resources(self._connection)

    def most_linked_missing(self, limit: int, each: int, *, is_failed: bool) -> Iterator[MissingResourceDetails]:
        """Yield some of what is missing, as `gaps.most_missed` does."""
        with self._explain_errors():
            yield from queries.most_linked_missing(self._connection, limit, each, is_failed=is_failed)

    def skipped_urls(self, limit: int = -1) -> Iterator[tuple[str, str]]:
        """Yield the URLs that archives list and that were not fetched; at most `limit`, -1 for all.

        Each has the reason: one of `listing_filter`, or empty where no link points to it.
        """
        with self._explain_errors():
            yield from queries.skipped_urls(self._connection, limit)

    def count_skipped(self) -> dict[str, int]:
        """Return how many listed URLs were not fetched, by the same reason."""
        with self._explain_errors():
            sql = "SELECT coalesce(reason, ''), count(*) FROM resource WHERE standing = 'listed' GROUP BY 1"
            found = {require_text(reason): count for reason, count in self._connection.execute(sql)}
        merged = self._fact(SESSION_IDS_FACT)
        return {**found, "session-id": merged} if _is_count(merged) and merged else found

    @property
    def other_host_lookups(self) -> int:
        """How many queries were sent for what pages need from other hosts."""
        found = self._fact(LOOKUPS_FACT)
        return found if _is_count(found) else 0

    @property
    def is_case_insensitive(self) -> bool:
        """Whether the site's server was found to ignore letter case."""
        with explain_sqlite_errors(self._file):
            row = self._connection.execute("SELECT 1 FROM fact WHERE name = ?", (CASE_INSENSITIVE_FACT,)).fetchone()
        return row is not None

    def counts(self) -> dict[str, int]:
        """Return how many resources there are of each standing, as `resources.Standing` has it.

        What came back and was put back into the queue counts as recovered.
        """
        with self._explain_errors():
            return dict(self._connection.execute(_COUNTS))

    def listing_outcomes(self) -> list[tuple[str, str, str | None]]:
        """Return for each list that an archive was asked for its id, what came of it, and what was wrong, by id."""
        with self._explain_errors():
            rows = self._connection.execute("SELECT archive, outcome, message FROM listing ORDER BY archive, prefix")
            return [
                (require_text(archive), require_text(outcome), message and require_text(message))
                for archive, outcome, message in rows
            ]

    def query_outcomes(self) -> dict[str, dict[str, int]]:
        """Return the outcomes of queries for single URLs, by archive: how many `done`, `failed` and `excluded`."""
        found: dict[str, dict[str, int]] = {}
        with self._explain_errors():
            sql = "SELECT archive, outcome, count(*) FROM asked GROUP BY archive, outcome"
            for archive, outcome, count in self._connection.execute(sql):
                found.setdefault(require_text(archive), {})[require_text(outcome)] = count
        return found

    def listed_captures(self) -> dict[str, int]:
        """Return how many captures of the site are known of each archive."""
        with self._explain_errors():
            rows = self._connection.execute("SELECT archive, count(*) FROM capture GROUP BY archive")
            return {require_text(archive): count for archive, count in rows}

    def _fact(self, name: str) -> object:
        with explain_sqlite_errors(self._file):
            row = self._connection.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
        try:
            return None if row is None else json.loads(row[0])
        except (ValueError, TypeError, RecursionError):
            raise InputError(f"{self._file}: not the state of a recovery: its fact `{name}`") from None


def _check_recovery(folder: Path) -> None:
    """Say what is wrong with a place that is no recovery. Raises InputError, OSError."""
    if not folder.is_dir():
        raise unreadable_error_for_errno(folder, ENOTDIR if folder.exists() else ENOENT, RECOVERY_FOLDER_ADVICE)
    if not (folder / STATE_FILE_NAME).exists() and not (folder / STATE_FILE_NAME).is_symlink():
        hint = "run `unlost recover` with this folder as -o" if (folder / "warc").is_dir() else "check the name"
        raise InputError(f"{folder}: not the folder of a recovery, since there is no {STATE_FILE_NAME} in it: {hint}")


def _file_mark(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_mtime_ns, found.st_size


def _is_count(found: object) -> TypeGuard[int]:
    """Return whether something is a number of things: a state may say anything, also what no line has room for."""
    return isinstance(found, int) and 0 <= found < _MAX_COUNT


def sum_requests(found: object) -> int:
    """Return the sum over all archives and kinds; what is no number counts nothing."""
    if isinstance(found, int):
        return found if _is_count(found) else 0
    return sum(map(sum_requests, found.values())) if isinstance(found, Mapping) else 0
