"""HTTP clients for archives, with the rate limits that all commands of a user share."""

from collections.abc import Iterable
from functools import partial

from unlost.cli import config
from unlost.cli.messages import say
from unlost.clock import SystemClock
from unlost.http.client import ArchiveHttpClient
from unlost.http.connectivity import Connectivity
from unlost.http.limit_store import FileLimitStore
from unlost.registry.models import Archive

LIMIT_WAIT_SECONDS = 900.0
"""For which a question of long work is kept waiting by rates; quotas and blocks end it at once."""


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
