"""`unlost archives`: lists archives and what is known about them, tests whether they respond, resets blocks."""

import asyncio
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from unlost import dates
from unlost import uri as uris
from unlost.archives.probe import ProbeResult, probe_archives
from unlost.cli.archive_options import (
    archives_option,
    contact_option,
    only_option,
    open_http_client,
    open_limit_store,
    read_registry,
    reset_hint,
)
from unlost.cli.inputs import parse_argument
from unlost.cli.messages import escape_untrusted, say
from unlost.cli.output import json_line, print_table, write_lines
from unlost.clock import SystemClock
from unlost.errors import ArchiveError, UsageError
from unlost.http import rate_limit
from unlost.http.connectivity import Connectivity
from unlost.http.rate_limit import ArchiveBackoff, RateLimitState
from unlost.registry.models import Archive, RateLimit, SourcedNumber


@click.group(name="archives")
def command() -> None:
    """List web archives, show what is known about them, and test whether they respond.

    The archives are those of a registry: the one included in unlost, or the file given by --archives. An archive has an
    ID, endpoints, rate limits and quotas. An archive that is off is queried only if --only names it.

    \b
    Example:
      unlost archives list
      unlost archives test web.archive.org
    """


@command.command(name="list")
@archives_option
@only_option
@click.option("--all", is_flag=True, help="Also list archives that are off.")
@click.option("--json", is_flag=True, help="Print one JSON object per line, with all fields of the archive.")
def list_(archives: Path | None, only: tuple[str, ...], all: bool, json: bool) -> None:  # noqa: A002  flags
    """List the archives of the registry.

    Each line has the ID, the kind, `on` or `off`, the hit rate (the share of queried pages that the archive has), the
    name and the state, separated by tabs. The state is empty if the archive may be queried now. Otherwise it has the
    reason and the end of the wait: `blocked` after a refused connection, `told-to-wait` after a response with status
    429 or 503, `quota` after the last request of a daily quota. `unlost archives reset` clears the first two.

    \b
    Example:
      unlost archives list --all
    """
    registry = read_registry(archives)
    selected = registry.archives if all else registry.only(only)
    if json:
        write_lines([json_line(**_archive_object(archive)) for archive in selected])
        return
    rows = [
        (
            archive.id,
            archive.kind,
            "on" if archive.enabled else "off",
            _format_share(archive.hit_rate),
            archive.name,
            _state(archive),
        )
        for archive in selected
    ]
    print_table(("id", "kind", "", "hit rate", "name", "state"), rows)
    disabled_count = 0 if only else len(registry.archives) - len(selected)
    if disabled_count:
        say(f"{disabled_count} more are off: --all lists them", level="note")


def _format_share(rate: SourcedNumber | None) -> str:
    return "-" if rate is None else f"{rate.value:.1%}"


@command.command()
@click.argument("archive", metavar="ID")
@archives_option
@click.option("--json", is_flag=True, help="Print the fields as JSON.")
def show(archive: str, archives: Path | None, json: bool) -> None:
    """Show the registry entry and the state of an archive.

    Prints one field per line, such as endpoints, rate limits and quotas, with the source of each number.

    \b
    Example:
      unlost archives show web.archive.org
    """
    entry = read_registry(archives).get(archive)
    if json:
        write_lines([json_line(**_archive_object(entry))])
    else:
        print_table(("", "", "source"), _facts(entry))


@command.command()
@click.argument("ids", metavar="[ID...]", nargs=-1)
@click.option("--all", is_flag=True, help="Reset all archives of the registry.")
@archives_option
def reset(ids: tuple[str, ...], all: bool, archives: Path | None) -> None:  # noqa: A002  flags
    """Clear the blocks and waits of archives, so that they can be queried again.

    An archive is blocked for a while after it refused a connection. Clear the block if the cause was local, such as a
    firewall, a captive portal or a server of your own that was not running. The counts of rate limits and daily quotas
    are not changed.

    \b
    Example:
      unlost archives reset web.archive.org
    """
    if bool(ids) == all:
        raise UsageError("expected the ids of archives, or --all")
    registry = read_registry(archives)
    store = open_limit_store()
    now = SystemClock().now()
    is_changed = False
    for archive in registry.archives if all else registry.only(ids):
        if store.read(archive.id) != RateLimitState() and store.update(archive.id, _clear_blocks):
            is_changed = True
            say(f"{archive.id}: cleared", level="info", archive=archive.id)
        backoff = rate_limit.current_backoff(store.read(archive.id), archive, now)
        if backoff is not None:
            say(
                f"{archive.id}: {_format_backoff(backoff)}: quotas are not cleared", level="warning", archive=archive.id
            )
    if not is_changed:
        say("nothing to clear: no archive is blocked, or said to wait", level="info")


def _clear_blocks(state: RateLimitState) -> tuple[RateLimitState, bool]:
    """Return the state without blocks and waits, and whether it changed."""
    cleared = rate_limit.clear_backoff(state)
    return cleared, cleared != state


def _current_backoff(archive: Archive) -> ArchiveBackoff | None:
    """Return the backoff of an archive that is in effect now, or None."""
    return rate_limit.current_backoff(open_limit_store().read(archive.id), archive, SystemClock().now())


def _state(archive: Archive) -> str:
    backoff = _current_backoff(archive)
    if backoff is None:
        return ""
    if sys.stdout.isatty():
        return _format_backoff(backoff)
    return f"{backoff.reason} until {dates.to_iso(dates.from_epoch(str(math.ceil(backoff.until))))}"


def _format_backoff(backoff: ArchiveBackoff) -> str:
    """Return the reason of a backoff and when it ends, in local time."""
    return f"{backoff.reason} until {dates.to_local(backoff.until, round_up=True)}"


def _archive_object(archive: Archive) -> dict[str, Any]:
    """Return the JSON object of an archive: its registry entry and its state."""
    backoff = _current_backoff(archive)
    until = None if backoff is None else dates.to_iso(dates.from_epoch(str(math.ceil(backoff.until))))
    return {**asdict(archive), "state": None if backoff is None else backoff.reason, "until": until}


def _facts(archive: Archive) -> Iterator[tuple[str, str, str]]:
    yield "id", archive.id, ""
    yield "name", archive.name, ""
    yield "kind", archive.kind, ""
    yield "asked", "yes" if archive.enabled else "only if it is named", ""
    if state := _state(archive):
        yield "state", state, ""
    urls = {
        "timemap": archive.timemap,
        "timegate": archive.timegate,
        "cdx": archive.cdx,
        "replay": archive.replay,
        "search": archive.search,
        "folder": archive.folder,
        "mementomap": archive.mementomap,
    }
    for name, url in urls.items():
        if url is not None:
            yield name, url, ""
    for location in archive.filters:
        yield "filter", location, ""
    yield "keeps", "every version" if archive.deep else "the last version", ""
    yield "as captured", ", ".join(archive.canonical) or "nothing", ""
    yield "changed", ", ".join(archive.migrated) or "nothing", ""
    if archive.lister is not None:
        yield "lists", ", ".join(archive.lister.matches), ""
        yield "rows a page", f"{archive.lister.rows_per_page.value:.0f}", archive.lister.rows_per_page.source
        if archive.lister.cap is not None:
            yield "rows at most", f"{archive.lister.cap.value:.0f}", archive.lister.cap.source
    for limit in archive.limits:
        yield "limit", f"{limit.requests} in {limit.seconds:g} s for {_format_request_kinds(limit)}", limit.source
    for quota in archive.quotas:
        yield "quota", f"{quota.requests} a day for {_format_request_kinds(quota)}", quota.source
    if archive.hit_rate is not None:
        yield "hit rate", _format_share(archive.hit_rate), archive.hit_rate.source


def _format_request_kinds(limit: RateLimit) -> str:
    return ", ".join(limit.works)


@command.command()
@click.argument("ids", metavar="[ID...]", nargs=-1)
@archives_option
@only_option
@click.option(
    "--uri", default="http://example.com/", show_default=True, metavar="URL", help="Request the TimeMap of this page."
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0, min_open=True, max=86_400),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="Wait at most this long for the response of an archive.",
)
@contact_option
@click.option("--json", is_flag=True, help="Print one JSON object per line.")
@click.pass_context
def test(
    ctx: click.Context,
    ids: tuple[str, ...],
    archives: Path | None,
    only: tuple[str, ...],
    uri: str,
    patience: float,
    contact: str | None,
    json: bool,
) -> None:
    """Test whether archives respond, by requesting the TimeMap of a page.

    Queries the archives with these IDs, or all archives that are on, in parallel. Each line has the ID, `answered` or
    the kind of failure, the number and dates of the mementos, the response time, and the URL of the MementoMap if the
    archive publishes one (`rel=mementomap`, in headers or on its home page), separated by tabs.

    The exit code is 4 if an archive did not respond.

    \b
    Example:
      unlost archives test web.archive.org arquivo.pt
    """
    parse_argument(uri, uris.key, "--uri")  # rejects an invalid URL before any request
    if ids and only and ctx.get_parameter_source("only") is ParameterSource.COMMANDLINE:
        raise UsageError("expected ids, or --only, found both")
    selected = read_registry(archives).only(ids or only)
    failed_count = asyncio.run(_probe_archives(selected, uri, patience, contact, json))
    if failed_count:
        say(f"{failed_count} of {len(selected)} archives did not answer", level="warning")
    ctx.exit(ArchiveError.exit_code if failed_count else 0)


async def _probe_archives(
    archives: Sequence[Archive], uri: str, patience: float, contact: str | None, json: bool
) -> int:
    """Print the result of each archive; return how many did not respond.

    Results are buffered until one archive has been reached: without a network, one message replaces them all.

    Raises:
        OfflineError: No archive can be reached.
    """
    failed_count = 0
    connectivity = Connectivity()
    buffered: list[ProbeResult] = []
    async with open_http_client(contact, patience, connectivity=connectivity) as http_client:
        async for probe in probe_archives(archives, http_client, uri, SystemClock(), patience):
            failed_count += not probe.has_answered
            buffered.append(probe)
            if json or probe.has_answered or not connectivity.is_undecided:
                _print_probes(buffered, json)
    if failed_count == len(archives) and (error := connectivity.offline_error()) is not None:
        raise error
    _print_probes(buffered, json)
    return failed_count


def _print_probes(probes: list[ProbeResult], json: bool) -> None:
    """Print the buffered results and empty the buffer."""
    for probe in probes:
        write_lines([_probe_object(probe) if json else _probe_line(probe)])
        if probe.outcome == "blocked":
            say(f"{probe.archive.id}: {reset_hint(probe.archive.id)}", level="note")
    probes.clear()


def _probe_line(probe: ProbeResult) -> str:
    maps = ", ".join(link.url for link in probe.maps)
    cells = [
        probe.archive.id,
        probe.outcome,
        _format_mementos(probe),
        f"{probe.seconds:.2f} s",
        f"map {maps}" if maps else "",
    ]
    return "\t".join(escape_untrusted(cell.encode("utf-8", "surrogateescape"), 500) for cell in cells).rstrip() + "\n"


def _format_mementos(probe: ProbeResult) -> str:
    if probe.message:
        return probe.message.removeprefix(f"{probe.archive.id}: ")
    if not probe.capture_count:
        return "a list too long to count" if probe.has_more else "no copy"
    noun = "copies" if probe.capture_count > 1 or probe.has_more else "copy"
    count = f"{'more than ' if probe.has_more else ''}{probe.capture_count} {noun}"
    return f"{count}, {probe.first} to {probe.last}"


def _probe_object(probe: ProbeResult) -> str:
    return json_line(
        id=probe.archive.id,
        name=probe.archive.name,
        outcome=probe.outcome,
        answered=probe.has_answered,
        message=probe.message,
        seconds=round(probe.seconds, 3),
        copies=probe.capture_count,
        more=probe.has_more,
        first=probe.first,
        last=probe.last,
        maps=[{"address": link.url, "found": link.source} for link in probe.maps],
        problems=list(probe.problems),
    )
