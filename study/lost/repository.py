"""A simulated repository with the interface of an archive client, which counts its requests."""

import hashlib
import io
from collections import Counter
from collections.abc import AsyncIterator, Sequence

from study.lost.repository_models import RepositoryCapture, RepositoryModel
from unlost import uri as unlost_uri
from unlost.archives import FetchedCapture, PrefixQuery, pad_range
from unlost.capture import Capture
from unlost.errors import ListCutError
from unlost.registry import Archive, ArchiveKind, RequestKind
from unlost.warc import format_sha1


class SimulatedRepository:
    """An `ArchiveClient` whose captures are in memory.

    It costs as many requests as a real one: one for each page of a listing, for the captures of one URL, and for each
    fetched capture. Listings of an archive with versions have digests; those of search engines have only dates.

    Args:
        model: Parameters of the repository.
        held: Its captures.
        sent: Requests by archive and kind, shared by all repositories of a recovery.
    """

    def __init__(
        self, model: RepositoryModel, held: Sequence[RepositoryCapture], sent: Counter[tuple[str, RequestKind]]
    ) -> None:
        self.archive = Archive(model.id, model.name, ArchiveKind.MEMENTO, deep=model.keeps_versions)
        self._model = model
        self._requests = sent
        self._captures_by_key: dict[str, list[RepositoryCapture]] = {}
        for each in held:
            self._captures_by_key.setdefault(unlost_uri.key(each.uri), []).append(each)

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield the captures of a URL by date."""
        self._count(RequestKind.INDEX)
        for each in self._captures_by_key.get(unlost_uri.key(uri), ()):
            yield self._capture(each)

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Yield the captures below a prefix; raises ListCutError after the maximum number of rows."""
        below = PrefixQuery.parse(prefix)
        start, end = pad_range(first, last)
        found = [each for key in self._captures_by_key if below.covers(key) for each in self._captures_by_key[key]]
        found = [each for each in found if start <= each.datetime <= end]
        listed = found[: self._model.max_rows]
        self._count(RequestKind.INDEX, max(1, -(-len(listed) // self._model.page_rows)))
        for each in listed:
            yield self._capture(each)
        if len(listed) < len(found):
            raise ListCutError(f"only the first {len(listed)} are listed", self.archive.id)

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Fetch a capture; None if it is a miss."""
        self._count(RequestKind.REPLAY)
        for each in self._captures_by_key.get(unlost_uri.key(capture.uri), ()):
            if (each.uri, each.datetime) == (capture.uri, capture.datetime) and not each.is_miss:
                headers = (("Content-Type", each.content.mime),)
                return FetchedCapture(self._capture(each), headers, io.BytesIO(each.content.body))
        return None

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Not used by a recovery."""
        raise NotImplementedError

    async def last_capture_date(self, uri: str) -> str | None:
        """Not used by a recovery."""
        raise NotImplementedError

    def _count(self, kind: RequestKind, requests: int = 1) -> None:
        self._requests[self.archive.id, kind] += requests

    def _capture(self, capture: RepositoryCapture) -> Capture:
        return Capture(
            capture.uri,
            unlost_uri.key(capture.uri),
            capture.datetime,
            200,
            capture.content.mime,
            body_digest(capture.content.body) if self._model.keeps_versions else None,
            archive=self.archive.id,
            migrated=capture.migrated,
        )


def body_digest(body: bytes) -> str:
    """Return the SHA-1 digest of a body in the form of CDX files."""
    return format_sha1(hashlib.sha1(body, usedforsecurity=False))
