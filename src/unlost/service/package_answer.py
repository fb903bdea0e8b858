"""A package as an answer: whole or in parts, so that a download can be resumed; and whether it came to its end."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.responses import FileResponse, JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from unlost.errors import UnlostError

_log = logging.getLogger(__name__)


class PackageResponse(Response):
    """Sends a file, with `Range`, `If-Range` and a tag of its contents.

    picked_up: is done once the last byte was sent; whether it arrived, nobody can tell.
    """

    def __init__(
        self, file: Path, name: str, media_type: str, digest: str, on_complete: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__()
        self._file = file
        self._on_complete = on_complete
        headers = {"etag": f'"{digest}"', "cache-control": "private, no-transform", "referrer-policy": "no-referrer"}
        self._response = FileResponse(file, media_type=media_type, filename=name, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        if not self._file.is_file():
            message = {"error": "the files of the job cannot be reached just now"}
            await JSONResponse(message, 503, {"retry-after": "60"})(scope, receive, send)
            return
        has_end = is_ended = False

        async def watched(message: Message) -> None:
            nonlocal has_end, is_ended
            if message["type"] == "http.response.start":
                has_end = message["status"] == 200 or _reaches_end(message)
            elif not message.get("more_body", False):
                is_ended = True
            await send(message)

        await self._response(scope, receive, watched)
        if has_end and is_ended and scope["method"] == "GET":
            try:
                await self._on_complete()
            except UnlostError as error:  # it was sent all the same
                _log.warning("%s", error)


def _reaches_end(message: Message) -> bool:
    """Return whether the part that an answer has ends where the file does."""
    told = dict(message["headers"]).get(b"content-range", b"").decode()
    span, _, size = told.removeprefix("bytes ").partition("/")
    return bool(message["status"] == 206) and size.isdigit() and span.rpartition("-")[2] == str(int(size) - 1)
