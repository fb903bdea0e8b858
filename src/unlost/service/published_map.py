"""The MementoMap of an archive that publishes it here."""

from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles

MAP_PATH = "/mementomap"
MAP_RELATION = "mementomap"

_COMPRESSED_TYPES = {b"\x1f\x8b": "application/gzip", b"\x28\xb5": "application/zstd"}  # by the first bytes
_MAX_AGE_SECONDS = 3_600  # for which a map may be kept without asking: maps are made anew once a day at most


class PublishedMap:
    """A file, looked at anew for every request: it may be replaced at any time, by renaming."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._unmodified = StaticFiles().is_not_modified

    async def respond(self, request: Request) -> Response:
        """Return the file, a part of it, or that it has not changed."""
        try:
            status = await run_in_threadpool(self._file.stat)
            media_type = await run_in_threadpool(self._media_type)
        except OSError:
            return PlainTextResponse("The map is not there just now\n", 503, {"retry-after": "60"})
        headers = {"cache-control": f"max-age={_MAX_AGE_SECONDS}"}
        answer = FileResponse(self._file, media_type=media_type, stat_result=status, headers=headers)
        if self._unmodified(Headers(raw=answer.raw_headers), request.headers):
            return NotModifiedResponse(Headers(raw=answer.raw_headers))
        return answer

    def _media_type(self) -> str:
        with self._file.open("rb") as file:
            return _COMPRESSED_TYPES.get(file.read(2), "text/plain; charset=utf-8")
