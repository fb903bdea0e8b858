"""Looks into some of the copies that archives have: a parked page, or "not found" in words, is nothing to come back."""

import asyncio
from collections.abc import Mapping
from hashlib import sha256

from unlost.archives.repository import ArchiveClient, FetchedCapture
from unlost.errors import ArchiveError, UriError
from unlost.measure.availability.asking import run_all
from unlost.measure.availability.standing import ResourceAvailability
from unlost.measure.visits.present import CurrentVisit
from unlost.pages.verdicts import PageResponse, classify_page

GOOD_CAPTURE = ""
"""Stands for a copy that nothing speaks against."""

_MAX_ARCHIVES = 2  # that are asked for copies of one page, those with the newest first
_CONCURRENT_PAGES = 4  # pages
_MAX_CLASSIFIED_BYTES = 1 << 20  # bytes of a copy whose words are looked at
_MAX_CAPTURE_FAILURES = 3  # in a row, after which an archive is not asked for copies any more


class CaptureSampler:
    """Fetches copies of pages that are on the web and in archives, drawn as good as at random, and judges them.

    repositories: whom to ask. most: how many pages. What was judged before is not fetched again.
    """

    def __init__(self, visit: CurrentVisit, repositories: Mapping[str, ArchiveClient], max_pages: int) -> None:
        self._visit = visit
        self._repositories = repositories
        self._max_pages = max_pages
        self._failures: dict[str, int] = {}

    async def classify_sample(self, archives: tuple[str, ...]) -> None:
        """Judge them, and keep what came of it. What an archive fails to give is not judged: a later run may."""
        there = [
            (sha256(standing.live.key.encode("utf-8", "surrogatepass")).digest(), number, standing)
            for number, standing in self._visit.numbered_availabilities(archives)
            if standing.is_classifiable
        ]
        there.sort(key=lambda each: each[0])
        known = self._visit.verdicts()
        left = iter([(number, each) for _, number, each in there[: self._max_pages] if number not in known])

        async def work() -> None:
            for number, standing in left:
                verdict = await self._verdict(standing)
                if verdict is not None:
                    self._visit.record_verdict(number, verdict)

        await run_all(work() for _ in range(_CONCURRENT_PAGES))

    async def _verdict(self, standing: ResourceAvailability) -> str | None:
        """Return what is wrong with the copies of a page, in a word, `GOOD` if one is good; None if nobody can tell.

        Of each archive its last copy is fetched, and its first one if that is bad.
        """
        first_word: str | None = None
        for held in sorted(standing.held, key=lambda each: each.last, reverse=True)[:_MAX_ARCHIVES]:
            for date in dict.fromkeys((held.last, held.first)):
                word = await self._classify_capture(held.archive, standing.live.uri, date)
                if word is None:
                    return None
                if word == GOOD_CAPTURE:
                    return GOOD_CAPTURE
                first_word = first_word or word
        return first_word

    async def _classify_capture(self, archive: str, uri: str, date: str) -> str | None:
        repository = self._repositories.get(archive)
        if repository is None or self._failures.get(archive, 0) >= _MAX_CAPTURE_FAILURES:
            return None
        try:
            copy = await repository.get(uri, date)
        except (ArchiveError, UriError):
            self._failures[archive] = self._failures.get(archive, 0) + 1
            return None
        self._failures[archive] = 0
        return "absent" if copy is None else await asyncio.to_thread(_classify_body, copy)


def _classify_body(copy: FetchedCapture) -> str:
    capture = copy.capture
    with copy.body:
        copy.body.seek(0)
        body = copy.body.read(_MAX_CLASSIFIED_BYTES)
    if capture.status is not None and not 200 <= capture.status < 300:
        return "error"
    found = classify_page(PageResponse(capture.uri, capture.datetime, capture.status, capture.mime, body, copy.headers))
    return GOOD_CAPTURE if found is None else found.kind.value
