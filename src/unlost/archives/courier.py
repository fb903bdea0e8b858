"""Carries questions to archives and brings answers back: the one place that opens connections to them."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol, Self, cast

import aiohttp

from unlost.archives.archive import Archive, Work
from unlost.errors import FailedError

_IN_MEMORY = 1 << 20  # bytes of an answer; what is larger goes to a temporary file
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Question:
    """One request.

    work: what it costs the archive.
    headers: in addition to those that every request has.
    max_bytes: the largest answer, uncompressed, that is of any use.
    redirects: how many redirects may be followed; with 0 the redirect itself is the answer.
    """

    url: str
    work: Work
    headers: Mapping[str, str] = field(default_factory=dict)
    max_bytes: int = 1 << 26
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class Reply:
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


class Asks(Protocol):
    """What a client needs of a courier."""

    async def ask(self, archive: Archive, question: Question) -> Reply:
        """Return the answer, whatever its status, unless the status says that it is no answer.

        It waits for the archive's limits, obeys 429 and 503, and tries again where that helps. Raises NotNowError,
        FailedError.
        """
        ...


class Courier:
    """Asks archives, with one pool of connections for all. Use it as an async context manager."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open the pool."""
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()

    async def ask(self, archive: Archive, question: Question) -> Reply:
        """Return the answer. Raises FailedError."""
        if self._session is None:
            raise RuntimeError("use `async with Courier(…)`")
        body = cast("BinaryIO", tempfile.SpooledTemporaryFile(_IN_MEMORY))  # noqa: SIM115  the reply's to keep
        async with self._session.get(
            question.url,
            headers=dict(question.headers),
            allow_redirects=question.redirects > 0,
            max_redirects=max(1, question.redirects),
        ) as answer:
            size = 0
            async for data in answer.content.iter_chunked(_CHUNK):
                size += len(data)
                if size > question.max_bytes:
                    raise FailedError(f"more than {question.max_bytes} bytes", archive.id, "too-large")
                body.write(data)
            body.seek(0)
            headers = tuple((name, value) for name, value in answer.headers.items())
            return Reply(str(answer.url), answer.status, headers, body, size)
