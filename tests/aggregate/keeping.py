"""Keeps answers in a file until it is killed, or has kept enough; run as a module.

Arguments: the file, a seed that all addresses have, how many answers (0 for no end), how many bytes the file may have.
"""

import asyncio
import random
import sys
from pathlib import Path

from tests.aggregate.answers import an_answer
from tests.virtual_clock import VirtualClock
from unlost.aggregate import DiskCache, RoutingOptions


async def keep(file: Path, seed: int, count: int, max_bytes: int) -> None:
    """Keep them."""
    sizes = random.Random(seed)  # noqa: S311
    number = 0
    async with DiskCache(file, VirtualClock(), max_bytes=max_bytes) as disk:
        while not count or number < count:
            for _ in range(20):
                # The number of copies is in the address, so that whoever reads it knows what should be there.
                size = sizes.choice([0, 0, 1, 5, 100])
                name = f"{seed}/{number}" if count else f"{seed}/{number % 300}/{size}"
                disk.put(RoutingOptions(), an_answer(f"http://example.com/{name}", size))
                number += 1
            await disk.flush()
            if disk.unwritten:
                raise SystemExit("not all were written")


if __name__ == "__main__":
    _, path, seed, count, *size = sys.argv
    asyncio.run(keep(Path(path), int(seed), int(count), int(size[0]) if size else 1 << 28))
