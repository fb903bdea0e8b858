"""An HTTP client, a faulty server, and the archive at its URL."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.external.fault_server import FaultServer, Handler, run_fault_server
from tests.virtual_clock import VirtualClock
from unlost.errors import FailedError
from unlost.http import (
    AddressInfo,
    ArchiveHttpClient,
    HostPort,
    HttpRequest,
    HttpResponse,
    LimitStore,
    MemoryLimitStore,
    Timeouts,
    literal_address_info,
)
from unlost.registry import Archive, ArchiveKind, RateLimit, RequestKind

QUICK = Timeouts(connect=5.0, first_byte=3.0, idle=3.0, total=20.0)
"""Real seconds: short, but long enough for a machine that has much else to do."""

HASTY = Timeouts(connect=2.0, first_byte=0.4, idle=0.4, total=20.0)
"""For servers that hang."""


@dataclass
class ClientAndServer:
    """An HTTP client and a server."""

    server: FaultServer
    http_client: ArchiveHttpClient
    archive: Archive
    clock: VirtualClock

    async def send(self, path: str = "/", **fields: Any) -> HttpResponse:  # noqa: ANN401  those of Question
        """Request a path of the server."""
        fields.setdefault("kind", RequestKind.INDEX)
        return await self.http_client.send(self.archive, HttpRequest(self.server.url + path, **fields))


@asynccontextmanager
async def run_server(
    answering: Handler,
    *,
    limits: tuple[RateLimit, ...] = (),
    store: LimitStore | None = None,
    tls: ssl.SSLContext | None = None,
    **options: Any,  # noqa: ANN401  those of Courier
) -> AsyncIterator[ClientAndServer]:
    """Run a server with a handler, and an HTTP client for it."""
    clock = VirtualClock()
    options = {"contact": "me@example.com", "timeouts": QUICK, **options}
    async with (
        run_fault_server(answering, clock, tls) as server,
        ArchiveHttpClient(store or MemoryLimitStore(), clock, **options) as http_client,
    ):
        archive = Archive("a", "A", ArchiveKind.MEMENTO, timemap=f"{server.url}/", limits=limits)
        yield ClientAndServer(server, http_client, archive, clock)


async def kind_of(setup: ClientAndServer, path: str = "/", **fields: object) -> str:
    """Return the kind of failure of a request."""
    with pytest.raises(FailedError) as caught:
        await setup.send(path, **fields)
    assert caught.value.archive == "a"
    return caught.value.kind


async def status_and_body(setup: ClientAndServer) -> tuple[int, bytes]:
    """Return status and body of a response."""
    reply = await setup.send()
    return reply.status, reply.body.read()


class TableResolver:
    """Resolves names from a table; each look-up returns the next address."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)
        self.looked = 0

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """Return the next address."""
        del host
        self.looked += 1
        return [literal_address_info(HostPort(self.addresses[min(self.looked, len(self.addresses)) - 1], port))]
