"""Middleware for ASGI applications: FastAPI, Starlette, Django and the like."""

from collections.abc import Awaitable, Callable, MutableMapping
from os import PathLike
from typing import Any

from unlost.vault.middleware.page_blocks import (
    PageBlockCache,
    PageBlocks,
    headers_with_blocks,
    may_be_html,
    not_modified_headers,
    original_if_none_match,
    passes_if_modified_since,
)

AsgiMessage = MutableMapping[str, Any]
AsgiSend = Callable[[AsgiMessage], Awaitable[None]]
AsgiReceive = Callable[[], Awaitable[AsgiMessage]]
AsgiApp = Callable[[MutableMapping[str, Any], AsgiReceive, AsgiSend], Awaitable[None]]

_CONDITIONAL_HEADERS = frozenset({b"if-none-match", b"if-modified-since"})


class VaultMiddleware:
    """Appends blocks to the HTML responses of an application.

    Blocks follow the end of the page, so that streamed responses are not delayed. Install the middleware inside any
    other that compresses responses. All clients receive the same bytes.

    Args:
        app: The application.
        vault: Folder of the vault.
    """

    def __init__(self, app: AsgiApp, vault: str | PathLike[str]) -> None:
        """Raise InputError if there is no vault."""
        self._app = app
        self._cache = PageBlockCache(vault)

    async def __call__(self, scope: MutableMapping[str, Any], receive: AsgiReceive, send: AsgiSend) -> None:
        """Handle a request."""
        if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"}:
            await self._app(scope, receive, send)
            return
        path, query = scope["path"], scope.get("query_string", b"")
        vault_file = self._cache.get_file(path)
        if vault_file is not None:
            await _send_file(send, vault_file.body, vault_file.mime, is_head=scope["method"] == "HEAD")
            return
        blocks = None
        if scope["method"] == "GET":
            blocks = self._cache.get_blocks(f"{path}?{query.decode('latin-1')}" if query else path)
        if blocks is None:
            await self._app(scope, receive, send)
            return
        await self._app(_original_request(scope, blocks), receive, _BlockAppender(blocks, send).send)


async def _send_file(send: AsgiSend, body: bytes, mime: str, *, is_head: bool) -> None:
    headers = [(b"content-type", mime.encode()), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if is_head else body})


def _original_request(scope: MutableMapping[str, Any], blocks: PageBlocks) -> MutableMapping[str, Any]:
    """Return the request as sent to the application, whose validators do not include the blocks."""
    headers = scope["headers"]
    if _CONDITIONAL_HEADERS.isdisjoint([name for name, _ in headers]):
        return scope
    original_headers = []
    for name, value in headers:
        if name == b"if-none-match":
            match = original_if_none_match(value, blocks)
            if match is not None:
                original_headers.append((name, match))
        elif name != b"if-modified-since" or passes_if_modified_since(value, blocks):
            original_headers.append((name, value))
    return {**scope, "headers": original_headers}


class _BlockAppender:
    """Appends the blocks to one response. The headers are delayed until the first bytes of the body are known."""

    __slots__ = ("_blocks", "_headers", "_room", "_send", "_start")

    def __init__(self, blocks: PageBlocks, send: AsgiSend) -> None:
        self._blocks = blocks
        self._send = send
        self._start: AsgiMessage | None = None
        self._headers: list[tuple[bytes, bytes]] | None = None
        self._room: int | None = None  # bytes left below the page limit; None if nothing is appended

    async def send(self, message: AsgiMessage) -> None:
        """Forward a message."""
        kind = message["type"]
        if kind == "http.response.start":
            headers = message.get("headers", ())
            self._headers = headers_with_blocks(self._blocks, message["status"], headers)
            if self._headers is not None:
                self._start = message
                return
            if message["status"] == 304:
                message = {**message, "headers": not_modified_headers(self._blocks, headers)}
        elif kind == "http.response.body":
            await self._send_body(message)
            return
        await self._send(message)

    async def _send_body(self, message: AsgiMessage) -> None:
        body = message.get("body", b"")
        if self._start is not None:
            if not body and message.get("more_body", False):
                return  # wait for the first bytes
            start, self._start = self._start, None
            if body and may_be_html(body):
                start = {**start, "headers": self._headers}
                self._room = max(self._blocks.limit - len(self._blocks.text), 0)
            await self._send(start)
        if self._room is None:
            await self._send(message)
            return
        self._room -= len(body)
        if message.get("more_body", False):
            await self._send(message)
            return
        # The length was checked before if there is a Content-Length; otherwise the page may exceed the limit now.
        if self._room < 0 and not any(name == b"content-length" for name, _ in self._headers or ()):
            await self._send(message)
            return
        if body:
            await self._send({"type": "http.response.body", "body": body, "more_body": True})
        await self._send({"type": "http.response.body", "body": self._blocks.text})
