"""An archive like pywb with a synthetic site and a fixed response time. A separate process.

usage: python -m bench.slow_archive PORT RESOURCES MILLISECONDS linked|listed
The site has a page for each hundred resources; the first one links to all of these, and each page shows the next 99
resources. `listed`: no page links to anything. Ends with its standard input.
`/asked` returns the number of requests by kind.
"""

import asyncio
import base64
import hashlib
import json
import sys
from typing import cast

HOST = "http://slow.example"
DATE = "20140210000001"
_STEP = 100


def resource_url(number: int) -> str:
    """Return the URL of a resource: the first is the home page, every hundredth another page."""
    if number == 0:
        return f"{HOST}/"
    return f"{HOST}/{number}.html" if number % _STEP == 0 else f"{HOST}/pictures/{number}.png"


def resource_body(number: int, resources: int, *, is_linked: bool = True) -> bytes:
    """Return its body of 4 KB or more."""
    if number % _STEP:
        return hashlib.sha256(str(number).encode()).digest() * 128
    if not is_linked:
        return f"<!doctype html><title>{number}</title>{'<p>Nothing to see here.' * 160}".encode()
    links = [f"<img src={resource_url(each)}>" for each in range(number + 1, min(number + _STEP, resources))]
    if number == 0:
        links += [f"<a href={resource_url(each)}>page</a>" for each in range(_STEP, resources, _STEP)]
    return f"<!doctype html><title>{number}</title>{' '.join(links)}".encode()


class Archive(asyncio.Protocol):
    """Responds on one connection, one request after another."""

    def __init__(self, site: dict[str, bytes], rows: bytes, seconds: float, request_counts: dict[str, int]) -> None:
        self._site = site
        self._rows = rows
        self._seconds = seconds
        self._request_counts = request_counts
        self._text = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Respond to a complete request."""
        self._text += data
        while b"\r\n\r\n" in self._text:
            head, _, self._text = self._text.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            asyncio.get_running_loop().call_later(self._seconds, self._respond, path)

    def _respond(self, path: str) -> None:
        status, kind, fields, text = "200 OK", "replay", "", b""
        if path == "/asked":
            kind, text = "asked", json.dumps(self._request_counts).encode()
        elif path.startswith("/t/cdx"):
            kind, text = "index", self._rows
        else:
            uri = path.partition("id_/")[2]
            found = self._site.get(uri)
            if found is None:
                status = "404 Not Found"
            else:
                mime = "image/png" if uri.endswith("png") else "text/html"
                fields = f"Memento-Datetime: Mon, 10 Feb 2014 00:00:01 GMT\r\nContent-Type: {mime}\r\n"
                text = found
        self._request_counts[kind] = self._request_counts.get(kind, 0) + 1
        self._transport.write(f"HTTP/1.1 {status}\r\n{fields}Content-Length: {len(text)}\r\n\r\n".encode() + text)


def _cdx_row(uri: str, text: bytes) -> str:
    digest = base64.b32encode(hashlib.sha1(text, usedforsecurity=False).digest()).decode()
    mime = "image/png" if uri.endswith("png") else "text/html"
    return json.dumps({"url": uri, "timestamp": DATE, "mime": mime, "status": "200", "digest": digest})


async def serve(port: int, resources: int, milliseconds: float, *, is_linked: bool) -> None:
    """Serve until standard input ends."""
    site = {resource_url(number): resource_body(number, resources, is_linked=is_linked) for number in range(resources)}
    rows = "".join(_cdx_row(uri, text) + "\n" for uri, text in site.items()).encode()
    request_counts: dict[str, int] = {}
    loop = asyncio.get_running_loop()
    async with await loop.create_server(
        lambda: Archive(site, rows, milliseconds / 1e3, request_counts), "127.0.0.1", port
    ):
        print("ready", flush=True)
        await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), is_linked=sys.argv[4] == "linked"))
