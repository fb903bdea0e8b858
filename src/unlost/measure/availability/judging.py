"""Looks into some of the copies that archives have: a parked page, or "not found" in words, is nothing to come back."""

import asyncio
from collections.abc import Mapping
from hashlib import sha256

from unlost.archives.repository import Repository, StoredCopy
from unlost.errors import ArchiveError, UriError
from unlost.measure.availability.asking import all_of
from unlost.measure.availability.standing import Standing
from unlost.measure.visits.present import Present
from unlost.pages.verdicts import Answer, verdict_of

GOOD = ""
"""Stands for a copy that nothing speaks against."""

_ARCHIVES = 2  # that are asked for copies of one page, those with the newest first
_AT_ONCE = 4  # pages
_JUDGED = 1 << 20  # bytes of a copy whose words are looked at
_FAILURES = 3  # in a row, after which an archive is not asked for copies any more


class Judging:
    """Fetches copies of pages that are on the web and in archives, drawn as good as at random, and judges them.

    repositories: whom to ask. most: how many pages. What was judged before is not fetched again.
    """

    def __init__(self, present: Present, repositories: Mapping[str, Repository], most: int) -> None:
        self._present = present
        self._repositories = repositories
        self._most = most
        self._failures: dict[str, int] = {}

    async def judge(self, archives: tuple[str, ...]) -> None:
        """Judge them, and keep what came of it. What an archive fails to give is not judged: a later run may."""
        there = [
            (sha256(standing.live.key.encode("utf-8", "surrogatepass")).digest(), number, standing)
            for number, standing in self._present.numbered(archives)
            if standing.is_judgeable
        ]
        there.sort(key=lambda each: each[0])
        known = self._present.judged()
        left = iter([(number, each) for _, number, each in there[: self._most] if number not in known])

        async def work() -> None:
            for number, standing in left:
                verdict = await self._verdict(standing)
                if verdict is not None:
                    self._present.judge(number, verdict)

        await all_of(work() for _ in range(_AT_ONCE))

    async def _verdict(self, standing: Standing) -> str | None:
        """Return what is wrong with the copies of a page, in a word, `GOOD` if one is good; None if nobody can tell.

        Of each archive its last copy is fetched, and its first one if that is bad.
        """
        first_word: str | None = None
        for held in sorted(standing.held, key=lambda each: each.last, reverse=True)[:_ARCHIVES]:
            for date in dict.fromkeys((held.last, held.first)):
                word = await self._word(held.archive, standing.live.uri, date)
                if word is None:
                    return None
                if word == GOOD:
                    return GOOD
                first_word = first_word or word
        return first_word

    async def _word(self, archive: str, uri: str, date: str) -> str | None:
        repository = self._repositories.get(archive)
        if repository is None or self._failures.get(archive, 0) >= _FAILURES:
            return None
        try:
            copy = await repository.get(uri, date)
        except (ArchiveError, UriError):
            self._failures[archive] = self._failures.get(archive, 0) + 1
            return None
        self._failures[archive] = 0
        return "absent" if copy is None else await asyncio.to_thread(_judged, copy)


def _judged(copy: StoredCopy) -> str:
    capture = copy.capture
    with copy.body:
        copy.body.seek(0)
        body = copy.body.read(_JUDGED)
    if capture.status is not None and not 200 <= capture.status < 300:
        return "error"
    found = verdict_of(Answer(capture.uri, capture.datetime, capture.status, capture.mime, body, copy.headers))
    return GOOD if found is None else found.kind.value
