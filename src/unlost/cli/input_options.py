"""Options of commands that write a file: for damaged inputs, and for outputs that would replace an input."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _reject_nan(_ctx: click.Context, _param: click.Parameter, value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise click.BadParameter("expected a number from 0 to 1, found NaN")  # every comparison with it is false
    return value


allow_partial_option = click.option(
    "--allow-partial", is_flag=True, help="Use what can be read of damaged inputs; otherwise nothing is written."
)
max_bad_option = click.option(
    "--max-bad",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    callback=_reject_nan,
    help="Write nothing if more than this share of the lines is bad, such as 0.01.",
)
force_option = click.option("--force", is_flag=True, help="Let the output replace an input.")


def damage_options(command: _Command) -> _Command:
    """Add `--allow-partial`, `--max-bad` and `--force`."""
    return allow_partial_option(max_bad_option(force_option(command)))
