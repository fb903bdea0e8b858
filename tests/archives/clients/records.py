"""Small crawls of one site in which every record is an edge case for archive clients."""

import gzip

from tests.warc import warcs
from tests.warc.warcs import member

PAGE = "text/html; charset=utf-8"
COMPRESSED = gzip.compress(b"<p>packed</p>", mtime=0)


def response(
    uri: str, date: str, body: bytes = b"<p>hello</p>", status: str = "200 OK", *headers: str, kind: str = "response"
) -> bytes:
    """Return a WARC record in a gzip member. date: as in WARCs."""
    fields = [f"HTTP/1.1 {status}", *(headers or (f"Content-Type: {PAGE}",)), "", ""]
    block = "\r\n".join(fields).encode() + body
    return record(uri, date, block, kind)


def record(uri: str, date: str, block: bytes, kind: str = "response", *extra: str) -> bytes:
    """Return a record with any block."""
    fields = (*extra, "Content-Type: application/http; msgtype=response")
    lines = "".join(f"{field}\r\n" for field in fields).encode()
    return member(warcs.record(block, kind=kind, uri=uri, date=date, extra=lines))
