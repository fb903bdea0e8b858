"""Replays a capture: fetched by the client of the archive that lists it, sandboxed, without headers of the archive."""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, nullcontext
from os import SEEK_END

from unlost import dates
from unlost import uri as addresses
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

_MAX_CONCURRENT = (
    32  # copies that are fetched or passed on at the same time: each may take a quarter of a gigabyte of disk
)
_FETCH_SECONDS = 60.0  # for one of them to be there, waiting for its turn included


class ReplaySource:
    """The copies of archives that are registered, and of no others."""

    def __init__(self, archives: Iterable[Archive], client: HttpClient) -> None:
        self._archives = {archive.id: archive for archive in archives}
        self._client = client
        self._archive_clients: dict[str, ArchiveClient] = {}
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT)

    @asynccontextmanager
    async def open_capture(self, uri: str, memento: MementoTuple) -> AsyncIterator[FetchedCapture | None]:
        """Yield a copy of a page, with its body, while the block lasts; None if the archive has none after all.

        Raises ArchiveError.
        """
        repository = self._archive_client(memento.archive)
        capture = Capture(uri, addresses.key(uri), memento.datetime, archive=memento.archive, urim=memento.uri)
        is_taken = False
        try:
            try:
                async with asyncio.timeout(_FETCH_SECONDS):
                    is_taken = await self._slots.acquire()
                    copy = await repository.fetch(capture)
            except TimeoutError:
                raise FailedError(f"no copy within {_FETCH_SECONDS:g} s", memento.archive, "timeout") from None
            with nullcontext() if copy is None else copy.body:
                yield copy
        finally:
            if is_taken:
                self._slots.release()

    def _archive_client(self, name: str) -> ArchiveClient:
        if name not in self._archive_clients:
            archive = self._archives.get(name)
            if archive is None:
                raise UnsupportedError("it is not in the registry", name)
            self._archive_clients[name] = create_client(archive, self._client)
        return self._archive_clients[name]


_PIECE = 1 << 16
# No scripts, no origin, no forms, and nothing from the live web: what an old page refers to is ours or does not come.
_REPLAY_POLICY = (
    "sandbox; default-src 'none'; img-src 'self' data:; media-src 'self' data:; font-src 'self' data:; "
    "style-src 'self' 'unsafe-inline'; form-action 'none'; base-uri 'none'"
)
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+(?:\s*;[ -~]*)?", re.IGNORECASE)


class ReplayProxy:
    """Answers with the copy itself."""

    def __init__(self, source: ReplaySource, views: TimeMapViews, clock: Clock) -> None:
        self._source = source
        self._views = views
        self._clock = clock

    async def serve(
        self, request: MementoRequest, terms: RequestHeaders, found: AggregateResult, method: str, send: Send
    ) -> int:
        """Send the copy that is closest to the date; return the status."""
        place = found.closest_index(request.date)
        if place is None:
            return await _send_response(self._views.not_found_response(found), method, send)
        memento = found.mementos[place]
        try:
            async with self._source.open_capture(found.uri, memento) as copy:
                if copy is None:
                    answer = text_response(502, f"{memento.archive} lists a copy that it does not have")
                    return await _send_response(answer, method, send)
                return await self._replay(copy, place, terms, found, method, send)
        except (ArchiveError, InputError) as error:
            return await _send_response(self._error_response(error), method, send)

    async def _replay(
        self, copy: FetchedCapture, place: int, terms: RequestHeaders, found: AggregateResult, method: str, send: Send
    ) -> int:
        headers = self._views.common_headers(found, memento_link_header(found, place, terms.urls))
        headers += [
            (b"memento-datetime", dates.to_http(copy.capture.datetime).encode()),
            (b"content-security-policy", _REPLAY_POLICY.encode()),
            (b"referrer-policy", b"no-referrer"),
        ]
        return await _stream(copy, _replay_status(copy), [*headers, *_original_headers(copy, terms)], method, send)

    def _error_response(self, error: ArchiveError | InputError) -> WebResponse:
        """Return what to say where an archive does not give its copy."""
        name = error.archive if isinstance(error, ArchiveError) else "the archive"
        reason = error if isinstance(error, ArchiveError) else "its file cannot be read"  # the message has its path
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


def _replay_status(copy: FetchedCapture) -> int:
    """Return the captured status, as far as it can be said again: a redirect leads on here, others are contents."""
    status = copy.capture.status
    if copy.capture.redirect is not None:
        return 302
    return status if status is not None and (status == 200 or 400 <= status <= 599) else 200


def _original_headers(copy: FetchedCapture, terms: RequestHeaders) -> list[Header]:
    """Return what of the original's own headers is passed on: what it is, and where a redirect led."""
    found: list[Header] = []
    kind = copy.header("content-type") or ""
    found.append(
        (b"content-type", encode_header_value(kind) if _MEDIA_TYPE.fullmatch(kind) else b"application/octet-stream")
    )
    if copy.capture.redirect is not None:
        target = terms.urls.memento(copy.capture.datetime, copy.capture.redirect, "proxy")
        found.append((b"location", encode_header_value(target)))
    return found


async def _stream(copy: FetchedCapture, status: int, headers: list[Header], method: str, send: Send) -> int:
    size = copy.body.seek(0, SEEK_END)
    copy.body.seek(0)
    headers = [*COMMON_HEADERS, *headers, (b"content-length", b"%d" % size)]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    while method != "HEAD" and (piece := copy.body.read(_PIECE)):
        # Each waits until the client has taken enough of those before it.
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
    return status


async def _send_response(answer: WebResponse, method: str, send: Send) -> int:
    await send_response(answer, method, send)
    return answer.status
