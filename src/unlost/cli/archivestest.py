"""`unlost archives test`: whether archives answer, what they hold of a page, and where their maps are."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from unlost import uri as uris
from unlost.archives.archive import Archive
from unlost.archives.asking.connectivity import Connectivity
from unlost.archives.probing import ProbeResult, probe_archives
from unlost.cli.addresses import json_line, parse_argument, write_lines
from unlost.cli.asking import contact_option, reset_hint, open_http_client
from unlost.cli.messages import say, escape_untrusted
from unlost.cli.registry_options import archives_option, only_option, read_registry
from unlost.clock import SystemClock
from unlost.errors import ArchiveError, UsageError


@click.command()
@click.argument("ids", metavar="[ID...]", nargs=-1)
@archives_option
@only_option
@click.option("--uri", default="http://example.com/", show_default=True, metavar="URL", help="The page to ask for.")
@click.option(
    "--patience",
    type=click.FloatRange(min=0, min_open=True, max=86_400),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for one archive.",
)
@contact_option
@click.option("--json", is_flag=True, help="One JSON object a line.")
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
    """Ask archives for the TimeMap of a page, all at once, and say what came of it.

    A line for each, as soon as it is there: its id, `answered` or how it failed, what it holds of the page, how long
    it took, and where its MementoMap is if it publishes one (`rel=mementomap`, in headers or on its home page).
    Without ids, all archives are asked that are on. The exit code is 4 if any did not answer. If none can be reached,
    one message says so.
    """
    parse_argument(uri, uris.key, "--uri")  # refuses what is no address, before anybody is asked
    if ids and only and ctx.get_parameter_source("only") is ParameterSource.COMMANDLINE:
        raise UsageError("expected ids, or --only, found both")
    chosen = read_registry(archives).only(ids or only)
    silent = asyncio.run(_probe_archives(chosen, uri, patience, contact, json))
    if silent:
        say(f"{silent} of {len(chosen)} archives did not answer", level="warning")
    ctx.exit(ArchiveError.exit_code if silent else 0)


async def _probe_archives(
    archives: Sequence[Archive], uri: str, patience: float, contact: str | None, json: bool
) -> int:
    """Print the result of each archive; return how many did not respond.

    Lines are held back until one archive is reached. Raises OfflineError if none is.
    """
    silent = 0
    network = Connectivity()
    held: list[ProbeResult] = []
    async with open_http_client(contact, patience, network=network) as courier:
        async for probe in probe_archives(archives, courier, uri, SystemClock(), patience):
            silent += not probe.has_answered
            held.append(probe)
            if json or probe.has_answered or not network.is_undecided:
                _print_probes(held, json)
    if silent == len(archives) and (error := network.offline_error()) is not None:
        raise error
    _print_probes(held, json)
    return silent


def _print_probes(probes: list[ProbeResult], json: bool) -> None:
    """Print the results that were held back."""
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
    count = f"{'more than ' if probe.has_more else ''}{probe.capture_count} {'copies' if probe.capture_count > 1 or probe.has_more else 'copy'}"
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
