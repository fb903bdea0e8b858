"""Disk caches, and reading them as another process does."""

import asyncio
from dataclasses import replace
from pathlib import Path

from tests.virtual_clock import VirtualClock
from unlost.aggregate import AggregateResult, DiskCache, RoutingOptions


def open_disk_cache(
    folder: Path, warnings: list[str] | None = None, clock: VirtualClock | None = None, max_bytes: int = 1 << 28
) -> DiskCache:
    """Return a cache in a folder."""
    tell = ([] if warnings is None else warnings).append
    return DiskCache(folder / "cache" / "answers.sqlite", clock or VirtualClock(), max_bytes=max_bytes, warn=tell)


async def cached_results(folder: Path, *uris: str, clock: VirtualClock | None = None) -> list[AggregateResult | None]:
    """Return what another process would see."""
    async with open_disk_cache(folder, clock=clock) as disk:
        return await asyncio.gather(*(disk.get(uri, RoutingOptions()) for uri in uris))


def to_cached_result(found: AggregateResult) -> AggregateResult:
    """Return the result as it is cached."""
    reports = tuple(replace(report, duration_ms=0.0) for report in found.reports)
    return replace(found, reports=reports, from_cache=True)
