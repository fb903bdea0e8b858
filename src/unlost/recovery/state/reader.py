"""Reads the database of a recovery without changing it, also while another process writes it."""

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
from unlost.recovery.options import RecoverOptions, parse_options
from unlost.recovery.ranking import WORST_ACCEPTED
from unlost.recovery.state import queries
from unlost.recovery.state.queries import (
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
from unlost.recovery.state.schema import (
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
from unlost.recovery.warc_records import RecoveryRecord
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
_MAX_COUNT = 1 << 53  # largest integer that JSON readers represent exactly
_BUSY_TIMEOUT_SECONDS = 10.0  # write locks are short
_CHOSEN = f"""
SELECT resource.name, resource.uri, record.file, record.offset, record.data
FROM resource JOIN record ON record.id = resource.record WHERE {IS_RECOVERED} ORDER BY resource.id
"""  # noqa: S608  no external input in it
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
# Error responses are not content, and captures that turned out to be absent are not held by any archive.
_UNRECOVERED_LISTED = f"""
SELECT name, uri FROM resource WHERE NOT ({IS_RECOVERED}) AND EXISTS (
    SELECT 1 FROM capture WHERE capture.resource = resource.id
    AND coalesce(outcome, '') NOT IN ('stored', 'rejected', 'absent') AND coalesce(status, 200) BETWEEN 200 AND 299
) ORDER BY id
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class RejectedCapture:
    """A stored capture that was rejected.

    Attributes:
        name: Page name of the resource.
        uri: URL of the capture.
        archive: Id of the archive.
        datetime: Datetime of the capture, 14 digits.
        file: Name of the WARC file.
        offset: Offset of the record in bytes.
        kind: The `VerdictKind` value.
        reason: Explanation in English.
        urim: URI-M of the capture.
        is_chosen: Whether it was chosen nevertheless because there is no better one; its resource is doubtful.
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
    """Reads the database of the recovery in a folder as of the time it is opened. Use it as a context manager.

    Args:
        folder: The folder of the recovery.
        name: Name of the database, if it is a checkpoint of that of a recovery in progress.

    Raises:
        InputError: The folder has no recovery, or the file is of another kind or version.
        OSError: The file cannot be read.
    """

    def __init__(self, folder: Path, name: str = STATE_FILE_NAME) -> None:
        if name == STATE_FILE_NAME:
            _check_recovery(folder)
        self._file = folder / name
        if self._file.is_symlink():
            raise InputError(f"{self._file}: a link, which is not followed: remove it")

    def __enter__(self) -> Self:
        """Open the database."""
        with explain_sqlite_errors(self._file):
            self._connection = self._open()
        return self

    def _open(self) -> sqlite3.Connection:
        # Without a write-ahead log no process is writing: the file is opened as immutable, which also works on a
        # read-only disk.
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
        """Raise InputError if a recovery started to change the file while it was read as immutable.

        A reader that opens the file during a recovery has a consistent snapshot; one that opens it before does not.
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
        if version < SCHEMA_VERSION:  # files of older versions lack the table and are not migrated here
            connection.execute(SUBSTITUTE_TABLE.format(kind="TEMP TABLE"))
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM fact").fetchone()  # starts the read transaction, which is a snapshot

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Close the database. Raises InputError as `check_unchanged`, unless an exception is already raised."""
        self._connection.close()
        if kind is None:
            self.check_unchanged()

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Translate SQLite errors and invalid records into InputError or OSError."""
        try:
            with explain_sqlite_errors(self._file):
                yield
        except InvalidRecordError as error:
            raise InputError(f"{self._file}: not the state of a recovery: the record of {error.uri!a:.100}") from None
        except ValueError:
            raise InputError(f"{self._file}: not the state of a recovery: something in it is no text") from None

    @property
    def ignore_case(self) -> bool:
        """Whether letter case is ignored in page names."""
        options = self._fact("plan")
        return isinstance(options, dict) and bool(options.get("ignore_case"))

    def requests_by_archive(self) -> dict[str, int]:
        """Return the number of requests sent over all runs, by archive."""
        requests = self._fact(REQUESTS_FACT)
        return (
            {str(name): sum_requests(counts) for name, counts in requests.items()} if isinstance(requests, dict) else {}
        )

    def skipped_links(self) -> dict[str, int]:
        """Return the number of links that were not followed, by reason."""
        links = self._fact(SKIPPED_LINKS_FACT)
        return {reason: count for reason, count in links.items() if _is_count(count)} if isinstance(links, dict) else {}

    def total_requests(self) -> int | None:
        """Return the number of requests sent over all runs, or None if not counted."""
        requests = self._fact(REQUESTS_FACT)
        return None if requests is None else sum_requests(requests)

    def chosen_captures(self) -> Iterator[ChosenCapture]:
        """Yield the chosen captures in order of discovery of their resources."""
        with self._explain_errors():
            for name, uri, file, offset, data in self._connection.execute(_CHOSEN):
                yield parse_chosen(name, uri, file, offset, data)

    def records(self) -> Iterator[tuple[str, RecoveryRecord]]:
        """Yield page names and records of the chosen captures in the same order. The captures have no keys."""
        with self._explain_errors():
            for name, *record in self._connection.execute(_RECORDS):
                yield name, parse_record(name, *record)

    def aliases(self) -> Iterator[tuple[str, str]]:
        """Yield aliases of page names with the names of their resources."""
        with self._explain_errors():
            for alias, name in self._connection.execute(_ALIASES):
                yield require_text(alias), require_text(name)

    def substitutes(self) -> Iterator[tuple[str, str]]:
        """Yield URLs that no archive has, with the URLs with another query whose captures replace them."""
        with self._explain_errors():
            for uri, other in self._connection.execute(_SUBSTITUTES):
                yield require_text(uri), require_text(other)

    def options(self) -> RecoverOptions | None:
        """Return the stored options, or None for a new recovery."""
        options = self._fact("plan")
        try:
            return None if options is None else parse_options(options)
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{self._file}: not the state of a recovery: its fact `plan`") from None

    def rejected(self) -> Iterator[RejectedCapture]:
        """Yield the rejected captures in the order of storing."""
        with self._explain_errors():
            if not self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'rejected'").fetchone():
                return  # version 1 had no classifier
            for name, file, offset, kind, reason, data, is_chosen in self._connection.execute(_REJECTED):
                chosen = parse_chosen(name, name, file, offset, data)
                yield RejectedCapture(
                    chosen.name, chosen.uri, chosen.archive, chosen.datetime, chosen.file, chosen.offset,
                    require_text(kind), require_text(reason), chosen.urim, bool(is_chosen),
                )  # fmt: skip

    def doubtful(self) -> Iterator[RejectedCapture]:
        """Yield the rejected captures that were chosen for lack of a better one."""
        return (each for each in self.rejected() if each.is_chosen)

    def unrecovered_listed(self) -> Iterator[tuple[str, str]]:
        """Yield page name and URL of listed resources that archives may hold and that were not recovered."""
        with self._explain_errors():
            for name, uri in self._connection.execute(_UNRECOVERED_LISTED):
                yield require_text(name), require_text(uri)

    def finished_resources(self) -> Iterator[FinishedResource]:
        """Yield recovered and missing resources in order of discovery."""
        with self._explain_errors():
            yield from finished_resources(self._connection)

    def linked_resources(self) -> Iterator[LinkedResource]:
        """Yield recovered and missing resources with their links in order of discovery."""
        with self._explain_errors():
            yield from linked_resources(self._connection)

    def last_capture_datetime(self) -> str | None:
        """Return the datetime of the latest chosen capture, 14 digits, or None."""
        with self._explain_errors():
            return last_capture_datetime(self._connection)

    def captures_by_year(self) -> list[tuple[int, int]]:
        """Return for each year the number of resources captured, and how many of them for the first time."""
        with self._explain_errors():
            return captures_by_year(self._connection)

    def missing_resources(self) -> Iterator[MissingResourceRow]:
        """Yield the missing resources in order of discovery."""
        with self._explain_errors():
            yield from queries.missing_resources(self._connection)

    def most_linked_missing(self, limit: int, each: int, *, is_failed: bool) -> Iterator[MissingResourceDetails]:
        """Yield some missing resources with details, as `queries.most_linked_missing`."""
        with self._explain_errors():
            yield from queries.most_linked_missing(self._connection, limit, each, is_failed=is_failed)

    def skipped_urls(self, limit: int = -1) -> Iterator[tuple[str, str]]:
        """Yield the listed URLs that were not fetched, with the reason; at most `limit`, -1 for all.

        The reason is one of `unlost.recovery.listings.SKIP_REASONS`, or empty if no link points to the URL.
        """
        with self._explain_errors():
            yield from queries.skipped_urls(self._connection, limit)

    def count_skipped(self) -> dict[str, int]:
        """Return the number of listed URLs that were not fetched, by reason."""
        with self._explain_errors():
            sql = "SELECT coalesce(reason, ''), count(*) FROM resource WHERE standing = 'listed' GROUP BY 1"
            counts = {require_text(reason): count for reason, count in self._connection.execute(sql)}
        merged = self._fact(SESSION_IDS_FACT)
        return {**counts, "session-id": merged} if _is_count(merged) and merged else counts

    @property
    def other_host_lookups(self) -> int:
        """Number of queries for page requisites on other hosts."""
        lookups = self._fact(LOOKUPS_FACT)
        return lookups if _is_count(lookups) else 0

    @property
    def is_case_insensitive(self) -> bool:
        """Whether the site's server was found to ignore letter case."""
        with explain_sqlite_errors(self._file):
            row = self._connection.execute("SELECT 1 FROM fact WHERE name = ?", (CASE_INSENSITIVE_FACT,)).fetchone()
        return row is not None

    def counts(self) -> dict[str, int]:
        """Return the number of resources by status (`ResourceStatus`).

        Recovered resources that were queued again count as recovered.
        """
        with self._explain_errors():
            return dict(self._connection.execute(_COUNTS))

    def listing_outcomes(self) -> list[tuple[str, str, str | None]]:
        """Return archive, status and error message of each listing query, by archive."""
        with self._explain_errors():
            rows = self._connection.execute("SELECT archive, outcome, message FROM listing ORDER BY archive, prefix")
            return [
                (require_text(archive), require_text(outcome), message and require_text(message))
                for archive, outcome, message in rows
            ]

    def query_outcomes(self) -> dict[str, dict[str, int]]:
        """Return the number of queries for single URLs by archive and outcome (`done`, `failed`, `excluded`)."""
        outcomes: dict[str, dict[str, int]] = {}
        with self._explain_errors():
            sql = "SELECT archive, outcome, count(*) FROM asked GROUP BY archive, outcome"
            for archive, outcome, count in self._connection.execute(sql):
                outcomes.setdefault(require_text(archive), {})[require_text(outcome)] = count
        return outcomes

    def listed_captures(self) -> dict[str, int]:
        """Return the number of listed captures by archive."""
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
    """Raise InputError or OSError if the folder has no recovery."""
    if not folder.is_dir():
        raise unreadable_error_for_errno(folder, ENOTDIR if folder.exists() else ENOENT, RECOVERY_FOLDER_ADVICE)
    if not (folder / STATE_FILE_NAME).exists() and not (folder / STATE_FILE_NAME).is_symlink():
        hint = "run `unlost recover` with this folder as -o" if (folder / "warc").is_dir() else "check the name"
        raise InputError(f"{folder}: not the folder of a recovery, since there is no {STATE_FILE_NAME} in it: {hint}")


def _file_mark(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_mtime_ns, status.st_size


def _is_count(value: object) -> TypeGuard[int]:
    """Return whether a value from the untrusted file is a plausible count."""
    return isinstance(value, int) and 0 <= value < _MAX_COUNT


def sum_requests(value: object) -> int:
    """Return the sum over all archives and kinds; invalid values count as 0."""
    if isinstance(value, int):
        return value if _is_count(value) else 0
    return sum(map(sum_requests, value.values())) if isinstance(value, Mapping) else 0
