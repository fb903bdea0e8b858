"""Options that choose archives and control requests to them: registry, contact, delay and routing; HTTP clients."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unlost.cli import config
from unlost.cli.messages import say
from unlost.cli.types import READABLE_FILE, CommonOption
from unlost.clock import SystemClock
from unlost.errors import UsageError
from unlost.http.client import ArchiveHttpClient
from unlost.http.connectivity import Connectivity
from unlost.http.limit_store import FileLimitStore
from unlost.http.policy import MAX_WAITS
from unlost.registry.loader import Registry, load_registry
from unlost.registry.models import Archive

if TYPE_CHECKING:
    from unlost.aggregate.factory import AggregatorConfig
    from unlost.aggregate.models import RoutingOptions


LIMIT_WAIT_SECONDS = MAX_WAITS["recoveries"]
"""Seconds that a request of a long-running command may wait for a rate limit.

Exhausted quotas and blocks fail the request at once.
"""


def reset_hint(archive: str) -> str:
    """Return a hint for a block that has a local cause, such as the user's own server that was not running."""
    return f"If it was only not running, `unlost archives reset {archive}` clears the block"


def open_limit_store() -> FileLimitStore:
    """Return the store in which all commands of this user on this machine count their requests."""
    return FileLimitStore(config.state_folder() / "limits", warn=partial(say, level="warning"))


def open_http_client(
    contact: str | None,
    max_wait: float,
    connections: int = 6,
    use_proxies: bool = False,
    connectivity: Connectivity | None = None,
) -> ArchiveHttpClient:
    """Return an HTTP client that shares rate limits with all other commands of the user.

    Args:
        contact: Email address or URL that the User-Agent names, if any.
        max_wait: Seconds that a request may wait for rate limits.
        connections: Simultaneous connections per host.
        use_proxies: Whether to use the proxies named in the environment.
        connectivity: Records which archives can be reached.
    """
    return ArchiveHttpClient(
        open_limit_store(),
        SystemClock(),
        contact,
        max_wait=max_wait,
        connections_per_host=connections,
        use_proxies=use_proxies,
        warn=partial(say, level="note"),
        connectivity=connectivity,
    )


def track_connectivity(archives: Iterable[Archive]) -> Connectivity:
    """Return a tracker that ends a run with OfflineError once no archive can be reached.

    If some of the archives are on this machine's disk, the tracker is empty and the run continues with those.
    """
    all_archives = list(archives)
    is_remote = all(each.folder is None for each in all_archives)
    return Connectivity(each.id for each in all_archives if is_remote)


def _parse_ids(
    _ctx: click.Context, _param: click.Parameter, value: str | list[str] | tuple[str, ...] | None
) -> tuple[str, ...]:
    """Return the archive IDs of a comma-separated value or of a list in the settings file; empty if not given."""
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
    help="Read the archive registry, or an archive list of MemGator, from FILE.  [default: the registry shipped with "
    "unlost; environment variable for all commands: UNLOST_ARCHIVES]",
)
only_option = click.option(
    "--only",
    cls=CommonOption,
    type=click.UNPROCESSED,
    callback=_parse_ids,
    metavar="ID[,ID...]",
    help="Use only the archives with these IDs, including disabled ones.  [default: all enabled archives; environment "
    "variable for all commands: UNLOST_ONLY]",
)


def read_registry(file: Path | None) -> Registry:
    """Return the registry in a file, by default the one shipped with unlost. Prints its notes as warnings.

    Raises:
        InputError: The file cannot be read.
    """
    registry = load_registry(file)
    for note in registry.notes:
        say(note, level="warning")
    return registry


def select_archives(file: Path | None, only: tuple[str, ...]) -> dict[str, Archive]:
    """Return the archives to query, by ID: those named in `only`, else all that are enabled.

    Raises:
        InputError: The registry cannot be read.
        UsageError: No archive is enabled, or an ID is unknown.
    """
    registry = read_registry(file)
    if only:
        return {each.id: replace(each, enabled=True) for each in registry.only(only)}
    enabled = {each.id: each for each in registry.archives if each.enabled}
    if not enabled:
        raise UsageError("no archive in the registry is on: name some by --only")
    return enabled


_MAX_CONTACT = 200  # characters: an email address or a URL


def _validate_contact(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Reject a contact that could break out of the parentheses of the User-Agent header."""
    if value is None or not value.strip():
        return None
    contact = value.strip()
    if not contact.isascii() or not contact.isprintable() or set("()<>") & set(contact) or len(contact) > _MAX_CONTACT:
        raise click.BadParameter("expected a mail address or the address of a page, without brackets")
    return contact


contact_option = click.option(
    "--contact",
    cls=CommonOption,
    callback=_validate_contact,
    metavar="EMAIL|URL",
    help="Send this contact to archives and sites in the User-Agent header. Without a contact, requests are sent at "
    "half the rate.  [environment variable for all commands: UNLOST_CONTACT]",
)
delay_option = click.option(
    "--delay",
    type=click.FloatRange(0, 3_600),
    default=1,
    show_default=True,
    metavar="SECONDS",
    help="Wait at least SECONDS between two requests to the same live site. robots.txt can set a longer delay.",
)


broadcast_option = click.option(
    "--broadcast", is_flag=True, help="Query all archives, whatever their MementoMaps, filters and hit rates predict."
)
top_k_option = click.option(
    "--top-k",
    type=click.IntRange(1, 1_000),
    metavar="N",
    help="Query at most N archives for each URL: those most likely to have it.  [default: no limit]",
)
min_probability_option = click.option(
    "--min-probability",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    metavar="P",
    help="Query only archives that have the URL with at least this probability, from 0 to 1. Values above 0 may miss "
    "mementos.",
)
deadline_option = click.option(
    "--deadline",
    type=click.FloatRange(min=0, min_open=True, max=3_600),
    default=10,
    show_default=True,
    metavar="SECONDS",
    help="Respond after at most SECONDS. Archives that have not responded by then are reported and left out.",
)


@dataclass(frozen=True, slots=True)
class AggregatorOptions:
    """Values of the options that select archives and control routing, by option name."""

    archives: Path | None
    only: tuple[str, ...]
    contact: str | None
    broadcast: bool
    top_k: int | None
    min_probability: float
    deadline: float


def aggregator_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the archive and routing options to a command, which gets them as one argument, `lookup_options`."""

    @wraps(command)
    def wrapper(*arguments: object, **values: Any) -> None:  # noqa: ANN401  click's parameters
        lookup_options = AggregatorOptions(**{each.name: values.pop(each.name) for each in fields(AggregatorOptions)})
        command(*arguments, lookup_options=lookup_options, **values)

    wrapped: Callable[..., None] = wrapper
    for option in (
        deadline_option,
        min_probability_option,
        top_k_option,
        broadcast_option,
        contact_option,
        only_option,
        archives_option,
    ):
        wrapped = option(wrapped)
    return wrapped


def list_selected_archives(lookup_options: AggregatorOptions) -> "Sequence[Archive]":
    """Return the archives of the registry file, read again; with --only, just those. Raises as `read_registry` does."""
    registry = read_registry(lookup_options.archives)
    # Archives that are named by --only are enabled.
    return (
        [replace(each, enabled=True) for each in registry.only(lookup_options.only)]
        if lookup_options.only
        else registry.archives
    )


def build_routing_options(lookup_options: AggregatorOptions) -> "RoutingOptions":
    """Return which archives look-ups query."""
    from unlost.aggregate.models import RoutingOptions  # noqa: PLC0415  start-up

    return RoutingOptions(None, lookup_options.broadcast, lookup_options.top_k, lookup_options.min_probability)


def build_aggregator_config(lookup_options: AggregatorOptions) -> "AggregatorConfig":
    """Return the configuration of an aggregator for one command. With --only, its registry has no other archives."""
    from unlost.aggregate.factory import AggregatorConfig  # noqa: PLC0415  start-up

    return AggregatorConfig(
        list_selected_archives(lookup_options),
        config.state_folder(),
        config.cache_folder(),
        partial(say, level="note"),
        lookup_options.deadline,
        contact=lookup_options.contact,
        is_long_running=False,
        exploration_share=0.0,  # what is learned is not stored
    )
