"""Options of commands that write a file from their inputs: what to do about damage, and about the inputs' own names."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])

allow_partial_option = click.option(
    "--allow-partial", is_flag=True, help="Use what can be read of damaged inputs; otherwise nothing is written."
)
max_bad_option = click.option(
    "--max-bad",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Write nothing if more than this share of the lines is bad, such as 0.01.",
)
force_option = click.option("--force", is_flag=True, help="Let the output replace an input.")


def damage_options(command: _Command) -> _Command:
    """Add `--allow-partial`, `--max-bad` and `--force`."""
    return allow_partial_option(max_bad_option(force_option(command)))
