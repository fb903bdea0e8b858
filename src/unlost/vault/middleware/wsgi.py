"""Middleware for WSGI applications: Flask, Django and the like."""

from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any

from unlost.vault.middleware.answers import (
    asked_match,
    carrying_headers,
    is_since_asked,
    is_text,
    unchanged_headers,
)
from unlost.vault.middleware.carrying import Carrying, Load

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class VaultMiddleware:
    """Puts blocks into the pages that an application answers with. vault: the folder of a vault.

    Put it inside of whatever compresses answers. All clients get the same bytes.
    """

    def __init__(self, app: "WSGIApplication", vault: str | PathLike[str]) -> None:
        """Raise InputError if there is no vault."""
        self._app = app
        self._carrying = Carrying(vault)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer a request."""
        method = environ["REQUEST_METHOD"]
        if method not in {"GET", "HEAD"}:
            return self._app(environ, start_response)
        # Paths come as bytes in the disguise of Latin-1.
        raw = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        path = raw if raw.isascii() else raw.encode("latin-1").decode("utf-8", "replace")
        added = self._carrying.added(path)
        if added is not None:
            start_response("200 OK", [("Content-Type", added.mime), ("Content-Length", str(len(added.body)))])
            return [] if method == "HEAD" else [added.body]
        query = environ.get("QUERY_STRING", "")
        load = self._carrying.load(f"{path}?{query}" if query else path) if method == "GET" else None
        if load is None:
            return self._app(environ, start_response)
        return _Answer(load, start_response).of(self._app, _asked(environ, load))


def _asked(environ: "WSGIEnvironment", load: Load) -> "WSGIEnvironment":
    """Return the request as the application must see it, which does not know of blocks."""
    match, since = environ.get("HTTP_IF_NONE_MATCH"), environ.get("HTTP_IF_MODIFIED_SINCE")
    if match is None and since is None:
        return environ
    made = dict(environ)
    if match is not None:
        kept = asked_match(match.encode("latin-1"), load)
        if kept is None:
            del made["HTTP_IF_NONE_MATCH"]
        else:
            made["HTTP_IF_NONE_MATCH"] = kept.decode("latin-1")
    if since is not None and not is_since_asked(since.encode("latin-1"), load):
        del made["HTTP_IF_MODIFIED_SINCE"]
    return made


class _Answer:
    """One answer on its way. Its head is held until the first bytes of its body tell whether it is text."""

    def __init__(self, load: Load, start_response: "StartResponse") -> None:
        self._load = load
        self._start_response = start_response
        self._held: tuple[str, list[tuple[str, str]]] | None = None
        self._made: list[tuple[bytes, bytes]] | None = None
        self._write: Callable[[bytes], object] | None = None
        self._left: int | None = None

    def of(self, app: "WSGIApplication", environ: "WSGIEnvironment") -> Iterable[bytes]:
        """Return the body of an application's answer."""
        body = app(environ, self._start)
        if self._held is None and self._write is not None and self._left is None:
            return body  # left as it is, also if it is a file that the server sends by itself
        return _Body(body, self)

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:  # noqa: ANN401  what WSGI passes
        plain = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        code = int(status[:3]) if status[:3].isdigit() else 0
        self._made = carrying_headers(self._load, code, plain)
        if self._made is not None and exc_info is None:
            self._held = (status, headers)
            return self._written
        self._held = None
        if code == 304:
            headers = _texts(unchanged_headers(self._load, plain))
        self._write = (
            self._start_response(status, headers, exc_info) if exc_info else self._start_response(status, headers)
        )
        return self._write

    def _written(self, data: bytes) -> object:
        """Write as applications of old did, before they return."""
        self.begin(data)
        if self._left is not None:
            self._left -= len(data)
        return self._write(data) if self._write is not None else None

    def begin(self, first: bytes) -> None:
        """Send the head, once the first bytes are known."""
        if self._held is None:
            return
        (status, headers), self._held = self._held, None
        if first and is_text(first) and self._made is not None:
            headers = _texts(self._made)
            self._left = max(self._load.limit - len(self._load.text), 0)
        self._write = self._start_response(status, headers)

    def pieces(self, body: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the body, and behind it the block."""
        for piece in body:
            if piece:
                self.begin(piece)
            if self._left is not None:
                self._left -= len(piece)
            yield piece
        self.begin(b"")
        if self._left is not None and (self._left >= 0 or self._is_measured()):
            yield self._load.text

    def _is_measured(self) -> bool:
        return any(name == b"content-length" for name, _ in self._made or ())


class _Body:
    """The body of an answer, which is closed as the application's own must be."""

    def __init__(self, body: Iterable[bytes], answer: _Answer) -> None:
        self._body = body
        self._pieces = answer.pieces(body)

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def close(self) -> None:
        """Let the application clean up."""
        close = getattr(self._body, "close", None)
        if close is not None:
            close()


def _texts(headers: list[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
