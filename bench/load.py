"""Requests many pages from a server with limited concurrency, and prints the duration of each. A separate process.

usage: python -m bench.load PORT PATH-PREFIX AT-ONCE [HEADER: VALUE] < pages
Prints a JSON object: seconds, statuses, the latencies in milliseconds, sorted, and the sum of all X-Memento-Count.
"""

import asyncio
import json
import sys
import time
from collections import Counter

import uvloop

from unlost.http import ConnectionPool, SystemResolver, parse_url


async def load(port: int, prefix: str, at_once: int, fields: str, pages: list[str]) -> dict[str, object]:
    """Request all pages."""
    pool = ConnectionPool(SystemResolver(), proxy_resolver=None)
    address = parse_url(f"http://127.0.0.1:{port}/")
    loop = asyncio.get_running_loop()
    left = iter(pages)
    took: list[float] = []
    statuses: Counter[int] = Counter()
    mementos = 0

    async def ask() -> None:
        nonlocal mementos
        for page in left:
            begun = time.perf_counter()
            connection = pool.take_idle(address, None) or await pool.open(address, None, 30)
            connection.send(f"GET {prefix}{page} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{fields}\r\n".encode())
            until = loop.time() + 60
            await connection.read_head(until)
            while await connection.read_piece(until):
                pass
            statuses[connection.status] += 1
            mementos += sum(int(value) for name, value in connection.headers if name.lower() == "x-memento-count")
            pool.release(connection)
            took.append(1e3 * (time.perf_counter() - begun))

    begun = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(at_once)))
    seconds = time.perf_counter() - begun
    pool.close()
    return {"seconds": seconds, "statuses": dict(statuses), "ms": sorted(took), "mementos": mementos}


def main() -> None:
    """Request the URLs on standard input."""
    port, prefix, at_once, *fields = sys.argv[1:]
    pages = sys.stdin.read().split()
    lines = "".join(f"{field}\r\n" for field in fields)
    json.dump(uvloop.run(load(int(port), prefix, int(at_once), lines, pages)), sys.stdout)


if __name__ == "__main__":
    main()
