"""Simple writers of browser caches, for entries that no page visit creates."""

import hashlib
import json
import struct
import zlib
from pathlib import Path

from tests.models.jenkins import jenkins
from unlost.archives import super_fast_hash

RESPONSE_TIME = 13_300_000_000_000_000  # microseconds since 1601
RESPONSE_DATE = "20220618042640"
HEAD = b"HTTP/1.1 200 OK\0Content-Type: text/html\0"


def chromium_head(head: bytes = HEAD, flags: int = 3, time: int = RESPONSE_TIME, extra: int = 0) -> bytes:
    """Return the stored head of a response, with lines that end in NUL."""
    text = head + b"\0"
    body = struct.pack("<I", flags | (1 << 31 if extra else 0))
    body += struct.pack("<I", extra) if extra else b""
    body += struct.pack("<qq", time - 1, time) + (struct.pack("<q", 1) if extra & 4 else b"")
    body += struct.pack("<I", len(text)) + text + b"\0" * (-len(text) % 4) + b"more of no interest."
    return struct.pack("<I", len(body)) + body


def simple_entry(key: str, body: bytes, head: bytes | None = None) -> bytes:
    """Return the file of an entry of Chromium's Simple Cache."""
    head = chromium_head() if head is None else head
    end = 0xF4FA6F45970D41D8
    return (
        struct.pack("<QIIII", 0xFCFB6D1BA7725C30, 5, len(key), 0, 0)
        + key.encode()
        + body
        + struct.pack("<QIIII", end, 1, zlib.crc32(body), len(body), 0)
        + head
        + hashlib.sha256(key.encode()).digest()
        + struct.pack("<QIIII", end, 3, zlib.crc32(head), len(head), 0)
    )


def write_simple(folder: Path, key: str, body: bytes, head: bytes | None = None) -> Path:
    """Write an entry under its file name in the cache."""
    path = folder / f"{hashlib.sha1(key.encode()).digest()[7::-1].hex()}_0"  # noqa: S324  as Chromium does
    path.write_bytes(simple_entry(key, body, head))
    return path


def firefox_entry(
    key: str,
    body: bytes,
    head: bytes | None = b"HTTP/2 200 \r\nContent-Type: text/html\r\n",
    *,
    version: int = 4,
    modified: int = 1_655_526_400,
    method: bytes = b"GET",
    alternative: bytes | None = None,
) -> bytes:
    """Return the file of an entry of Firefox's cache. alternative: alternative data derived from the body."""
    elements = {b"request-method": method}
    if head is not None:
        elements[b"response-head"] = head
    if alternative is not None:
        elements[b"alt-data"] = b"1;%d,javascript/moz-bytecode" % len(body)
    data = body + (alternative or b"")
    hashes = b"".join(
        struct.pack(">H", jenkins(data[position : position + 262_144]) & 0xFFFF)
        for position in range(0, len(data), 262_144)
    )
    metadata = hashes + struct.pack(">7I", version, 1, modified, modified, 0, 0, len(key))
    metadata += (b"" if version == 1 else bytes(4)) + key.encode() + b"\0"
    metadata += b"".join(name + b"\0" + value + b"\0" for name, value in elements.items())
    trailer = struct.pack(">II", version, len(data)) if version >= 4 else struct.pack(">I", len(data))
    return data + struct.pack(">I", jenkins(metadata)) + metadata + trailer


def write_firefox(folder: Path, key: str, data: bytes) -> Path:
    """Write an entry under its file name in the cache."""
    path = folder / hashlib.sha1(key.encode()).hexdigest().upper()  # noqa: S324  as Firefox does
    path.write_bytes(data)
    return path


def har_entry(url: str, text: str | None = "hello", **response: object) -> dict[str, object]:
    """Return an entry of a HAR file."""
    content = {"size": 5, "mimeType": "text/plain", **({} if text is None else {"text": text})}
    return {
        "startedDateTime": "2014-02-10T01:00:01.999+01:00",
        "request": {"method": "GET", "url": url},
        "response": {"status": 200, "headers": [], "content": content, **response},
    }


def har_text(*entries: object) -> bytes:
    """Return a HAR file."""
    return json.dumps({"log": {"version": "1.2", "creator": {"name": "entries"}, "entries": entries}}).encode()


class Blockfile:
    """A writer of Chromium's Blockfile Cache with few entries: heads and keys in blocks of 4 KiB, bodies in files."""

    def __init__(self) -> None:
        self.buckets: list[int] = []
        self._entries = bytearray()
        self._data = bytearray()
        self._bodies: list[bytes] = []

    def add(
        self,
        key: str,
        body: bytes,
        head: bytes | None = None,
        *,
        state: int = 0,
        flags: int = 0,
        following: int | None = None,
        in_chain: bool = False,
    ) -> int:
        """Add an entry and return its address. following: the next of its chain; in_chain: in no bucket of its own."""
        number = len(self._entries) // 256
        url_text = 0xA0010000 | number
        stored = self._stored(chromium_head() if head is None else head)
        self._bodies.append(body)
        long_key = self._stored(key.encode()) if len(key) > 159 else 0
        sizes = (len(chromium_head() if head is None else head), len(body), 0, 0)
        places = (stored, 0x80000000 | len(self._bodies) if body else 0, 0, 0)
        record = struct.pack(
            "<IIIiiiQiI4i4II16x",
            *(
                super_fast_hash(key.encode()),
                url_text if following == -1 else following or 0,
                0,
                0,
                0,
                state,
                RESPONSE_TIME,
            ),
            *(len(key), long_key, *sizes, *places, flags),
        )
        name = b"" if long_key else key.encode()
        self._entries += record + struct.pack("<I160s", super_fast_hash(record), name)
        if not in_chain:
            self.buckets.append(url_text)
        return url_text

    def _stored(self, data: bytes) -> int:
        block = len(self._data) // 4096
        self._data += data.ljust(4096, b"\0")
        return 0xC0030000 | block

    def write(self, folder: Path) -> None:
        """Write the files."""
        table = struct.pack(f"<{len(self.buckets)}I", *self.buckets)
        header = struct.pack("<II20xi", 0xC103CAC3, 0x30000, len(self.buckets))
        (folder / "index").write_bytes(header.ljust(368, b"\0") + table)
        for number, size, data in ((1, 256, self._entries), (3, 4096, self._data)):
            header = struct.pack("<IIhhi", 0xC104CAC3, 0x30000, number, 0, size)
            (folder / f"data_{number}").write_bytes(header.ljust(8192, b"\0") + data)
        for number, body in enumerate(self._bodies, 1):
            (folder / f"f_{number:06x}").write_bytes(body)
