"""What commands that ask all archives at once have in common: which to ask, and for how long."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unlost.cli import config
from unlost.cli.asking import contact_option
from unlost.cli.messages import say
from unlost.cli.registry_options import archives_option, only_option, read_registry

if TYPE_CHECKING:
    from unlost.archives.archive import Archive
    from unlost.service.assembly import ServiceOptions

broadcast_option = click.option(
    "--broadcast", is_flag=True, help="Ask all archives, whatever their maps and hit rates say."
)
top_k_option = click.option(
    "--top-k",
    type=click.IntRange(1, 1_000),
    metavar="N",
    help="Ask at most so many archives: those that most likely have the page.",
)
min_probability_option = click.option(
    "--min-probability",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    metavar="P",
    help="Ask only archives that have the page this likely; above 0, some that are held are missed.",
)
deadline_option = click.option(
    "--deadline",
    type=click.FloatRange(min=0, min_open=True, max=3_600),
    default=10,
    show_default=True,
    metavar="SECONDS",
    help="How long one answer may take; what has not come by then is left out, and said to be.",
)


@dataclass(frozen=True, slots=True)
class AggregatorOptions:
    """What somebody says of whom to ask, and how: the options by their names."""

    archives: Path | None
    only: tuple[str, ...]
    contact: str | None
    broadcast: bool
    top_k: int | None
    min_probability: float
    deadline: float


def aggregator_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all of them; it gets them as one argument, `asking`."""

    @wraps(command)
    def collected(*arguments: object, **values: Any) -> None:  # noqa: ANN401  those of click
        asking = AggregatorOptions(**{each.name: values.pop(each.name) for each in fields(AggregatorOptions)})
        command(*arguments, asking=asking, **values)

    given: Callable[..., None] = collected
    for option in (
        deadline_option,
        min_probability_option,
        top_k_option,
        broadcast_option,
        contact_option,
        only_option,
        archives_option,
    ):
        given = option(given)
    return given


def list_selected_archives(asking: AggregatorOptions) -> "Sequence[Archive]":
    """Return the archives of the registry as it is now; with --only, no others. Raises as `registry` does."""
    known = read_registry(asking.archives)
    # Those that are named are on.
    return [replace(each, enabled=True) for each in known.only(asking.only)] if asking.only else known.archives


def build_service_options(asking: AggregatorOptions, **more: Any) -> "ServiceOptions":  # noqa: ANN401  as `Options` has them
    """Return what a service is told. With --only, there are no other archives."""
    from unlost.aggregate.wish import RoutingOptions  # noqa: PLC0415  start-up
    from unlost.service.assembly import ServiceOptions  # noqa: PLC0415

    tell = partial(say, level="note")
    wish = RoutingOptions(None, asking.broadcast, asking.top_k, asking.min_probability)
    folders = config.state_folder(), config.cache_folder()
    return ServiceOptions(
        list_selected_archives(asking), *folders, tell, asking.deadline, wish=wish, contact=asking.contact, **more
    )
