"""Samples an archive without an index: queries the pages of a list, or collects hits of its full-text search.

The results become a MementoMap. A killed run loses at most the request in progress: what the next step depends on is
stored together with the previous one, and random choices are hashes of a seed, so that a resumed run makes the same
ones.
"""

import asyncio
import html
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from unlost import dates
from unlost.archives.base import ArchiveClient, FetchedCapture, has_content
from unlost.archives.sample_state import (
    ANSWERED_OUTCOMES,
    UNKNOWN,
    SampledMementos,
    SampledPage,
    SampleOutcome,
    SampleState,
    SearchTerm,
)
from unlost.atomic import atomic_file
from unlost.capture import Capture
from unlost.clock import Clock, SystemClock
from unlost.errors import DateError, ExcludedError, FailedError, ListCutError, NotNowError, UnsupportedError, UriError
from unlost.http.circuit_breaker import CircuitBreaker
from unlost.http.models import HttpClient, HttpRequest
from unlost.http.policy import POLICIES
from unlost.index.ukvs import UkvsHeader, UkvsRow, write_ukvs
from unlost.logs.upstream import UpstreamLogEntry, UpstreamOutcome, format_log_entry
from unlost.mementomap.builder import MAP_CONTEXT
from unlost.mementomap.map_file import FORMAT_VERSION, atomic_map_file, with_row_bytes
from unlost.problems import Problem, Problems
from unlost.registry.models import Archive, RequestKind
from unlost.text_lines import TextSource, read_urls, source_name
from unlost.uri import DEFAULT_RULES, keys
from unlost.uri.normalize import normalize_input_url

HITS_PER_PAGE = 50
"""Results per page: the default of Arquivo.pt, which returns at most 500 results over all pages of a search."""
SEARCH_PROBLEM_KINDS = {
    "bad-result": "a result that is no object with an address",
    "foreign-scheme": "a result of something that is no web page",
    "bad-address": "a result with an address that is none",
}
"""The kinds of results that are skipped, and why."""
_INSPECTED_BYTES = 1 << 16  # beginning of a page, which contains its first tag
_HTML_TAG = re.compile(rb"<html\b([^>]{0,4000})>", re.IGNORECASE)
_LANG_ATTRIBUTE = re.compile(rb"""(?:^|\s)(?:xml:)?lang\s*=\s*["']?\s*([A-Za-z0-9_-]{1,64})""", re.IGNORECASE)
# The first subtag is the language (RFC 5646, section 2.2.1). Private-use and grandfathered tags do not match.
_LANGUAGE_TAG = re.compile(r"([A-Za-z]{2,8})(?:[-_][A-Za-z0-9]{1,8})*", re.ASCII)
_BATCH_URLS = 2_000  # whose keys are computed at once
_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9][a-z0-9!#$&^_.+-]{0,100}", re.ASCII)
_PAGE_TYPES = (None, "text/html", "application/xhtml+xml")
_SURT = re.compile(rb"[^/?#]*\)")  # a URL has no parenthesis before its path
_MAX_SEARCH_BYTES = 1 << 24  # of a response; fifty results have about 100,000 bytes
_MAX_TEXT = 2000  # characters of a title or a snippet
_MAX_WORDS = 1000  # of one page of results
_MARKUP_TAG = re.compile(r"<[^<>]{0,200}>")
_WORD = re.compile(r"[^\W\d_]{3,30}")
# Numbers are decoded as text, however large.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)

FIELDS = {"year": "datetime", "mime": "mime", "language": "language"}
"""The properties by which rows can be distinguished, and the key field of each, in order."""

_LOGGED_OUTCOMES: dict[str, UpstreamOutcome] = {
    "hit": "hit",
    "miss": "miss",
    "excluded": "http-4xx",
    "refused": "refused",
    "dns": "dns",
    "unreachable": "dns",
    "proxy": "refused",
    "tls": "tls",
    "timeout": "timeout",
    "reset": "reset",
    "status": "http-5xx",
    "too-large": "too-large",
    "redirects": "redirect",
}
"""From outcomes of a sample to those of the log. Any other outcome is logged as `malformed`."""


def language_tag(text: object) -> str | None:
    """Return the language of a language tag, in lower case and without region; None if the tag is invalid.

    >>> language_tag("pt-BR"), language_tag("EN"), language_tag("x-klingon"), language_tag(7), language_tag("")
    ('pt', 'en', None, None, None)
    """
    match = _LANGUAGE_TAG.fullmatch(text.strip()) if isinstance(text, str) and len(text) <= 100 else None
    return match[1].lower() if match else None


def capture_language(capture: FetchedCapture) -> str | None:
    """Return the language of a capture: of its `<html lang>`, or else of a Content-Language with a single tag.

    The body is left at its beginning.
    """
    head = capture.body.read(_INSPECTED_BYTES)
    capture.body.seek(0)
    tag = _HTML_TAG.search(head)
    attribute = _LANG_ATTRIBUTE.search(tag[1]) if tag else None
    if attribute and (language := language_tag(attribute[1].decode("ascii"))):
        return language
    # Several languages are those of the audience (RFC 9110, section 8.5), not of the page.
    return language_tag(capture.header("Content-Language"))


class SampleUrlList:
    """The URLs of a list with their keys. Iterating reads the list in bounded memory.

    Invalid URLs are counted in `problems`. Raises the errors of `read_urls`.

    Attributes:
        count: Number of URLs so far.
    """

    def __init__(self, source: TextSource, problems: Problems, name: str | None = None) -> None:
        self._source = source
        self._problems = problems
        self._name = name
        self._digest = sha256()
        self.count = 0

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """Yield the key of each URL, and the URL."""
        name = source_name(self._source, self._name)
        lines = read_urls(self._source, self._problems, self._name)
        while batch := list(islice(lines, _BATCH_URLS)):
            texts = [_line_to_url(line.text) for line in batch]
            for line, text, key in zip(batch, texts, keys.key_many(texts), strict=True):
                self._digest.update(line.text + b"\n")
                if isinstance(key, UriError):
                    self._problems.add(Problem(key.kind, name, line.number, line.offset, str(key)))
                else:
                    self.count += 1
                    yield key, text

    @property
    def digest(self) -> str:
        """Digest of the whole list, after it was read."""
        return self._digest.hexdigest()


def _line_to_url(text: bytes) -> bytes:
    """Return the URL of a line, which may be a SURT."""
    if not _SURT.match(text):
        return text
    try:
        return keys.unsurt(text).encode()
    except UriError:
        return text


@dataclass(slots=True)
class EarlyStop:
    """Why a run ended early.

    Attributes:
        error: The error that ended it.
        failures: Number of consecutive failures, if they ended it.
    """

    error: Exception
    failures: int = 0


class ArchiveSampler:
    """Queries the pages of a state that have no response yet.

    Args:
        state: The state of the sample.
        client: The client of the archive.
        clock: Clock for the time of responses.
        language: Fetch one capture of each page to detect its language.
        on_answer: Called after every page.
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
        self._breaker = CircuitBreaker(clock, POLICIES["sample"], client.archive.id)
        self._stop: EarlyStop | None = None

    async def run(self, concurrency: int = 4, limit: int | None = None) -> EarlyStop | None:
        """Query the remaining pages, and return why the run ended early; None if it did not.

        Pages that fail are queried again by the next run.

        Args:
            concurrency: Number of concurrent queries.
            limit: Query only the first `limit` pages of the list; None for all.

        Raises:
            UnsupportedError: The archive does not support such queries.
            OSError: An outcome could not be stored.
        """
        pages = self._state.iter_unanswered(limit)
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(self._run_worker(pages))
        if self._stop is not None and not isinstance(self._stop.error, NotNowError | FailedError):
            raise self._stop.error
        return self._stop

    async def _run_worker(self, pages: Iterator[SampledPage]) -> None:
        while self._stop is None and (page := next(pages, None)) is not None:
            try:
                await self._sample_page(page)
            except Exception as error:  # noqa: BLE001  raised again after the other tasks have stored their outcomes
                # The first error counts: the errors of other tasks may be consequences.
                self._stop = self._stop or EarlyStop(error)

    async def _sample_page(self, page: SampledPage) -> None:
        begun = self._clock.now()
        tally = _CaptureTally()
        try:
            outcome = await self._count_captures(page, tally)
            language = await self._read_language(tally) if self._language and outcome == "hit" else UNKNOWN
        except FailedError as error:
            self._record_outcome(page, error.kind, begun, _CaptureTally())
            if self._breaker.record_failure(error.kind, str(error)):
                self._stop = self._stop or EarlyStop(error, POLICIES["sample"].failures)
            return
        self._breaker.record_success()
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
            # The key is valid, so the client rejected the URL.
            raise FailedError(str(error), self._client.archive.id, "malformed") from error
        return "hit" if tally.mementos else "miss"

    async def _read_language(self, tally: "_CaptureTally") -> str:
        if tally.language_capture is None:
            return UNKNOWN
        try:
            fetched = await self._client.fetch(tally.language_capture)
        except (ExcludedError, UnsupportedError):
            return UNKNOWN
        if fetched is None:
            return UNKNOWN
        with fetched.body:
            return capture_language(fetched) or UNKNOWN

    def _record_outcome(
        self, page: SampledPage, outcome: str, begun: float, tally: "_CaptureTally", language: str = UNKNOWN
    ) -> None:
        now = self._clock.now()
        is_counted = outcome in ("hit", "miss")
        self._state.record_outcome(
            page,
            SampleOutcome(
                outcome,
                _iso(now),
                max(0.0, round(1000 * (now - begun), 3)),
                tally.mementos if is_counted else None,
                tally.first if is_counted else None,
                tally.last if is_counted else None,
            ),
            tally.iter_counts(language) if outcome == "hit" else (),
        )
        self._on_answer()


class _CaptureTally:
    """Counts the captures of one page. `language_capture` is the last one that may be HTML."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self.mementos = 0
        self.first: str | None = None
        self.last: str | None = None
        self.language_capture: Capture | None = None

    def add(self, capture: Capture) -> None:
        """Count a capture."""
        self.mementos += 1
        moment = capture.datetime
        self.first = min(self.first or moment, moment)
        self.last = max(self.last or moment, moment)
        self._counts[moment[:4], normalize_mime(capture.mime)] += 1
        may_have_language = capture.status in (None, 200) and capture.mime in _PAGE_TYPES and not capture.revisit
        if may_have_language and (self.language_capture is None or moment > self.language_capture.datetime):
            self.language_capture = capture

    def iter_counts(self, language: str) -> Iterator[SampledMementos]:
        """Yield the numbers of captures, by year and media type."""
        for (year, mime), count in self._counts.items():
            yield SampledMementos(year, mime, language, count)


def normalize_mime(value: object) -> str:
    """Return a media type as key field, or `UNKNOWN` if it is invalid.

    >>> normalize_mime("Text/HTML; charset=utf-8"), normalize_mime("text html"), normalize_mime(None)
    ('text/html', '-', '-')
    """
    if not isinstance(value, str):
        return UNKNOWN
    mime = value[:200].partition(";")[0].strip().lower()
    return mime if _MIME.fullmatch(mime) else UNKNOWN


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One result of a search: one memento, with its title and snippet as `text`."""

    key: str
    uri: bytes
    mementos: SampledMementos
    text: str


@dataclass(frozen=True, slots=True)
class SearchResultPage:
    """A page of results.

    Attributes:
        hits: The valid results.
        count: Number of all results.
        has_more: Whether the archive says that there is another page.
        digest: Digest of the page.
    """

    hits: tuple[SearchHit, ...]
    count: int
    has_more: bool
    digest: str

    def words(self) -> list[str]:
        """Return the distinct words of titles and snippets, in order, in lower case.

        >>> mementos = SampledMementos("20140101000000", "text/html", "-", 1)
        >>> hit = SearchHit("com,a)/", b"http://a.com/", mementos, "A <b>Boat</b> &amp; the <i>boat</i> of 1998")
        >>> SearchResultPage((hit,), 1, False, "").words()
        ['boat', 'the']
        """
        words: dict[str, None] = {}
        for hit in self.hits:
            text = html.unescape(_MARKUP_TAG.sub(" ", hit.text))
            words |= dict.fromkeys(word.lower() for word in _WORD.findall(text))
            if len(words) >= _MAX_WORDS:
                break
        return list(words)[:_MAX_WORDS]


class FullTextSearch:
    """Queries the full-text search of an archive. Skipped results are counted by `SEARCH_PROBLEM_KINDS`."""

    def __init__(self, archive: Archive, client: HttpClient, problems: Problems) -> None:
        if archive.search is None:
            raise UnsupportedError("it has no full-text search", archive.id)
        self._template = archive.search
        self._archive = archive
        self._client = client
        self._problems = problems

    async def search(self, terms: str, offset: int = 0) -> SearchResultPage:
        """Return the results from an offset. Raises NotNowError, FailedError, ExcludedError."""
        response = await self._client.send(
            self._archive,
            HttpRequest(
                self._search_url(terms, offset), RequestKind.SEARCH, {"Accept": "application/json"}, _MAX_SEARCH_BYTES
            ),
        )
        with response.body:
            text = response.body.read() if has_content(self._archive, response) else b'{"response_items": []}'
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
        # The offset is computed here: the link to the next page in a response could lead anywhere.
        url = self._template.replace("{terms}", quote(terms.encode("utf-8", "surrogateescape"), safe=""))
        separator = "&" if "?" in url else "?"
        return f"{url}{separator}offset={offset}&maxItems={HITS_PER_PAGE}"

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
    """Parse a result. Raises UriError, or ValueError if it is not a result."""
    if not isinstance(item, Mapping):
        raise ValueError("not an object")  # noqa: TRY004  counted with other faults of an item
    uri = item.get("originalURL")
    if not isinstance(uri, str) or not uri.strip():
        raise ValueError("no address")
    encoded = uri.strip().encode()  # ValueError for half of a surrogate pair
    mime = normalize_mime(item.get("mimeType"))
    mementos = SampledMementos(_parse_timestamp(item.get("tstamp")), mime, _hit_language(item), 1)
    texts = (item.get("title"), item.get("snippet"))
    text = " ".join(text[:_MAX_TEXT] for text in texts if isinstance(text, str))
    return SearchHit(keys.key(encoded), encoded, mementos, text)


def _parse_timestamp(value: object) -> str:
    try:
        return dates.pad(value) if isinstance(value, str) and len(value) <= 14 else UNKNOWN
    except DateError:
        return UNKNOWN


def _hit_language(item: Mapping[object, object]) -> str:
    """Return the language of a result, from any of the usual field names."""
    languages = (language_tag(item.get(name)) for name in ("language", "lang", "contentLanguage"))
    return next((language for language in languages if language), UNKNOWN)


class SearchSampler:
    """Sends the pending searches of a state, one page of results after the other.

    Args:
        state: The state of the sample.
        search: The full-text search.
        pages: Number of result pages of one search to request.
        seed: Seed of the random order in which words of the results are searched for; None to search only for the given
            terms.
        on_answer: Called after every page of results.
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
        """Search until `requests` were sent, over all runs, or no search is pending; return why it ended early.

        The next run resumes failed searches. An interrupted run resumes with the same result as an uninterrupted one.
        """
        self._state.retry_failed()
        breaker = CircuitBreaker(SystemClock(), POLICIES["sample"])
        while self._state.requests < requests and (term := self._state.next_term()) is not None:
            try:
                results = await self._search.search(term.term, term.offset)
            except NotNowError as error:
                return EarlyStop(error)
            except (FailedError, ExcludedError) as error:
                kind = error.kind if isinstance(error, FailedError) else "excluded"
                self._state.record_search_failure(term, kind)
                if breaker.record_failure(kind, str(error)):
                    return EarlyStop(error, POLICIES["sample"].failures)
            else:
                breaker.record_success()
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
    """Return the rank of a word in a random order that the seed determines.

    Taking the known word with the lowest rank is a random choice without a generator, whose state would have to be
    stored.
    """
    return sha256(f"{seed} {word}".encode()).digest()[:8]


def write_sample_map(
    state: SampleState,
    output: Path,
    *,
    kind: Literal["uris", "search"],
    by: Iterable[str] = (),
    urir: bool = False,
    limit: int | None = None,
    name: str | None = None,
    id: str | None = None,  # noqa: A002  as in `MapOptions`
) -> int:
    """Write the map of a sample, and return the number of its rows.

    All numbers are lower bounds: a key has no query string, and also covers pages that were not queried. A page without
    a row may have mementos nevertheless.

    Args:
        state: The state of the sample, which determines the map.
        output: The file to write.
        kind: How the sample was taken.
        by: Properties by which rows are distinguished, keys of `FIELDS`.
        urir: Count pages (URI-Rs) as well.
        limit: Use only the first `limit` pages of the list; None for all.
        name: Name of the archive.
        id: URI of the archive.
    """
    fields = [field for field in FIELDS if field in set(by)]
    outcomes = state.count_outcomes(limit)
    size = (
        {"asked": sum(outcomes.get(outcome, 0) for outcome in ANSWERED_OUTCOMES)}
        if kind == "uris"
        else {"requests": state.requests}
    )
    meta: dict[str, object] = {
        "type": "MementoMap",
        "version": FORMAT_VERSION,
        "rules": DEFAULT_RULES,
        **({"name": name} if name else {}),
        "sample": {"by": kind, **size, "found": state.count_mementos(limit)[1]},
    }
    key_fields = ("surt", *(FIELDS[field] for field in fields))
    header = UkvsHeader(MAP_CONTEXT, {"uri": id} if id else {}, key_fields, ("frequency",), meta)
    row_count = 0

    def rows() -> Iterator[UkvsRow]:
        nonlocal row_count
        for *key, mementos, pages in state.iter_map_rows(fields, limit):
            row_count += key[0] != "*"
            yield UkvsRow(tuple(key), (f"{mementos}+/{pages}+" if urir else f"{mementos}+",))

    with atomic_map_file(output) as file:
        write_ukvs(file, with_row_bytes(header), rows())
    return row_count


def write_sample_log(state: SampleState, output: Path, archive: str, limit: int | None = None) -> None:
    """Write the last outcome of every queried page, in the format of `unlost.logs.upstream`."""
    with atomic_file(output) as file:
        for page, outcome in state.iter_outcomes(limit):
            file.write(
                format_log_entry(
                    UpstreamLogEntry(
                        outcome.time,
                        archive,
                        normalize_input_url(page.uri),
                        "timemap",
                        _LOGGED_OUTCOMES.get(outcome.outcome, "malformed"),
                        "requested",
                        key=page.key,
                        mementos=outcome.mementos,
                        first=outcome.first,
                        last=outcome.last,
                        duration_ms=outcome.duration_ms,
                    )
                )
            )
