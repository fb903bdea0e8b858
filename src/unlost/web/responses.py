"""Responses, the headers that all of them have, and responses to errors."""

import asyncio
import logging
import math
import re
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any
from urllib.parse import quote

from unlost._core import VERSION
from unlost.errors import BusyError, DateError, InputError, NotKeptError, UriError, UsageError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]
ALLOWED_METHODS = ("GET", "HEAD", "OPTIONS")
"""What every endpoint can be asked by."""
COMMON_HEADERS: tuple[Header, ...] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"Link, Location, X-Memento-Count, Server, X-Archives-Failed, Retry-After"),
    (b"server", f"unlost/{VERSION}".encode()),
    (b"x-content-type-options", b"nosniff"),
)
"""What every answer has."""
PRIVATE_HEADERS = tuple(each for each in COMMON_HEADERS if not each[0].startswith(b"access-control-"))
"""What every page has that is for one person alone: scripts of other sites may not read it."""
HSTS: Header = (b"strict-transport-security", b"max-age=31536000")
"""What every page has where the service is reached by TLS: browsers then never try without."""
NO_STORE: Header = (b"cache-control", b"no-store")
"""What a response has that no cache may store."""
PREFLIGHT_HEADERS: tuple[Header, ...] = (
    (b"allow", ", ".join(ALLOWED_METHODS).encode()),
    (b"access-control-allow-methods", ", ".join(ALLOWED_METHODS).encode()),
    (b"access-control-allow-headers", b"Accept-Datetime, Cache-Control, If-None-Match, Prefer"),
    (b"access-control-max-age", b"86400"),
)
_PLAIN = re.compile(r"[ -~]*")
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))


@dataclass(slots=True)
class WebResponse:
    """One answer. headers: beside those that all have and the length of the body.

    pieces: a long body, rendered while it is sent; its length is not known before.
    """

    status: int
    body: bytes = b""
    headers: list[Header] = field(default_factory=list)
    pieces: Iterator[bytes] | None = None


def text_response(status: int, message: str, *headers: Header) -> WebResponse:
    """Return an answer for people and logs: a line of text, in which nothing acts on a terminal."""
    line = message[:2_000]
    if not line.isprintable():
        line = "".join(char if char.isprintable() else " " for char in line)
    return WebResponse(
        status, f"{line}\n".encode(errors="replace"), [(b"content-type", b"text/plain; charset=utf-8"), *headers]
    )


def encode_header_value(text: str) -> bytes:
    r"""Return text as the value of a header: whatever is in it, it stays one value of printable ASCII.

    >>> encode_header_value("http://a/\r\nSet-Cookie: é")
    b'http://a/%0D%0ASet-Cookie: %C3%A9'
    """
    if not _PLAIN.fullmatch(text):
        text = quote(text.encode("utf-8", "surrogateescape"), _PRINTABLE)
    return text.encode("ascii")


def compute_etag(body: bytes) -> bytes:
    """Return the entity tag of a body: the same for the same bytes, on every machine."""
    return b'"' + blake2b(body, digest_size=12).hexdigest().encode() + b'"'


def matches_etag(etag: bytes, if_none_match: bytes) -> bool:
    """Return whether a client that sent If-None-Match has the body with this tag already."""
    return if_none_match.strip() == b"*" or etag.removeprefix(b"W/") in (
        part.strip().removeprefix(b"W/") for part in if_none_match.split(b",")
    )


async def send_response(
    response: WebResponse, method: str, send: Send, common: tuple[Header, ...] = COMMON_HEADERS
) -> None:
    """Send an answer; to HEAD all but its body. common: headers in addition to those of the answer."""
    headers = [*common, *response.headers]
    if response.status != 304 and response.pieces is None:
        headers.append((b"content-length", b"%d" % len(response.body)))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    for piece in response.pieces or () if method != "HEAD" else ():
        # Each waits until the client has taken enough of those before it.
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else response.body})


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until a client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


_log = logging.getLogger(__name__)


def is_public_error(error: Exception) -> bool:
    """Return whether clients may read the message of an error.

    That of an input which is not part of the request has the path of a file, or the URL of a database.
    """
    return not isinstance(error, InputError) or isinstance(error, UriError | DateError)


def error_response(error: InputError | UsageError | NotKeptError | BusyError) -> WebResponse:
    """Return the response: 400 for a malformed request, 503 and 504 for what is not available now."""
    match error:
        case NotKeptError():
            return text_response(504, str(error), NO_STORE)
        case BusyError():
            return text_response(503, str(error), NO_STORE, (b"retry-after", b"%d" % max(1, math.ceil(error.seconds))))
        case _ if not is_public_error(error):
            _log.error("%s", error)
            return text_response(503, "A file of the service cannot be read", NO_STORE, (b"retry-after", b"60"))
        case _:
            return text_response(400, str(error))
