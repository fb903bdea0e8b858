"""Requests many pages from a server with limited concurrency, and prints the duration of each. A separate process.

usage: python -m bench.load PORT PATH-PREFIX CONCURRENCY [HEADER: VALUE] < pages
Prints a JSON object: seconds, statuses, the latencies in milliseconds, sorted, and the sum of all X-Memento-Count.
"""

import asyncio
import json
import sys
import time
from collections import Counter

import uvloop

from unlost.http import ConnectionPool, SystemResolver, parse_url


async def request_pages(port: int, prefix: str, concurrency: int, fields: str, pages: list[str]) -> dict[str, object]:
    """Request all pages."""
    pool = ConnectionPool(SystemResolver(), proxy_resolver=None)
    origin = parse_url(f"http://127.0.0.1:{port}/")
    loop = asyncio.get_running_loop()
    remaining = iter(pages)
    latencies: list[float] = []
    statuses: Counter[int] = Counter()
    mementos = 0

    async def work() -> None:
        nonlocal mementos
        for page in remaining:
            start = time.perf_counter()
            connection = pool.take_idle(origin, None) or await pool.open(origin, None, 30)
            connection.send(f"GET {prefix}{page} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{fields}\r\n".encode())
            deadline = loop.time() + 60
            await connection.read_head(deadline)
            while await connection.read_piece(deadline):
                pass
            statuses[connection.status] += 1
            mementos += sum(int(value) for name, value in connection.headers if name.lower() == "x-memento-count")
            pool.release(connection)
            latencies.append(1e3 * (time.perf_counter() - start))

    start = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(concurrency)))
    seconds = time.perf_counter() - start
    pool.close()
    return {"seconds": seconds, "statuses": dict(statuses), "ms": sorted(latencies), "mementos": mementos}


def main() -> None:
    """Request the URLs on standard input."""
    port, prefix, concurrency, *fields = sys.argv[1:]
    pages = sys.stdin.read().split()
    lines = "".join(f"{field}\r\n" for field in fields)
    json.dump(uvloop.run(request_pages(int(port), prefix, int(concurrency), lines, pages)), sys.stdout)


if __name__ == "__main__":
    main()
