"""Which archives a command asks: `--archives` and `--only`, for every command that asks any."""

from dataclasses import replace
from pathlib import Path

import click

from unlost.archives.archive import Archive
from unlost.archives.registry.registry import Registry, load_registry
from unlost.cli.common import CommonOption
from unlost.cli.messages import say
from unlost.cli.readable import READABLE_FILE
from unlost.errors import UsageError


def _parse_ids(
    _ctx: click.Context, _param: click.Parameter, value: str | list[str] | tuple[str, ...] | None
) -> tuple[str, ...]:
    """Return the ids in a text with commas, or in a list of a file of settings; none if nothing is said."""
    if value is None:
        return ()
    ids = tuple(part.strip() for part in (value.split(",") if isinstance(value, str) else value))
    if not all(ids):
        raise click.BadParameter("expected ids of archives with commas between them")
    return ids


archives_option = click.option(
    "--archives",
    cls=CommonOption,
    type=READABLE_FILE,
    metavar="FILE",
    help="The registry to use in place of the shipped one, or MemGator's list; for all commands: UNLOST_ARCHIVES.",
)
only_option = click.option(
    "--only",
    cls=CommonOption,
    type=click.UNPROCESSED,
    callback=_parse_ids,
    metavar="ID[,ID...]",
    help="Only these archives, also if they are off; for all commands: UNLOST_ONLY.",
)


def read_registry(file: Path | None) -> Registry:
    """Return the registry in a file, or the one that is shipped, and say what was passed over. Raises InputError."""
    found = load_registry(file)
    for note in found.notes:
        say(note, level="warning")
    return found


def select_archives(file: Path | None, only: tuple[str, ...]) -> dict[str, Archive]:
    """Return the archives to ask, by id: those that are named, else all that are on. Raises InputError, UsageError."""
    known = read_registry(file)
    if only:
        return {each.id: replace(each, enabled=True) for each in known.only(only)}
    found = {each.id: each for each in known.archives if each.enabled}
    if not found:
        raise UsageError("no archive in the registry is on: name some by --only")
    return found
