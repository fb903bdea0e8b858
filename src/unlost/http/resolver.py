"""Name resolution.

By the system, or restricted to public addresses so that no redirect leads into a private network.
"""

import asyncio
import socket
from typing import Any, Protocol

from unlost.http.url import HostPort, is_public_ip


class NotPublicError(OSError):
    """A name whose addresses are all inside a network. Never seen outside this package."""


AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]


def literal_address_info(host_port: HostPort) -> AddressInfo:
    """Return how to connect to a host that is an IP address."""
    family = socket.AF_INET6 if ":" in host_port.host else socket.AF_INET
    return socket.getaddrinfo(
        host_port.host, host_port.port, family, socket.SOCK_STREAM, socket.IPPROTO_TCP, socket.AI_NUMERICHOST
    )[0]


class Resolver(Protocol):
    """Whoever looks names up."""

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """Return the addresses of a host. Raises OSError if there are none."""
        ...


class SystemResolver:
    """Looks names up as this machine does, which can do so for few at the same time: each is looked up once at a time.

    It is used by one event loop.
    """

    def __init__(self) -> None:
        self._pending: dict[HostPort, asyncio.Future[list[AddressInfo]]] = {}

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """Return the addresses of a host. Raises OSError if there are none."""
        place = HostPort(host, port)
        looking = self._pending.get(place)
        if looking is None:
            looking = self._pending[place] = asyncio.ensure_future(_getaddrinfo(place))
            looking.add_done_callback(lambda done: self._forget_pending(place, done))
        # Nobody can end it: who gives up leaves it to whoever asks next.
        return await asyncio.shield(looking)

    def _forget_pending(self, host_port: HostPort, done: "asyncio.Future[list[AddressInfo]]") -> None:
        del self._pending[host_port]
        if not done.cancelled():
            done.exception()  # look at it: perhaps nobody waits any more


async def _getaddrinfo(host_port: HostPort) -> list[AddressInfo]:
    loop = asyncio.get_running_loop()
    return [*await loop.getaddrinfo(host_port.host, host_port.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)]


class PublicResolver:
    """Looks names up and leaves out what is not public, so that no name leads inside, however often it changes."""

    def __init__(self, inner: Resolver) -> None:
        self._inner = inner

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """Return the public addresses of a host. Raises NotPublicError if there are only others, OSError if none."""
        found = await self._inner.resolve(host, port)
        public = [each for each in found if is_public_ip(str(each[4][0]))]
        if found and not public:
            raise NotPublicError(f"{host[:100]} is inside a network")
        return public
