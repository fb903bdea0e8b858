"""Building blocks of the WARC records that unlost writes: gzip members, header fields, HTTP heads, payloads.

Each record is one gzip member, so that it can be read by its offset. Header values are escaped, so that none can break
a record. Equal records yield equal bytes. `WrittenRecord` reads such records back.
"""

import base64
import hashlib
import json
import os
import re
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, BinaryIO

from unlost import dates
from unlost.errors import UriError

if TYPE_CHECKING:
    from hashlib import _Hash


TEXT_COMPRESSION_LEVEL = 6
"""Level for text. For a page of 10 KB, level 1 is 0.08 ms faster and 17 % larger, level 9 is 0.14 ms slower and 2 %
smaller."""
NO_COMPRESSION_LEVEL = 0
"""Level for compressed formats: level 1 takes 0.2 ms for 10 KB and saves nothing."""
_READ_BYTES = 1 << 16
_GZIP = 16  # added to zlib's `wbits` for a gzip header; zlib writes it without time and name
_WINDOWS = range(10, 16)  # `wbits`, the binary logarithm of the window size

MAX_VALUE_CHARS = 1 << 16
"""Longest value in characters, and longest URL in bytes: tools that read WARCs fail on longer lines."""
_PLAIN_VALUE = re.compile(r"[!#-~](?:[ -~]*[!-~])?")
_UNSAFE_URI_CHARS = re.compile(r"[\x00-\x20<>\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f\u3000\ud800-\udfff\ufeff]")
WarcFields = Iterable[tuple[str, str | None]]

MAX_HEADER_BYTES = 1 << 16
"""Maximum total size of the HTTP headers stored; a header that does not fit is left out."""
ORIGINAL_HEADER_PREFIX = "X-Archive-Orig-"
"""Prefix of headers that describe the body as transferred, not as stored."""
# Codings, lengths and checksums of the transferred body. The body is stored without codings, so that its digest can be
# compared with those of archives; replay software must therefore not see these headers under their own names. The
# prefix is that of Wayback replays.
_TRANSFER_HEADERS = {
    "content-encoding",
    "transfer-encoding",
    "content-length",
    "content-md5",
    "content-range",
    "digest",
    "content-digest",
    "repr-digest",
    "trailer",
}
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2
_CONTROL_CHARS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]+")
HttpHeaders = tuple[tuple[str, str], ...]

_MAX_MEMORY_BYTES = 1 << 20  # larger bodies are read from their file twice
_PAYLOAD_READ_BYTES = 1 << 16
# Prefixes of media types that are already compressed.
_COMPRESSED_TYPES = (
    "image/avif", "image/gif", "image/jp", "image/pjpeg", "image/png", "image/webp", "audio/aac", "audio/mp",
    "audio/ogg", "audio/webm", "video/", "font/woff", "application/font-woff", "application/x-font-woff",
    "application/zip", "application/x-zip", "application/gzip", "application/x-gzip", "application/x-7z",
    "application/x-rar", "application/vnd.rar", "application/x-bzip", "application/x-xz", "application/java-archive",
    "application/vnd.openxmlformats", "application/vnd.oasis", "application/epub", "application/ogg",
)  # fmt: skip

WARC_VERSION = b"WARC/1.1\r\n"
RECORD_END = b"\r\n\r\n"
"""The two line ends with which WARC 1.1 ends every record."""
HTTP_RESPONSE_TYPE = "application/http; msgtype=response"
HTTP_REQUEST_TYPE = "application/http; msgtype=request"
WARC_FIELDS_TYPE = "application/warc-fields"
TRUNCATION_REASONS = frozenset({"length", "time", "disconnect", "unspecified"})
"""Values of WARC-Truncated in WARC 1.1."""
_CONFORMS_TO = "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
# Namespace of the UUIDs (version 5) in record IDs, which are derived from the records, so that equal work writes equal
# files. WARC 1.1 requires unique IDs, not random ones.
_RECORD_ID_NAMESPACE = uuid.UUID("5b3b5e0c-8a0c-5d0e-9d7a-6d1f7f0c2a11")

format_record_date = lru_cache(16)(dates.to_iso)
"""Cached, because many records are stored in the same second, and page requisites often have equal dates."""

_MAX_HEAD_BYTES = 1 << 20  # five URLs of 64 KiB at most, or 64 KiB of headers and two more
_MAX_FIELDS_BLOCK_BYTES = 8 << 20  # a dozen values of 64 Ki characters, up to six bytes each in JSON
_MAX_DRAINED_BYTES = 2 << 30  # twice the largest body


class TruncatedRecordError(Exception):
    """A gzip member, or a record in it, is incomplete. Internal: callers translate it."""


def compress_member(pieces: Iterable[bytes], size: int, level: int = TEXT_COMPRESSION_LEVEL) -> Iterator[bytes]:
    r"""Yield data as one gzip member. Equal pieces yield equal bytes.

    Args:
        pieces: The data.
        size: Approximate size of the data in bytes. A window no larger than the data saves a third of the time for a
            page of 10 KB, because zlib otherwise prepares 256 KiB for each member.
        level: Compression level.

    >>> zlib.decompress(b"".join(compress_member([b"WARC/1.1", b"\r\n"], 10)), 31)
    b'WARC/1.1\r\n'
    """
    window = min(max(size.bit_length() - 1, _WINDOWS[0]), _WINDOWS[-1])
    compressor = zlib.compressobj(level, zlib.DEFLATED, _GZIP + window, window - 7)  # memLevel, from 3 to 8
    for piece in pieces:
        if data := compressor.compress(piece):
            yield data
    yield compressor.flush()


class GzipMember:
    """Decompresses the gzip member at an offset of an open file, in bounded memory.

    The file may grow meanwhile: nothing after the member is used.
    """

    def __init__(self, file: int, offset: int) -> None:
        self._file = file
        self._position = offset
        self._decompressor = zlib.decompressobj(_GZIP + _WINDOWS[-1])

    def read(self) -> bytes:
        """Return the next decompressed bytes; empty at the end of the member.

        Raises TruncatedRecordError if the member is incomplete or invalid.
        """
        while not self._decompressor.eof:
            data = self._decompressor.unconsumed_tail
            if not data:
                data = os.pread(self._file, _READ_BYTES, self._position)
                self._position += len(data)
                if not data:
                    raise TruncatedRecordError
            try:
                text = self._decompressor.decompress(data, _READ_BYTES)
            except zlib.error:
                raise TruncatedRecordError from None
            if text:
                return text
        return b""

    @property
    def end(self) -> int:
        """Offset of the next member. Valid once `read` has returned empty bytes."""
        return self._position - len(self._decompressor.unused_data)


def format_fields(fields: WarcFields) -> bytes:
    r"""Return header fields as lines, without those that have no value. Values must be single lines.

    >>> format_fields([("WARC-Type", "response"), ("WARC-Truncated", None)])
    b'WARC-Type: response\r\n'
    """
    return "".join([f"{name}: {value}\r\n" for name, value in fields if value is not None]).encode()


def parse_fields(text: bytes) -> dict[str, str]:
    """Return the values of fields by name. Raises ValueError if `format_fields` did not write them."""
    fields: dict[str, str] = {}
    for line in text.decode().split("\r\n"):
        if line:
            name, colon, value = line.partition(": ")
            if not colon or name in fields:
                raise ValueError(name)
            fields[name] = value
    return fields


def encode_value(value: str) -> str:
    r"""Return a text as one line of ASCII: unchanged if possible, else as a JSON string.

    Raises UriError for more than MAX_VALUE_CHARS characters, which only URLs can reach.

    >>> encode_value("text/html"), encode_value("a\r\nb"), encode_value("")
    ('text/html', '"a\\r\\nb"', '""')
    """
    if len(value) > MAX_VALUE_CHARS:
        raise _too_long_error(len(value))
    return value if _PLAIN_VALUE.fullmatch(value) else json.dumps(value)


def decode_value(value: str) -> str:
    """Reverse `encode_value`. Raises ValueError."""
    text = json.loads(value) if value.startswith('"') else value
    if not isinstance(text, str):
        raise ValueError(value[:40])  # noqa: TRY004  one exception type for all invalid values
    return text


def escape_target_uri(uri: str) -> str:
    """Return a URL for a header field: spaces, angle brackets and control characters are escaped.

    Raises UriError if it is empty or has more than MAX_VALUE_CHARS bytes.

    >>> escape_target_uri("http://example.com/a b"), escape_target_uri("http://example.com/é")
    ('http://example.com/a%20b', 'http://example.com/é')
    """
    if not uri:
        raise UriError("expected an address, found none", "empty")
    escaped = _UNSAFE_URI_CHARS.sub(_percent_encode, uri) if len(uri) <= MAX_VALUE_CHARS else uri
    size = len(escaped) if escaped.isascii() else len(escaped.encode("utf-8", "replace"))
    if size > MAX_VALUE_CHARS:
        raise _too_long_error(size)
    return escaped


def _too_long_error(size: int) -> UriError:
    return UriError(f"expected an address of at most {MAX_VALUE_CHARS} bytes, found {size}", "too-long")


def _percent_encode(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))


def format_http_head(
    status: int | None, headers: Sequence[tuple[str, str]], length: int | None, mime: str | None, redirect: str | None
) -> tuple[bytes, int]:
    r"""Return an HTTP head, including the empty line, and the number of omitted headers.

    Args:
        status: If it is None or does not have three digits, the head says 200.
        headers: In order. Headers with invalid names are omitted; control characters in values become spaces.
        length: Size of the stored body; None if the record has none.
        mime: `Content-Type`, if the headers have none.
        redirect: `Location`, if the headers have none.

    >>> headers = [("Content-Encoding", "gzip"), ("A", "b\r\nC: d"), ("E e", "f")]
    >>> head, left_out = format_http_head(200, headers, 5, None, None)
    >>> head.splitlines(), left_out
    ([b'HTTP/1.1 200 OK', b'X-Archive-Orig-Content-Encoding: gzip', b'A: b C: d', b'Content-Length: 5', b''], 1)
    """
    lines: list[bytes] = []
    names: set[str] = set()
    remaining, left_out = MAX_HEADER_BYTES, 0
    for name, value in headers:
        line = _header_line(name, value)
        if line is None or len(line) > remaining:
            left_out += 1
            continue
        remaining -= len(line)
        lines.append(line)
        names.add(name.lower())
    # Added headers follow Content-Length, so that `parse_http_head` can tell them from the received ones.
    if length is not None:
        lines.append(b"Content-Length: %d\r\n" % length)
    for name, default in (("Content-Type", mime), ("Location", redirect)):
        if default and name.lower() not in names:
            lines.append(_header_line(name, default[:MAX_HEADER_BYTES]) or b"")
    return b"".join([_status_line(status), *lines, b"\r\n"]), left_out


def _status_line(status: int | None) -> bytes:
    if status is None or not 100 <= status <= 999:
        status = 200
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = "Unknown"
    return f"HTTP/1.1 {status} {reason}\r\n".encode()


def _header_line(name: str, value: str) -> bytes | None:
    if not _TOKEN.fullmatch(name):
        return None
    if _strip_original_prefix(name) in _TRANSFER_HEADERS:
        name = ORIGINAL_HEADER_PREFIX + name
    value = _CONTROL_CHARS.sub(" ", value).strip(" \t")
    try:
        encoded = value.encode("latin-1")  # received headers are preserved byte for byte
    except UnicodeEncodeError:
        encoded = value.encode("utf-8", "replace")
    return b"%b: %b\r\n" % (name.encode(), encoded)


def _strip_original_prefix(name: str) -> str:
    """Return a name in lower case without `ORIGINAL_HEADER_PREFIX`, however often it occurs."""
    name = name.lower()
    while name.startswith(ORIGINAL_HEADER_PREFIX.lower()):
        name = name[len(ORIGINAL_HEADER_PREFIX) :]
    return name


def parse_http_head(head: bytes) -> HttpHeaders:
    """Reverse `format_http_head`: return the received headers, without those that it added.

    >>> parse_http_head(format_http_head(301, [("content-length", "9")], 5, "text/html", "http://example.com/")[0])
    (('content-length', '9'),)
    """
    return tuple(_restore_names(_received_headers(head.decode("latin-1").split("\r\n")[1:])))


def _received_headers(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    for line in lines:
        name, colon, value = line.partition(": ")
        if not colon or name == "Content-Length":
            return
        yield name, value


def _restore_names(headers: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    for name, value in headers:
        is_renamed = name.startswith(ORIGINAL_HEADER_PREFIX) and _strip_original_prefix(name) in _TRANSFER_HEADERS
        yield (name[len(ORIGINAL_HEADER_PREFIX) :] if is_renamed else name), value


class Payload:
    """A body that can be iterated over several times. `length` is its size in bytes."""

    def __init__(self, body: BinaryIO) -> None:
        body.seek(0)
        self._body: bytes | BinaryIO = body.read(_MAX_MEMORY_BYTES)
        self.length = len(self._body)
        if self.length == _MAX_MEMORY_BYTES:
            self._body, self.length = body, body.seek(0, os.SEEK_END)

    def pieces(self) -> Iterator[bytes]:
        """Yield the body from its beginning."""
        if isinstance(self._body, bytes):
            yield self._body
            return
        self._body.seek(0)
        while piece := self._body.read(_PAYLOAD_READ_BYTES):
            yield piece


def compression_level(mime: str | None) -> int:
    """Return the compression level for a media type."""
    return NO_COMPRESSION_LEVEL if mime is not None and mime.startswith(_COMPRESSED_TYPES) else TEXT_COMPRESSION_LEVEL


def format_sha1(hashed: "_Hash") -> str:
    """Return a SHA-1 as `sha1:` and base 32."""
    return f"sha1:{base64.b32encode(hashed.digest()).decode()}"


def payload_and_block_digests(head: bytes, pieces: Iterable[bytes]) -> tuple[str, str]:
    """Return the digest of the payload, and that of the block: the head followed by the payload.

    >>> payload_and_block_digests(b"", [])[0]
    'sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ'
    """
    payload, block = hashlib.sha1(usedforsecurity=False), hashlib.sha1(head, usedforsecurity=False)
    for piece in pieces:
        payload.update(piece)
        block.update(piece)
    return format_sha1(payload), format_sha1(block)


def make_record_id(*parts: str | None) -> str:
    """Return the WARC-Record-ID of the record identified by these parts."""
    return f"<urn:uuid:{uuid.uuid5(_RECORD_ID_NAMESPACE, json.dumps(parts))}>"


def format_record_header(fields: WarcFields) -> bytes:
    """Return the header of a record, up to its block, without fields that have no value."""
    return WARC_VERSION + format_fields(fields) + b"\r\n"


def format_warcinfo(file: str, software: str, timestamp: str) -> bytes:
    """Return the `warcinfo` record that begins a file and names the software and the format.

    Args:
        file: Name of the file.
        software: Name of the software.
        timestamp: When the file was started, 14 digits.
    """
    about = [("software", encode_value(software)), ("format", "WARC File Format 1.1"), ("conformsTo", _CONFORMS_TO)]
    block = format_fields(about)
    fields = [
        ("WARC-Type", "warcinfo"),
        ("WARC-Record-ID", make_record_id("warcinfo", file, software, timestamp)),
        ("WARC-Date", format_record_date(timestamp)),
        ("WARC-Filename", file),
        ("Content-Type", WARC_FIELDS_TYPE),
        ("Content-Length", str(len(block))),
    ]
    return format_record_header(fields) + block + RECORD_END


class ForeignRecordError(Exception):
    """A gzip member is complete, but unlost did not write it. Internal: callers translate it."""


class WrittenRecord:
    """A record written by unlost, read sequentially: header fields, block, end.

    Strict on purpose: what unlost does not write is foreign. The Rust core, which reads WARCs of other tools, opens
    files by name, and a name may be a symbolic link; this class reads an open descriptor.

    Attributes:
        fields: Header fields.
        length: Size of the block in bytes.

    Raises:
        TruncatedRecordError: The member is incomplete.
        ForeignRecordError: The member is complete, but unlost did not write it.
    """

    def __init__(self, file: int, offset: int) -> None:
        self._member = GzipMember(file, offset)
        self._buffer = b""
        head = self._read_head(None)
        if not head.startswith(WARC_VERSION):
            raise self._foreign_error()
        try:
            self.fields = parse_fields(head[len(WARC_VERSION) :])
            self.length = int(self.fields["Content-Length"])
        except (ValueError, KeyError):
            raise self._foreign_error() from None
        self._remaining = self.length

    @property
    def record_type(self) -> str:
        """Type of the record: `response`, `revisit`, `metadata` or `warcinfo`."""
        return self.fields.get("WARC-Type", "")

    def _foreign_error(self) -> ForeignRecordError:
        """Return the exception for foreign data. Raises TruncatedRecordError if the data is damaged instead."""
        self._buffer = b""
        remaining = _MAX_DRAINED_BYTES
        while remaining > 0 and (text := self._member.read()):  # zlib checks the checksum at the end
            remaining -= len(text)
        return ForeignRecordError()

    def _read_head(self, most: int | None) -> bytes:
        """Return the text before the next empty line, including the last line end.

        Args:
            most: Maximum size, including the empty line.
        """
        while (end := self._buffer.find(RECORD_END)) < 0:
            if len(self._buffer) > _MAX_HEAD_BYTES or (most is not None and len(self._buffer) >= most):
                raise self._foreign_error()
            text = self._member.read()
            if not text:
                raise self._foreign_error()
            self._buffer += text
        head, self._buffer = self._buffer[: end + 2], self._buffer[end + len(RECORD_END) :]
        if most is not None and end + len(RECORD_END) > most:
            raise self._foreign_error()
        return head

    def http_head(self) -> bytes:
        """Return the HTTP head of the block without its empty line; empty if the block is empty."""
        if not self._remaining:
            return b""
        head = self._read_head(self._remaining)
        self._remaining -= len(head) + 2
        return head

    def pieces(self) -> Iterator[bytes]:
        """Yield the rest of the block."""
        while self._remaining:
            piece = self._buffer or self._member.read()
            if not piece:
                raise self._foreign_error()
            piece, self._buffer = piece[: self._remaining], piece[self._remaining :]
            self._remaining -= len(piece)
            yield piece

    def block(self) -> bytes:
        """Return the block of a record whose block consists of fields (`application/warc-fields`)."""
        if self.length > _MAX_FIELDS_BLOCK_BYTES:
            raise self._foreign_error()
        return b"".join(self.pieces())

    def end(self) -> int:
        """Skip the rest of the record, and return the offset of the next one."""
        for _ in self.pieces():
            pass
        trailer = self._buffer
        while text := self._member.read():
            trailer += text
            if len(trailer) > len(RECORD_END):
                break
        if trailer != RECORD_END:
            raise self._foreign_error()
        return self._member.end
