"""`unlost serve`: the aggregator as a web service, with recovery jobs if `--jobs` is given."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial, wraps
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
import uvloop

from unlost.cli import types
from unlost.cli.archive_options import (
    AggregatorOptions,
    aggregator_options,
    build_aggregator_config,
    build_routing_options,
    list_selected_archives,
)
from unlost.cli.job_options import (
    database_option,
    jobs_option,
    log_to_stderr,
    max_jobs_size_option,
    min_free_space_option,
    open_database,
    open_job_limit_store,
    worker_environment,
)
from unlost.cli.messages import say
from unlost.clock import SystemClock
from unlost.errors import InputError, UsageError
from unlost.http.concurrency import ConcurrencyOptions
from unlost.mail.smtp import parse_mail_server
from unlost.problems import Problems
from unlost.text_lines import read_source_lines

if TYPE_CHECKING:
    from unlost.clock import Clock
    from unlost.jobs.client_network import TrustedProxies
    from unlost.jobs.database import Database
    from unlost.jobs.service import JobService
    from unlost.mail.smtp import MailServer
    from unlost.web.factory import ServiceContext, ServiceOptions


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
        help="With --jobs: start N worker processes. Use 0 if `unlost worker` runs elsewhere.",
    ),
    click.option(
        "--smtp",
        metavar="URL",
        help="With --jobs: send email through this server: smtp://USER@HOST (with STARTTLS) or smtps://USER@HOST. "
        "The password is read from the environment variable UNLOST_SMTP_PASSWORD.  [default: links are printed to "
        "stderr instead]",
    ),
    click.option(
        "--mail-from", metavar="EMAIL", help="With --smtp: sender address of emails to owners of jobs. Required."
    ),
    click.option(
        "--smtp-ca",
        type=types.READABLE_FILE,
        metavar="FILE",
        help="With --smtp: verify the mail server with the CA certificates in FILE (PEM).  [default: the system's]",
    ),
    click.option(
        "--set-admin",
        metavar="NAME",
        help="With --jobs: set the password of administrator NAME for the web interface, and exit. The password is "
        "read from the environment variable UNLOST_ADMIN_PASSWORD, from a prompt, or from standard input.",
    ),
    click.option(
        "--behind-proxy",
        is_flag=True,
        help="With --jobs: take the client's address, to which limits apply, from the X-Forwarded-For header of a "
        "reverse proxy.",
    ),
    click.option(
        "--proxies",
        default="127.0.0.0/8,::1",
        show_default=True,
        callback=_parse_networks,
        metavar="NETWORKS",
        help="With --behind-proxy: comma-separated networks of the reverse proxies. The header is ignored if it comes "
        "from any other address.",
    ),
    click.option(
        "--keep-jobs",
        type=click.FloatRange(1, 3_650),
        default=28,
        show_default=True,
        metavar="DAYS",
        help="With --jobs: retain the results of finished jobs for DAYS.",
    ),
    click.option(
        "--allow-private-hosts",
        is_flag=True,
        help="With --jobs: also accept jobs for sites on loopback and private addresses. Intended for tests.",
    ),
    min_free_space_option,
    max_jobs_size_option,
)


@dataclass(frozen=True, slots=True)
class JobServiceOptions:
    """Values of the options for recovery jobs, by option name."""

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
    """Add the job options to a command, which gets them as one argument, `job_options`."""

    @wraps(command)
    def wrapper(*arguments: object, **values: Any) -> None:  # noqa: ANN401  click's parameters
        job_options = JobServiceOptions(**{each.name: values.pop(each.name) for each in fields(JobServiceOptions)})
        command(*arguments, job_options=job_options, **values)

    wrapped: Callable[..., None] = wrapper
    for option in reversed(_JOB_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


class JobServiceSetup:
    """Configuration of the job service. `options`: the service options, with the limit store of the jobs if shared."""

    def __init__(
        self, job_options: JobServiceOptions, options: "ServiceOptions", url: str, database: "Database | None"
    ) -> None:
        self.options = options
        self._taking = job_options
        self._place = url
        self._database = database
        self._mail = _mail_server(job_options)
        if database is not None and database.is_shared:
            # Requests of the aggregator and of workers on other machines count against the same limits.
            self.options = replace(options, limit_store=open_job_limit_store(database))

    @asynccontextmanager
    async def open_job_service(self, clock: "Clock") -> "AsyncIterator[JobService | None]":
        """Yield the job service while its workers run; None without --jobs."""
        if self._database is None or self._taking.jobs is None:
            yield None
            return
        from unlost.jobs.folders import DiskSpaceLimits  # noqa: PLC0415
        from unlost.jobs.states import RetentionPolicy  # noqa: PLC0415  start-up
        from unlost.jobs.tasks import run_worker_processes  # noqa: PLC0415
        from unlost.web.jobs_factory import JobServiceConfig, open_job_service  # noqa: PLC0415

        job_options, folder = self._taking, self._taking.jobs
        retention = replace(RetentionPolicy(), ended=job_options.keep_jobs)
        context = click.get_current_context()

        def on_message(text: str) -> None:
            with context.scope(cleanup=False):  # called for emails from other threads, which have no click context
                say(text, level="note")

        archives = frozenset(each.id for each in self.options.archives)
        root = self.options.root or self._place
        jobs = JobServiceConfig(
            folder, self._database, archives, root, on_message, self._mail, retention,
            proxies=job_options.proxies if job_options.behind_proxy else (), contact=self.options.contact or "",
            allows_private=job_options.allow_private_hosts,
            space=DiskSpaceLimits.from_megabytes(job_options.min_free_space, job_options.max_jobs_size),
        )  # fmt: skip
        if self._mail is None:
            on_message("no --smtp: links to confirm orders and to pick them up are shown here, to be passed on")
        async with AsyncExitStack() as stack:
            job_service = await stack.enter_async_context(open_job_service(jobs, clock))
            await stack.enter_async_context(
                run_worker_processes(
                    job_options.workers, _worker_command(), worker_environment(folder, job_options.database)
                )
            )
            yield job_service


def set_admin_password(job_options: JobServiceOptions, name: str) -> None:
    """Set the password of an administrator. Raises UsageError for an invalid one, and as `Database` does."""
    if job_options.jobs is None:
        raise UsageError("--jobs is missing: the folder of jobs that the administrator looks after")
    from unlost.jobs.auth import AdminStore  # noqa: PLC0415  start-up

    password = os.environ.get(_ADMIN_PASSWORD)
    if password is None and sys.stdin.isatty():
        password = str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    elif password is None:
        password = sys.stdin.readline().rstrip("\n")
    database = open_database(job_options.jobs, job_options.database)
    try:
        AdminStore(database).set_password(name, password)
    finally:
        database.close()
    say(f"{name} can log in at /admin", level="note")


@contextmanager
def open_jobs(job_options: JobServiceOptions, options: "ServiceOptions", url: str) -> Iterator[JobServiceSetup]:
    """Open the database for jobs, if --jobs is given. `url`: the URL where the service listens."""
    if job_options.jobs is None:
        if job_options.database is not None or job_options.smtp is not None:
            raise UsageError("--jobs is missing: the folder of jobs and what they recover")
        yield JobServiceSetup(job_options, options, url, None)
        return

    log_to_stderr()
    database = open_database(job_options.jobs, job_options.database)
    try:
        yield JobServiceSetup(job_options, options, url, database)
    finally:
        database.close()


def _mail_server(job_options: JobServiceOptions) -> "MailServer | None":
    if job_options.smtp is None:
        return None

    if job_options.mail_from is None:
        raise UsageError("--mail-from is missing: whom letters are from")
    return parse_mail_server(
        job_options.smtp, job_options.mail_from, os.environ.get(_SMTP_PASSWORD, ""), job_options.smtp_ca
    )


def _worker_command() -> list[str]:
    """Return the command line of a worker that queries the same archives with the same contact."""
    context = click.get_current_context()
    root = context.find_root()
    params = context.params
    command_words = ["--log", str(root.params.get("log") or "text"), "worker", "--with-parent"]
    command_words += [
        "--min-free-space",
        str(params["min_free_space"]),
        "--max-jobs-size",
        str(params["max_jobs_size"]),
    ]
    if params.get("archives") is not None:
        command_words += ["--archives", str(params["archives"])]
    if params.get("only"):
        command_words += ["--only", ",".join(params["only"])]
    if params.get("contact"):
        command_words += ["--contact", str(params["contact"])]
    return command_words


_ENDPOINTS = (
    "timemap", "timegate", "memento", "api", "summary", "about", "health", "metrics", "monitor", "static",
    "recover", "jobs", "mail", "preview", "privacy", "admin",
)  # fmt: skip
"""First path segments of the service's own endpoints."""


def _validate_root(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        is_sound = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
    except ValueError:
        is_sound = False
    if not is_sound or not value.isascii() or not value.isprintable() or set(' "<>\\') & set(value):
        raise click.BadParameter("expected the address of the service, such as https://memento.example.org")
    if (first := parts.path.split("/")[1:2]) and first[0] in _ENDPOINTS:
        # A proxy may strip the path or pass it on, and the service must be able to distinguish these.
        raise click.BadParameter(f"/{first[0]}/ is the path of an endpoint: choose another path")
    return value.rstrip("/")


def _validate_map(_ctx: click.Context, _param: click.Parameter, value: Path | None) -> Path | None:
    """Reject a file that is not a MementoMap: it might not be meant to be published."""
    if value is not None:
        first = next(iter(read_source_lines(value, Problems())), None)
        if first is None or not first.text.startswith(b"!"):
            raise InputError(f"{value}: not a MementoMap: expected `!context` at its beginning")
    return value


@click.command(name="serve")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="HOST",
    help="Listen on this IP address or host name. 0.0.0.0 means all IPv4 addresses, :: all IPv6 and IPv4 addresses.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=1208,
    show_default=True,
    metavar="PORT",
    help="Listen on this TCP port. 0 selects any free port.",
)
@click.option(
    "--root",
    callback=_validate_root,
    metavar="URL",
    help="Public URL of the service, with which all links begin.  [default: the Host header of each request]",
)
@click.option(
    "--publish-map",
    type=types.READABLE_FILE,
    callback=_validate_map,
    metavar="FILE",
    help="Publish the MementoMap in FILE at /mementomap. FILE may be replaced while the service runs.",
)
@click.option(
    "--keep",
    type=click.FloatRange(0, 31_536_000),
    default=86_400,
    show_default=True,
    metavar="SECONDS",
    help="Cache results that have mementos for SECONDS.",
)
@click.option(
    "--keep-misses",
    type=click.FloatRange(0, 31_536_000),
    default=3_600,
    show_default=True,
    metavar="SECONDS",
    help="Cache results without mementos for SECONDS.",
)
@click.option(
    "--memory",
    type=click.IntRange(1, 1 << 20),
    default=16,
    show_default=True,
    metavar="MB",
    help="Cache results in at most MB megabytes of memory, and rendered responses in as much again. The cache on disk "
    "takes up to 256 MB.",
)
@click.option(
    "--explore",
    type=click.FloatRange(0, 1),
    default=0.02,
    show_default=True,
    metavar="SHARE",
    help="For this share of URLs, from 0 to 1, also query an archive that routing would skip, to measure how often "
    "MementoMaps and filters are wrong.",
)
@click.option(
    "--filter-age",
    type=click.FloatRange(0, 36_500),
    default=7,
    show_default=True,
    metavar="DAYS",
    help="Trust the filter of an archive for DAYS after it was built. Later, it no longer excludes URLs that a "
    "wildcard of the archive's MementoMap covers.",
)
@click.option(
    "--requisites-by-page",
    is_flag=True,
    help="For a page requisite, first query only the archive of the page in the Referer header. Query the others if "
    "that archive has no memento.",
)
@click.option(
    "--log-upstream",
    type=types.AnyPath(dir_okay=False),
    metavar="FILE",
    help="Append a JSON object for each archive response to FILE, one per line.",
)
@click.option(
    "--upstream-initial",
    type=click.IntRange(1, 10_000),
    default=32,
    show_default=True,
    metavar="N",
    help="Send at most N concurrent requests to each archive at first. The limit then adapts to latency and errors.",
)
@click.option(
    "--upstream-max",
    type=click.IntRange(1, 10_000),
    default=256,
    show_default=True,
    metavar="N",
    help="Never send more than N concurrent requests to one archive.",
)
@jobs_options
@aggregator_options
def command(
    host: str,
    port: int,
    root: str | None,
    publish_map: Path | None,
    keep: float,
    keep_misses: float,
    memory: int,
    explore: float,
    filter_age: float,
    requisites_by_page: bool,
    log_upstream: Path | None,
    upstream_initial: int,
    upstream_max: int,
    job_options: JobServiceOptions,
    lookup_options: AggregatorOptions,
) -> None:
    """Run a Memento aggregator: a web service with TimeMaps, TimeGates and a search page for all archives.

    The service is a drop-in replacement for MemGator's server. It runs until interrupted, and then completes the
    responses in progress. SIGHUP reloads the archive registry and the MementoMaps.

    With --jobs, it also accepts recovery jobs through web pages and an API, and runs them.

    \b
    Example:
      unlost serve --port 1208 --contact you@example.org
      curl http://127.0.0.1:1208/timemap/link/http://example.com/
    """
    if job_options.set_admin is not None:
        set_admin_password(job_options, job_options.set_admin)
        return

    from unlost.web import server  # noqa: PLC0415
    from unlost.web.factory import ServiceOptions, build_service  # noqa: PLC0415
    from unlost.web.server import ReloadableApplication  # noqa: PLC0415

    config = build_aggregator_config(lookup_options)
    options = ServiceOptions(
        config.archives,
        config.state,
        config.cache,
        config.on_message,
        config.deadline,
        contact=config.contact,
        default_options=build_routing_options(lookup_options),
        root=root,
        published_map=publish_map,
        result_lifetime=keep,
        miss_lifetime=keep_misses,
        memory=memory << 20,
        exploration_share=explore,
        filter_age=filter_age,
        upstream_log=log_upstream,
        routes_by_referer=requisites_by_page,
        concurrency=ConcurrencyOptions(min(upstream_initial, upstream_max), maximum=upstream_max),
    )
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the server installs its reload handler
    with server.listen(host, port) as listening, open_jobs(job_options, options, server.socket_url(listening)) as setup:
        url = server.socket_url(listening)

        async def serve() -> int | None:
            ready = partial(say, f"listening at {url}/", level="note")
            clock = SystemClock()

            @asynccontextmanager
            async def open_context(previous: "ServiceContext | None") -> "AsyncIterator[ServiceContext]":
                current = (
                    setup.options
                    if previous is None
                    else replace(setup.options, archives=list_selected_archives(lookup_options))
                )
                async with build_service(current, clock, previous) as context:
                    ids = frozenset(each.id for each in current.archives)
                    yield (
                        context
                        if job_service is None
                        else replace(context, job_service=replace(job_service, archives=ids))
                    )

            async with (
                setup.open_job_service(clock) as job_service,
                ReloadableApplication(
                    open_context, lookup_options.deadline + server.GRACE_SECONDS, options.on_message
                ) as application,
            ):
                return await server.serve(application, listening, ready, lookup_options.deadline)

        ended_by = uvloop.run(serve())
    if ended_by == signal.SIGINT:
        raise KeyboardInterrupt
