"""Options, database, limit store and log output shared by `serve --jobs`, `worker` and `jobs`."""

import json
import logging
import os
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import click

from unlost.cli.messages import say
from unlost.cli.types import AnyPath, CommonOption
from unlost.redaction import strip_userinfo

if TYPE_CHECKING:
    from unlost.http.limit_store import LimitStore
    from unlost.jobs.database import Database


DATABASE_VARIABLE = "UNLOST_DATABASE"
"""The environment variable of all job commands. A URL with a password on the command line would be visible to all."""
jobs_option = click.option(
    "--jobs",
    cls=CommonOption,
    type=AnyPath(file_okay=False),
    metavar="DIR",
    help="Store jobs and their files in DIR. Workers on other machines must access the same folder.  [environment "
    "variable for all commands: UNLOST_JOBS]",
)
database_option = click.option(
    "--database",
    cls=CommonOption,
    metavar="URL",
    help="Use the PostgreSQL database postgresql://USER@HOST/NAME. Other users of this machine can read command lines: "
    f"set a URL with a password in the environment variable {DATABASE_VARIABLE} instead.  [default: an SQLite file in "
    "the --jobs folder]",
)
min_free_space_option = click.option(
    "--min-free-space",
    cls=CommonOption,
    type=click.IntRange(0, 10**9),
    default=1_000,
    show_default=True,
    metavar="MB",
    help="Pause all jobs while less than MB megabytes are free on the disk of the --jobs folder. 0 means no limit.  "
    "[environment variable for all commands: UNLOST_MIN_FREE_SPACE]",
)
max_jobs_size_option = click.option(
    "--max-jobs-size",
    cls=CommonOption,
    type=click.IntRange(0, 10**9),
    default=200_000,
    show_default=True,
    metavar="MB",
    help="Pause all jobs while their files take more than MB megabytes in total. 0 means no limit.  [environment "
    "variable for all commands: UNLOST_MAX_JOBS_SIZE]",
)


def open_database(folder: Path, url: str | None, *, is_durable: bool = True) -> "Database":
    """Return the jobs database, with its schema up to date. Raises as `Database` does, and OSError."""
    from unlost.jobs.database import Database, file_url  # noqa: PLC0415  start-up

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = Database(url or file_url(folder / "jobs.sqlite"), is_durable=is_durable)
    database.prepare()
    return database


def worker_environment(folder: Path, url: str | None) -> dict[str, str]:
    """Return the environment of a worker process for the same jobs."""
    return {**os.environ, "UNLOST_JOBS": str(folder.absolute()), **({DATABASE_VARIABLE: url} if url else {})}


def open_job_limit_store(database: "Database") -> "LimitStore":
    """Return the limit store shared by all workers that process these jobs.

    With SQLite all of them run on this machine, and share the user's own limit files with every other command.
    """
    from unlost.cli.archive_options import open_limit_store  # noqa: PLC0415  start-up
    from unlost.jobs.rate_limit_store import DatabaseLimitStore  # noqa: PLC0415

    return DatabaseLimitStore(database, partial(say, level="warning")) if database.is_shared else open_limit_store()


_LOG_FIELDS = ("job", "generation", "worker", "letter")


class _StderrHandler(logging.Handler):
    """Writes log records as messages. `is_json` is fixed at creation: other threads have no click context."""

    def __init__(self, *, is_json: bool) -> None:
        super().__init__()
        self._is_json = is_json

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            # The whole traceback is for developers: in the JSON object, or below the line.
            text = f"{text}: {record.exc_info[1]!r}"
        if not self._is_json:
            say(text)
            if record.exc_info:
                click.echo(_format_traceback(record.exc_info), err=True)
            return
        fields = {name: getattr(record, name) for name in _LOG_FIELDS if hasattr(record, name)}
        if record.exc_info:
            fields["trace"] = _format_traceback(record.exc_info)
        line = {
            "level": record.levelname.lower(),
            "time": round(record.created, 3),
            "message": strip_userinfo(text),
            **fields,
        }
        click.echo(json.dumps(line, ensure_ascii=False), err=True)


def _format_traceback(
    raised: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None],
) -> str:
    return strip_userinfo(logging.Formatter().formatException(raised))


def log_to_stderr() -> None:
    """Write everything that unlost logs to stderr, from level INFO."""
    context = click.get_current_context()
    log = logging.getLogger("unlost")
    log.setLevel(logging.INFO)
    log.addHandler(_StderrHandler(is_json=context.find_root().params.get("log") == "json"))
    log.propagate = False
