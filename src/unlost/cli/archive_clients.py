"""HTTP clients for archives, with rate limits shared by all commands of a user."""

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
"""How many seconds a request of a long-running command may wait for the rate limit.

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
    patience: float,
    connections: int = 6,
    proxies: bool = False,
    network: Connectivity | None = None,
) -> ArchiveHttpClient:
    """Return an HTTP client that shares rate limits with all other commands of the user.

    Args:
        contact: Email address or URL that the User-Agent names, if any.
        patience: Seconds that a request may wait for rate limits.
        connections: Simultaneous connections per host.
        proxies: Whether to use the proxies named in the environment.
        network: Records which archives can be reached.
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
    """Return a tracker that ends a run with OfflineError once no archive can be reached.

    If some of the archives are on this machine's disk, the tracker is empty and the run continues with those.
    """
    every = list(archives)
    is_remote = all(each.folder is None for each in every)
    return Connectivity(each.id for each in every if is_remote)
