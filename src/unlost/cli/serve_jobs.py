"""The jobs of `unlost serve`: its options for them, and what is opened where there are any."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, fields, replace
from functools import wraps
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unlost.cli import readable
from unlost.cli.jobs_options import (
    database_option,
    worker_environment,
    jobs_option,
    open_job_limit_store,
    max_jobs_size_option,
    min_free_space_option,
    open_database,
)
from unlost.cli.messages import say
from unlost.errors import UsageError

if TYPE_CHECKING:
    from unlost.clock import Clock
    from unlost.service.assembly import ServiceOptions
    from unlost.service.clients import TrustedProxies
    from unlost.service.jobs.database import Database
    from unlost.service.jobs_desk import JobService
    from unlost.service.mail import MailServer

_ADMIN_PASSWORD = "UNLOST_ADMIN_PASSWORD"  # noqa: S105  the name of a variable
_SMTP_PASSWORD = "UNLOST_SMTP_PASSWORD"  # noqa: S105  the name of a variable


def _parse_networks(_ctx: click.Context, _param: click.Parameter, value: str) -> "TrustedProxies":
    try:
        return [ip_network(each.strip()) for each in value.split(",")]
    except ValueError as error:
        raise click.BadParameter(f"expected networks, such as 10.0.0.0/24,2001:db8::1: {error}") from None


_JOB_OPTIONS = (
    jobs_option,
    database_option,
    click.option(
        "--workers",
        type=click.IntRange(0, 64),
        default=1,
        show_default=True,
        metavar="N",
        help="Workers beside the service, each in a process of its own; 0 if they run elsewhere.",
    ),
    click.option(
        "--smtp", metavar="URL", help="Where mail is handed over: smtp://USER@HOST, with STARTTLS, or smtps://."
    ),
    click.option("--mail-from", metavar="ADDRESS", help="Whom letters to owners of jobs are from."),
    click.option(
        "--smtp-ca",
        type=readable.READABLE_FILE,
        metavar="FILE",
        help="Certificates to trust for mail, in place of the system's.",
    ),
    click.option(
        "--set-admin",
        metavar="NAME",
        help="Give somebody a password for the pages of administrators, and end. It is asked for, or read from "
        "stdin or UNLOST_ADMIN_PASSWORD.",
    ),
    click.option(
        "--behind-proxy",
        is_flag=True,
        help="A proxy before the service says in X-Forwarded-For who asks: for limits by network address.",
    ),
    click.option(
        "--proxies",
        default="127.0.0.0/8,::1",
        show_default=True,
        callback=_parse_networks,
        metavar="NETWORKS",
        help="With --behind-proxy: where proxies are; nobody else is believed.",
    ),
    click.option(
        "--keep-jobs",
        type=click.FloatRange(1, 3_650),
        default=28,
        show_default=True,
        metavar="DAYS",
        help="How long what was recovered can be picked up.",
    ),
    click.option(
        "--allow-private-hosts",
        is_flag=True,
        help="Take orders for sites of loopback and private hosts, too: for tests.",
    ),
    min_free_space_option,
    max_jobs_size_option,
)


@dataclass(frozen=True, slots=True)
class JobServiceOptions:
    """What somebody says of how orders are taken: the options by their names."""

    jobs: Path | None
    database: str | None
    workers: int
    smtp: str | None
    mail_from: str | None
    smtp_ca: Path | None
    set_admin: str | None
    behind_proxy: bool
    proxies: "TrustedProxies"
    keep_jobs: float
    allow_private_hosts: bool
    min_free_space: int
    max_jobs_size: int


def jobs_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all of them; it gets them as one argument, `taking`."""

    @wraps(command)
    def collected(*arguments: object, **values: Any) -> None:  # noqa: ANN401  those of click
        taking = JobServiceOptions(**{each.name: values.pop(each.name) for each in fields(JobServiceOptions)})
        command(*arguments, taking=taking, **values)

    given: Callable[..., None] = collected
    for option in reversed(_JOB_OPTIONS):
        given = option(given)
    return given


class JobServiceSetup:
    """How orders are taken. options: those of the service, as they are where orders are."""

    def __init__(
        self, taking: JobServiceOptions, options: "ServiceOptions", place: str, database: "Database | None"
    ) -> None:
        self.options = options
        self._taking = taking
        self._place = place
        self._database = database
        self._mail = _mail_server(taking)
        if database is not None and database.is_shared:
            # What the aggregator asks counts together with what workers on other machines ask.
            self.options = replace(options, limits=open_job_limit_store(database))

    @asynccontextmanager
    async def open_job_service(self, clock: "Clock") -> "AsyncIterator[JobService | None]":
        """Yield what takes orders while workers run; None where no orders are taken."""
        if self._database is None or self._taking.jobs is None:
            yield None
            return
        from unlost.service.jobs.disk_space import DiskSpaceLimits  # noqa: PLC0415
        from unlost.service.jobs.retention import RetentionPolicy  # noqa: PLC0415  start-up
        from unlost.service.jobs_assembly import JobServiceConfig, open_job_service  # noqa: PLC0415
        from unlost.service.worker_processes import run_worker_processes  # noqa: PLC0415

        taking, folder = self._taking, self._taking.jobs
        terms = replace(RetentionPolicy(), ended=taking.keep_jobs)
        context = click.get_current_context()

        def tell(text: str) -> None:
            with context.scope(cleanup=False):  # letters are shown from other threads, which know of no --log
                say(text, level="note")

        archives = frozenset(each.id for each in self.options.archives)
        root = self.options.root or self._place
        jobs = JobServiceConfig(
            folder, self._database, archives, root, tell, self._mail, terms,
            proxies=taking.proxies if taking.behind_proxy else (), contact=self.options.contact or "",
            allows_private=taking.allow_private_hosts,
            space=DiskSpaceLimits.from_megabytes(taking.min_free_space, taking.max_jobs_size),
        )  # fmt: skip
        if self._mail is None:
            tell("no --smtp: links to confirm orders and to pick them up are shown here, to be passed on")
        async with AsyncExitStack() as stack:
            desk = await stack.enter_async_context(open_job_service(jobs, clock))
            await stack.enter_async_context(
                run_worker_processes(taking.workers, _worker_command(), worker_environment(folder, taking.database))
            )
            yield desk


def set_admin_password(taking: JobServiceOptions, name: str) -> None:
    """Give an administrator a password. Raises UsageError for what is none, and as `Database` does."""
    if taking.jobs is None:
        raise UsageError("--jobs is missing: the folder of jobs that the administrator looks after")
    from unlost.service.jobs.admins import AdminStore  # noqa: PLC0415  start-up

    password = os.environ.get(_ADMIN_PASSWORD)
    if password is None and sys.stdin.isatty():
        password = str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    elif password is None:
        password = sys.stdin.readline().rstrip("\n")
    database = open_database(taking.jobs, taking.database)
    try:
        AdminStore(database).set_password(name, password)
    finally:
        database.close()
    say(f"{name} can log in at /admin", level="note")


@contextmanager
def open_jobs(taking: JobServiceOptions, options: "ServiceOptions", place: str) -> Iterator[JobServiceSetup]:
    """Open what orders need, if any are taken. place: where the service listens."""
    if taking.jobs is None:
        if taking.database is not None or taking.smtp is not None:
            raise UsageError("--jobs is missing: the folder of jobs and what they recover")
        yield JobServiceSetup(taking, options, place, None)
        return
    from unlost.cli.logs import log_to_stderr  # noqa: PLC0415  start-up

    log_to_stderr()
    database = open_database(taking.jobs, taking.database)
    try:
        yield JobServiceSetup(taking, options, place, database)
    finally:
        database.close()


def _mail_server(taking: JobServiceOptions) -> "MailServer | None":
    if taking.smtp is None:
        return None
    from unlost.service.mail import parse_mail_server  # noqa: PLC0415  start-up

    if taking.mail_from is None:
        raise UsageError("--mail-from is missing: whom letters are from")
    return parse_mail_server(taking.smtp, taking.mail_from, os.environ.get(_SMTP_PASSWORD, ""), taking.smtp_ca)


def _worker_command() -> list[str]:
    """Return how a worker is started that asks the same archives in the same name as we do."""
    context = click.get_current_context()
    root = context.find_root()
    given = context.params
    words = ["--log", str(root.params.get("log") or "text"), "worker", "--with-parent"]
    words += ["--min-free-space", str(given["min_free_space"]), "--max-jobs-size", str(given["max_jobs_size"])]
    if given.get("archives") is not None:
        words += ["--archives", str(given["archives"])]
    if given.get("only"):
        words += ["--only", ",".join(given["only"])]
    if given.get("contact"):
        words += ["--contact", str(given["contact"])]
    return words
