"""An HTTP client for tests of archive clients, and helpers that collect listings."""

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from tests.virtual_clock import VirtualClock
from unlost.capture import Capture
from unlost.clock import Clock
from unlost.errors import ArchiveError
from unlost.http import ArchiveHttpClient, MemoryLimitStore

Listed = TypeVar("Listed")


def make_http_client(clock: Clock | None = None, **options: Any) -> ArchiveHttpClient:  # noqa: ANN401  options of ArchiveHttpClient
    """Return an HTTP client with virtual time and its own rate-limit state."""
    return ArchiveHttpClient(MemoryLimitStore(), clock or VirtualClock(), "me@example.com", **options)


async def collect_until_error(captures: AsyncIterator[Listed]) -> tuple[list[Listed], ArchiveError | None]:
    """Return all captures or pages of captures, and the error raised after them."""
    results: list[Listed] = []
    try:
        async for capture in captures:
            results.append(capture)  # noqa: PERF401  items before an error are returned
    except ArchiveError as error:
        return results, error
    return results, None


async def collect_captures(captures: AsyncIterator[Capture]) -> list[Capture]:
    """Return all captures; errors are raised."""
    return [capture async for capture in captures]
