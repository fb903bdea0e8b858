"""Small crawls of one site, made by hand, in which every record is a trap for whoever asks an archive for it."""

import gzip

from tests.warc import warcs
from tests.warc.warcs import member

PAGE = "text/html; charset=utf-8"
PACKED = gzip.compress(b"<p>packed</p>", mtime=0)


def response(
    uri: str, date: str, body: bytes = b"<p>hello</p>", status: str = "200 OK", *headers: str, kind: str = "response"
) -> bytes:
    """Return a record of a WARC, in a gzip member. date: as WARCs have it."""
    fields = [f"HTTP/1.1 {status}", *(headers or (f"Content-Type: {PAGE}",)), "", ""]
    block = "\r\n".join(fields).encode() + body
    return record(uri, date, block, kind)


def record(uri: str, date: str, block: bytes, kind: str = "response", *extra: str) -> bytes:
    """Return a record with any block."""
    fields = (*extra, "Content-Type: application/http; msgtype=response")
    lines = "".join(f"{field}\r\n" for field in fields).encode()
    return member(warcs.record(block, kind=kind, uri=uri, date=date, extra=lines))
