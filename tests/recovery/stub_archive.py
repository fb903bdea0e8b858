"""An in-memory `ArchiveClient` that records its requests."""

import base64
import hashlib
import io
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, replace

from unlost import uri as uris
from unlost.archives import FetchedCapture, PrefixQuery
from unlost.capture import Capture
from unlost.errors import ArchiveError, UnsupportedError
from unlost.registry import Archive, ArchiveKind


@dataclass(frozen=True)
class Held:
    """A stored capture. digest: as in the index; None for the true one, empty for none."""

    uri: str
    datetime: str
    body: bytes = b"<p>a page"
    mime: str = "text/html"
    status: int = 200
    redirect: str | None = None
    digest: str | None = None


def digest_of_bytes(body: bytes) -> str:
    """Return the digest of a body as in indexes."""
    return "sha1:" + base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()


class Stub:
    """An in-memory archive client.

    Attributes:
        before: Called with each request before it is processed; may raise.
        requests: All requests in order: `list PREFIX`, `captures URI` and `fetch DATETIME URI`.
    """

    def __init__(
        self, name: str, held: Iterable[Held], *, lister: bool = True, error: ArchiveError | None = None
    ) -> None:
        self.archive = Archive(name, name, ArchiveKind.PYWB)
        self.held = list(held)
        self.requests: list[str] = []
        self.before: Callable[[str], None] = lambda _: None
        self._lister = lister
        self._list_error = error

    def _record(self, request: str) -> None:
        self.requests.append(request)
        self.before(request)

    @property
    def fetched(self) -> list[str]:
        """URLs of the captures that were fetched."""
        return [request.split(" ", 2)[2] for request in self.requests if request.startswith("fetch")]

    def _capture(self, held: Held) -> Capture:
        digest = digest_of_bytes(held.body) if held.digest is None else held.digest or None
        return Capture(
            held.uri, uris.key(held.uri), held.datetime, held.status, held.mime, digest, archive=self.archive.id,
            urim=f"http://{self.archive.id}.example/{held.datetime}/{held.uri}",
        )  # fmt: skip

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield the captures of a URL."""
        self._record(f"captures {uri}")
        key = uris.key(uri)
        for held in self.held:
            if uris.key(held.uri) == key:
                yield self._capture(held)

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Yield the captures with a prefix."""
        if not self._lister:
            raise UnsupportedError("no lists", self.archive.id)
        self._record(f"list {prefix}")
        query = PrefixQuery.parse(prefix)
        for held in self.held:
            if query.covers(uris.key(held.uri)) and (first or "") <= held.datetime <= (last or "9"):
                yield self._capture(held)
        if self._list_error is not None:
            raise self._list_error

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Return this capture."""
        self._record(f"fetch {capture.datetime} {capture.uri}")
        for held in self.held:
            if (held.uri, held.datetime) == (capture.uri, capture.datetime):
                whole = replace(self._capture(held), redirect=held.redirect)
                return FetchedCapture(whole, (("Content-Type", held.mime),), io.BytesIO(held.body), source=whole.urim)
        return None

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Fail: a recovery does not call this."""
        raise NotImplementedError

    async def last_capture_date(self, uri: str) -> str | None:
        """Fail: a recovery does not call this."""
        raise NotImplementedError
