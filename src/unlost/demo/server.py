"""HTTP server for the pages of the demonstration."""

import mimetypes
import signal
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from types import FrameType, TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

from unlost.demo.page import ORIGINAL_FOLDER, RECOVERED_FOLDER
from unlost.errors import InputError
from unlost.report.html_templates import sandbox_headers
from unlost.web.server import socket_url

_POLL_SECONDS = 0.05  # interval at which the server checks whether to shut down
_CLIENT_TIMEOUT_SECONDS = 60.0
_INDEX = "index.html"
_SECURITY_HEADERS = {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cache-control": "no-store"}
_NOT_FOUND_BODY = b"This did not come back, or never was."
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interrupt_once() -> Iterator[None]:
    """Raise KeyboardInterrupt on the first SIGINT, SIGTERM or SIGHUP, and ignore later ones.

    A second Ctrl-C must not interrupt the clean-up, which would leave temporary files and processes.
    """
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def handler(_number: int, _frame: FrameType | None) -> None:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in _SIGNALS:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)


@contextmanager
def wait_until_interrupted(*, waits: bool) -> Iterator[None]:
    """After the block, wait until interrupted, if `waits` is set. The interrupt is then a normal end.

    An interrupt inside the block is suppressed too: the block announces that the user can press Ctrl-C.
    """
    if not waits:
        yield
        return
    with suppress(KeyboardInterrupt):
        yield
        Event().wait()


@contextmanager
def demo_folder(keep: Path | None) -> Iterator[Path]:
    """Yield a temporary folder, or the folder to keep, which must be new or empty.

    Raises:
        InputError: The folder is not empty.
    """
    if keep is None:
        with TemporaryDirectory(prefix="unlost-demo-") as folder:
            yield Path(folder)
        return
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise InputError(f"{keep}: there is something already: name a folder that is new or empty")
    keep.mkdir(parents=True, exist_ok=True)
    yield keep.resolve()


class DemoServer:
    """Serves the files of a folder until the block ends. Use it as a context manager.

    Pages of the two sites get a sandboxing Content-Security-Policy: opaque origin, no scripts, no external resources.

    Args:
        listening: Listening socket on this machine.
        folder: Folder to serve.

    Attributes:
        url: URL of the main page.
    """

    def __init__(self, listening: socket.socket, folder: Path) -> None:
        self.url = f"{socket_url(listening)}/"
        self._server = _Server(listening, folder, self.url)
        self._thread = Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,), name="demo", daemon=True)

    def __enter__(self) -> Self:
        """Start the server thread."""
        self._thread.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def count_reachable(self, paths: Iterable[str]) -> int:
        """Request each path and return how many responses have status 200."""
        count = 0
        for path in paths:
            connection = HTTPConnection(urlsplit(self.url).netloc, timeout=_CLIENT_TIMEOUT_SECONDS)
            try:
                connection.request("GET", f"/{path}")
                count += connection.getresponse().status == HTTPStatus.OK
            finally:
                connection.close()
        return count


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listening: socket.socket, folder: Path, url: str) -> None:
        super().__init__(listening.getsockname()[:2], _RequestHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.folder = folder.resolve()
        self.url = url

    def handle_error(self, request: object, client_address: object) -> None:
        """Do nothing: browsers may disconnect at any time."""


class _RequestHandler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        """Do nothing: the default writes to stderr."""

    def do_HEAD(self) -> None:
        """Send the headers of the response to GET."""
        self.do_GET()

    def do_GET(self) -> None:
        """Send the file, or 404."""
        path = unquote(urlsplit(self.path).path).lstrip("/")
        file = self._file(path)
        body = _NOT_FOUND_BODY if file is None else file.read_bytes()
        self.send_response(HTTPStatus.NOT_FOUND if file is None else HTTPStatus.OK)
        for name, value in {**_SECURITY_HEADERS, **self._policy(file), "content-type": _content_type(file)}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _file(self, path: str) -> Path | None:
        """Return the file of a path, or the index of a folder; None for paths outside the served folder."""
        try:
            file = (self.server.folder / path).resolve()
            file = (file / _INDEX).resolve() if file.is_dir() else file
            return file if file.is_relative_to(self.server.folder) and file.is_file() else None
        except (OSError, ValueError):  # name too long, or with a NUL character
            return None

    def _policy(self, file: Path | None) -> dict[str, str]:
        """Return the sandboxing headers for a resolved file.

        The request path does not decide, because it may be disguised, as in `/.%2Frecovered/`.
        """
        site = "" if file is None else file.relative_to(self.server.folder).parts[0]
        return sandbox_headers(f"{self.server.url}{site}/") if site in (ORIGINAL_FOLDER, RECOVERED_FOLDER) else {}


def _content_type(file: Path | None) -> str:
    media_type = "text/plain" if file is None else mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type
