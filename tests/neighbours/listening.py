"""A handler of requests on a free port of the loopback interface, in the loop of the test."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def listening(handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """Yield the address, without a slash at the end, at which every request goes to a handler."""
    runner = web.ServerRunner(web.Server(handle, keepalive_timeout=5))
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()
