"""Middleware for ASGI applications: FastAPI, Starlette, Django and the like."""

from collections.abc import Awaitable, Callable, MutableMapping
from os import PathLike
from typing import Any

from unlost.vault.middleware.answers import (
    asked_match,
    carrying_headers,
    is_since_asked,
    is_text,
    unchanged_headers,
)
from unlost.vault.middleware.carrying import Carrying, Load

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_CONDITIONS = frozenset({b"if-none-match", b"if-modified-since"})


class VaultMiddleware:
    """Puts blocks into the pages that an application answers with. vault: the folder of a vault.

    Put it inside of whatever compresses answers. All clients get the same bytes.
    """

    def __init__(self, app: App, vault: str | PathLike[str]) -> None:
        """Raise InputError if there is no vault."""
        self._app = app
        self._carrying = Carrying(vault)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"}:
            await self._app(scope, receive, send)
            return
        path, query = scope["path"], scope.get("query_string", b"")
        added = self._carrying.added(path)
        if added is not None:
            await _send_added(send, added.body, added.mime, is_head=scope["method"] == "HEAD")
            return
        load = None
        if scope["method"] == "GET":
            load = self._carrying.load(f"{path}?{query.decode('latin-1')}" if query else path)
        if load is None:
            await self._app(scope, receive, send)
            return
        await self._app(_asked(scope, load), receive, _Answer(load, send).send)


async def _send_added(send: Send, body: bytes, mime: str, *, is_head: bool) -> None:
    headers = [(b"content-type", mime.encode()), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if is_head else body})


def _asked(scope: MutableMapping[str, Any], load: Load) -> MutableMapping[str, Any]:
    """Return the request as the application must see it, which does not know of blocks."""
    headers = scope["headers"]
    if _CONDITIONS.isdisjoint([name for name, _ in headers]):
        return scope
    made = []
    for name, value in headers:
        if name == b"if-none-match":
            match = asked_match(value, load)
            if match is not None:
                made.append((name, match))
        elif name != b"if-modified-since" or is_since_asked(value, load):
            made.append((name, value))
    return {**scope, "headers": made}


class _Answer:
    """One answer on its way. It is held until the first bytes of its body tell whether it is text."""

    __slots__ = ("_headers", "_left", "_load", "_send", "_start")

    def __init__(self, load: Load, send: Send) -> None:
        self._load = load
        self._send = send
        self._start: Message | None = None
        self._headers: list[tuple[bytes, bytes]] | None = None
        self._left: int | None = None  # bytes that the page may still have with its block; None if it carries none

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        kind = message["type"]
        if kind == "http.response.start":
            headers = message.get("headers", ())
            self._headers = carrying_headers(self._load, message["status"], headers)
            if self._headers is not None:
                self._start = message
                return
            if message["status"] == 304:
                message = {**message, "headers": unchanged_headers(self._load, headers)}
        elif kind == "http.response.body":
            await self._body(message)
            return
        await self._send(message)

    async def _body(self, message: Message) -> None:
        body = message.get("body", b"")
        if self._start is not None:
            if not body and message.get("more_body", False):
                return  # nothing is known yet
            start, self._start = self._start, None
            if body and is_text(body):
                start = {**start, "headers": self._headers}
                self._left = max(self._load.limit - len(self._load.text), 0)
            await self._send(start)
        if self._left is None:
            await self._send(message)
            return
        self._left -= len(body)
        if message.get("more_body", False):
            await self._send(message)
            return
        # A page that told its length was measured before; one that did not may be too long to carry anything.
        if self._left < 0 and not any(name == b"content-length" for name, _ in self._headers or ()):
            await self._send(message)
            return
        if body:
            await self._send({"type": "http.response.body", "body": body, "more_body": True})
        await self._send({"type": "http.response.body", "body": self._load.text})
