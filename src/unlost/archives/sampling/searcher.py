"""The random searcher: searches an archive for terms, and if that is wanted for words of what it finds."""

from collections.abc import Callable
from hashlib import sha256

from unlost.archives.sampling.fulltext import FullTextSearch, SearchResultPage
from unlost.archives.sampling.sampler import MAX_CONSECUTIVE_FAILURES, EarlyStop
from unlost.archives.sampling.state import SampleState, SearchTerm
from unlost.errors import ExcludedError, FailedError, NotNowError


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
