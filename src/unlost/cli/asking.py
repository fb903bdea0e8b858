"""How a command asks archives: in whose name, and through which courier."""

from collections.abc import Iterable
from functools import partial

import click

from unlost.archives.archive import Archive
from unlost.archives.asking.connectivity import Connectivity
from unlost.archives.asking.courier import ArchiveHttpClient
from unlost.archives.manners.limit_store import FileLimitStore
from unlost.cli import config
from unlost.cli.common import CommonOption
from unlost.cli.messages import say
from unlost.clock import SystemClock

LIMIT_WAIT_SECONDS = 900.0
"""For which a question of long work is kept waiting by rates; quotas and blocks end it at once."""

_MAX_CONTACT = 200  # characters: a mail address, or that of a page


def _validate_contact(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Refuse what would not stay inside the brackets of a header."""
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
    metavar="TEXT",
    help="Your mail address or page, which archives are told; without one they are asked half as often. "
    "For all commands: UNLOST_CONTACT.",
)
delay_option = click.option(
    "--delay",
    type=click.FloatRange(0, 3_600),
    default=1,
    show_default=True,
    metavar="SECONDS",
    help="Between two requests to one living site; robots.txt may ask for more.",
)


def reset_hint(archive: str) -> str:
    """Return what to do about a block that is none, such as of a server of one's own that was not running."""
    return f"If it was only not running, `unlost archives reset {archive}` clears the block"


def open_limit_store() -> FileLimitStore:
    """Return where all commands of this user on this machine count what they ask."""
    return FileLimitStore(config.state_folder() / "limits", warn=partial(say, level="warning"))


def open_http_client(
    contact: str | None,
    patience: float,
    connections: int = 6,
    proxies: bool = False,
    network: Connectivity | None = None,
) -> ArchiveHttpClient:
    """Return a courier that asks in somebody's name, and keeps limits together with all other commands.

    patience: how many seconds a question may be kept waiting for limits. connections: to one host, at once.
    proxies: whether to go through those of the environment. network: records which archives can be reached.
    """
    return ArchiveHttpClient(
        open_limit_store(),
        SystemClock(),
        contact,
        max_wait=patience,
        connections_per_host=connections,
        use_proxies=proxies,
        warn=partial(say, level="note"),
        connectivity=network,
    )


def track_connectivity(archives: Iterable[Archive]) -> Connectivity:
    """Return a record that ends a run with OfflineError once none of the archives can be reached.

    Where some of them are on this machine's disk, the run goes on with those.
    """
    every = list(archives)
    is_remote = all(each.folder is None for each in every)
    return Connectivity(each.id for each in every if is_remote)
