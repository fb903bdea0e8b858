"""Replaces the parts of a running service, as after a restart, without closing a connection."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Self

from unlost.errors import UnlostError
from unlost.service.answers import Receive, Scope, Send
from unlost.service.application import Application
from unlost.service.parts import ServiceContext

OpenContext = Callable[[ServiceContext | None], AbstractAsyncContextManager[ServiceContext]]
"""Opens the parts of a service by the configuration as it is now. It gets the parts that are in use, if there are."""


class _Generation:
    """One set of parts, and the requests that use it."""

    def __init__(self, parts: ServiceContext, stack: AsyncExitStack) -> None:
        self.context = parts
        self.application = Application(parts)
        self.requests = 0
        self.is_unused = asyncio.Event()
        self._stack = stack

    async def close(self) -> None:
        await self._stack.aclose()


class ReloadableApplication:
    """An ASGI application whose parts can be replaced. Use it as an async context manager.

    Requests in progress finish with the parts they began with.

    Args:
        open_parts: Opens the parts.
        grace: Seconds after which replaced parts are closed even if a request, such as an event stream, uses them.
        tell: Gets messages for the operator, a line each.
    """

    def __init__(self, open_context: OpenContext, grace: float, on_message: Callable[[str], None]) -> None:
        self._open_context = open_context
        self._grace = grace
        self._on_message = on_message
        self._reloading = asyncio.Lock()
        self._retiring: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Open the first parts. Raises what opening them raises."""
        self._current = await self._open(None)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all parts."""
        for task in self._retiring:
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        await self._current.close()

    @property
    def context(self) -> ServiceContext:
        """The parts in use."""
        return self._current.context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        generation = self._current
        generation.requests += 1
        try:
            await generation.application(scope, receive, send)
        finally:
            generation.requests -= 1
            if not generation.requests:
                generation.is_unused.set()

    async def reload(self) -> None:
        """Open new parts and use them from now on. If that fails, the old parts stay in use and a message says why."""
        async with self._reloading:
            try:
                opened = await self._open(self.context)
            except (UnlostError, OSError) as error:
                self._on_message(f"not reloaded, the configuration in use stays: {error}")
                return
            replaced, self._current = self._current, opened
            task = asyncio.create_task(self._retire(replaced))
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)
            self._on_message("reloaded the archives and their maps")

    async def _open(self, previous: ServiceContext | None) -> _Generation:
        async with AsyncExitStack() as stack:
            parts = await stack.enter_async_context(self._open_context(previous))
            return _Generation(parts, stack.pop_all())

    async def _retire(self, generation: _Generation) -> None:
        try:
            generation.is_unused.clear()
            if generation.requests:
                async with asyncio.timeout(self._grace):
                    await generation.is_unused.wait()
        except TimeoutError:
            pass
        finally:
            await generation.close()
