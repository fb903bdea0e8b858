"""Writes to a log until it is killed: `python -m tests.aggregate.log_until_killed FILE`."""

import asyncio
import sys

from unlost.aggregate import UpstreamLog
from unlost.clock import SystemClock
from unlost.logs import UpstreamLogEntry


async def main(path: str) -> None:
    """Write entries, and print the number of written ones."""
    async with UpstreamLog(path, SystemClock()) as log:
        number = 0
        while True:
            for _ in range(50):
                uri = f"http://example.com/{number}"
                log.append(UpstreamLogEntry("2026-01-31T12:00:00Z", "a", uri, "timemap", "miss", "routed"))
                number += 1
            await asyncio.sleep(0.01)
            print(log.written, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
