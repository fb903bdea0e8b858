"""Crawl engine: runs a crawl until its frontier is empty or a limit is reached; a later run resumes it.

Each host is fetched by one task, URLs nearest to a seed first.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from unlost._core import VERSION
from unlost.clock import Clock, SystemClock
from unlost.crawl.extractor import ExtractedContents, extract_contents
from unlost.crawl.fetcher import DEFAULT_TIMEOUTS, Fetcher, FetchRequest, FetchResponse
from unlost.crawl.frontier import CrawlFrontier
from unlost.crawl.models import CrawlConfig, CrawlOutcome, CrawlResult
from unlost.crawl.politeness import (
    MAX_WAIT_SECONDS,
    EventCallback,
    FetchStoppedError,
    PoliteFetcher,
    run_host_tasks,
    run_shielded,
)
from unlost.crawl.scope import CrawlScope
from unlost.crawl.scope import host_of_name as named_host
from unlost.crawl.state import QUEUED_STATUS, CrawlState, QueuedUrl
from unlost.crawl.warc_store import MAX_WARC_BYTES, CrawlWarcStore
from unlost.errors import RobotsError, SiteError, SiteWaitError, UriError
from unlost.http.exchange import Timeouts
from unlost.http.pool import Resolver
from unlost.http.url import parse_url
from unlost.uri.names import page_name
from unlost.warc.records import Payload, payload_and_block_digests

_MAX_INLINE_BYTES = (
    1 << 17
)  # bytes of a body that is read and kept in less time than two threads take that wait for each other
_MAX_ATTEMPTS = 2  # visits of what broke off or took too long
_RETRIED_KINDS = frozenset({"timeout", "reset"})
_CONNECTION_FAILURE_KINDS = frozenset({"refused", "dns", "unreachable", "proxy"})
_MAX_CONNECTION_FAILURES = 5  # visits in a row that find nobody: then the host is left alone
_SUSPENSION_SECONDS = 3_600.0  # for how long that is said to be
_MAX_HEADER_CHARS = 4_096  # characters of a header that are kept in the state


async def crawl(
    config: CrawlConfig,
    folder: Path,
    clock: Clock | None = None,
    *,
    contact: str | None = None,
    write_warcs: bool = True,
    on_event: EventCallback = lambda _, __: None,
    should_stop: Callable[[], bool] = lambda: False,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    max_wait: float = MAX_WAIT_SECONDS,
    use_proxies: bool = False,
    resolver: Resolver | None = None,
    warc_bytes: int = MAX_WARC_BYTES,
) -> CrawlResult:
    """Visit what a plan wants, and keep in a folder what was learned; or go on with what is there.

    folder: gets `state.sqlite` and, if `keep_warcs`, `warc/`; is made if it is not there, its parent must be.
    contact: an address of mail or of a page, for whoever looks after a site; without one, pauses are twice as long.
    tell: gets what happens, as docs/crawl.md lists it. should_stop: is asked often whether to end in order.
    patience: how many seconds a host may keep us waiting by saying so, before it is left for another run.
    warc_bytes: how large a WARC may grow.

    Whatever ends it, also a kill, the same call goes on where it ended. Raises UriError and UsageError for a plan that
    cannot be followed, InputError and OSError for a folder that cannot be used.
    """
    clock = clock or SystemClock()
    scope = CrawlScope.from_config(config)
    with suppress(FileExistsError):
        folder.mkdir()
    given = [*config.starts, *config.extra]
    with CrawlState(folder) as state:
        state.record_config(config)
        warcs = None
        if write_warcs:
            warcs = CrawlWarcStore(folder / "warc", clock, f"unlost/{VERSION}", max_bytes=warc_bytes)
            warcs.reconcile(state)
        delay = config.delay
        if contact is None:
            delay *= 2
            on_event("no-contact", {"delay": delay})
        try:
            async with Fetcher(given, clock, contact, timeouts, use_proxies=use_proxies, resolver=resolver) as visitor:
                polite = PoliteFetcher(
                    visitor, state, clock, delay, max_wait=max_wait, on_event=on_event, should_stop=should_stop
                )
                following = CrawlFrontier(config, scope, state, clock)
                return await _CrawlRun(
                    config, scope, state, warcs, polite, following, clock, on_event, should_stop
                ).run()
        finally:
            state.commit()
            if warcs is not None:
                warcs.close()


class _CrawlRun:
    """One run of a crawl."""

    def __init__(
        self,
        plan: CrawlConfig,
        scope: CrawlScope,
        state: CrawlState,
        warcs: CrawlWarcStore | None,
        polite: PoliteFetcher,
        following: CrawlFrontier,
        clock: Clock,
        tell: EventCallback,
        should_stop: Callable[[], bool],
    ) -> None:
        self._config, self._scope, self._state, self._warcs = plan, scope, state, warcs
        self._fetcher, self._frontier, self._clock, self._on_event = polite, following, clock, tell
        self._should_stop = should_stop
        self._is_stopped = False
        self._limit: str | None = None
        self._fetched = state.counts_by_status().get(CrawlOutcome.FETCHED.value, 0)
        self._bytes = state.fetched_bytes()
        self._in_flight = 0
        self._suspended_hosts: dict[str, float] = {}
        self._connection_failures: dict[str, int] = {}
        self._searched_origins: set[str] = set()
        self._disk_lock = asyncio.Lock()
        self._new_work = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> CrawlResult:
        """Do all that can be done now."""
        self._state.forget_failed_robots()
        self._state.requeue_robots_unreachable()
        self._frontier.add_seeds()
        self._state.commit()
        await self._run_hosts()
        self._state.compute_hops()
        self._state.commit()
        return self._build_result()

    async def _run_hosts(self) -> None:
        """Have each host visited by one task, as many at once as the plan allows."""

        def hosts() -> list[str]:
            return (
                []
                if self._is_finished()
                else [host for host in self._state.queued_hosts() if host not in self._suspended_hosts]
            )

        await run_host_tasks(hosts, self._fetch_host, self._config.hosts_at_once, self._tasks, self._new_work)

    def _is_finished(self) -> bool:
        """Return whether somebody stopped it, or a limit is reached: nothing more is begun."""
        self._is_stopped = self._is_stopped or self._should_stop()
        if self._config.resources is not None and self._fetched + self._in_flight >= self._config.resources:
            self._limit = "resources"
        if self._config.bytes_in_all is not None and self._bytes >= self._config.bytes_in_all:
            self._limit = "bytes"
        return self._is_stopped or self._limit is not None

    async def _fetch_host(self, host: str) -> None:
        """Visit what is to be visited on a host, one after the other."""
        while not self._is_finished() and host not in self._suspended_hosts:
            queued = self._state.next_queued(host)
            if queued is None:
                return
            self._in_flight += 1
            try:
                await self._fetch_url(queued, host)
            except FetchStoppedError:
                return
            finally:
                self._in_flight -= 1
            self._state.commit()

    async def _fetch_url(self, queued: QueuedUrl, host: str) -> None:
        try:
            await self._search_sitemaps(queued.uri)
            answer = await self._fetcher.fetch(FetchRequest(queued.uri, max_bytes=self._config.bytes_each))
        except SiteWaitError as error:
            self._suspend_host(host, error.until)
        except RobotsError as error:
            reason = "robots-unreachable" if error.is_temporary else "robots"
            self._record_failure(queued, CrawlOutcome.FORBIDDEN, reason)
        except SiteError as error:
            self._handle_failure(queued, host, error)
        else:
            self._connection_failures.pop(host, None)
            with answer.body:
                await self._process_response(queued, answer)

    async def _search_sitemaps(self, uri: str) -> None:
        """Look for the sitemaps of a site when it is visited for the first time."""
        origin = parse_url(uri).origin
        if (
            not self._config.sitemaps
            or origin in self._searched_origins
            or not self._scope.has_host(named_host(page_name(uri)))
        ):
            return
        if not self._state.has_searched_sitemaps(origin):
            rules = await self._fetcher.robots_rules(uri)
            if not rules.is_unreachable:
                self._frontier.add_sitemaps(origin, rules.sitemaps)
                self._state.mark_sitemaps_searched(origin)
        self._searched_origins.add(origin)

    def _handle_failure(self, queued: QueuedUrl, host: str, error: SiteError) -> None:
        if error.kind in _CONNECTION_FAILURE_KINDS:
            self._connection_failures[host] = self._connection_failures.get(host, 0) + 1
            if self._connection_failures[host] >= _MAX_CONNECTION_FAILURES:
                self._suspend_host(host, self._clock.now() + _SUSPENSION_SECONDS)
        if error.kind in _RETRIED_KINDS and queued.attempts + 1 < _MAX_ATTEMPTS:
            self._state.requeue(queued.id)
            return
        self._record_failure(queued, CrawlOutcome.FAILED, error.kind, str(error))

    def _suspend_host(self, host: str, until: float) -> None:
        self._suspended_hosts[host] = until
        self._on_event("closed", {"host": host, "until": until})

    def _record_failure(
        self, queued: QueuedUrl, outcome: CrawlOutcome, reason: str, message: str | None = None
    ) -> None:
        """Say that there was no answer."""
        if queued.is_guess:
            self._state.delete(queued.id)
            return
        self._state.finish(queued.id, outcome, reason=reason)
        self._on_event(
            outcome.value, {"uri": queued.uri, "reason": reason, **({"message": message} if message else {})}
        )

    async def _process_response(self, queued: QueuedUrl, answer: FetchResponse) -> None:
        if answer.size <= _MAX_INLINE_BYTES:
            found = extract_contents(answer)
        else:
            found = await asyncio.to_thread(extract_contents, answer)
        if queued.is_guess and not (found.is_sitemap and 200 <= answer.status < 300):
            if found.redirect is not None:
                self._frontier.add_redirect(queued, found.redirect)
            self._state.delete(queued.id)
            return
        await run_shielded(self._commit_response(queued, answer, found))
        self._on_event(
            "fetched",
            {"uri": queued.uri, "status": answer.status, "fetched": self._fetched, "known": self._frontier.known_count},
        )
        if not self._frontier.new_hosts <= self._tasks.keys():
            self._new_work.set()
        self._frontier.new_hosts.clear()

    async def _commit_response(self, queued: QueuedUrl, answer: FetchResponse, found: ExtractedContents) -> None:
        """Keep an answer, and what it leads to."""
        async with self._disk_lock:
            told = await self._store_response(answer, found)
            # From here to the commit nobody else gets a turn: file and state agree whenever a kill comes.
            if found.redirect is not None:
                number, reason = self._frontier.add_redirect(queued, found.redirect)
                told |= {"redirect_id": number, "reason": reason}
            self._frontier.add_links(queued, found.links, is_sitemap=queued.is_sitemap or found.is_sitemap)
            self._state.finish(queued.id, CrawlOutcome.FETCHED, **told)
            self._fetched += 1
            self._bytes += answer.size
            self._frontier.save_counts()
            self._state.commit()

    async def _store_response(self, answer: FetchResponse, found: ExtractedContents) -> dict[str, object]:
        """Keep an answer, if it is to be, and return what is known of it."""
        told: dict[str, object] = {
            "status": answer.status,
            "mime": found.mime,
            "length": answer.size,
            "seen": answer.requested_at,
            "last_modified": found.last_modified,
            "redirect": found.redirect,
            "noarchive": found.is_noarchive,
            "cache_control": _shorten(answer.header("cache-control")),
            "etag": _shorten(answer.header("etag")),
            "truncated": answer.truncated,
            "reason": None,
        }
        if self._warcs is not None and (self._config.keep_noarchive or not found.is_noarchive):
            with suppress(UriError):  # no record can have such an address
                store = self._warcs.store
                if answer.size <= _MAX_INLINE_BYTES:
                    place, digest = store(answer, found.mime)
                else:
                    place, digest = await asyncio.to_thread(store, answer, found.mime)
                return told | {"digest": digest, "file": place.file, "offset": place.offset, "size": place.size}
        return told | {"digest": payload_and_block_digests(b"", Payload(answer.body).pieces())[0]}

    def _build_result(self) -> CrawlResult:
        counts = self._state.counts_by_status()
        return CrawlResult(
            {outcome: counts.get(outcome.value, 0) for outcome in CrawlOutcome},
            counts.get(QUEUED_STATUS, 0),
            self._state.excluded_links(),
            dict(self._suspended_hosts),
            self._state.count_robots_unreachable(),
            self._limit,
            self._is_stopped,
        )


def _shorten(value: str | None) -> str | None:
    return None if value is None else value[:_MAX_HEADER_CHARS]
