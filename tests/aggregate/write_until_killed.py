"""Writes results to a disk cache until it is killed, or has written enough.

Run as a module. Arguments: file, seed in all URLs, number of results (0: endless), maximum size of the file in bytes.
"""

import asyncio
import random
import sys
from pathlib import Path

from tests.aggregate.results import make_result
from tests.virtual_clock import VirtualClock
from unlost.aggregate import DiskCache, RoutingOptions


async def write_results(file: Path, seed: int, count: int, max_bytes: int) -> None:
    """Write results."""
    sizes = random.Random(seed)  # noqa: S311
    number = 0
    async with DiskCache(file, VirtualClock(), max_bytes=max_bytes) as disk:
        while not count or number < count:
            for _ in range(20):
                # The URL has the number of mementos, so that readers know the expected result.
                size = sizes.choice([0, 0, 1, 5, 100])
                name = f"{seed}/{number}" if count else f"{seed}/{number % 300}/{size}"
                disk.put(RoutingOptions(), make_result(f"http://example.com/{name}", size))
                number += 1
            await disk.flush()
            if disk.unwritten:
                raise SystemExit("not all were written")


if __name__ == "__main__":
    _, path, seed, count, *size = sys.argv
    asyncio.run(write_results(Path(path), int(seed), int(count), int(size[0]) if size else 1 << 28))
