"""One response that a browser kept, in a HAR file or in its cache: what is known of it, and its body."""

import errno
import os
import re
import stat
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from unlost.errors import ArchiveFileError, DateError
from unlost.formats.problems import Problem

CachedHeaders = tuple[tuple[str, str], ...]
"""Fields as (name, value), in their order."""

Chunks = Generator[bytes, None, None]
"""A body, piece by piece."""

MAX_KEY_BYTES = 1 << 16
"""The longest address of an entry: what is longer is no address that anybody asks for, and records stay small."""

MAX_HEAD_BYTES = 1 << 20
"""The longest head of a response: browsers themselves take less."""

CHUNK_BYTES = 1 << 16
"""Bytes of a body that are read at once."""

_STATUS = re.compile(r"HTTP(?:/[0-9.]{1,8})? +([1-5][0-9][0-9])(?![0-9])", re.IGNORECASE)
_WEB_URL = re.compile(r"https?://[^\x00-\x20]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A whole response to a GET, as its entry tells, without the body.

    uri: as it was asked for, without a fragment.
    datetime: when the response came, 14 digits, UTC.
    length: bytes of the body as it is stored; None if the entry has no body.
    filename: the file, below the folder, with `/` between its parts.
    offset: where the entry begins in it, in bytes of its decompressed text.
    """

    uri: str
    datetime: str
    status: int
    mime: str | None
    redirect: str | None
    length: int | None
    filename: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class CachedContent:
    """A response with its body.

    coding: what the body is packed in, as Content-Encoding says it; empty if in nothing.
    chunks: the body as it is stored, to be read once, and closed, in one thread. Raises ArchiveFileError where it is
        not what was stored.
    """

    response: CachedResponse
    headers: CachedHeaders
    coding: str
    chunks: Chunks


class TruncatedEntryError(ArchiveFileError):
    """Something without its end: the browser is writing it, or died over it."""


def entry_problem(error: OSError | DateError | ArchiveFileError, filename: str, offset: int = 0) -> Problem:
    """Return what to count where an entry could not be read: `unreadable`, `bad-date`, `truncated` or `damaged`."""
    if isinstance(error, OSError):
        return Problem("unreadable", filename, None, offset, error.strerror or type(error).__name__)
    kinds = {DateError: "bad-date", TruncatedEntryError: "truncated"}
    return Problem(kinds.get(type(error), "damaged"), filename, None, offset, str(error))


def open_regular_file(path: Path) -> BinaryIO:
    """Open a file for reading, and nothing else: a pipe under a file's name would never end. Raises OSError."""
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "expected a file, found a folder, a pipe or a device")
    return os.fdopen(number, "rb")


def parse_response_head(lines: Iterable[bytes]) -> tuple[int, CachedHeaders] | None:
    r"""Return status and fields of the head of a response, cut into lines; None if it is none.

    >>> read_head([b"HTTP/1.1 200 OK", b"Content-Type: text/html", b"", b"no field"])
    (200, (('Content-Type', 'text/html'),))
    """
    texts = [line.decode("latin-1") for line in lines]  # which keeps every byte
    found = _STATUS.match(texts[0]) if texts else None
    if found is None:
        return None
    pairs = (text.partition(":") for text in texts[1:])
    fields = tuple((name.strip(), value.strip()) for name, colon, value in pairs if colon and name.strip())
    return int(found[1]), fields


def get_header(headers: CachedHeaders, name: str) -> str | None:
    """Return the first value of a field, in whatever case; None if there is none."""
    return next((value for each, value in headers if each.lower() == name), None)


def content_encoding_of(headers: CachedHeaders) -> str:
    """Return what a body is packed in, as all fields Content-Encoding together say."""
    return ", ".join(value for name, value in headers if name.lower() == "content-encoding")


def parse_mime(value: str | None) -> str | None:
    """Return the media type of a Content-Type, in lower case without parameters; None if there is none.

    >>> mime_of("Text/HTML; charset=utf-8"), mime_of(""), mime_of("a b")
    ('text/html', None, None)
    """
    mime = (value or "").partition(";")[0].strip().lower()
    return mime if re.fullmatch(r"[!-~]+/[!-~]+", mime) and len(mime) <= 200 else None


def redirect_target(status: int, headers: CachedHeaders) -> str | None:
    """Return where a response redirects to, as it says it; None if it does not."""
    location = get_header(headers, "location")
    return location[:MAX_KEY_BYTES] if location and 300 <= status < 400 else None


def parse_web_url(text: str) -> str | None:
    """Return an address of the web without its fragment; None if it is none, as `data:` or an extension's.

    >>> web_address("http://a.com/b#c"), web_address("data:,x"), web_address("http://a b/")
    ('http://a.com/b', None, None)
    """
    address = text.partition("#")[0]
    return address if len(address) <= MAX_KEY_BYTES and _WEB_URL.fullmatch(address) else None


def is_partial(status: int, headers: CachedHeaders, length: int) -> bool:
    """Return whether a stored body is less than the resource: a range, or shorter than the server announced.

    Browsers keep no bodies of redirects.
    """
    announced = get_header(headers, "content-length") or ""
    if status == 206 or 300 <= status < 400:
        return status == 206
    return announced.isascii() and announced.isdigit() and len(announced) < 19 and length < int(announced)
