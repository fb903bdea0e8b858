"""Replay of captures, fetched by the client of their archive: sandboxed, and without the archive's own headers."""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, nullcontext
from os import SEEK_END

from unlost import dates
from unlost.aggregate.models import AggregateResult
from unlost.aggregate.request import MementoRequest, RequestHeaders
from unlost.aggregate.serializers import memento_link_header
from unlost.archives.base import ArchiveClient, FetchedCapture
from unlost.archives.factory import create_client
from unlost.capture import Capture
from unlost.clock import Clock
from unlost.errors import ArchiveError, ExcludedError, FailedError, InputError, NotNowError, UnsupportedError
from unlost.http.models import HttpClient
from unlost.memento.timemap import MementoTuple
from unlost.registry.models import Archive
from unlost.uri import key
from unlost.web.responses import (
    COMMON_HEADERS,
    NO_STORE,
    Header,
    Send,
    WebResponse,
    encode_header_value,
    send_response,
    text_response,
)
from unlost.web.timemap_views import TimeMapViews

_MAX_CONCURRENT = 32  # captures that are fetched or sent at a time; each may need a quarter of a gigabyte of disk space
_FETCH_SECONDS = 60.0  # to fetch one capture, including the wait for a rate-limit permit
_CHUNK_BYTES = 1 << 16
# No scripts, origin or forms, and nothing from the live web: a page can only load resources from this service.
_REPLAY_POLICY = (
    "sandbox; default-src 'none'; img-src 'self' data:; media-src 'self' data:; font-src 'self' data:; "
    "style-src 'self' 'unsafe-inline'; form-action 'none'; base-uri 'none'"
)
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+(?:\s*;[ -~]*)?", re.IGNORECASE)


class ReplaySource:
    """Fetches captures from registered archives."""

    def __init__(self, archives: Iterable[Archive], client: HttpClient) -> None:
        self._archives = {archive.id: archive for archive in archives}
        self._client = client
        self._archive_clients: dict[str, ArchiveClient] = {}
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT)

    @asynccontextmanager
    async def open_capture(self, uri: str, memento: MementoTuple) -> AsyncIterator[FetchedCapture | None]:
        """Fetch a capture, with its body available within the block.

        Yields:
            The capture, or None if the archive does not have it.

        Raises:
            ArchiveError: The archive failed, or is not registered.
        """
        archive_client = self._archive_client(memento.archive)
        capture = Capture(uri, key(uri), memento.datetime, archive=memento.archive, urim=memento.uri)
        has_slot = False
        try:
            try:
                async with asyncio.timeout(_FETCH_SECONDS):
                    has_slot = await self._slots.acquire()
                    fetched = await archive_client.fetch(capture)
            except TimeoutError:
                raise FailedError(f"no copy within {_FETCH_SECONDS:g} s", memento.archive, "timeout") from None
            with nullcontext() if fetched is None else fetched.body:
                yield fetched
        finally:
            if has_slot:
                self._slots.release()

    def _archive_client(self, name: str) -> ArchiveClient:
        if name not in self._archive_clients:
            archive = self._archives.get(name)
            if archive is None:
                raise UnsupportedError("it is not in the registry", name)
            self._archive_clients[name] = create_client(archive, self._client)
        return self._archive_clients[name]


class ReplayProxy:
    """Responds with the closest capture itself."""

    def __init__(self, source: ReplaySource, views: TimeMapViews, clock: Clock) -> None:
        self._source = source
        self._views = views
        self._clock = clock

    async def serve(
        self, request: MementoRequest, request_headers: RequestHeaders, result: AggregateResult, method: str, send: Send
    ) -> int:
        """Send the capture that is closest to the requested date, and return the status."""
        index = result.closest_index(request.date)
        if index is None:
            return await send_response(self._views.not_found_response(result), method, send)
        memento = result.mementos[index]
        try:
            async with self._source.open_capture(result.uri, memento) as fetched:
                if fetched is None:
                    response = text_response(502, f"{memento.archive} lists a copy that it does not have")
                    return await send_response(response, method, send)
                return await self._replay(fetched, index, request_headers, result, method, send)
        except (ArchiveError, InputError) as error:
            return await send_response(self._error_response(error), method, send)

    async def _replay(
        self,
        fetched: FetchedCapture,
        index: int,
        request_headers: RequestHeaders,
        result: AggregateResult,
        method: str,
        send: Send,
    ) -> int:
        headers = self._views.common_headers(result, memento_link_header(result, index, request_headers.urls))
        headers += [
            (b"memento-datetime", dates.to_http(fetched.capture.datetime).encode()),
            (b"content-security-policy", _REPLAY_POLICY.encode()),
            (b"referrer-policy", b"no-referrer"),
        ]
        return await _stream(
            fetched, _replay_status(fetched), [*headers, *_original_headers(fetched, request_headers)], method, send
        )

    def _error_response(self, error: ArchiveError | InputError) -> WebResponse:
        """Return the response to an error of the archive."""
        name = error.archive if isinstance(error, ArchiveError) else "the archive"
        reason = error if isinstance(error, ArchiveError) else "its file cannot be read"  # the message has a path
        message = f"{name} does not give its copy: {reason}"
        match error:
            case NotNowError():
                wait = max(1, math.ceil(error.until - self._clock.now()))
                return text_response(503, message, NO_STORE, (b"retry-after", b"%d" % wait))
            case ExcludedError():
                return text_response(451, message, NO_STORE)
            case FailedError() if error.kind == "timeout":
                return text_response(504, message, NO_STORE)
            case _:
                return text_response(502, message, NO_STORE)


def _replay_status(fetched: FetchedCapture) -> int:
    """Return the status to replay: 302 for redirects; 200, 4xx and 5xx as captured; else 200."""
    status = fetched.capture.status
    if fetched.capture.redirect is not None:
        return 302
    return status if status is not None and (status == 200 or 400 <= status <= 599) else 200


def _original_headers(fetched: FetchedCapture, request_headers: RequestHeaders) -> list[Header]:
    """Return the headers of the original response that are replayed: its media type and redirect target."""
    headers: list[Header] = []
    media_type = fetched.header("content-type") or ""
    headers.append(
        (
            b"content-type",
            encode_header_value(media_type) if _MEDIA_TYPE.fullmatch(media_type) else b"application/octet-stream",
        )
    )
    if fetched.capture.redirect is not None:
        target = request_headers.urls.memento(fetched.capture.datetime, fetched.capture.redirect, "proxy")
        headers.append((b"location", encode_header_value(target)))
    return headers


async def _stream(fetched: FetchedCapture, status: int, headers: list[Header], method: str, send: Send) -> int:
    size = fetched.body.seek(0, SEEK_END)
    fetched.body.seek(0)
    headers = [*COMMON_HEADERS, *headers, (b"content-length", b"%d" % size)]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    while method != "HEAD" and (chunk := fetched.body.read(_CHUNK_BYTES)):
        # `send` waits while the client's buffer is full.
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
    return status
