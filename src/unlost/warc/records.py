"""Parts of the WARC records that unlost writes: gzip members, header fields, HTTP heads, payloads; and their reader.

Each record is one gzip member, so that it can be read alone. Header values may hold anything and never break a record.
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
"""For texts: of a page of 10 KB, level 1 leaves 17 % more and saves 0.08 ms, level 9 takes 0.14 ms for 2 % less."""
NO_COMPRESSION_LEVEL = 0
"""For what is compressed already: level 1 takes 0.2 ms for 10 KB and leaves as much."""
_READ_BYTES = 1 << 16
_GZIP = 16  # what zlib wants added to the size of the window for a header of gzip, with no time and no name in it
_WINDOWS = range(10, 16)  # sizes of windows, as powers of two


class TruncatedRecordError(Exception):
    """A member, or a record in it, that is not whole. Never seen by users: whoever reads says what that means."""


def compress_member(pieces: Iterable[bytes], size: int, level: int = TEXT_COMPRESSION_LEVEL) -> Iterator[bytes]:
    r"""Yield a text as one gzip member, the same one for the same pieces.

    size: bytes of the text, about: with a window that is no larger, a page of 10 KB takes two thirds of the time.

    >>> zlib.decompress(b"".join(compress_member([b"WARC/1.1", b"\r\n"], 10)), 31)
    b'WARC/1.1\r\n'
    """
    window = min(max(size.bit_length() - 1, _WINDOWS[0]), _WINDOWS[-1])
    packer = zlib.compressobj(level, zlib.DEFLATED, _GZIP + window, window - 7)
    for piece in pieces:
        if data := packer.compress(piece):
            yield data
    yield packer.flush()


class GzipMember:
    """The text of the member at an offset of an open file, read piece by piece, in bounded memory.

    It may be read while the file grows: what lies behind the member is not looked at.
    """

    def __init__(self, file: int, offset: int) -> None:
        self._file = file
        self._position = offset
        self._decompressor = zlib.decompressobj(_GZIP + _WINDOWS[-1])

    def read(self) -> bytes:
        """Return some more of the text; nothing at its end. Raises TornError if the member breaks off, or is none."""
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
        """Where the next member begins, in bytes: once the text was read to its end."""
        return self._position - len(self._decompressor.unused_data)


MAX_VALUE_CHARS = 1 << 16
"""The longest value, in characters, and of an address in bytes: tools that read WARCs give up at longer lines."""
_PLAIN_VALUE = re.compile(r"[!#-~](?:[ -~]*[!-~])?")
_UNSAFE_URI_CHARS = re.compile(r"[\x00-\x20<>\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f\u3000\ud800-\udfff\ufeff]")
WarcFields = Iterable[tuple[str, str | None]]


def format_fields(fields: WarcFields) -> bytes:
    r"""Return fields as lines; those without a value are left out. Values must be of one line.

    >>> format_fields([("WARC-Type", "response"), ("WARC-Truncated", None)])
    b'WARC-Type: response\r\n'
    """
    return "".join([f"{name}: {value}\r\n" for name, value in fields if value is not None]).encode()


def parse_fields(text: bytes) -> dict[str, str]:
    """Return the values of fields by their names. Raises ValueError for what was not written so."""
    fields: dict[str, str] = {}
    for line in text.decode().split("\r\n"):
        if line:
            name, colon, value = line.partition(": ")
            if not colon or name in fields:
                raise ValueError(name)
            fields[name] = value
    return fields


def encode_value(value: str) -> str:
    r"""Return a text so that it is one line of ASCII: as it is if it can be, else as a string of JSON.

    Raises UriError for one of more than MAX_TEXT characters: only addresses come near that.

    >>> encode_value("text/html"), encode_value("a\r\nb"), encode_value("")
    ('text/html', '"a\\r\\nb"', '""')
    """
    if len(value) > MAX_VALUE_CHARS:
        raise _too_long_error(len(value))
    return value if _PLAIN_VALUE.fullmatch(value) else json.dumps(value)


def decode_value(value: str) -> str:
    """Return the text again. Raises ValueError if it is no such line."""
    text = json.loads(value) if value.startswith('"') else value
    if not isinstance(text, str):
        raise ValueError(value[:40])  # noqa: TRY004  one kind of error for all that was not written here
    return text


def escape_target_uri(uri: str) -> str:
    """Return an address as a field of a record may have it: spaces, brackets and control characters are escaped.

    Raises UriError for one that is empty or has more than MAX_TEXT bytes.

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


def _percent_encode(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))


MAX_HEADER_BYTES = 1 << 16
"""Bytes of headers that are kept; a header that does not fit is left out."""
ORIGINAL_HEADER_PREFIX = "X-Archive-Orig-"
"""What stands before the name of a header that is true of what was sent, and not of the body that is kept."""
# Codings, lengths and sums of what was sent: a body is kept without codings. Whoever serves it would believe them.
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
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL_CHARS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]+")
HttpHeaders = tuple[tuple[str, str], ...]


def format_http_head(
    status: int | None, headers: Sequence[tuple[str, str]], length: int | None, mime: str | None, redirect: str | None
) -> tuple[bytes, int]:
    r"""Return the head of an answer, with the empty line at its end, and how many headers had to be left out.

    status: if it is unknown, or none of three digits, the head says 200.
    headers: in their order. Names that no header can have are left out; control characters in values become spaces.
    length: of the body that is kept, in bytes; None if the record has none.
    mime, redirect: `Content-Type` and `Location` where the headers have none.

    >>> head, left_out = format_http_head(200, [("Content-Encoding", "gzip"), ("A", "b\r\nC: d"), ("E e", "f")], 5, None, None)
    >>> head.splitlines(), left_out
    ([b'HTTP/1.1 200 OK', b'X-Archive-Orig-Content-Encoding: gzip', b'A: b C: d', b'Content-Length: 5', b''], 1)
    """
    lines: list[bytes] = []
    names: set[str] = set()
    room, left_out = MAX_HEADER_BYTES, 0
    for name, value in headers:
        line = _header_line(name, value)
        if line is None or len(line) > room:
            left_out += 1
            continue
        room -= len(line)
        lines.append(line)
        names.add(name.lower())
    # Ours stand behind the true length: so they can be told from those that came.
    if length is not None:
        lines.append(b"Content-Length: %d\r\n" % length)
    for name, known in (("Content-Type", mime), ("Location", redirect)):
        if known and name.lower() not in names:
            lines.append(_header_line(name, known[:MAX_HEADER_BYTES]) or b"")
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
        said = value.encode("latin-1")  # what came from a wire, byte for byte
    except UnicodeEncodeError:
        said = value.encode("utf-8", "replace")
    return b"%b: %b\r\n" % (name.encode(), said)


def _strip_original_prefix(name: str) -> str:
    """Return a name in lower case without what stands before names here, however often it does."""
    name = name.lower()
    while name.startswith(ORIGINAL_HEADER_PREFIX.lower()):
        name = name[len(ORIGINAL_HEADER_PREFIX) :]
    return name


def parse_http_head(head: bytes) -> HttpHeaders:
    """Return the headers that a head was made of: under their own names, without those that were added.

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


_MAX_MEMORY_BYTES = 1 << 20  # bytes of a body that is read once; a larger one is read from its file twice
_PAYLOAD_READ_BYTES = 1 << 16
# Types that are compressed by themselves: to do it again takes time and saves nothing.
_COMPRESSED_TYPES = (
    "image/avif", "image/gif", "image/jp", "image/pjpeg", "image/png", "image/webp", "audio/aac", "audio/mp",
    "audio/ogg", "audio/webm", "video/", "font/woff", "application/font-woff", "application/x-font-woff",
    "application/zip", "application/x-zip", "application/gzip", "application/x-gzip", "application/x-7z",
    "application/x-rar", "application/vnd.rar", "application/x-bzip", "application/x-xz", "application/java-archive",
    "application/vnd.openxmlformats", "application/vnd.oasis", "application/epub", "application/ogg",
)  # fmt: skip


class Payload:
    """A body that can be gone through several times.

    length: how many bytes it has.
    """

    def __init__(self, body: BinaryIO) -> None:
        body.seek(0)
        self._body: bytes | BinaryIO = body.read(_MAX_MEMORY_BYTES)
        self.length = len(self._body)
        if self.length == _MAX_MEMORY_BYTES:
            self._body, self.length = body, body.seek(0, os.SEEK_END)

    def pieces(self) -> Iterator[bytes]:
        """Yield all of it, however often that is asked for."""
        if isinstance(self._body, bytes):
            yield self._body
            return
        self._body.seek(0)
        while piece := self._body.read(_PAYLOAD_READ_BYTES):
            yield piece


def compression_level(mime: str | None) -> int:
    """Return how hard to try to make a body of this type smaller."""
    return NO_COMPRESSION_LEVEL if mime is not None and mime.startswith(_COMPRESSED_TYPES) else TEXT_COMPRESSION_LEVEL


def format_sha1(hashed: "_Hash") -> str:
    """Return a SHA-1 with its name in front, in base 32."""
    return f"sha1:{base64.b32encode(hashed.digest()).decode()}"


def payload_and_block_digests(head: bytes, pieces: Iterable[bytes]) -> tuple[str, str]:
    """Return the digest of all pieces together, and that of a head with them behind it.

    >>> payload_and_block_digests(b"", [])[0]
    'sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ'
    """
    payload, block = hashlib.sha1(usedforsecurity=False), hashlib.sha1(head, usedforsecurity=False)
    for piece in pieces:
        payload.update(piece)
        block.update(piece)
    return format_sha1(payload), format_sha1(block)


WARC_VERSION = b"WARC/1.1\r\n"
RECORD_END = b"\r\n\r\n"
"""What stands behind the block of every record."""
HTTP_RESPONSE_TYPE = "application/http; msgtype=response"
HTTP_REQUEST_TYPE = "application/http; msgtype=request"
WARC_FIELDS_TYPE = "application/warc-fields"
TRUNCATION_REASONS = frozenset({"length", "time", "disconnect", "unspecified"})
"""Why a body may be cut, as WARC knows it."""
_CONFORMS_TO = "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
# Record ids are made of what records hold, within this namespace: the same work makes the same file.
_RECORD_ID_NAMESPACE = uuid.UUID("5b3b5e0c-8a0c-5d0e-9d7a-6d1f7f0c2a11")


def make_record_id(*parts: str | None) -> str:
    """Return the WARC-Record-ID of the record that these parts tell from all others."""
    return f"<urn:uuid:{uuid.uuid5(_RECORD_ID_NAMESPACE, json.dumps(parts))}>"


format_record_date = lru_cache(16)(dates.to_iso)
"""Many records are kept in the same second, and copies of a page's parts were often stored in one."""


def format_record_header(fields: WarcFields) -> bytes:
    """Return the header of a record, up to its block. Fields without a value are left out."""
    return WARC_VERSION + format_fields(fields) + b"\r\n"


def format_warcinfo(file: str, software: str, moment: str) -> bytes:
    """Return the first record of a file: who wrote it, and in which format.

    moment: when it was begun, 14 digits.
    """
    about = [("software", encode_value(software)), ("format", "WARC File Format 1.1"), ("conformsTo", _CONFORMS_TO)]
    block = format_fields(about)
    fields = [
        ("WARC-Type", "warcinfo"),
        ("WARC-Record-ID", make_record_id("warcinfo", file, software, moment)),
        ("WARC-Date", format_record_date(moment)),
        ("WARC-Filename", file),
        ("Content-Type", WARC_FIELDS_TYPE),
        ("Content-Length", str(len(block))),
    ]
    return format_record_header(fields) + block + RECORD_END


_MAX_HEAD_BYTES = 1 << 20  # bytes: five addresses of 64 KiB at most, or 64 KiB of headers and two more
_MAX_FIELDS_BLOCK_BYTES = (
    8 << 20
)  # bytes of fields: a dozen texts of 64 Ki characters, of which JSON makes six bytes each
_MAX_DRAINED_BYTES = 2 << 30  # bytes: twice the largest body


class ForeignRecordError(Exception):
    """A member that is whole, and not of a WARC that unlost wrote. Never seen by users."""


class WrittenRecord:
    """A record, read in its order: its fields, then its block, then its end.

    fields: those of its header.
    length: bytes of its block.

    Raises TornError where a member is not whole, ForeignError where it is and nothing of ours: each of its methods.
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
        """The type of the record: `response`, `revisit`, `metadata` or `warcinfo`."""
        return self.fields.get("WARC-Type", "")

    def _foreign_error(self) -> ForeignRecordError:
        """Return what to raise for a text that is not ours. Raises TornError if it is damage that made it so."""
        self._buffer = b""
        left = _MAX_DRAINED_BYTES
        while left > 0 and (text := self._member.read()):  # its checksum stands at its end
            left -= len(text)
        return ForeignRecordError()

    def _read_head(self, most: int | None) -> bytes:
        """Return what stands before the next empty line, with the end of the line before it.

        most: how many bytes there can be, with the empty line.
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
        """Return the head of the HTTP answer in its block, without the empty line; nothing if the block is empty."""
        if not self._remaining:
            return b""
        head = self._read_head(self._remaining)
        self._remaining -= len(head) + 2
        return head

    def pieces(self) -> Iterator[bytes]:
        """Yield what is left of its block."""
        while self._remaining:
            piece = self._buffer or self._member.read()
            if not piece:
                raise self._foreign_error()
            piece, self._buffer = piece[: self._remaining], piece[self._remaining :]
            self._remaining -= len(piece)
            yield piece

    def block(self) -> bytes:
        """Return a block of fields."""
        if self.length > _MAX_FIELDS_BLOCK_BYTES:
            raise self._foreign_error()
        return b"".join(self.pieces())

    def end(self) -> int:
        """Pass over what is left of it, and return where the next record begins, in bytes."""
        for _ in self.pieces():
            pass
        rest = self._buffer
        while text := self._member.read():
            rest += text
            if len(rest) > len(RECORD_END):
                break
        if rest != RECORD_END:
            raise self._foreign_error()
        return self._member.end
