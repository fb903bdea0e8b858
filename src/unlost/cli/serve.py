"""`unlost serve`: the aggregator as a web service."""

import signal
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from unlost.cli import readable
from unlost.cli.messages import say
from unlost.cli.serve_jobs import JobServiceOptions, jobs_options, open_jobs, set_admin_password
from unlost.cli.service_options import (
    AggregatorOptions,
    aggregator_options,
    build_service_options,
    list_selected_archives,
)
from unlost.errors import InputError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from unlost.service.parts import ServiceContext


_ENDPOINTS = (
    "timemap", "timegate", "memento", "api", "summary", "about", "health", "metrics", "monitor", "static",
    "recover", "jobs", "mail", "preview", "privacy", "admin",
)  # fmt: skip
"""The first segments of the service's own paths."""


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
        # A proxy may remove the path or pass it on, and a request must tell which.
        raise click.BadParameter(f"/{first[0]}/ is the path of an endpoint: choose another path")
    return value.rstrip("/")


def _validate_map(_ctx: click.Context, _param: click.Parameter, value: Path | None) -> Path | None:
    """Refuse what is no map: whatever it is, it was not meant to be published."""
    if value is not None:
        from unlost.formats.problems import Problems  # noqa: PLC0415  start-up
        from unlost.formats.textfile import read_source_lines  # noqa: PLC0415

        first = next(iter(read_source_lines(value, Problems())), None)
        if first is None or not first.text.startswith(b"!"):
            raise InputError(f"{value}: not a MementoMap: expected `!context` at its beginning")
    return value


@click.command(name="serve")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on; 0.0.0.0 for all of IPv4, :: for all of IPv6 and IPv4.",
)
@click.option("--port", type=click.IntRange(0, 65_535), default=1208, show_default=True, help="0 for any that is free.")
@click.option(
    "--root",
    callback=_validate_root,
    metavar="URL",
    help="The address by which others reach the service; without it, the one by which each request calls it.",
)
@click.option(
    "--publish-map",
    type=readable.READABLE_FILE,
    callback=_validate_map,
    metavar="FILE",
    help="A MementoMap to publish under /mementomap; it may be replaced at any time.",
)
@click.option(
    "--keep",
    type=click.FloatRange(0, 31_536_000),
    default=86_400,
    show_default=True,
    metavar="SECONDS",
    help="How long to keep what was found.",
)
@click.option(
    "--keep-misses",
    type=click.FloatRange(0, 31_536_000),
    default=3_600,
    show_default=True,
    metavar="SECONDS",
    help="How long to keep that nothing was found.",
)
@click.option(
    "--memory",
    type=click.IntRange(1, 1 << 20),
    default=16,
    show_default=True,
    metavar="MB",
    help="Memory for answers that are kept, and as much again for how they are shown; 256 MB more are on disk.",
)
@click.option(
    "--explore",
    type=click.FloatRange(0, 1),
    default=0.02,
    show_default=True,
    metavar="SHARE",
    help="For this share of pages, ask an archive, too, whose map says no: so its errors are known.",
)
@click.option(
    "--filter-age",
    type=click.FloatRange(0, 36_500),
    default=7,
    show_default=True,
    metavar="DAYS",
    help="An older filter denies nothing that a wildcard of the archive's map covers.",
)
@click.option(
    "--requisites-by-page",
    is_flag=True,
    help="Ask for what a page needs, told by Referer, the archive that had the page first; others if it has nothing.",
)
@click.option(
    "--log-upstream",
    type=readable.AnyPath(dir_okay=False),
    metavar="FILE",
    help="Write every answer of an archive to this file, one JSON object a line.",
)
@click.option(
    "--upstream-initial",
    type=click.IntRange(1, 10_000),
    default=32,
    show_default=True,
    metavar="N",
    help="Requests at once to one archive at first; the number adapts to how the archive copes.",
)
@click.option(
    "--upstream-max",
    type=click.IntRange(1, 10_000),
    default=256,
    show_default=True,
    metavar="N",
    help="Requests at once to one archive at most.",
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
    taking: JobServiceOptions,
    asking: AggregatorOptions,
) -> None:
    """Serve TimeMaps, TimeGates and a page for people, from all archives at once.

    A drop-in replacement for MemGator's server. It listens until it is interrupted, and then ends the answers that are
    in progress. SIGHUP reloads the registry of archives and their maps. With --jobs it takes orders for recoveries,
    too, and does them.
    """
    if taking.set_admin is not None:
        set_admin_password(taking, taking.set_admin)
        return
    import uvloop  # noqa: PLC0415  only who serves pays for it

    from unlost.archives.manners.concurrency import ConcurrencyOptions  # noqa: PLC0415
    from unlost.clock import SystemClock  # noqa: PLC0415
    from unlost.service import server  # noqa: PLC0415
    from unlost.service.assembly import build_service  # noqa: PLC0415
    from unlost.service.reload import ReloadableApplication  # noqa: PLC0415

    options = build_service_options(
        asking,
        root=root,
        published=publish_map,
        keep=keep,
        keep_misses=keep_misses,
        memory=memory << 20,
        exploring=explore,
        filter_age=filter_age,
        upstream_log=log_upstream,
        by_page=requisites_by_page,
        concurrency=ConcurrencyOptions(min(upstream_initial, upstream_max), maximum=upstream_max),
    )
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the server reloads by it
    with server.listen(host, port) as listening, open_jobs(taking, options, server.socket_url(listening)) as orders:
        place = server.socket_url(listening)

        async def serve() -> int | None:
            ready = partial(say, f"listening at {place}/", level="note")
            clock = SystemClock()

            @asynccontextmanager
            async def open_parts(previous: "ServiceContext | None") -> "AsyncIterator[ServiceContext]":
                current = (
                    orders.options
                    if previous is None
                    else replace(orders.options, archives=list_selected_archives(asking))
                )
                async with build_service(current, clock, previous) as parts:
                    ids = frozenset(each.id for each in current.archives)
                    yield parts if desk is None else replace(parts, job_service=replace(desk, archives=ids))

            async with (
                orders.open_job_service(clock) as desk,
                ReloadableApplication(open_parts, asking.deadline + server.GRACE_SECONDS, options.tell) as application,
            ):
                return await server.serve(application, listening, ready, asking.deadline)

        ended_by = uvloop.run(serve())
    if ended_by == signal.SIGINT:
        raise KeyboardInterrupt
