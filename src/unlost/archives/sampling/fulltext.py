"""Full-text search of an archive, as Arquivo.pt answers it: a page of results at a time."""

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import quote

from unlost import dates
from unlost import uri as addresses
from unlost.archives.archive import Archive, RequestKind
from unlost.archives.asking.question import HttpClient, HttpRequest
from unlost.archives.clients.statuses import has_content
from unlost.archives.sampling.language import language_tag
from unlost.archives.sampling.sampler import normalize_mime
from unlost.archives.sampling.state import UNKNOWN, SampledMementos
from unlost.errors import DateError, FailedError, UnsupportedError, UriError
from unlost.formats.problems import Problem, Problems

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

        >>> held = Held("20140101000000", "text/html", "-", 1)
        >>> one = Result("com,a)/", b"http://a.com/", held, "A <b>Boat</b> &amp; the <i>boat</i> of 1998")
        >>> Results((one,), 1, False, "").words()
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
