"""What commands that ask all archives at once have in common: which to ask, and for how long."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unlost.cli import config
from unlost.cli.asking import contact_option
from unlost.cli.messages import say
from unlost.cli.registry_options import archives_option, only_option, registry

if TYPE_CHECKING:
    from unlost.service.assembly import Options

broadcast_option = click.option(
    "--broadcast", is_flag=True, help="Ask all archives, whatever their maps and hit rates say."
)
top_k_option = click.option(
    "--top-k",
    type=click.IntRange(1, 1_000),
    metavar="N",
    help="Ask at most so many archives: those that most likely have the page.",
)
deadline_option = click.option(
    "--deadline",
    type=click.FloatRange(min=0, min_open=True, max=3_600),
    default=10,
    show_default=True,
    metavar="SECONDS",
    help="How long one answer may take; what has not come by then is left out, and said to be.",
)


def asking_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command all of them."""
    for option in (deadline_option, top_k_option, broadcast_option, contact_option, only_option, archives_option):
        command = option(command)
    return command


def options_of(
    archives: Path | None,
    only: tuple[str, ...],
    contact: str | None,
    broadcast: bool,
    top_k: int | None,
    deadline: float,
    **more: Any,  # noqa: ANN401  as `Options` has them
) -> "Options":
    """Return what a service is told. With --only, there are no other archives."""
    from unlost.aggregate.wish import Wish  # noqa: PLC0415  start-up
    from unlost.service.assembly import Options  # noqa: PLC0415

    known = registry(archives)
    # Those that are named are on.
    chosen = [replace(each, enabled=True) for each in known.only(only)] if only else known.archives
    tell = partial(say, level="note")
    wish = Wish(None, broadcast, top_k)
    return Options(chosen, config.state(), config.cache(), tell, deadline, wish=wish, contact=contact, **more)
