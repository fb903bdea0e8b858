"""A client that records responses as they were sent, and a service with fixed results."""

import http.client
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.external.process import start_server

ROOT = Path(__file__).parents[2]


class HttpResponse(NamedTuple):
    """A response.

    Attributes:
        status: HTTP status.
        headers: Values by name in lower case; repeated headers are joined by a comma.
        body: The body.
        names: Header names as they were sent.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    names: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()


class Client:
    """Sends requests to one service."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.base = f"http://127.0.0.1:{port}"

    def request(self, path: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> HttpResponse:
        """Send a request with exactly this path and these headers, without following redirects."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            found: dict[str, str] = {}
            for name, value in response.getheaders():
                found[name.lower()] = f"{found[name.lower()]}, {value}" if name.lower() in found else value
            return HttpResponse(
                response.status, found, response.read(), frozenset(name for name, _ in response.getheaders())
            )
        finally:
            connection.close()

    def raw(self, data: bytes) -> bytes:
        """Send bytes, and return all that is received until the connection is closed."""
        with socket.create_connection(("127.0.0.1", self.port), 30) as connection:
            connection.sendall(data)
            response = b""
            while piece := connection.recv(1 << 16):
                response += piece
        return response


def is_ready(port: int) -> bool:
    """Return whether a service responds."""
    try:
        return Client(port).request("/health").status == 200
    except OSError:
        return False


@contextmanager
def run_fixed_service(folder: Path, published: Path | None = None) -> Iterator[Client]:
    """Run the service with fixed results."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def command(port: int) -> list[str | Path]:
        return [sys.executable, "-m", "tests.web.fixed_results", str(port), *([published] if published else [])]

    with start_server(command, is_ready, folder, environment) as port:
        yield Client(port)
