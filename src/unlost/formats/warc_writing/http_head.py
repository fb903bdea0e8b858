"""The head of an HTTP answer in a WARC: made of headers that may hold anything, and read again."""

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus

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

    >>> head, left_out = http_head(200, [("Content-Encoding", "gzip"), ("A", "b\r\nC: d"), ("E e", "f")], 5, None, None)
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

    >>> headers_of(http_head(301, [("content-length", "9")], 5, "text/html", "http://example.com/")[0])
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
