"""A small site for browser visits, served by a proxy that blocks all other hosts."""

import gzip
import random
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple

import brotli

HOME = "http://lost.example/"


class Page(NamedTuple):
    """A page: decoded body and content coding."""

    body: bytes
    mime: str
    status: int = 200
    coding: str = ""
    location: str = ""


def _script(name: str) -> bytes:
    return "".join(f"/* line {line} of {name} */ var a = {line};\n" for line in range(3_000)).encode()


# The script waits for each response, so that a browser that exits once the page is loaded has all of them.
# Chromium accepts Brotli and Zstandard only from secure contexts, such as localhost.
PAGES = {
    HOME: Page(
        b"""<!doctype html><meta charset=utf-8><title>Lost</title><link rel=stylesheet href=style.css>
        <p>K\xc3\xa4se<img src=picture.png><img src=missing.png>
        <script src=gzip.js></script><script src=deflate.js></script>
        <script src=http://localhost/br.js></script><script src=http://localhost/zstd.js></script>
        <iframe src=http://frame.example/inner.html></iframe><iframe src=/old></iframe>
        <script>
        function ask(method, path, range) {
            const request = new XMLHttpRequest();
            request.open(method, path, false);
            if (range) request.setRequestHeader('Range', range);
            request.send(method === 'POST' ? 'x' : null);
        }
        ask('POST', '/form'); ask('HEAD', '/only-head'); ask('GET', '/part.bin', 'bytes=0-99');
        ask('GET', '/empty'); ask('GET', '/latin.txt');
        </script>""",
        "text/html; charset=utf-8",
    ),
    f"{HOME}style.css": Page(b"p { color: red }", "text/css"),
    # Larger than a chunk of Firefox's cache and a block of Chromium's.
    f"{HOME}picture.png": Page(b"\x89PNG\r\n\x1a\n" + random.Random(5).randbytes(600_000), "image/png"),  # noqa: S311
    f"{HOME}missing.png": Page(b"not here", "text/html", 404),
    f"{HOME}gzip.js": Page(_script("gzip"), "text/javascript", coding="gzip"),
    f"{HOME}deflate.js": Page(_script("deflate"), "text/javascript", coding="deflate"),
    "http://localhost/br.js": Page(_script("br"), "text/javascript", coding="br"),
    "http://localhost/zstd.js": Page(_script("zstd"), "text/javascript", coding="zstd"),
    "http://frame.example/inner.html": Page(b"<p>inner<img src=http://lost.example/picture.png>", "text/html"),
    f"{HOME}old": Page(b"moved", "text/plain", 301, location="/new.html"),
    f"{HOME}new.html": Page(b"<p>new", "text/html"),
    f"{HOME}empty": Page(b"", "text/plain"),
    f"{HOME}latin.txt": Page("Käse €".encode("cp1252"), "text/plain; charset=iso-8859-1"),
}
PART = f"{HOME}part.bin"
NOT_PAGES = {f"{HOME}form", f"{HOME}only-head", PART}


def _encode(page: Page) -> bytes:
    if page.coding == "gzip":
        return gzip.compress(page.body)
    if page.coding == "deflate":
        return zlib.compress(page.body)
    if page.coding == "br":
        return bytes(brotli.compress(page.body))
    if page.coding == "zstd":
        return subprocess.run(["zstd", "--stdout"], input=page.body, capture_output=True, check=True).stdout
    return page.body


class _Handler(BaseHTTPRequestHandler):
    """Serves the URLs of the site and refuses all others."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Disable the log."""

    def _respond(self, status: int, body: bytes = b"", **fields: str) -> None:
        self.send_response(status)
        for name, value in {**fields, "Cache-Control": "max-age=86400", "Content-Length": str(len(body))}.items():
            if value:
                self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_CONNECT(self) -> None:
        """Refuse tunnels."""
        self._respond(403)

    def do_POST(self) -> None:
        """Read the body."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._respond(200 if self.path.startswith(HOME) else 403, b"taken", Content_Type="text/plain")

    def do_HEAD(self) -> None:
        """Respond like GET."""
        self.do_GET()

    def do_GET(self) -> None:
        """Serve a page, a range of one, or an error."""
        page = PAGES.get(self.path)
        if page is not None:
            coding, location = page.coding, page.location
            self._respond(
                page.status, _encode(page), Content_Type=page.mime, Content_Encoding=coding, Location=location
            )
        elif self.path == PART:
            fields = {"Content_Range": "bytes 0-99/1000", "ETag": '"1"', "Accept_Ranges": "bytes"}
            self._respond(206, b"x" * 100, Content_Type="application/octet-stream", **fields)
        elif self.path == f"{HOME}only-head":
            self._respond(200, Content_Type="text/plain")
        else:
            self._respond(404 if self.path.startswith(HOME) else 403)


@contextmanager
def run_proxy() -> Iterator[int]:
    """Serve the site as a proxy on loopback and yield its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
