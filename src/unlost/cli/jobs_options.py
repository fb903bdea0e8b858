"""Where jobs are kept: `--jobs` and `--database`, for all commands that look after them."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unlost.cli.common import CommonOption
from unlost.cli.messages import say
from unlost.cli.readable import AnyPath

if TYPE_CHECKING:
    from unlost.archives.manners.limit_store import LimitStore
    from unlost.service.jobs.database import Database

DATABASE_VARIABLE = "UNLOST_DATABASE"
"""The variable for all commands: an address may have a password in it, which a command line would show to everybody."""

jobs_option = click.option(
    "--jobs",
    cls=CommonOption,
    type=AnyPath(file_okay=False),
    metavar="DIR",
    help="The folder of jobs and what they recover; workers on other machines must reach the same one. "
    "For all commands: UNLOST_JOBS.",
)
database_option = click.option(
    "--database",
    cls=CommonOption,
    metavar="URL",
    help="postgresql://USER@HOST/NAME in place of a file in the folder of jobs; with a password, "
    f"better as {DATABASE_VARIABLE} than on a command line.",
)

min_free_space_option = click.option(
    "--min-free-space",
    cls=CommonOption,
    type=click.IntRange(0, 10**9),
    default=1_000,
    show_default=True,
    metavar="MB",
    help="No job starts or continues while less than this is free on the disk of --jobs; 0 for no limit. "
    "For all commands: UNLOST_MIN_FREE_SPACE.",
)
max_jobs_size_option = click.option(
    "--max-jobs-size",
    cls=CommonOption,
    type=click.IntRange(0, 10**9),
    default=200_000,
    show_default=True,
    metavar="MB",
    help="No job starts or continues while all jobs together take more than this; 0 for no limit. "
    "For all commands: UNLOST_MAX_JOBS_SIZE.",
)


def open_database(folder: Path, url: str | None, *, is_durable: bool = True) -> "Database":
    """Return the database of jobs, with its tables in the newest form. Raises as `Database` does, and OSError."""
    from unlost.service.jobs.database import Database, file_url  # noqa: PLC0415  start-up

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = Database(url or file_url(folder / "jobs.sqlite"), is_durable=is_durable)
    database.prepare()
    return database


def worker_environment(folder: Path, url: str | None) -> dict[str, str]:
    """Return the environment of a worker that is started for the same jobs."""
    return {**os.environ, "UNLOST_JOBS": str(folder.absolute()), **({DATABASE_VARIABLE: url} if url else {})}


def open_job_limit_store(database: "Database") -> "LimitStore":
    """Return where the limits of archives are counted, for all who do jobs together.

    With SQLite all of them are on this machine, and count with every other command here, in the user's own files.
    """
    from unlost.cli.asking import open_limit_store  # noqa: PLC0415  start-up
    from unlost.service.jobs.accounts import DatabaseLimitStore  # noqa: PLC0415

    return DatabaseLimitStore(database, partial(say, level="warning")) if database.is_shared else open_limit_store()
