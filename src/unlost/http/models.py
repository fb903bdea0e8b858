"""Requests to archives and their responses, the client protocol, and the kinds of failure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

from unlost.registry.models import Archive, RequestKind

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
"""The kinds, and what each means."""


@dataclass(slots=True)
class PartialResponse:
    """What was received of a response whose body broke off, was late or too large, or was cancelled.

    reply: the response with the beginning of its body; None if nothing of a body was received.
    """

    response: "HttpResponse | None" = None


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request.

    work: what it costs the archive.
    headers: in addition to those that every request has.
    max_bytes: the largest answer, uncompressed, that is of any use.
    redirects: how many redirects may be followed; with 0 the redirect itself is the answer.
    to_end: whether the body is all that comes until the connection closes, whatever length is told.
    partial: takes what was received of a body that is not whole, before the error is raised.
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
    """An answer, whole.

    url: where it came from, after redirects.
    headers: as (name, value), in order.
    body: at its beginning, with the transfer's own coding undone; a temporary file that goes with the last reference.
    size: of the body, in bytes.
    """

    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: BinaryIO
    size: int

    def header(self, name: str) -> str | None:
        """Return the first value of a field, in whatever case; None if there is none."""
        return next((value for each, value in self.headers if each.lower() == name.lower()), None)


class HttpClient(Protocol):
    """What a client needs of a courier."""

    async def send(self, archive: Archive, request: HttpRequest) -> HttpResponse:
        """Return the answer, whatever its status, unless the status says that it is no answer.

        It waits for the archive's limits, obeys 429 and 503, and tries again where that helps. Raises NotNowError,
        FailedError.
        """
        ...
