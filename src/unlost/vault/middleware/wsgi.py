"""Middleware for WSGI applications: Flask, Django and the like."""

from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any

from unlost.vault.middleware.page_blocks import (
    PageBlockCache,
    PageBlocks,
    headers_with_blocks,
    may_be_html,
    not_modified_headers,
    original_if_none_match,
    passes_if_modified_since,
)

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class VaultMiddleware:
    """Appends blocks to the HTML responses of an application.

    Blocks follow the end of the page, so that streamed responses are not delayed. Install the middleware inside any
    other that compresses responses. All clients receive the same bytes.

    Args:
        app: The application.
        vault: Folder of the vault.
    """

    def __init__(self, app: "WSGIApplication", vault: str | PathLike[str]) -> None:
        """Raise InputError if there is no vault."""
        self._app = app
        self._cache = PageBlockCache(vault)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Handle a request."""
        method = environ["REQUEST_METHOD"]
        if method not in {"GET", "HEAD"}:
            return self._app(environ, start_response)
        # WSGI passes the bytes of the path decoded as Latin-1 (PEP 3333).
        raw = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        path = raw if raw.isascii() else raw.encode("latin-1").decode("utf-8", "replace")
        vault_file = self._cache.get_file(path)
        if vault_file is not None:
            start_response("200 OK", [("Content-Type", vault_file.mime), ("Content-Length", str(len(vault_file.body)))])
            return [] if method == "HEAD" else [vault_file.body]
        query = environ.get("QUERY_STRING", "")
        blocks = self._cache.get_blocks(f"{path}?{query}" if query else path) if method == "GET" else None
        if blocks is None:
            return self._app(environ, start_response)
        return _BlockAppender(blocks, start_response).run(self._app, _original_request(environ, blocks))


def _original_request(environ: "WSGIEnvironment", blocks: PageBlocks) -> "WSGIEnvironment":
    """Return the request as sent to the application, whose validators do not include the blocks."""
    match, since = environ.get("HTTP_IF_NONE_MATCH"), environ.get("HTTP_IF_MODIFIED_SINCE")
    if match is None and since is None:
        return environ
    original = dict(environ)
    if match is not None:
        forwarded = original_if_none_match(match.encode("latin-1"), blocks)
        if forwarded is None:
            del original["HTTP_IF_NONE_MATCH"]
        else:
            original["HTTP_IF_NONE_MATCH"] = forwarded.decode("latin-1")
    if since is not None and not passes_if_modified_since(since.encode("latin-1"), blocks):
        del original["HTTP_IF_MODIFIED_SINCE"]
    return original


class _BlockAppender:
    """Appends the blocks to one response. The headers are delayed until the first bytes of the body are known."""

    def __init__(self, blocks: PageBlocks, start_response: "StartResponse") -> None:
        self._blocks = blocks
        self._start_response = start_response
        self._pending_start: tuple[str, list[tuple[str, str]]] | None = None
        self._block_headers: list[tuple[bytes, bytes]] | None = None
        self._write: Callable[[bytes], object] | None = None
        self._room: int | None = None

    def run(self, app: "WSGIApplication", environ: "WSGIEnvironment") -> Iterable[bytes]:
        """Return the body of the response."""
        body = app(environ, self._start)
        if self._pending_start is None and self._write is not None and self._room is None:
            return body  # unchanged, so that `wsgi.file_wrapper` still works
        return _ClosingBody(body, self)

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:  # noqa: ANN401  what WSGI passes
        plain = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        code = int(status[:3]) if status[:3].isdigit() else 0
        self._block_headers = headers_with_blocks(self._blocks, code, plain)
        if self._block_headers is not None and exc_info is None:
            self._pending_start = (status, headers)
            return self._write_legacy
        self._pending_start = None
        if code == 304:
            headers = _decode_headers(not_modified_headers(self._blocks, plain))
        self._write = (
            self._start_response(status, headers, exc_info) if exc_info else self._start_response(status, headers)
        )
        return self._write

    def _write_legacy(self, data: bytes) -> object:
        """Implement the deprecated `write` callable of WSGI."""
        self.send_headers(data)
        if self._room is not None:
            self._room -= len(data)
        return self._write(data) if self._write is not None else None

    def send_headers(self, first: bytes) -> None:
        """Send status and headers once the first bytes of the body are known."""
        if self._pending_start is None:
            return
        (status, headers), self._pending_start = self._pending_start, None
        if first and may_be_html(first) and self._block_headers is not None:
            headers = _decode_headers(self._block_headers)
            self._room = max(self._blocks.limit - len(self._blocks.text), 0)
        self._write = self._start_response(status, headers)

    def iter_body(self, body: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the body, then the blocks."""
        for piece in body:
            if piece:
                self.send_headers(piece)
            if self._room is not None:
                self._room -= len(piece)
            yield piece
        self.send_headers(b"")
        if self._room is not None and (self._room >= 0 or self._is_measured()):
            yield self._blocks.text

    def _is_measured(self) -> bool:
        return any(name == b"content-length" for name, _ in self._block_headers or ())


class _ClosingBody:
    """A body that closes the application's body, as WSGI requires."""

    def __init__(self, body: Iterable[bytes], appender: _BlockAppender) -> None:
        self._body = body
        self._pieces = appender.iter_body(body)

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def close(self) -> None:
        """Close the application's body."""
        close = getattr(self._body, "close", None)
        if close is not None:
            close()


def _decode_headers(headers: list[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
