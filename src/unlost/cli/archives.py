"""`unlost archives`: which web archives there are, what is known about each, and whether they answer."""

import math
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from unlost import dates
from unlost.archives.archive import Archive, SourcedNumber, RateLimit
from unlost.archives.manners import admission
from unlost.archives.manners.admission import ArchiveBackoff
from unlost.archives.manners.ledger import RateLimitState
from unlost.cli.addresses import json_line, write_lines
from unlost.cli.apart import lazy_group
from unlost.cli.asking import open_limit_store
from unlost.cli.messages import say
from unlost.cli.registry_options import archives_option, only_option, read_registry
from unlost.cli.table import print_table
from unlost.clock import SystemClock
from unlost.errors import UsageError


@click.group(name="archives", cls=lazy_group("archives", "test"))
def command() -> None:
    """List web archives, show what is known about each, and test whether they answer.

    The archives are those of a registry: the one that is shipped, or a file of yours that replaces or extends it.
    """


@command.command(name="list")
@archives_option
@only_option
@click.option("--all", is_flag=True, help="Also those that are off, which are asked only if they are named.")
@click.option("--json", is_flag=True, help="One JSON object a line, with everything that is known.")
def list_(archives: Path | None, only: tuple[str, ...], all: bool, json: bool) -> None:  # noqa: A002  flags
    """List the archives: id, kind, on or off, the share of questions that it had an answer to, name, state.

    The state is empty for an archive that may be queried now. Otherwise it says why it may not be, and until when:
    `blocked` after it refused a connection, `told-to-wait` after 429 or 503, or `quota`. `unlost archives reset` clears
    blocks and waits.
    """
    known = read_registry(archives)
    chosen = known.archives if all else known.only(only)
    if json:
        write_lines([json_line(**_archive_object(archive)) for archive in chosen])
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
        for archive in chosen
    ]
    print_table(("id", "kind", "", "hit rate", "name", "state"), rows)
    off = 0 if only else len(known.archives) - len(chosen)
    if off:
        say(f"{off} more are off: --all lists them", level="note")


def _format_share(rate: SourcedNumber | None) -> str:
    return "-" if rate is None else f"{rate.value:.1%}"


@command.command()
@click.argument("archive", metavar="ID")
@archives_option
@click.option("--json", is_flag=True, help="The same as JSON.")
def show(archive: str, archives: Path | None, json: bool) -> None:
    """Show everything that is known about an archive: a line for each fact, and the source of each number."""
    found = read_registry(archives).get(archive)
    if json:
        write_lines([json_line(**_archive_object(found))])
    else:
        print_table(("", "", "source"), _facts(found))


@command.command()
@click.argument("ids", metavar="[ID...]", nargs=-1)
@click.option("--all", is_flag=True, help="All archives of the registry.")
@archives_option
def reset(ids: tuple[str, ...], all: bool, archives: Path | None) -> None:  # noqa: A002  flags
    """Clear the blocks and waits of archives, so that they are queried again at once.

    Use it if the cause was a local one, such as a firewall, a captive portal or a server of your own that was not
    running. Rates and daily quotas still count what was sent.
    """
    if bool(ids) == all:
        raise UsageError("expected the ids of archives, or --all")
    known = read_registry(archives)
    store = open_limit_store()
    now = SystemClock().now()
    is_changed = False
    for archive in known.archives if all else known.only(ids):
        if store.read(archive.id) != RateLimitState() and store.update(archive.id, _clear_blocks):
            is_changed = True
            say(f"{archive.id}: cleared", level="info", archive=archive.id)
        left = admission.current_backoff(store.read(archive.id), archive, now)
        if left is not None:
            say(f"{archive.id}: {_format_hold(left)}: quotas are not cleared", level="warning", archive=archive.id)
    if not is_changed:
        say("nothing to clear: no archive is blocked, or said to wait", level="info")


def _clear_blocks(ledger: RateLimitState) -> tuple[RateLimitState, bool]:
    """Return an account without blocks and waits, and whether it had any."""
    after = admission.clear_backoff(ledger)
    return after, after != ledger


def _current_hold(archive: Archive) -> ArchiveBackoff | None:
    """Return what holds requests to an archive back at present; None if nothing does."""
    return admission.current_backoff(open_limit_store().read(archive.id), archive, SystemClock().now())


def _state(archive: Archive) -> str:
    hold = _current_hold(archive)
    if hold is None:
        return ""
    if sys.stdout.isatty():
        return _format_hold(hold)
    return f"{hold.reason} until {dates.to_iso(dates.from_epoch(str(math.ceil(hold.until))))}"


def _format_hold(hold: ArchiveBackoff) -> str:
    """Return why, and until when in local time, an archive is not queried."""
    return f"{hold.reason} until {dates.to_local(hold.until, round_up=True)}"


def _archive_object(archive: Archive) -> dict[str, Any]:
    """Return everything that is known about an archive, and its state."""
    hold = _current_hold(archive)
    until = None if hold is None else dates.to_iso(dates.from_epoch(str(math.ceil(hold.until))))
    return {**asdict(archive), "state": None if hold is None else hold.reason, "until": until}


def _facts(archive: Archive) -> Iterator[tuple[str, str, str]]:
    yield "id", archive.id, ""
    yield "name", archive.name, ""
    yield "kind", archive.kind, ""
    yield "asked", "yes" if archive.enabled else "only if it is named", ""
    if state := _state(archive):
        yield "state", state, ""
    addresses = {
        "timemap": archive.timemap,
        "timegate": archive.timegate,
        "cdx": archive.cdx,
        "replay": archive.replay,
        "search": archive.search,
        "folder": archive.folder,
        "mementomap": archive.mementomap,
    }
    for name, address in addresses.items():
        if address is not None:
            yield name, address, ""
    for place in archive.filters:
        yield "filter", place, ""
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
