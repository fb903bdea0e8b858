"""Asks an archive for the pages of a list, within its limits, and keeps what it answers."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice

from unlost import uri as addresses
from unlost.archives.repository import ArchiveClient
from unlost.archives.sampling.language import capture_language
from unlost.archives.sampling.state import UNKNOWN, SampledMementos, SampleOutcome, SampledPage, SampleState
from unlost.clock import Clock
from unlost.errors import ExcludedError, FailedError, ListCutError, NotNowError, UnsupportedError, UriError
from unlost.formats.capture import Capture
from unlost.formats.problems import Problem, Problems
from unlost.formats.textfile import TextSource, source_name
from unlost.formats.urllist import read_urls

MAX_CONSECUTIVE_FAILURES = 20
"""So many failures behind each other end a run: an archive that is out of order is not asked a million times."""

_BATCH = 2_000  # addresses of which keys are made at a time
_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9][a-z0-9!#$&^_.+-]{0,100}", re.ASCII)
_PAGE_TYPES = (None, "text/html", "application/xhtml+xml")
_SURT = re.compile(rb"[^/?#]*\)")  # what no address has before its path


class SampleUrlList:
    """The addresses of a list, with their keys; iterating reads it, in bounded memory.

    count: how many there were so far. digest: of them all, once they were read.
    Addresses that are none are counted in `problems`. Raises what `read_urls` does.
    """

    def __init__(self, source: TextSource, problems: Problems, name: str | None = None) -> None:
        self._source = source
        self._problems = problems
        self._name = name
        self._digest = sha256()
        self.count = 0

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """Yield the key of each address, and the address."""
        name = source_name(self._source, self._name)
        lines = read_urls(self._source, self._problems, self._name)
        while batch := list(islice(lines, _BATCH)):
            texts = [_line_to_url(line.text) for line in batch]
            for line, text, key in zip(batch, texts, addresses.key_many(texts), strict=True):
                self._digest.update(line.text + b"\n")
                if isinstance(key, UriError):
                    self._problems.add(Problem(key.kind, name, line.number, line.offset, str(key)))
                else:
                    self.count += 1
                    yield key, text

    @property
    def digest(self) -> str:
        """What tells this list from another."""
        return self._digest.hexdigest()


def _line_to_url(text: bytes) -> bytes:
    """Return a line as an address, where it is a SURT."""
    if not _SURT.match(text):
        return text
    try:
        return addresses.unsurt(text).encode()
    except UriError:
        return text


@dataclass(slots=True)
class EarlyStop:
    """Why a run ended before all was asked. error: what the archive, or the machine, said."""

    error: Exception
    failures: int = 0


class ArchiveSampler:
    """Asks for the pages of a state that were not answered yet.

    repository: whom to ask. clock: tells when answers came.
    language: whether to look into one copy of each page for its language, by a request for replay.
    on_answer: is told of every page that was asked for.
    """

    def __init__(
        self,
        state: SampleState,
        client: ArchiveClient,
        clock: Clock,
        *,
        language: bool = False,
        on_answer: Callable[[], object] = lambda: None,
    ) -> None:
        self._state = state
        self._client = client
        self._clock = clock
        self._language = language
        self._on_answer = on_answer
        self._failures = 0
        self._stop: EarlyStop | None = None

    async def run(self, concurrency: int = 4, limit: int | None = None) -> EarlyStop | None:
        """Ask for all that is left of the first `limit` pages, some at once; return why it ended early, if it did.

        Pages that fail are passed over; the next run asks for them again. Raises UnsupportedError, and OSError if what
        came cannot be kept.
        """
        pages = self._state.iter_unanswered(limit)
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(self._work(pages))
        if self._stop is not None and not isinstance(self._stop.error, NotNowError | FailedError):
            raise self._stop.error
        return self._stop

    async def _work(self, pages: Iterator[SampledPage]) -> None:
        while self._stop is None and (page := next(pages, None)) is not None:
            try:
                await self._sample_page(page)
            except Exception as error:  # noqa: BLE001  raised again when the others have kept what they were told
                # The first one counts; those of the others who were on their way follow from it.
                self._stop = self._stop or EarlyStop(error)

    async def _sample_page(self, page: SampledPage) -> None:
        begun = self._clock.now()
        tally = _CaptureTally()
        try:
            outcome = await self._count_captures(page, tally)
            language = await self._read_language(tally) if self._language and outcome == "hit" else UNKNOWN
        except FailedError as error:
            self._record_outcome(page, error.kind, begun, _CaptureTally())
            self._failures += 1
            if self._failures >= MAX_CONSECUTIVE_FAILURES:
                self._stop = self._stop or EarlyStop(error, self._failures)
            return
        self._failures = 0
        self._record_outcome(page, outcome, begun, tally, language)

    async def _count_captures(self, page: SampledPage, tally: "_CaptureTally") -> str:
        """Count the captures of a page, and return the outcome."""
        try:
            async for capture in self._client.captures(page.uri):
                tally.add(capture)
        except ListCutError:
            if not tally.mementos:
                raise FailedError("the list was cut before its first row", self._client.archive.id, "cut") from None
        except ExcludedError:
            return "excluded"
        except UriError as error:
            # Its key could be made, so this is the client's word on what it can send.
            raise FailedError(str(error), self._client.archive.id, "malformed") from error
        return "hit" if tally.mementos else "miss"

    async def _read_language(self, tally: "_CaptureTally") -> str:
        if tally.language_capture is None:
            return UNKNOWN
        try:
            copy = await self._client.fetch(tally.language_capture)
        except (ExcludedError, UnsupportedError):
            return UNKNOWN
        if copy is None:
            return UNKNOWN
        with copy.body:
            return capture_language(copy) or UNKNOWN

    def _record_outcome(
        self, page: SampledPage, outcome: str, begun: float, tally: "_CaptureTally", language: str = UNKNOWN
    ) -> None:
        now = self._clock.now()
        told = outcome in ("hit", "miss")
        self._state.record_outcome(
            page,
            SampleOutcome(
                outcome,
                _iso(now),
                max(0.0, round(1000 * (now - begun), 3)),
                tally.mementos if told else None,
                tally.first if told else None,
                tally.last if told else None,
            ),
            tally.iter_counts(language) if outcome == "hit" else (),
        )
        self._on_answer()


class _CaptureTally:
    """What is counted of the captures of one page. shown: the last one that may be a page with a language."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self.mementos = 0
        self.first: str | None = None
        self.last: str | None = None
        self.language_capture: Capture | None = None

    def add(self, capture: Capture) -> None:
        """Count one."""
        self.mementos += 1
        moment = capture.datetime
        self.first = min(self.first or moment, moment)
        self.last = max(self.last or moment, moment)
        self._counts[moment[:4], normalize_mime(capture.mime)] += 1
        may_tell = capture.status in (None, 200) and capture.mime in _PAGE_TYPES and not capture.revisit
        if may_tell and (self.language_capture is None or moment > self.language_capture.datetime):
            self.language_capture = capture

    def iter_counts(self, language: str) -> Iterator[SampledMementos]:
        """Yield what was counted, by year and media type."""
        for (year, mime), count in self._counts.items():
            yield SampledMementos(year, mime, language, count)


def normalize_mime(told: object) -> str:
    """Return a media type as a key field has it, or `UNKNOWN`: not everything that is told is one.

    >>> known_mime("Text/HTML; charset=utf-8"), known_mime("text html"), known_mime(None)
    ('text/html', '-', '-')
    """
    if not isinstance(told, str):
        return UNKNOWN
    mime = told[:200].partition(";")[0].strip().lower()
    return mime if _MIME.fullmatch(mime) else UNKNOWN


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
