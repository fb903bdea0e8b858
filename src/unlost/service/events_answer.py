"""How a job gets on, as an answer that goes on until its client leaves; then there is room for another."""

import asyncio
from contextlib import ExitStack, suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from unlost.service.answers import gone_away
from unlost.service.jobs.following import Watch

NO_STORE = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
"""The headers of what is told of a job."""


class EventsAnswer(Response):
    """Sends the events of a job that is watched. seat: is closed at the end, whatever that is.

    There may be hundreds that begin and end within a second: each is one task, and one that waits for its client's end.
    """

    media_type = "text/event-stream"

    def __init__(self, watch: Watch, seat: ExitStack) -> None:
        super().__init__(headers={**NO_STORE, "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._watch = watch
        self._seat = seat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        with self._seat:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b""})
                return
            leaving = asyncio.create_task(_leave(self._watch, receive))
            try:
                async for event in self._watch.events():
                    await send({"type": "http.response.body", "body": event, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
            finally:
                leaving.cancel()
                with suppress(asyncio.CancelledError):
                    await leaving


async def _leave(watch: Watch, receive: Receive) -> None:
    await gone_away(receive)
    watch.leave()
