"""Caches on disk, and what others see of them."""

import asyncio
from dataclasses import replace
from pathlib import Path

from tests.virtual_clock import VirtualClock
from unlost.aggregate import AggregateResult, DiskCache, RoutingOptions


def a_disk(
    folder: Path, told: list[str] | None = None, clock: VirtualClock | None = None, max_bytes: int = 1 << 28
) -> DiskCache:
    """Return a cache in a folder."""
    tell = ([] if told is None else told).append
    return DiskCache(folder / "cache" / "answers.sqlite", clock or VirtualClock(), max_bytes=max_bytes, warn=tell)


async def kept(folder: Path, *uris: str, clock: VirtualClock | None = None) -> list[AggregateResult | None]:
    """Return what another process would see."""
    async with a_disk(folder, clock=clock) as disk:
        return await asyncio.gather(*(disk.get(uri, RoutingOptions()) for uri in uris))


def timeless(found: AggregateResult) -> AggregateResult:
    """Return it as it is kept."""
    reports = tuple(replace(report, duration_ms=0.0) for report in found.reports)
    return replace(found, reports=reports, from_cache=True)
