"""A local web server of a site that still has some of its pages."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple


class Response(NamedTuple):
    """A response of the server."""

    body: bytes = b""
    status: int = 200
    mime: str = "text/html"
    headers: Mapping[str, str] = {}


@dataclass
class PartialSite:
    """A running server.

    Attributes:
        base: Its URL with a trailing slash.
        pages: Responses by path; other paths yield 404.
        requested: Paths of all requests in order.
        agents: User agents of all requests in order.
    """

    base: str
    pages: dict[str, Response]
    requested: list[str] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)


@contextmanager
def serve_partial_site(pages: Mapping[str, Response]) -> Iterator[PartialSite]:
    """Run the server on a loopback port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Disable the log."""

        def do_GET(self) -> None:
            """Respond to a request."""
            site.requested.append(self.path)
            site.agents.add(self.headers["User-Agent"])
            response = site.pages.get(self.path, Response(b"<p>not found", 404))
            self.send_response(response.status)
            headers = {"Content-Type": response.mime, "Content-Length": str(len(response.body)), **response.headers}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(response.body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site = PartialSite(f"http://127.0.0.1:{server.server_address[1]}/", dict(pages))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
