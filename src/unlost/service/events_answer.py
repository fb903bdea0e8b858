"""How a job gets on, as an answer that goes on until its client leaves; then there is room for another."""

import asyncio
from contextlib import ExitStack, suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from unlost.service.answers import wait_for_disconnect
from unlost.service.jobs.following import JobSubscription

PRIVATE_JSON_HEADERS = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
"""The headers of what is told of a job."""


class JobEventsResponse(Response):
    """Sends the events of a job that is watched. seat: is closed at the end, whatever that is.

    There may be hundreds that begin and end within a second: each is one task, and one that waits for its client's end.
    """

    media_type = "text/event-stream"

    def __init__(self, subscription: JobSubscription, reservation: ExitStack) -> None:
        super().__init__(headers={**PRIVATE_JSON_HEADERS, "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._subscription = subscription
        self._reservation = reservation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        with self._reservation:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b""})
                return
            leaving = asyncio.create_task(_close_on_disconnect(self._subscription, receive))
            try:
                async for event in self._subscription.events():
                    await send({"type": "http.response.body", "body": event, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
            finally:
                leaving.cancel()
                with suppress(asyncio.CancelledError):
                    await leaving


async def _close_on_disconnect(subscription: JobSubscription, receive: Receive) -> None:
    await wait_for_disconnect(receive)
    subscription.close()
