"""The options that say how keys are cut, for every command that cuts them."""

from pathlib import Path

import click

from unlost import uri
from unlost.cli.readable import READABLE_FILE
from unlost.errors import InputError
from unlost.formats.unread import unreadable_error

_MAX_LIST_BYTES = 16 << 20  # the list has a third of a megabyte

rules_option = click.option(
    "--rules",
    type=click.Choice(uri.RULE_SETS),
    default=uri.DEFAULT_RULES,
    show_default=True,
    help="Which canonicalisation: what Wayback and pywb indexes use, or the papers' (case kept).",
)
psl_option = click.option("--psl", type=READABLE_FILE, help="A newer Public Suffix List.")
suffixes_option = click.option(
    "--suffixes",
    type=click.Choice(["all", "icann"]),
    default="all",
    show_default=True,
    help="Which sections of the list count: with private ones `foo.blogspot.com` is a registered domain.",
)


def load_suffix_list(file: Path | None, section: str) -> uri.SuffixList:
    """Return the list in a file, or the one of unlost. Raises InputError if it is none."""
    if file is None:
        return uri.SuffixList(section=section)
    try:
        with file.open("rb") as opened:
            text = opened.read(_MAX_LIST_BYTES + 1)
    except OSError as error:
        raise unreadable_error(file, error) from error
    if len(text) > _MAX_LIST_BYTES:
        raise InputError(f"{file}: not a Public Suffix List: more than {_MAX_LIST_BYTES} bytes")
    try:
        return uri.SuffixList(text, section)
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
