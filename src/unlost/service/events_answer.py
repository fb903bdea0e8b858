"""How a job gets on, as an answer that goes on until its client leaves; then there is room for another."""

from collections.abc import AsyncIterator
from contextlib import ExitStack

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

NO_STORE = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
"""The headers of what is told of a job."""


class EventsAnswer(Response):
    """Sends events. seat: is closed at the end, whatever that is."""

    def __init__(self, events: AsyncIterator[bytes], seat: ExitStack) -> None:
        super().__init__()
        headers = {**NO_STORE, "x-accel-buffering": "no"}
        self._answer = StreamingResponse(events, media_type="text/event-stream", headers=headers)
        self._seat = seat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        with self._seat:
            await self._answer(scope, receive, send)
