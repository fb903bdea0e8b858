"""Connection pool: opens connections, directly or through a proxy, and reuses idle ones."""

import asyncio
import ssl
from base64 import b64encode
from functools import cache
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from aiohappyeyeballs import start_connection

from unlost.http.connection import HttpConnection, HttpProtocolError
from unlost.http.resolver import PublicResolver, Resolver, SystemResolver, literal_address_info
from unlost.http.url import HostPort, HttpUrl, is_ip_literal

_IDLE_SECONDS = 15.0  # servers close them after 5 to 75
_HAPPY_EYEBALLS_DELAY = 0.25  # before the next address of a host is tried beside the first, as RFC 8305 has it


class ConnectTimeoutError(OSError):
    """No connection was made in time. Never seen outside this package."""


class ProxyError(OSError):
    """A proxy that is not there, or does not want to. Never seen outside this package."""


class ProxyServer(NamedTuple):
    """A proxy that the environment names. authorization: what it wants to see, or nothing."""

    host_port: HostPort
    authorization: str


class ConnectionPool:
    """Connections, by where they lead.

    resolver: what looks names up. proxies: what looks up the names of proxies, which may themselves be inside a
        network, to go through those that the environment names; None to go without.
    """

    def __init__(self, resolver: Resolver, *, proxy_resolver: Resolver | None) -> None:
        self._resolver = resolver
        self._proxy_resolver = proxy_resolver
        self._is_closed = False
        self._idle: dict[object, list[tuple[HttpConnection, float]]] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def proxy_for(self, address: HttpUrl) -> ProxyServer | None:
        """Return the proxy that leads to an address; None if there is none."""
        return None if self._proxy_resolver is None else _proxy_from_environment(address)

    def take_idle(self, address: HttpUrl, proxy: ProxyServer | None) -> HttpConnection | None:
        """Return a connection that was used before and still may be; None if there is none."""
        idle = self._idle.get((address.scheme, address.host_port, proxy))
        while idle:
            connection, _ = idle.pop()
            if connection.is_open:
                return connection
            connection.close()
        return None

    async def open(self, address: HttpUrl, proxy: ProxyServer | None, seconds: float) -> HttpConnection:
        """Return a new connection. Raises OSError, ssl.SSLError, NotHttpError; NoConnectionError after some seconds."""
        try:
            async with asyncio.timeout(seconds):
                connection = await self._open_connection(address, proxy)
        except TimeoutError:
            raise ConnectTimeoutError("no connection in time") from None
        connection.key = (address.scheme, address.host_port, proxy)
        return connection

    async def _open_connection(self, address: HttpUrl, proxy: ProxyServer | None) -> HttpConnection:
        if proxy is None or self._proxy_resolver is None:
            tls = _certificate_name(address.host_port) if address.scheme == "https" else None
            return await self._connect(address.host_port, tls, self._resolver)
        try:
            connection = await self._connect(proxy.host_port, None, self._proxy_resolver)
        except OSError as error:
            raise ProxyError(f"no connection to the proxy: {error}") from error
        if address.scheme == "https":
            await _open_tunnel(connection, address.host_port, proxy)
        return connection

    async def _connect(self, host_port: HostPort, tls: str | None, resolver: Resolver) -> HttpConnection:
        loop = asyncio.get_running_loop()
        found = (
            [literal_address_info(host_port)]
            if is_ip_literal(host_port.host)
            else await resolver.resolve(host_port.host, host_port.port)
        )
        socket = await start_connection(found, happy_eyeballs_delay=_HAPPY_EYEBALLS_DELAY, loop=loop)
        try:
            _, connection = await loop.create_connection(
                lambda: HttpConnection(loop),
                sock=socket,
                ssl=default_ssl_context() if tls else None,
                server_hostname=tls,
            )
        except BaseException:
            socket.close()
            raise
        return connection

    def release(self, connection: HttpConnection) -> None:
        """Keep a connection, if its answer was whole; else close it."""
        if self._is_closed or not connection.is_open:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        self._idle.setdefault(connection.key, []).append((connection, loop.time() + _IDLE_SECONDS))
        if self._sweeper is None:
            self._sweeper = loop.call_later(_IDLE_SECONDS, self._sweep)

    def close_idle(self, connection: HttpConnection) -> None:
        """Close what is kept of connections to the same place as one: what is wrong with it may be with all."""
        for each, _ in self._idle.pop(connection.key, []):
            each.close()

    def close(self) -> None:
        """Close everything that is kept, and whatever is given back from now on."""
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
        left: dict[object, list[tuple[HttpConnection, float]]] = {}
        for key, idle in self._idle.items():
            for connection, until in idle:
                if connection.is_open and until > loop.time():
                    left.setdefault(key, []).append((connection, until))
                else:
                    connection.close()
        self._idle = left
        self._sweeper = loop.call_later(_IDLE_SECONDS / 3, self._sweep) if left else None


def open_pools(resolver: Resolver | None, *, use_proxies: bool) -> dict[bool, ConnectionPool]:
    """Return two pools: one for places that somebody named (True), and one for all others, which must be public.

    resolver: what looks names up; None for the system. proxies: whether to go through those of the environment: then
        it is the proxy that looks names up.
    """
    anywhere = resolver or SystemResolver()
    named = anywhere if use_proxies else None
    return {
        True: ConnectionPool(anywhere, proxy_resolver=named),
        False: ConnectionPool(PublicResolver(anywhere), proxy_resolver=named),
    }


@cache
def default_ssl_context() -> ssl.SSLContext:
    """Return what connections are made safe by: the certificates that this machine trusts."""
    return ssl.create_default_context()


def _certificate_name(host_port: HostPort) -> str:
    """Return the name of a host as certificates have it: without a dot at its end."""
    return host_port.host.rstrip(".")


def _proxy_from_environment(address: HttpUrl) -> ProxyServer | None:
    named = getproxies().get(address.scheme)
    if not named or proxy_bypass(address.host_port.host):
        return None
    parts = urlsplit(named if "://" in named else f"http://{named}")
    try:
        place = HostPort((parts.hostname or "").lower(), parts.port or 80)
    except ValueError as error:
        raise ProxyError(f"expected the address of a proxy: {error}") from error
    if parts.scheme != "http" or not place.host:
        raise ProxyError("expected a proxy of http")
    if parts.username is None:
        return ProxyServer(place, "")
    name = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return ProxyServer(place, f"Basic {b64encode(name.encode()).decode()}")


async def _open_tunnel(connection: HttpConnection, host_port: HostPort, proxy: ProxyServer) -> None:
    """Ask a proxy for a way to a place, and make it safe."""
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
