"""The baseline of the broadcast: aiohttp requests each page from fourteen ports and discards the responses.

usage: python -m bench.bare_client AT-ONCE PORT… < pages. Prints the CPU milliseconds of a page, and pages a second.
"""

import asyncio
import json
import sys
import time

import aiohttp
import uvloop


async def ask_all(at_once: int, ports: list[int], pages: list[str]) -> None:
    """Request all pages, with limited concurrency."""
    left = iter(pages)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one(port: int, page: str) -> None:
            async with session.get(f"http://127.0.0.1:{port}/timemap/link/{page}") as response:
                await response.read()

        async def ask() -> None:
            for page in left:
                await asyncio.gather(*(one(port, page) for port in ports))

        await asyncio.gather(*(ask() for _ in range(at_once)))


def main() -> None:
    """Measure, after some pages to warm up."""
    at_once, *ports = map(int, sys.argv[1:])
    pages = sys.stdin.read().split()

    async def measured() -> tuple[float, float]:
        await ask_all(at_once, ports, pages[:50])
        begun, cpu = time.perf_counter(), time.process_time()
        await ask_all(at_once, ports, pages)
        return time.process_time() - cpu, time.perf_counter() - begun

    cpu, seconds = uvloop.run(measured())
    json.dump({"cpu_ms": 1e3 * cpu / len(pages), "rate": len(pages) / seconds}, sys.stdout)


if __name__ == "__main__":
    main()
