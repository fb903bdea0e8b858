"""Distinguishes a fault of the local network from a fault of an archive.

If one archive cannot be reached while others respond, that archive is down or blocks the client. If none can be
reached, the client is offline, or connected to a captive portal or a proxy that responds in place of every host.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from unlost.errors import FailedError, OfflineError
from unlost.http import url as http_url
from unlost.http.exchange import HttpExchange, RequestTrace
from unlost.http.policy import Timeouts
from unlost.http.pool import ConnectionPools, Resolver
from unlost.registry.models import Archive

NO_CONNECTION_KINDS = frozenset({"dns", "unreachable", "refused", "tls", "proxy"})
"""The kinds in `unlost.http.models.FAILURE_KINDS` for which no usable connection was made."""

_REASONS = {
    "dns": "name resolution failed",
    "unreachable": "no connection",
    "refused": "connection refused",
    "tls": "no valid TLS certificate",
    "proxy": "the proxy makes no connection",
}
_EVIDENCE_SECONDS = 60.0  # how long a response proves that the network works
_NETWORK_LOGIN_STATUS = 511  # Network Authentication Required, RFC 6585


@dataclass(frozen=True, slots=True)
class ResponseOrigin:
    """Where a response came from.

    Attributes:
        host: The host that was queried.
        peer: The IP address that responded, which may be that of a proxy.
        is_secure: A TLS certificate vouches for the host.
    """

    host: str
    peer: str | None
    is_secure: bool


class Connectivity:
    """Records which archives could be reached during one run.

    Args:
        required: Ids of archives of which at least one must be reachable. Once all of them have failed,
            `raise_if_offline` raises OfflineError. If empty, it never does.
    """

    def __init__(self, required: Iterable[str] = ()) -> None:
        self._required = frozenset(required)
        self._reached: set[str] = set()
        self._failed: dict[str, tuple[str, str]] = {}  # archive: kind of failure, host
        self._portals: dict[str, tuple[str, str]] = {}  # archive: what responded in its place, host
        self._skipped: set[str] = set()
        self._local_proven_at = -math.inf
        self._internet_proven_at = -math.inf

    @property
    def is_undecided(self) -> bool:
        """Whether no archive has been reached so far."""
        return not self._reached

    def record_failure(self, archive: str, host: str, kind: str) -> None:
        """Record a failed request, with a kind in `FAILURE_KINDS`."""
        if kind in NO_CONNECTION_KINDS:
            self._failed[archive] = kind, host
        elif archive not in self._portals:
            self._reached.add(archive)  # a connection was made

    def record_skip(self, archive: str) -> None:
        """Record that an archive was not queried, because of a rate limit, a quota or a block."""
        self._skipped.add(archive)

    def record_response(
        self, archive: str, origin: ResponseOrigin, status: int, media_type: str, redirect: str, now: float
    ) -> bool:
        """Record a response, and return whether it proves that the network works.

        Captive portals respond in place of every host without TLS, with a redirect to another host, an HTML page or
        status 511: such a response proves nothing.

        Args:
            archive: The archive's id.
            origin: Where the response came from.
            status: Its status.
            media_type: Its media type.
            redirect: The host that it redirects to; empty if it does not redirect.
            now: The current time.
        """
        is_elsewhere = bool(redirect) and redirect != origin.host
        is_page = status in (200, _NETWORK_LOGIN_STATUS) and "html" in media_type
        if not origin.is_secure and (is_elsewhere or is_page or status == _NETWORK_LOGIN_STATUS):
            # The page is identified by the archive until `record_page` provides its digest.
            self._portals[archive] = (redirect if is_elsewhere else f"\0{archive}"), origin.host
            return False
        self._portals.pop(archive, None)
        self._reached.add(archive)
        self._local_proven_at = now
        if _is_internet_host(origin.host) and (origin.is_secure or http_url.is_public_ip(origin.peer or "")):
            self._internet_proven_at = now
        return True

    def record_page(self, archive: str, digest: str) -> None:
        """Record the digest of a page that proves nothing. The same page from several hosts is that of a portal."""
        page, host = self._portals.get(archive, ("", ""))
        if page.startswith("\0"):
            self._portals[archive] = f"\0{digest}", host

    def is_portal_suspected(self, archive: str) -> bool:
        """Return whether the last response for an archive may be that of a captive portal."""
        return archive in self._portals

    def proves_block(self, host: str, at: float) -> bool:
        """Return whether a connection refused by a host is a block: another response proves that the network works.

        The proof holds for a minute: later, the machine may be in another network.
        """
        proven_at = (
            self._internet_proven_at
            if _is_internet_host(host)
            else max(self._internet_proven_at, self._local_proven_at)
        )
        return proven_at >= at - _EVIDENCE_SECONDS

    def is_local_refusal(self) -> bool:
        """Return whether several hosts failed and none was reached, so that refused connections are not blocks."""
        hosts = {host for _, host in (*self._failed.values(), *self._portals.values())}
        return not self._reached and len(hosts) > 1

    def offline_error(self) -> OfflineError | None:
        """Return the error to raise if no archive can be reached; None if that is not certain."""
        tried = {**self._failed, **self._portals}
        if self._reached or not tried:
            return None
        portals = {page for page, _ in self._portals.values()}
        hosts = {host for _, host in tried.values()}
        if portals:
            # One host that sends a page is an ordinary site. The same page from several hosts is a portal.
            is_offline = len(hosts) > 1 and len(portals) == 1
        elif len(hosts) > 1:
            is_offline = any(_is_internet_host(host) for host in hosts)
        else:
            # A single host that refuses connections or has an invalid certificate exists.
            is_offline = not {kind for kind, _ in self._failed.values()} & {"refused", "tls"}
        if not is_offline:
            return None
        return OfflineError(_message(tried, self._reasons(portals), is_portal=bool(portals)), self._reasons(portals))

    def raise_if_offline(self) -> None:
        """Raise OfflineError if all required archives have failed and none was reached."""
        if self._required and self._required <= self._failed.keys() | self._portals.keys() | self._skipped:
            error = self.offline_error()
            if error is not None:
                raise error

    def _reasons(self, portals: set[str]) -> str:
        if portals:
            page = next(iter(portals))
            return "the same page responds in their place" if page.startswith("\0") else f"all redirect to {page[:100]}"
        counts = Counter(_REASONS[kind] for kind, _ in self._failed.values())
        return ", ".join(reason for reason, _ in counts.most_common())


async def probe_network(
    archives: Iterable[Archive], resolver: Resolver | None = None, *, use_proxies: bool = False, timeout: float = 10.0
) -> OfflineError | None:
    """Return an error if no archive can be reached; None if one can, or if that is not certain.

    Connects to all archives concurrently, until one connection is made; nothing is sent. If archives have https URLs,
    only these are tried: a captive portal may accept connections in place of the others.
    """
    urls = {each.id: url for each in archives if (url := _remote_url(each)) is not None}
    secure_urls = {name: url for name, url in urls.items() if url.scheme == "https"}
    network = Connectivity()
    pools = ConnectionPools(resolver, use_proxies=use_proxies)
    tasks = [
        asyncio.create_task(_can_connect(pools, name, url, network, timeout))
        for name, url in (secure_urls or urls).items()
    ]
    try:
        for done in asyncio.as_completed(tasks):
            if await done:
                return None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        pools.close()
    return network.offline_error()


async def _can_connect(
    pools: ConnectionPools, name: str, url: http_url.HttpUrl, network: Connectivity, seconds: float
) -> bool:
    pool = pools.for_host(url.host_port.host, is_named=True)
    exchange = HttpExchange(
        pool, url, "", RequestTrace(_do_nothing, _do_nothing), Timeouts(connect=seconds), math.inf, name
    )
    try:
        await exchange.connect()
    except FailedError as error:
        network.record_failure(name, url.host_port.host, error.kind)
        return False
    return True


def _do_nothing() -> None:
    pass


def _remote_url(archive: Archive) -> http_url.HttpUrl | None:
    """Return an http or https URL of an archive; None for a local one."""
    for url in (archive.timemap, archive.timegate, archive.cdx, archive.replay):
        try:
            return http_url.parse_url(url or "")
        except ValueError:
            continue
    return None


def _message(tried: Iterable[str], reason: str, *, is_portal: bool) -> str:
    names = list(tried)
    subject = (
        "the archive could not be reached" if len(names) == 1 else f"none of {len(names)} archives could be reached"
    )
    if is_portal:
        return f"You seem to be behind a login page: {subject} ({reason}). Log in with a browser, then try again"
    return f"You seem to be offline: {subject} ({reason})"


def _is_internet_host(host: str) -> bool:
    """Return whether a host is outside the local network, judging by its name or IP address alone."""
    if host == "localhost" or host.endswith(".localhost"):
        return False
    return http_url.is_public_ip(host) if http_url.is_ip_literal(host) else True
