"""An HTTP client for tests of clients, and what an archive lists, up to its end or up to what it raises."""

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from tests.virtual_clock import VirtualClock
from unlost.capture import Capture
from unlost.clock import Clock
from unlost.errors import ArchiveError
from unlost.http import ArchiveHttpClient, MemoryLimitStore

Listed = TypeVar("Listed")


def make_http_client(clock: Clock | None = None, **options: Any) -> ArchiveHttpClient:  # noqa: ANN401  those of Courier
    """Return an HTTP client that waits on virtual time and has accounts of its own."""
    return ArchiveHttpClient(MemoryLimitStore(), clock or VirtualClock(), "me@example.com", **options)


async def collected(captures: AsyncIterator[Listed]) -> tuple[list[Listed], ArchiveError | None]:
    """Return all captures or pages of them, and what was raised behind them."""
    found: list[Listed] = []
    try:
        async for capture in captures:
            found.append(capture)  # noqa: PERF401  what came before an error is kept
    except ArchiveError as error:
        return found, error
    return found, None


async def listed(captures: AsyncIterator[Capture]) -> list[Capture]:
    """Return all captures; what is raised is raised."""
    return [capture async for capture in captures]
