"""Full-text search and the searcher that follows words: pages, invalid results, repetitions, politeness."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.external.fault_server import Exchange
from tests.http.harness import ClientAndServer, run_server
from tests.http.rate_limits.windows import most_within
from unlost.archives import EarlyStop, FullTextSearch, SampleState, SearchResultPage, SearchSampler
from unlost.errors import FailedError, NotNowError, UnsupportedError
from unlost.problems import Problems
from unlost.registry import RateLimit, RequestKind

Say = Callable[[str, int], object]
"""What is said to a search from an offset: JSON, or bytes, or a status."""


def item(uri: object, **more: object) -> dict[str, object]:
    """Return a search result."""
    return {"originalURL": uri, "tstamp": "20140101000000", "mimeType": "text/html", "title": "a title", **more}


def search_of(there: ClientAndServer, problems: Problems | None = None) -> FullTextSearch:
    """Return the search of the server's archive."""
    archive = replace(there.archive, search=f"{there.server.url}/textsearch?q={{terms}}")
    return FullTextSearch(archive, there.http_client, problems or Problems())


def serving_responses(say: Say) -> Callable[[Exchange], object]:
    """Return a server with one response per search."""

    async def response(scenario: Exchange) -> None:
        query = parse_qs(urlsplit(scenario.path).query)
        declared = say(query["q"][0], int(query["offset"][0]))
        if isinstance(declared, int):
            await scenario.respond(declared, b"")
        else:
            await scenario.respond(200, declared if isinstance(declared, bytes) else json.dumps(declared).encode())

    return response


def page(say: Say, terms: str = "x", problems: Problems | None = None) -> SearchResultPage:
    """Return one page of results."""

    async def query() -> SearchResultPage:
        async with run_server(serving_responses(say)) as there:  # type: ignore[arg-type]
            return await search_of(there, problems).search(terms)

    return asyncio.run(query())


def test_results_are_parsed_with_their_fields() -> None:
    """URL, date, type and language are None if missing or invalid; terms are sent unchanged."""
    heard = []

    def say(terms: str, _: int) -> object:
        heard.append(terms)
        return {
            "response_items": [
                item("http://www.A.com/b?c", language="PT-br"),
                item("http://a.com/b", tstamp="2014", mimeType="TEXT/html;charset=x", lang="english please"),
                item("http://a.com/c", tstamp=20140101000000, mimeType=7, title=None, snippet=["x"]),
                item("http://a.com/d", tstamp="no", mimeType="a b"),
            ],
            "next_page": "x",
        }

    results = page(say, 'água & "boat" #1+1')
    assert heard == ['água & "boat" #1+1']
    assert results.has_more
    assert [
        (each.key, each.mementos.datetime, each.mementos.mime, each.mementos.language) for each in results.hits
    ] == [
        ("com,a)/b?c", "20140101000000", "text/html", "pt"),
        ("com,a)/b", "20140101000000", "text/html", "-"),
        ("com,a)/c", "20140101000000", "-", "-"),
        ("com,a)/d", "-", "-", "-"),
    ]


def test_invalid_results_are_counted() -> None:
    """Other results are returned."""
    problems = Problems()
    items = [
        7,
        {},
        item(None),
        item(["x"]),
        item(" "),
        item("mailto:a@b.c"),
        item("http://"),
        item("http://a.com/\ud800"),
    ]
    results = page(lambda *_: {"response_items": [*items, item("http://a.com/")]}, problems=problems)
    assert ([each.key for each in results.hits], results.count, results.has_more) == (["com,a)/"], 9, False)
    assert problems.counts == {"bad-result": 6, "foreign-scheme": 1, "bad-address": 1}


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        (b"<html>", "malformed"),
        (b"", "malformed"),
        (b'{"response_items": [', "malformed"),
        (b"[" * 100_000, "malformed"),
        (b'{"response_items": []} \xff', "malformed"),
        ([], "malformed"),
        ({"response_items": {}}, "malformed"),
        ({"items": []}, "malformed"),
        ({"response_items": [1, 2]}, "malformed"),
        (b" " * (17 << 20), "too-large"),
        (400, "status"),
    ],
)
def test_invalid_page_of_results_fails(declared: object, kind: str) -> None:
    """An invalid page is not an empty result."""
    with pytest.raises(FailedError) as raised:
        page(lambda *_: declared)
    assert raised.value.kind == kind


def test_empty_search_response_is_an_empty_page() -> None:
    """The response is an empty list or 404."""
    for declared in ({"response_items": [], "next_page": "x"}, 404):
        results = page(lambda *_, declared=declared: declared)
        assert (results.hits, results.has_more) == ((), False)


def test_archive_without_search_is_rejected() -> None:
    """No request is sent."""

    async def query() -> None:
        async with run_server(serving_responses(lambda *_: 404)) as there:  # type: ignore[arg-type]
            with pytest.raises(UnsupportedError):
                FullTextSearch(there.archive, there.http_client, Problems())

    asyncio.run(query())


class Search:
    """A searcher with a state and a server. asked: (terms, offset) of every request."""

    def __init__(self, folder: Path, say: Say) -> None:
        self.requests: list[tuple[str, int]] = []
        self.times: list[float] = []
        self._path = folder / "s"
        self._say = say

    def run(
        self, *terms: str, requests: int = 100, pages: int = 10, seed: int | None = None, **manners: object
    ) -> EarlyStop | None:
        """Search for terms."""

        def say(terms: str, offset: int) -> object:
            self.requests.append((terms, offset))
            return self._say(terms, offset)

        async def query() -> EarlyStop | None:
            async with run_server(serving_responses(say), **manners) as there:  # type: ignore[arg-type]
                with SampleState(self._path) as state:
                    if state.plan() is None:
                        state.begin(dict, terms=terms)
                    searcher = SearchSampler(state, search_of(there), pages=pages, seed=seed)
                    stop = await searcher.run(requests)
                    self.found = [row[0] for row in state.iter_map_rows([])]
                    self.memento_counts = state.count_mementos()
                    self.terms = state.count_terms()
                    self.times += [at for at, _ in there.server.requests]
                    return stop

        return asyncio.run(query())


def two_results(terms: str, offset: int, pages: int = 3) -> dict[str, object]:
    """Return a page of two results."""
    items = [item(f"http://a.com/{terms}/{offset + number}", title=f"{terms}er") for number in range(2)]
    return {"response_items": items, **({"next_page": "x"} if offset + 2 < 2 * pages else {})}


def test_pages_of_results_are_followed_to_the_end(tmp_path: Path) -> None:
    """Offsets are computed, links are not followed, and a second run sends no request."""
    search = Search(tmp_path, two_results)
    assert search.run("a", "b") is None
    assert search.requests == [("a", 0), ("a", 2), ("a", 4), ("b", 0), ("b", 2), ("b", 4)]
    assert search.memento_counts == (12, 12)
    search.run("a", "b")
    assert len(search.requests) == 6


def test_repeated_page_ends_a_search(tmp_path: Path) -> None:
    """Other cycles end at the maximum number of pages."""
    search = Search(tmp_path, lambda terms, _: {**two_results(terms, 0), "next_page": "x"})
    search.run("a")
    assert (search.requests, search.memento_counts) == ([("a", 0), ("a", 2)], (2, 2))
    round_ = Search(tmp_path / "..", lambda terms, offset: {**two_results(terms, offset % 4), "next_page": "x"})
    round_._path = tmp_path / "r"
    round_.run("a", pages=7)
    assert (len(round_.requests), round_.memento_counts) == (7, (4, 4))


def test_failed_search_is_resumed_later(tmp_path: Path) -> None:
    """The search resumes at the failed page, and others are not delayed."""
    broken = {("a", 2)}
    search = Search(tmp_path, lambda terms, offset: b"{" if (terms, offset) in broken else two_results(terms, offset))
    search.run("a", "b")
    assert search.requests == [("a", 0), ("a", 2), ("b", 0), ("b", 2), ("b", 4)]
    assert search.terms == (1, 0, {"malformed": 1})
    broken.clear()
    search.run("a", "b")
    assert search.requests[5:] == [("a", 2), ("a", 4)]
    assert (search.terms, search.memento_counts) == ((2, 0, {}), (12, 12))


def test_words_are_followed_only_on_request(tmp_path: Path) -> None:
    """Each word is searched once, within the budget."""
    search = Search(
        tmp_path, lambda terms, _: {"response_items": [item("http://a.com/", title=f"{terms}x {terms}y a1 ab")]}
    )
    search.run("one", requests=5)
    assert search.requests == [("one", 0)]
    follow = Search(tmp_path, search._say)
    follow._path = tmp_path / "f"
    follow.run("one", requests=6, seed=3)
    assert len(follow.requests) == len(set(follow.requests)) == 6
    assert follow.requests[0] == ("one", 0)
    assert {term[:3] for term, _ in follow.requests} == {"one"}
    assert follow.memento_counts == (1, 1)


def test_searches_respect_limits_and_429(tmp_path: Path) -> None:
    """Requests are counted at the server; a long wait ends the run, and the next run resumes."""
    limit = RateLimit(20, 60, (RequestKind.SEARCH,), "the test")
    search = Search(tmp_path, lambda terms, offset: two_results(terms, offset, 100))
    assert search.run("a", pages=100, requests=60, limits=(limit,)) is None
    assert len(search.times) == 60
    assert most_within(search.times, 60) <= 20
    busy = Search(tmp_path, lambda terms, offset: 429 if len(busy.requests) == 3 else two_results(terms, offset, 100))
    busy._path = tmp_path / "b"
    stop = busy.run("a", pages=5, max_wait=10.0)
    assert isinstance(stop, EarlyStop)
    assert isinstance(stop.error, NotNowError)
    assert stop.error.reason == "told-to-wait"
    assert busy.run("a", pages=5) is None
    assert busy.requests == [("a", offset) for offset in (0, 2, 4, 4, 6, 8)]
