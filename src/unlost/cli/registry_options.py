"""Which archives a command asks: `--archives` and `--only`, for every command that asks any."""

from pathlib import Path

import click

from unlost.archives.registry.registry import Registry, load_registry
from unlost.cli.common import CommonOption
from unlost.cli.messages import say


def _ids(
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
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The registry to use in place of the shipped one, or MemGator's list; for all commands: UNLOST_ARCHIVES.",
)
only_option = click.option(
    "--only",
    cls=CommonOption,
    type=click.UNPROCESSED,
    callback=_ids,
    metavar="ID[,ID...]",
    help="Only these archives, also if they are off; for all commands: UNLOST_ONLY.",
)


def registry(file: Path | None) -> Registry:
    """Return the registry in a file, or the one that is shipped, and say what was passed over. Raises InputError."""
    found = load_registry(file)
    for note in found.notes:
        say(note, level="warning")
    return found
