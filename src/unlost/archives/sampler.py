"""Samples an archive that has no index: pages of a list, or hits of its full-text search."""

import asyncio
import html
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from urllib.parse import quote

from unlost import dates
from unlost import uri as addresses
from unlost.archives.base import ArchiveClient, FetchedCapture, has_content
from unlost.archives.sample_state import UNKNOWN, SampledMementos, SampledPage, SampleOutcome, SampleState, SearchTerm
from unlost.capture import Capture
from unlost.clock import Clock
from unlost.errors import DateError, ExcludedError, FailedError, ListCutError, NotNowError, UnsupportedError, UriError
from unlost.http.models import HttpClient, HttpRequest
from unlost.problems import Problem, Problems
from unlost.registry.models import Archive, RequestKind
from unlost.text_lines import TextSource, read_urls, source_name

_INSPECTED_BYTES = 1 << 16  # bytes of a page: its first tag is near its beginning
_HTML_TAG = re.compile(rb"<html\b([^>]{0,4000})>", re.IGNORECASE)
_LANG_ATTRIBUTE = re.compile(rb"""(?:^|\s)(?:xml:)?lang\s*=\s*["']?\s*([A-Za-z0-9_-]{1,64})""", re.IGNORECASE)
# The first part of a tag of RFC 5646 names the language; private use (`x-…`) and `i-…` name none that others know.
_LANGUAGE_TAG = re.compile(r"([A-Za-z]{2,8})(?:[-_][A-Za-z0-9]{1,8})*", re.ASCII)


def language_tag(text: object) -> str | None:
    """Return the language that a tag names, in lower case and without its region; None if it is no tag.

    >>> language_tag("pt-BR"), language_tag("EN"), language_tag("x-klingon"), language_tag(7), language_tag("")
    ('pt', 'en', None, None, None)
    """
    found = _LANGUAGE_TAG.fullmatch(text.strip()) if isinstance(text, str) and len(text) <= 100 else None
    return found[1].lower() if found else None


def capture_language(capture: FetchedCapture) -> str | None:
    """Return the language of a stored copy: of its `<html lang>`, or else of a Content-Language with just one.

    The body is left at its beginning.
    """
    head = capture.body.read(_INSPECTED_BYTES)
    capture.body.seek(0)
    tag = _HTML_TAG.search(head)
    attribute = _LANG_ATTRIBUTE.search(tag[1]) if tag else None
    if attribute and (told := language_tag(attribute[1].decode("ascii"))):
        return told
    # Several languages are an audience's, not the page's.
    return language_tag(capture.header("Content-Language"))


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

    >>> normalize_mime("Text/HTML; charset=utf-8"), normalize_mime("text html"), normalize_mime(None)
    ('text/html', '-', '-')
    """
    if not isinstance(told, str):
        return UNKNOWN
    mime = told[:200].partition(";")[0].strip().lower()
    return mime if _MIME.fullmatch(mime) else UNKNOWN


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


HITS_PER_PAGE = 50
"""What Arquivo.pt gives if it is not told otherwise; it gives 500 at most, over all pages of a search."""
SEARCH_PROBLEM_KINDS = {
    "bad-result": "a result that is no object with an address",
    "foreign-scheme": "a result of something that is no web page",
    "bad-address": "a result with an address that is none",
}
"""The results that are left out, and why."""
_MAX_SEARCH_BYTES = 1 << 24  # of an answer: fifty results have about 100,000
_MAX_TEXT = 2000  # characters of a title or a snippet that are looked at
_MAX_WORDS = 1000  # of one page of results
_MARKUP_TAG = re.compile(r"<[^<>]{0,200}>")
_WORD = re.compile(r"[^\W\d_]{3,30}")
# Numbers stay as they are written, however long.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One result. held: one memento, with what the archive tells of it. text: its title and snippet."""

    key: str
    uri: bytes
    mementos: SampledMementos
    text: str


@dataclass(frozen=True, slots=True)
class SearchResultPage:
    """A page of results.

    count: how many there were, also of those that could not be read.
    more: whether the archive says that there is another page.
    digest: tells this page from another.
    """

    hits: tuple[SearchHit, ...]
    count: int
    has_more: bool
    digest: str

    def words(self) -> list[str]:
        """Return the words of titles and snippets, each once, in their order, in lower case.

        >>> held = SampledMementos("20140101000000", "text/html", "-", 1)
        >>> one = SearchHit("com,a)/", b"http://a.com/", held, "A <b>Boat</b> &amp; the <i>boat</i> of 1998")
        >>> SearchResultPage((one,), 1, False, "").words()
        ['boat', 'the']
        """
        words: dict[str, None] = {}
        for result in self.hits:
            text = html.unescape(_MARKUP_TAG.sub(" ", result.text))
            words |= dict.fromkeys(word.lower() for word in _WORD.findall(text))
            if len(words) >= _MAX_WORDS:
                break
        return list(words)[:_MAX_WORDS]


class FullTextSearch:
    """The full-text search of an archive. problems: results that were left out, by `KINDS`."""

    def __init__(self, archive: Archive, client: HttpClient, problems: Problems) -> None:
        if archive.search is None:
            raise UnsupportedError("it has no full-text search", archive.id)
        self._template = archive.search
        self._archive = archive
        self._client = client
        self._problems = problems

    async def search(self, terms: str, offset: int = 0) -> SearchResultPage:
        """Return the results from an offset on. Raises NotNowError, FailedError, ExcludedError."""
        reply = await self._client.send(
            self._archive,
            HttpRequest(
                self._search_url(terms, offset), RequestKind.SEARCH, {"Accept": "application/json"}, _MAX_SEARCH_BYTES
            ),
        )
        with reply.body:
            text = reply.body.read() if has_content(self._archive, reply) else b'{"response_items": []}'
        try:
            answer = _DECODER.decode(text.decode())
        except (ValueError, RecursionError) as error:
            raise FailedError("expected results in JSON, found other text", self._archive.id, "malformed") from error
        items = answer.get("response_items") if isinstance(answer, dict) else None
        if not isinstance(items, list):
            raise FailedError("expected an object with response_items", self._archive.id, "malformed")
        results = tuple(self._parse_hits(items))
        if items and not results:
            raise FailedError("expected results with addresses, found others", self._archive.id, "malformed")
        seen = "\n".join(f"{result.key} {result.mementos.datetime}" for result in results)
        digest = sha256(seen.encode()).hexdigest()
        return SearchResultPage(results, len(items), bool(items) and bool(answer.get("next_page")), digest)

    def _search_url(self, terms: str, offset: int) -> str:
        # Where the next page begins is counted here: a link in an answer could lead anywhere, or nowhere new.
        address = self._template.replace("{terms}", quote(terms.encode("utf-8", "surrogateescape"), safe=""))
        mark = "&" if "?" in address else "?"
        return f"{address}{mark}offset={offset}&maxItems={HITS_PER_PAGE}"

    def _parse_hits(self, items: list[object]) -> Iterator[SearchHit]:
        for number, item in enumerate(items, 1):
            try:
                yield _parse_hit(item)
            except UriError as error:
                kind = "foreign-scheme" if error.kind == "foreign-scheme" else "bad-address"
                self._count_skipped(kind, number)
            except ValueError:
                self._count_skipped("bad-result", number)

    def _count_skipped(self, kind: str, number: int) -> None:
        self._problems.add(Problem(kind, f"{self._archive.id} search", number, 0, SEARCH_PROBLEM_KINDS[kind]))


def _parse_hit(item: object) -> SearchHit:
    """Return what an item says. Raises UriError, or ValueError if it is no result."""
    if not isinstance(item, Mapping):
        raise ValueError("not an object")  # noqa: TRY004  counted with other faults of an item
    uri = item.get("originalURL")
    if not isinstance(uri, str) or not uri.strip():
        raise ValueError("no address")
    encoded = uri.strip().encode()  # half a surrogate pair is a ValueError
    told = item.get("mimeType")
    held = SampledMementos(_parse_timestamp(item.get("tstamp")), normalize_mime(told), _hit_language(item), 1)
    texts = (item.get("title"), item.get("snippet"))
    text = " ".join(text[:_MAX_TEXT] for text in texts if isinstance(text, str))
    return SearchHit(addresses.key(encoded), encoded, held, text)


def _parse_timestamp(told: object) -> str:
    try:
        return dates.pad(told) if isinstance(told, str) and len(told) <= 14 else UNKNOWN
    except DateError:
        return UNKNOWN


def _hit_language(item: Mapping[object, object]) -> str:
    """Return the language of a result, where an archive tells it by any of the usual names."""
    told = (language_tag(item.get(name)) for name in ("language", "lang", "contentLanguage"))
    return next((tag for tag in told if tag), UNKNOWN)


class SearchSampler:
    """Searches for the terms of a state that have not had their turn yet, one page of results after the other.

    pages: how many pages of results of one search are asked for at most.
    seed: of the order in which words that were found get their turn; None to search for none of them.
    on_answer: is told of every page of results.
    """

    def __init__(
        self,
        state: SampleState,
        search: FullTextSearch,
        *,
        pages: int,
        seed: int | None = None,
        on_answer: Callable[[], object] = lambda: None,
    ) -> None:
        self._state = state
        self._search = search
        self._pages = pages
        self._seed = seed
        self._on_answer = on_answer

    async def run(self, requests: int) -> EarlyStop | None:
        """Search until so many requests were sent, over all runs, or nothing is left; return why it ended early.

        A search that fails is passed over; the next run goes on with it. Whoever is killed and goes on comes to what
        he would have come to otherwise: all that a step depends on is kept with the one before.
        """
        self._state.retry_failed()
        failures = 0
        while self._state.requests < requests and (term := self._state.next_term()) is not None:
            try:
                results = await self._search.search(term.term, term.offset)
            except NotNowError as error:
                return EarlyStop(error)
            except (FailedError, ExcludedError) as error:
                self._state.record_search_failure(term, error.kind if isinstance(error, FailedError) else "excluded")
                failures += 1
                if failures >= MAX_CONSECUTIVE_FAILURES:
                    return EarlyStop(error, failures)
            else:
                failures = 0
                self._record_results(term, results)
            self._on_answer()
        return None

    def _record_results(self, term: SearchTerm, results: SearchResultPage) -> None:
        repeats = results.digest == term.last_page
        done = repeats or not results.has_more or term.pages + 1 >= self._pages
        words = [] if self._seed is None else [(word, word_rank(word, self._seed)) for word in results.words()]
        found = ((result.key, result.uri, result.mementos) for result in results.hits)
        self._state.record_search(
            term, found, offset=term.offset + results.count, digest=results.digest, done=done, words=words
        )


def word_rank(word: str, seed: int) -> bytes:
    """Return the place of a word in an order that is the same for everybody with the same seed, and else at random.

    Taking the lowest of those that are known is choosing among them at random, without a generator whose state would
    have to be kept.
    """
    return sha256(f"{seed} {word}".encode()).digest()[:8]
