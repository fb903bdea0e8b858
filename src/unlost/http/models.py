"""Requests to archives and their responses, the client protocol, the kinds of failure, and the User-Agent header."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from unlost._core import VERSION
from unlost.errors import UsageError
from unlost.registry.models import Archive, RequestKind

PRODUCT_TOKEN = "unlost"  # noqa: S105
"""The product token of the User-Agent header, which rules in `robots.txt` match (RFC 9309, section 2.2.1)."""

# Without parentheses, which would end the comment in User-Agent that contains it (RFC 9110, section 5.6.5).
_CONTACT = re.compile(r"[!-'*-~]+( [!-'*-~]+)*")

FAILURE_KINDS = {
    "refused": "the connection was refused: the archive is down, or blocks the client; it is not queried for some time",
    "dns": "the name of the host could not be resolved",
    "unreachable": "no connection: no route to the host, or no connection in time",
    "proxy": "the proxy could not be reached, or makes no connection",
    "tls": "the connection could not be made safe: a certificate is wrong or out of date",
    "timeout": "no answer, or not all of it, within the time that there was",
    "reset": "the connection broke before the answer was whole",
    "status": "a status that says that the archive has a fault",
    "too-large": "an answer larger than asked for, also once it was uncompressed",
    "malformed": "an answer that is not in the form that it should have",
    "redirects": "redirects in a circle, too many of them, or to where an archive has no business to send us",
    "foreign": "a copy of another address or another date than the archive said",
}
"""The kinds of failure of `FailedError`, and what each means."""


@dataclass(slots=True)
class PartialResponse:
    """Receives the part of a response that arrived before the request failed or was cancelled.

    Attributes:
        response: The response with the beginning of its body; None if no byte of a body arrived.
    """

    response: "HttpResponse | None" = None


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request.

    Attributes:
        kind: Determines which of the archive's rate limits and quotas count the request.
        headers: Header fields in addition to those of every request.
        max_bytes: Largest accepted body, in bytes after decoding.
        max_redirects: Redirects to follow. With 0, the redirect itself is the response.
        until_close: Read the body until the connection closes, ignoring Content-Length. For archives that send
            captured lengths, which may be wrong.
        partial: Receives an incomplete response before the error is raised.
    """

    url: str
    kind: RequestKind
    headers: Mapping[str, str] = field(default_factory=dict)
    max_bytes: int = 1 << 26
    max_redirects: int = 5
    until_close: bool = False
    partial: PartialResponse | None = None


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response whose body was received completely.

    Attributes:
        url: The final URL, after redirects.
        headers: Header fields as (name, value) pairs, in order.
        body: The decoded body, positioned at its beginning. In a temporary file if large; it is deleted with the
            last reference.
        size: Size of the body, in bytes.
    """

    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: BinaryIO
    size: int

    def header(self, name: str) -> str | None:
        """Return the first value of a header field, or None. Names are case-insensitive."""
        return next((value for each, value in self.headers if each.lower() == name.lower()), None)


class HttpClient(Protocol):
    """Sends requests to archives. Implemented by `ArchiveHttpClient`."""

    async def send(self, archive: Archive, request: HttpRequest) -> HttpResponse:
        """Send a request and return the response. Server errors are raised, unless they are captures.

        Waits for the archive's rate limits, obeys 429 and 503, and retries where that helps.

        Raises:
            NotNowError: The archive must not be queried now, or the wait would take too long.
            FailedError: The request failed; see `FAILURE_KINDS`.
        """
        ...


def user_agent(contact: str | None) -> str:
    """Return the value of the User-Agent header.

    Args:
        contact: Email address or URL of the user, for the operators of the archive.

    Raises:
        UsageError: The contact has characters that the header field cannot have.
    """
    if contact is None:
        return f"{PRODUCT_TOKEN}/{VERSION}"
    if not _CONTACT.fullmatch(contact):
        raise UsageError("contact: expected an address of mail or of a page: printable ASCII without brackets")
    return f"{PRODUCT_TOKEN}/{VERSION} (+{contact})"


MAX_BODY_BYTES = 1 << 30
"""Largest body, in bytes, that is read from a local file or a record, before and after decoding."""

_MEMORY_BYTES = 1 << 20  # larger bodies go to a temporary file
_PIECE_BYTES = 1 << 16

if TYPE_CHECKING:
    _Spooled = tempfile.SpooledTemporaryFile[bytes]
else:
    _Spooled = tempfile.SpooledTemporaryFile


class BodyTooLargeError(Exception):
    """A body exceeds the limit of its reader. Handled by the archive clients, which name the capture."""


class ByteReader(Protocol):
    """A binary stream to read from, in pieces."""

    def read(self, count: int, /) -> bytes:
        """Return up to `count` bytes; none at the end."""
        ...


class _SpooledBody(_Spooled):
    """A temporary file that is closed, and deleted, with the last reference to it."""

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()


def new_body() -> BinaryIO:
    """Return an empty body, to write to and read from."""
    return cast("BinaryIO", _SpooledBody(_MEMORY_BYTES))


def spool_body(pieces: Iterator[bytes], limit: int) -> BinaryIO:
    """Return a body with these bytes, positioned at its beginning.

    Raises:
        BodyTooLargeError: There are more than `limit` bytes.
    """
    body = new_body()
    try:
        for piece in _limit_bytes(pieces, limit):
            body.write(piece)
    except BaseException:
        body.close()
        raise
    body.seek(0)
    return body


def _limit_bytes(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    for piece in pieces:
        limit -= len(piece)
        if limit < 0:
            raise BodyTooLargeError
        yield piece


def iter_pieces(file: ByteReader) -> Iterator[bytes]:
    """Yield the rest of a file in pieces."""
    while piece := file.read(_PIECE_BYTES):
        yield piece
