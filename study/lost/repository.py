"""A made-up repository that is asked as any other, and counts what it is asked."""

import hashlib
import io
from collections import Counter
from collections.abc import AsyncIterator, Sequence

from study.lost.habits import Habit, Held
from unlost import uri as addresses
from unlost.archives import FetchedCapture, PrefixQuery, pad_range
from unlost.capture import Capture
from unlost.errors import ListCutError
from unlost.registry import Archive, ArchiveKind, RequestKind
from unlost.warc import format_sha1


class MadeRepository:
    """A `Repository` whose copies are in memory.

    It costs what one on the network costs: a request for each page of a list, for the captures of one address, for a
    copy. Lists of a deep one have digests, as indexes do; those of search engines tell dates, and nothing else.

    sent: requests, by archive and kind of work; is counted on by all repositories of a recovery together.
    """

    def __init__(self, habit: Habit, held: Sequence[Held], sent: Counter[tuple[str, RequestKind]]) -> None:
        self.archive = Archive(habit.id, habit.name, ArchiveKind.MEMENTO, deep=habit.deep)
        self._habit = habit
        self._sent = sent
        self._held: dict[str, list[Held]] = {}
        for each in held:
            self._held.setdefault(addresses.key(each.uri), []).append(each)

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield the copies of an address by date."""
        self._count(RequestKind.INDEX)
        for each in self._held.get(addresses.key(uri), ()):
            yield self._capture(each)

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Yield the copies below a prefix; after as many as it lists, raises ListCutError."""
        below = PrefixQuery.parse(prefix)
        begin, end = pad_range(first, last)
        found = [each for key in self._held if below.covers(key) for each in self._held[key]]
        found = [each for each in found if begin <= each.datetime <= end]
        shown = found[: self._habit.cap]
        self._count(RequestKind.INDEX, max(1, -(-len(shown) // self._habit.rows)))
        for each in shown:
            yield self._capture(each)
        if len(shown) < len(found):
            raise ListCutError(f"only the first {len(shown)} are listed", self.archive.id)

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Return the copy that a capture speaks of; None if it is a miss."""
        self._count(RequestKind.REPLAY)
        for each in self._held.get(addresses.key(capture.uri), ()):
            if (each.uri, each.datetime) == (capture.uri, capture.datetime) and not each.missed:
                headers = (("Content-Type", each.file.mime),)
                return FetchedCapture(self._capture(each), headers, io.BytesIO(each.file.body))
        return None

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Not asked by a recovery."""
        raise NotImplementedError

    async def last_capture_date(self, uri: str) -> str | None:
        """Not asked by a recovery."""
        raise NotImplementedError

    def _count(self, work: RequestKind, requests: int = 1) -> None:
        self._sent[self.archive.id, work] += requests

    def _capture(self, held: Held) -> Capture:
        return Capture(
            held.uri,
            addresses.key(held.uri),
            held.datetime,
            200,
            held.file.mime,
            digest_of(held.file.body) if self._habit.deep else None,
            archive=self.archive.id,
            migrated=held.migrated,
        )


def digest_of(body: bytes) -> str:
    """Return the digest of a body, as indexes have it."""
    return format_sha1(hashlib.sha1(body, usedforsecurity=False))
