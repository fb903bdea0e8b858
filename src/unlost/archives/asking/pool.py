"""The connections to archives: opened when they are needed, kept for a while, and used again."""

import asyncio
import ssl
from base64 import b64encode
from functools import cache
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from aiohappyeyeballs import start_connection

from unlost.archives.asking.addresses import (
    Address,
    Place,
    PublicResolver,
    Resolver,
    SystemResolver,
    is_literal,
    literal,
)
from unlost.archives.asking.http1 import Connection, NotHttpError

_KEPT_SECONDS = 15.0  # servers close them after 5 to 75
_EYEBALLS_SECONDS = 0.25  # before the next address of a host is tried beside the first, as RFC 8305 has it


class NoConnectionError(OSError):
    """No connection was made in time. Never seen outside this package."""


class ProxyError(OSError):
    """A proxy that is not there, or does not want to. Never seen outside this package."""


class Proxy(NamedTuple):
    """A proxy that the environment names. authorization: what it wants to see, or nothing."""

    place: Place
    authorization: str


class Pool:
    """Connections, by where they lead.

    resolver: what looks names up. proxies: what looks up the names of proxies, which may themselves be inside a
        network, to go through those that the environment names; None to go without.
    """

    def __init__(self, resolver: Resolver, *, proxies: Resolver | None) -> None:
        self._resolver = resolver
        self._proxies = proxies
        self._is_closed = False
        self._idle: dict[object, list[tuple[Connection, float]]] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def proxy_for(self, address: Address) -> Proxy | None:
        """Return the proxy that leads to an address; None if there is none."""
        return None if self._proxies is None else _proxy(address)

    def kept(self, address: Address, proxy: Proxy | None) -> Connection | None:
        """Return a connection that was used before and still may be; None if there is none."""
        idle = self._idle.get((address.scheme, address.place, proxy))
        while idle:
            connection, _ = idle.pop()
            if connection.is_open:
                return connection
            connection.close()
        return None

    async def open(self, address: Address, proxy: Proxy | None, seconds: float) -> Connection:
        """Return a new connection. Raises OSError, ssl.SSLError, NotHttpError; NoConnectionError after some seconds."""
        try:
            async with asyncio.timeout(seconds):
                connection = await self._connected(address, proxy)
        except TimeoutError:
            raise NoConnectionError("no connection in time") from None
        connection.key = (address.scheme, address.place, proxy)
        return connection

    async def _connected(self, address: Address, proxy: Proxy | None) -> Connection:
        if proxy is None or self._proxies is None:
            tls = _certified(address.place) if address.scheme == "https" else None
            return await self._connect(address.place, tls, self._resolver)
        try:
            connection = await self._connect(proxy.place, None, self._proxies)
        except OSError as error:
            raise ProxyError(f"no connection to the proxy: {error}") from error
        if address.scheme == "https":
            await _through(connection, address.place, proxy)
        return connection

    async def _connect(self, place: Place, tls: str | None, resolver: Resolver) -> Connection:
        loop = asyncio.get_running_loop()
        found = [literal(place)] if is_literal(place.host) else await resolver.resolve(place.host, place.port)
        socket = await start_connection(found, happy_eyeballs_delay=_EYEBALLS_SECONDS, loop=loop)
        try:
            _, connection = await loop.create_connection(
                lambda: Connection(loop), sock=socket, ssl=safety() if tls else None, server_hostname=tls
            )
        except BaseException:
            socket.close()
            raise
        return connection

    def give_back(self, connection: Connection) -> None:
        """Keep a connection, if its answer was whole; else close it."""
        if self._is_closed or not connection.is_open:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        self._idle.setdefault(connection.key, []).append((connection, loop.time() + _KEPT_SECONDS))
        if self._sweeper is None:
            self._sweeper = loop.call_later(_KEPT_SECONDS, self._sweep)

    def forget(self, connection: Connection) -> None:
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
        left: dict[object, list[tuple[Connection, float]]] = {}
        for key, idle in self._idle.items():
            for connection, until in idle:
                if connection.is_open and until > loop.time():
                    left.setdefault(key, []).append((connection, until))
                else:
                    connection.close()
        self._idle = left
        self._sweeper = loop.call_later(_KEPT_SECONDS / 3, self._sweep) if left else None


def open_pools(resolver: Resolver | None, *, proxies: bool) -> dict[bool, Pool]:
    """Return two pools: one for places that somebody named (True), and one for all others, which must be public.

    resolver: what looks names up; None for the system. proxies: whether to go through those of the environment: then
        it is the proxy that looks names up.
    """
    anywhere = resolver or SystemResolver()
    named = anywhere if proxies else None
    return {True: Pool(anywhere, proxies=named), False: Pool(PublicResolver(anywhere), proxies=named)}


@cache
def safety() -> ssl.SSLContext:
    """Return what connections are made safe by: the certificates that this machine trusts."""
    return ssl.create_default_context()


def _certified(place: Place) -> str:
    """Return the name of a host as certificates have it: without a dot at its end."""
    return place.host.rstrip(".")


def _proxy(address: Address) -> Proxy | None:
    named = getproxies().get(address.scheme)
    if not named or proxy_bypass(address.place.host):
        return None
    parts = urlsplit(named if "://" in named else f"http://{named}")
    try:
        place = Place((parts.hostname or "").lower(), parts.port or 80)
    except ValueError as error:
        raise ProxyError(f"expected the address of a proxy: {error}") from error
    if parts.scheme != "http" or not place.host:
        raise ProxyError("expected a proxy of http")
    if parts.username is None:
        return Proxy(place, "")
    name = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return Proxy(place, f"Basic {b64encode(name.encode()).decode()}")


async def _through(connection: Connection, place: Place, proxy: Proxy) -> None:
    """Ask a proxy for a way to a place, and make it safe."""
    target = f"[{place.host}]:{place.port}" if ":" in place.host else f"{place.host}:{place.port}"
    head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    if proxy.authorization:
        head += f"Proxy-Authorization: {proxy.authorization}\r\n"
    try:
        await connection.tunnel(f"{head}\r\n".encode(), safety(), _certified(place))
    except (NotHttpError, ConnectionError) as error:
        connection.close()
        raise ProxyError(f"the proxy makes no connection: {error}") from error
    except BaseException:
        connection.close()
        raise
