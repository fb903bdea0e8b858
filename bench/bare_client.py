"""The baseline of the broadcast: aiohttp requests each page from fourteen ports and discards the responses.

usage: python -m bench.bare_client CONCURRENCY PORT… < pages. Prints the CPU milliseconds of a page, and pages a second.
"""

import asyncio
import json
import sys
import time

import aiohttp
import uvloop


async def request_all(concurrency: int, ports: list[int], pages: list[str]) -> None:
    """Request all pages, with limited concurrency."""
    remaining = iter(pages)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def request(port: int, page: str) -> None:
            async with session.get(f"http://127.0.0.1:{port}/timemap/link/{page}") as response:
                await response.read()

        async def work() -> None:
            for page in remaining:
                await asyncio.gather(*(request(port, page) for port in ports))

        await asyncio.gather(*(work() for _ in range(concurrency)))


def main() -> None:
    """Measure after a warm-up."""
    concurrency, *ports = map(int, sys.argv[1:])
    pages = sys.stdin.read().split()

    async def measure() -> tuple[float, float]:
        await request_all(concurrency, ports, pages[:50])
        start, cpu = time.perf_counter(), time.process_time()
        await request_all(concurrency, ports, pages)
        return time.process_time() - cpu, time.perf_counter() - start

    cpu, seconds = uvloop.run(measure())
    json.dump({"cpu_ms": 1e3 * cpu / len(pages), "rate": len(pages) / seconds}, sys.stdout)


if __name__ == "__main__":
    main()
