"""Name resolution and the connection pool.

A pool opens connections, directly or through a proxy, and reuses idle ones. Names are resolved by the system, or by
`PublicResolver`, which drops private addresses so that no redirect reaches into a private network.
"""

import asyncio
import socket
import ssl
from base64 import b64encode
from functools import cache
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from aiohappyeyeballs import start_connection

from unlost.http.connection import HttpConnection, HttpProtocolError
from unlost.http.url import HostPort, HttpUrl, is_ip_literal, is_public_ip, may_be_public_host

_IDLE_SECONDS = 15.0  # servers close idle connections after 5 to 75 seconds
_HAPPY_EYEBALLS_DELAY = 0.25  # connection attempt delay recommended by RFC 8305, section 5

AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]
"""One result of `socket.getaddrinfo`: family, type, protocol, canonical name, socket address."""


class NotPublicError(OSError):
    """A host is in a private network. Handled by the clients of this package."""


class ConnectTimeoutError(OSError):
    """No connection was made in time. Handled inside this package."""


class ProxyError(OSError):
    """A proxy is unreachable, misconfigured or refuses the connection. Handled inside this package."""


class ProxyServer(NamedTuple):
    """A proxy named by the environment.

    Attributes:
        authorization: The value of Proxy-Authorization; empty for none.
    """

    host_port: HostPort
    authorization: str


class Resolver(Protocol):
    """Resolves host names."""

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """Return the addresses of a host.

        Raises:
            OSError: The name does not resolve.
        """
        ...


class SystemResolver:
    """Resolves names with the system's resolver.

    Concurrent look-ups of one name share a single call: the resolver has few threads, and one name that hangs would
    block all archives. An instance must not be shared between event loops.
    """

    def __init__(self) -> None:
        self._pending: dict[HostPort, asyncio.Future[list[AddressInfo]]] = {}

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """Return the addresses of a host. Raises OSError if there are none."""
        host_port = HostPort(host, port)
        lookup = self._pending.get(host_port)
        if lookup is None:
            lookup = self._pending[host_port] = asyncio.ensure_future(_getaddrinfo(host_port))
            lookup.add_done_callback(lambda done: self._forget_pending(host_port, done))
        # A cancelled caller must not cancel the look-up of the others.
        return await asyncio.shield(lookup)

    def _forget_pending(self, host_port: HostPort, done: "asyncio.Future[list[AddressInfo]]") -> None:
        del self._pending[host_port]
        if not done.cancelled():
            done.exception()  # retrieved, so that asyncio does not log it if all callers were cancelled


class PublicResolver:
    """Resolves names and drops every IP address that is not public.

    The connection is made to one of the addresses that were checked, so that DNS rebinding has no effect.
    """

    def __init__(self, inner: Resolver) -> None:
        self._inner = inner

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """Return the public addresses of a host.

        Raises:
            NotPublicError: All addresses are private.
            OSError: The name does not resolve.
        """
        addresses = await self._inner.resolve(host, port)
        public = [each for each in addresses if is_public_ip(str(each[4][0]))]
        if addresses and not public:
            raise NotPublicError(f"{host[:100]} is inside a network")
        return public


class ConnectionPool:
    """A pool of connections, keyed by scheme, host, port and proxy.

    Args:
        resolver: Resolves the names of hosts.
        proxy_resolver: Resolves the names of proxies, which may be in a private network. None disables the proxies
            of the environment.
    """

    def __init__(self, resolver: Resolver, *, proxy_resolver: Resolver | None) -> None:
        self._resolver = resolver
        self._proxy_resolver = proxy_resolver
        self._is_closed = False
        self._idle: dict[object, list[tuple[HttpConnection, float]]] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def proxy_for(self, url: HttpUrl) -> ProxyServer | None:
        """Return the proxy to use for a URL, or None to connect directly."""
        return None if self._proxy_resolver is None else _proxy_from_environment(url)

    def take_idle(self, url: HttpUrl, proxy: ProxyServer | None) -> HttpConnection | None:
        """Return an idle connection that is still open; None if there is none."""
        idle = self._idle.get((url.scheme, url.host_port, proxy))
        while idle:
            connection, _ = idle.pop()
            if connection.is_open:
                return connection
            connection.close()
        return None

    async def open(self, url: HttpUrl, proxy: ProxyServer | None, seconds: float) -> HttpConnection:
        """Open a connection.

        Raises:
            ConnectTimeoutError: No connection after `seconds`.
            OSError: The connection failed; ssl.SSLError if TLS did.
            HttpProtocolError: The proxy's response is not HTTP.
        """
        try:
            async with asyncio.timeout(seconds):
                connection = await self._open_connection(url, proxy)
        except TimeoutError:
            raise ConnectTimeoutError("no connection in time") from None
        connection.key = (url.scheme, url.host_port, proxy)
        return connection

    async def _open_connection(self, url: HttpUrl, proxy: ProxyServer | None) -> HttpConnection:
        if proxy is None or self._proxy_resolver is None:
            tls = _certificate_name(url.host_port) if url.scheme == "https" else None
            return await self._connect(url.host_port, tls, self._resolver)
        try:
            connection = await self._connect(proxy.host_port, None, self._proxy_resolver)
        except OSError as error:
            raise ProxyError(f"no connection to the proxy: {error}") from error
        if url.scheme == "https":
            await _open_tunnel(connection, url.host_port, proxy)
        return connection

    async def _connect(self, host_port: HostPort, tls: str | None, resolver: Resolver) -> HttpConnection:
        loop = asyncio.get_running_loop()
        addresses = (
            [literal_address_info(host_port)]
            if is_ip_literal(host_port.host)
            else await resolver.resolve(host_port.host, host_port.port)
        )
        connected = await start_connection(addresses, happy_eyeballs_delay=_HAPPY_EYEBALLS_DELAY, loop=loop)
        try:
            _, connection = await loop.create_connection(
                lambda: HttpConnection(loop),
                sock=connected,
                ssl=default_ssl_context() if tls else None,
                server_hostname=tls,
            )
        except BaseException:
            connected.close()
            raise
        return connection

    def release(self, connection: HttpConnection) -> None:
        """Return a connection to the pool. It is closed unless its last response was read to the end."""
        if self._is_closed or not connection.is_open:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        self._idle.setdefault(connection.key, []).append((connection, loop.time() + _IDLE_SECONDS))
        if self._sweeper is None:
            self._sweeper = loop.call_later(_IDLE_SECONDS, self._sweep)

    def close_idle(self, connection: HttpConnection) -> None:
        """Close the idle connections with the same key as a faulty one: they may share its fault."""
        for each, _ in self._idle.pop(connection.key, []):
            each.close()

    def close(self) -> None:
        """Close all idle connections now, and every other one when it is released."""
        self._is_closed = True
        for idle in self._idle.values():
            for connection, _ in idle:
                connection.close()
        self._idle.clear()
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        remaining: dict[object, list[tuple[HttpConnection, float]]] = {}
        for key, idle in self._idle.items():
            for connection, until in idle:
                if connection.is_open and until > loop.time():
                    remaining.setdefault(key, []).append((connection, until))
                else:
                    connection.close()
        self._idle = remaining
        self._sweeper = loop.call_later(_IDLE_SECONDS / 3, self._sweep) if remaining else None


class ConnectionPools:
    """The connection pools of a client: one for named hosts, one for all others, which must be public.

    Named hosts are those of the registry and those that the user named; they may be in a private network. Links,
    redirects and DNS can lead to any other host: no request of unlost reaches a private address through them, since
    every client of archives and of the live web takes its connections from here.

    Args:
        resolver: Resolves names; None for the system's resolver.
        use_proxies: Use the proxies of the environment. Then the proxy resolves the names.
    """

    def __init__(self, resolver: Resolver | None, *, use_proxies: bool) -> None:
        any_address = resolver or SystemResolver()
        proxy_resolver = any_address if use_proxies else None
        self._named = ConnectionPool(any_address, proxy_resolver=proxy_resolver)
        self._public = ConnectionPool(PublicResolver(any_address), proxy_resolver=proxy_resolver)

    def for_host(self, host: str, *, is_named: bool) -> ConnectionPool:
        """Return the pool for a host.

        Raises:
            NotPublicError: The host is not named, and it is an IP address that is not public. A host name is checked
                when it is resolved.
        """
        if is_named:
            return self._named
        if not may_be_public_host(host):
            raise NotPublicError(f"{host[:100]} is inside a network")
        return self._public

    def close(self) -> None:
        """Close all idle connections now, and every other one when it is released."""
        self._named.close()
        self._public.close()


@cache
def default_ssl_context() -> ssl.SSLContext:
    """Return the TLS context of all connections, with the certificates trusted by the system."""
    return ssl.create_default_context()


def literal_address_info(host_port: HostPort) -> AddressInfo:
    """Return the socket address of a host that is an IP address, without name resolution."""
    family = socket.AF_INET6 if ":" in host_port.host else socket.AF_INET
    return socket.getaddrinfo(
        host_port.host, host_port.port, family, socket.SOCK_STREAM, socket.IPPROTO_TCP, socket.AI_NUMERICHOST
    )[0]


async def _getaddrinfo(host_port: HostPort) -> list[AddressInfo]:
    loop = asyncio.get_running_loop()
    return [*await loop.getaddrinfo(host_port.host, host_port.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)]


def _certificate_name(host_port: HostPort) -> str:
    return host_port.host.rstrip(".")  # certificates name hosts without the trailing dot


def _proxy_from_environment(url: HttpUrl) -> ProxyServer | None:
    proxy_url = getproxies().get(url.scheme)
    if not proxy_url or proxy_bypass(url.host_port.host):
        return None
    parts = urlsplit(proxy_url if "://" in proxy_url else f"http://{proxy_url}")
    try:
        host_port = HostPort((parts.hostname or "").lower(), parts.port or 80)
    except ValueError as error:
        raise ProxyError(f"expected the address of a proxy: {error}") from error
    if parts.scheme != "http" or not host_port.host:
        raise ProxyError("expected a proxy of http")
    if parts.username is None:
        return ProxyServer(host_port, "")
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return ProxyServer(host_port, f"Basic {b64encode(credentials.encode()).decode()}")


async def _open_tunnel(connection: HttpConnection, host_port: HostPort, proxy: ProxyServer) -> None:
    """Open a tunnel through a proxy with CONNECT (RFC 9110, section 9.3.6) and start TLS in it."""
    target = f"[{host_port.host}]:{host_port.port}" if ":" in host_port.host else f"{host_port.host}:{host_port.port}"
    head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    if proxy.authorization:
        head += f"Proxy-Authorization: {proxy.authorization}\r\n"
    try:
        await connection.tunnel(f"{head}\r\n".encode(), default_ssl_context(), _certificate_name(host_port))
    except (HttpProtocolError, ConnectionError) as error:
        connection.close()
        raise ProxyError(f"the proxy makes no connection: {error}") from error
    except BaseException:
        connection.close()
        raise
