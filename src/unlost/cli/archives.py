"""`unlost archives`: which web archives there are, what is known about each, and whether they answer."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from unlost.archives.archive import Archive, Figure, Limit
from unlost.cli.addresses import json_line, write
from unlost.cli.apart import group_of
from unlost.cli.messages import say
from unlost.cli.registry_options import archives_option, only_option, registry
from unlost.cli.table import print_table


@click.group(name="archives", cls=group_of("archives", "test"))
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
    """List the archives: id, kind, on or off, the share of questions that it had an answer to, name."""
    known = registry(archives)
    chosen = known.archives if all else known.only(only)
    if json:
        write([json_line(**asdict(archive)) for archive in chosen])
        return
    rows = [
        (archive.id, archive.kind, "on" if archive.enabled else "off", _share(archive.hit_rate), archive.name)
        for archive in chosen
    ]
    print_table(("id", "kind", "", "hit rate", "name"), rows)
    off = 0 if only else len(known.archives) - len(chosen)
    if off:
        say(f"{off} more are off: --all lists them", level="note")


def _share(rate: Figure | None) -> str:
    return "-" if rate is None else f"{rate.value:.1%}"


@command.command()
@click.argument("archive", metavar="ID")
@archives_option
@click.option("--json", is_flag=True, help="The same as JSON.")
def show(archive: str, archives: Path | None, json: bool) -> None:
    """Show everything that is known about an archive: a line for each fact, and the source of each number."""
    found = registry(archives).get(archive)
    if json:
        write([json_line(**asdict(found))])
    else:
        print_table(("", "", "source"), _facts(found))


def _facts(archive: Archive) -> Iterator[tuple[str, str, str]]:
    yield "id", archive.id, ""
    yield "name", archive.name, ""
    yield "kind", archive.kind, ""
    yield "asked", "yes" if archive.enabled else "only if it is named", ""
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
        yield "limit", f"{limit.requests} in {limit.seconds:g} s for {_works(limit)}", limit.source
    for quota in archive.quotas:
        yield "quota", f"{quota.requests} a day for {_works(quota)}", quota.source
    if archive.hit_rate is not None:
        yield "hit rate", _share(archive.hit_rate), archive.hit_rate.source


def _works(limit: Limit) -> str:
    return ", ".join(limit.works)
