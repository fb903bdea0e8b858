"""A courier, a server that may do anything, and the archive that it stands for."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.neighbours.faults import Answering, Faults, faulty
from tests.virtual_clock import VirtualClock
from unlost.archives.archive import Archive, Kind, Limit, Work
from unlost.archives.asking.addresses import AddressInfo, Place, literal
from unlost.archives.asking.courier import Courier
from unlost.archives.asking.exchange import Deadlines
from unlost.archives.asking.question import Question, Reply
from unlost.archives.manners.limit_store import LimitStore, MemoryLimitStore
from unlost.errors import FailedError

QUICK = Deadlines(connect=5.0, first_byte=3.0, idle=3.0, total=20.0)
"""Real seconds: short, but long enough for a machine that has much else to do."""

HASTY = Deadlines(connect=2.0, first_byte=0.4, idle=0.4, total=20.0)
"""For servers that hang."""


@dataclass
class Asking:
    """What a test has in hand."""

    server: Faults
    courier: Courier
    archive: Archive
    clock: VirtualClock

    async def ask(self, path: str = "/", **fields: Any) -> Reply:  # noqa: ANN401  those of Question
        """Ask for a path of the server."""
        fields.setdefault("work", Work.INDEX)
        return await self.courier.ask(self.archive, Question(self.server.url + path, **fields))


@asynccontextmanager
async def asking(
    answering: Answering,
    *,
    limits: tuple[Limit, ...] = (),
    store: LimitStore | None = None,
    tls: ssl.SSLContext | None = None,
    **options: Any,  # noqa: ANN401  those of Courier
) -> AsyncIterator[Asking]:
    """Run a server that does something, and a courier that may ask it."""
    clock = VirtualClock()
    options = {"contact": "me@example.com", "deadlines": QUICK, **options}
    async with (
        faulty(answering, clock, tls) as server,
        Courier(store or MemoryLimitStore(), clock, **options) as courier,
    ):
        archive = Archive("a", "A", Kind.MEMENTO, timemap=f"{server.url}/", limits=limits)
        yield Asking(server, courier, archive, clock)


async def kind_of(asking: Asking, path: str = "/", **fields: object) -> str:
    """Return how a question fails."""
    with pytest.raises(FailedError) as caught:
        await asking.ask(path, **fields)
    assert caught.value.archive == "a"
    return caught.value.kind


async def told(it: Asking) -> tuple[int, bytes]:
    """Return status and body of an answer."""
    reply = await it.ask()
    return reply.status, reply.body.read()


class Names:
    """Looks names up in a table, of which each look takes the next address."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)
        self.looked = 0

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """Return the next address."""
        del host
        self.looked += 1
        return [literal(Place(self.addresses[min(self.looked, len(self.addresses)) - 1], port))]
