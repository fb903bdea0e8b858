"""Responses, their common headers, and responses to errors."""

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
"""Methods of the endpoints that are served without Starlette."""
COMMON_HEADERS: tuple[Header, ...] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"Link, Location, X-Memento-Count, Server, X-Archives-Failed, Retry-After"),
    (b"server", f"unlost/{VERSION}".encode()),
    (b"x-content-type-options", b"nosniff"),
)
"""Headers of all public responses. The CORS headers are MemGator's, with two names added to the exposed headers."""
PRIVATE_HEADERS = tuple(each for each in COMMON_HEADERS if not each[0].startswith(b"access-control-"))
"""Headers of responses for one user only; without CORS headers, so that scripts of other sites cannot read them."""
HSTS: Header = (b"strict-transport-security", b"max-age=31536000")
"""Header of all responses if the service is reached by TLS (RFC 6797); a year in seconds."""
NO_STORE: Header = (b"cache-control", b"no-store")
"""Header of responses that must not be cached."""
PREFLIGHT_HEADERS: tuple[Header, ...] = (
    (b"allow", ", ".join(ALLOWED_METHODS).encode()),
    (b"access-control-allow-methods", ", ".join(ALLOWED_METHODS).encode()),
    (b"access-control-allow-headers", b"Accept-Datetime, Cache-Control, If-None-Match, Prefer"),
    (b"access-control-max-age", b"86400"),
)
_PRINTABLE_ASCII = re.compile(r"[ -~]*")
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class WebResponse:
    """A response.

    Attributes:
        status: HTTP status.
        body: The body, if it is not streamed.
        headers: Headers except common ones and Content-Length.
        pieces: A long body, rendered while it is sent. Its length is unknown.
    """

    status: int
    body: bytes = b""
    headers: list[Header] = field(default_factory=list)
    pieces: Iterator[bytes] | None = None


def text_response(status: int, message: str, *headers: Header) -> WebResponse:
    """Create a response with one line of plain text. Control characters are removed, for safe display in a terminal."""
    line = message[:2_000]
    if not line.isprintable():
        line = "".join(char if char.isprintable() else " " for char in line)
    return WebResponse(
        status, f"{line}\n".encode(errors="replace"), [(b"content-type", b"text/plain; charset=utf-8"), *headers]
    )


def encode_header_value(text: str) -> bytes:
    r"""Encode text as the value of a header: printable ASCII on a single line.

    >>> encode_header_value("http://a/\r\nSet-Cookie: é")
    b'http://a/%0D%0ASet-Cookie: %C3%A9'
    """
    if not _PRINTABLE_ASCII.fullmatch(text):
        text = quote(text.encode("utf-8", "surrogateescape"), _PRINTABLE)
    return text.encode("ascii")


def compute_etag(body: bytes) -> bytes:
    """Return the entity tag of a body. It depends only on the bytes."""
    return b'"' + blake2b(body, digest_size=12).hexdigest().encode() + b'"'


def matches_etag(etag: bytes, if_none_match: bytes) -> bool:
    """Return whether an If-None-Match header matches an entity tag (weak comparison, RFC 9110, section 8.8.3.2)."""
    return if_none_match.strip() == b"*" or etag.removeprefix(b"W/") in (
        part.strip().removeprefix(b"W/") for part in if_none_match.split(b",")
    )


async def send_response(
    response: WebResponse, method: str, send: Send, common: tuple[Header, ...] = COMMON_HEADERS
) -> int:
    """Send a response, without its body for HEAD, and return its status.

    The `common` headers precede those of the response.
    """
    headers = [*common, *response.headers]
    if response.status != 304 and response.pieces is None:
        headers.append((b"content-length", b"%d" % len(response.body)))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    for piece in response.pieces or () if method != "HEAD" else ():
        # `send` waits while the client's buffer is full; `sleep` lets other requests run between two pieces.
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else response.body})
    return response.status


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


def is_public_error(error: Exception) -> bool:
    """Return whether the message of an error may be sent to clients.

    The message of an InputError about a file or database contains its path or URL.
    """
    return not isinstance(error, InputError) or isinstance(error, UriError | DateError)


def error_response(error: InputError | UsageError | NotKeptError | BusyError) -> WebResponse:
    """Create the response to an error: 400 for a malformed request, 503 or 504 for a temporary failure."""
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
