"""Crawl engine: runs a crawl until its frontier is empty or a limit is reached; a later run resumes it.

One task per host fetches the host's URLs one at a time, those nearest to a seed first.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from unlost._core import VERSION
from unlost.clock import Clock, SystemClock
from unlost.crawl.extractor import ExtractedContents, extract_contents
from unlost.crawl.fetcher import Fetcher, FetchRequest, FetchResponse
from unlost.crawl.frontier import CrawlFrontier
from unlost.crawl.models import CrawlConfig, CrawlOutcome, CrawlResult
from unlost.crawl.politeness import (
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
from unlost.http.circuit_breaker import BreakerRegistry
from unlost.http.policy import MAX_WAITS, POLICIES, RETRIES, TIMEOUTS, Timeouts
from unlost.http.pool import Resolver
from unlost.http.url import parse_url
from unlost.uri.names import page_name
from unlost.warc.records import Payload, payload_and_block_digests

# Larger bodies are parsed and stored in a thread; for smaller ones, switching threads costs more than the work.
_MAX_INLINE_BYTES = 1 << 17
_MAX_HEADER_CHARS = 4_096  # of each header value stored in the state


async def crawl(
    config: CrawlConfig,
    folder: Path,
    clock: Clock | None = None,
    *,
    contact: str | None = None,
    write_warcs: bool = True,
    on_event: EventCallback = lambda _, __: None,
    should_stop: Callable[[], bool] = lambda: False,
    timeouts: Timeouts = TIMEOUTS["live"],
    max_wait: float = MAX_WAITS["live"],
    use_proxies: bool = False,
    resolver: Resolver | None = None,
    warc_bytes: int = MAX_WARC_BYTES,
) -> CrawlResult:
    """Crawl a site into a folder, or resume the crawl that is in it.

    Calling `crawl` again with the same arguments resumes a crawl, even one that was killed.

    Args:
        config: What to crawl.
        folder: Gets `state.sqlite` and, if `write_warcs`, `warc/`. Created if missing; its parent must exist.
        clock: The source of time; the system's clock by default.
        contact: Email address or URL for site operators, sent in User-Agent. Without it, delays are doubled.
        write_warcs: Whether to store responses in WARC files.
        on_event: Called with each event and its details; docs/crawl.md lists the events.
        should_stop: Polled; the crawl stops gracefully once it returns True.
        timeouts: Limits of one fetch.
        max_wait: Longest wait in seconds that a host may demand by Retry-After; beyond it, the host is suspended
            until then; a later run visits it if this one ends first.
        use_proxies: Whether to use the proxies of the environment.
        resolver: Resolves host names; the system's resolver by default.
        warc_bytes: Size in bytes at which a WARC file is closed and the next one begun.

    Raises:
        UriError: The configuration has an invalid URL.
        UsageError: The configuration is invalid, or differs from that of the crawl in the folder.
        InputError: The folder has no usable state.
        OSError: The folder cannot be read or written.
    """
    clock = clock or SystemClock()
    scope = CrawlScope.from_config(config)
    with suppress(FileExistsError):
        folder.mkdir()
    allowed_urls = [*config.starts, *config.extra]
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
            async with Fetcher(
                allowed_urls, clock, contact, timeouts, use_proxies=use_proxies, resolver=resolver
            ) as fetcher:
                polite_fetcher = PoliteFetcher(
                    fetcher, state, clock, delay, max_wait=max_wait, on_event=on_event, should_stop=should_stop
                )
                frontier = CrawlFrontier(config, scope, state, clock)
                return await _CrawlRun(
                    config, scope, state, warcs, polite_fetcher, frontier, clock, on_event, should_stop
                ).run()
        finally:
            state.commit()
            if warcs is not None:
                warcs.close()


class _CrawlRun:
    """One run of a crawl."""

    def __init__(
        self,
        config: CrawlConfig,
        scope: CrawlScope,
        state: CrawlState,
        warcs: CrawlWarcStore | None,
        fetcher: PoliteFetcher,
        frontier: CrawlFrontier,
        clock: Clock,
        on_event: EventCallback,
        should_stop: Callable[[], bool],
    ) -> None:
        self._config, self._scope, self._state, self._warcs = config, scope, state, warcs
        self._fetcher, self._frontier, self._clock, self._on_event = fetcher, frontier, clock, on_event
        self._should_stop = should_stop
        self._is_stopped = False
        self._limit: str | None = None
        self._fetched = state.counts_by_status().get(CrawlOutcome.FETCHED.value, 0)
        self._bytes = state.fetched_bytes()
        self._in_flight = 0
        self._breakers = BreakerRegistry(clock, POLICIES["crawl"])
        self._searched_origins: set[str] = set()
        self._disk_lock = asyncio.Lock()
        self._new_work = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> CrawlResult:
        """Process all URLs that can be fetched now."""
        self._state.forget_failed_robots()
        self._state.requeue_robots_unreachable()
        self._frontier.add_seeds()
        self._state.commit()
        await self._run_hosts()
        self._state.compute_hops()
        self._state.commit()
        return self._build_result()

    async def _run_hosts(self) -> None:
        def hosts() -> list[str]:
            return (
                []
                if self._is_finished()
                else [host for host in self._state.queued_hosts() if self._breakers.allows_request(host)]
            )

        await run_host_tasks(hosts, self._fetch_host, self._config.hosts_at_once, self._tasks, self._new_work)

    def _is_finished(self) -> bool:
        """Return whether the run was stopped or reached a limit, so that no further request is started."""
        self._is_stopped = self._is_stopped or self._should_stop()
        if self._config.resources is not None and self._fetched + self._in_flight >= self._config.resources:
            self._limit = "resources"
        if self._config.bytes_in_all is not None and self._bytes >= self._config.bytes_in_all:
            self._limit = "bytes"
        return self._is_stopped or self._limit is not None

    async def _fetch_host(self, host: str) -> None:
        while not self._is_finished() and self._breakers.allows_request(host):
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
            response = await self._fetcher.fetch(FetchRequest(queued.uri, max_bytes=self._config.bytes_each))
        except SiteWaitError as error:
            self._breakers.breaker(host).open(error.until, "told-to-wait", str(error))
            self._report_suspension(host, error.until)
        except RobotsError as error:
            reason = "robots-unreachable" if error.is_temporary else "robots"
            self._record_failure(queued, CrawlOutcome.FORBIDDEN, reason)
        except SiteError as error:
            self._handle_failure(queued, host, error)
        else:
            self._breakers.record_success(host)
            with response.body:
                await self._process_response(queued, response)

    async def _search_sitemaps(self, uri: str) -> None:
        """Enqueue the sitemaps of an origin when its first URL is fetched."""
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
        breaker = self._breakers.breaker(host)
        breaker.record_failure(error.kind, str(error))
        if breaker.suspension is not None:
            self._report_suspension(host, breaker.suspension.until)
        if RETRIES["crawl"].allows(error.kind, queued.attempts):
            self._state.requeue(queued.id)
            return
        self._record_failure(queued, CrawlOutcome.FAILED, error.kind, str(error))

    def _report_suspension(self, host: str, until: float) -> None:
        self._on_event("closed", {"host": host, "until": until})

    def _record_failure(
        self, queued: QueuedUrl, outcome: CrawlOutcome, reason: str, message: str | None = None
    ) -> None:
        """Record and report that there was no response; a guessed URL is dropped silently."""
        if queued.is_guess:
            self._state.delete(queued.id)
            return
        self._state.finish(queued.id, outcome, reason=reason)
        self._on_event(
            outcome.value, {"uri": queued.uri, "reason": reason, **({"message": message} if message else {})}
        )

    async def _process_response(self, queued: QueuedUrl, response: FetchResponse) -> None:
        if response.size <= _MAX_INLINE_BYTES:
            contents = extract_contents(response)
        else:
            contents = await asyncio.to_thread(extract_contents, response)
        if queued.is_guess and not (contents.is_sitemap and 200 <= response.status < 300):
            if contents.redirect is not None:
                self._frontier.add_redirect(queued, contents.redirect)
            self._state.delete(queued.id)
            return
        await run_shielded(self._commit_response(queued, response, contents))
        self._on_event(
            "fetched",
            {
                "uri": queued.uri,
                "status": response.status,
                "fetched": self._fetched,
                "known": self._frontier.known_count,
            },
        )
        if not self._frontier.new_hosts <= self._tasks.keys():
            self._new_work.set()
        self._frontier.new_hosts.clear()

    async def _commit_response(self, queued: QueuedUrl, response: FetchResponse, contents: ExtractedContents) -> None:
        """Store a response, its redirect and its links in one transaction."""
        async with self._disk_lock:
            columns = await self._store_response(response, contents)
            # No await from here to the commit: the record is in the WARC file, and whatever follows the last record
            # that the state knows is cut off when the crawl resumes.
            if contents.redirect is not None:
                target_id, reason = self._frontier.add_redirect(queued, contents.redirect)
                columns |= {"redirect_id": target_id, "reason": reason}
            self._frontier.add_links(queued, contents.links, is_sitemap=queued.is_sitemap or contents.is_sitemap)
            self._state.finish(queued.id, CrawlOutcome.FETCHED, **columns)
            self._fetched += 1
            self._bytes += response.size
            self._frontier.save_counts()
            self._state.commit()

    async def _store_response(self, response: FetchResponse, contents: ExtractedContents) -> dict[str, object]:
        """Write a response to the WARC files unless `noarchive` forbids it; return the columns for the state."""
        columns: dict[str, object] = {
            "status": response.status,
            "mime": contents.mime,
            "length": response.size,
            "seen": response.requested_at,
            "last_modified": contents.last_modified,
            "redirect": contents.redirect,
            "noarchive": contents.is_noarchive,
            "cache_control": _shorten(response.header("cache-control")),
            "etag": _shorten(response.header("etag")),
            "truncated": response.truncated,
            "reason": None,
        }
        if self._warcs is not None and (self._config.keep_noarchive or not contents.is_noarchive):
            with suppress(UriError):  # the URL cannot be written as WARC-Target-URI
                store = self._warcs.store
                if response.size <= _MAX_INLINE_BYTES:
                    location, digest = store(response, contents.mime)
                else:
                    location, digest = await asyncio.to_thread(store, response, contents.mime)
                return columns | {
                    "digest": digest,
                    "file": location.file,
                    "offset": location.offset,
                    "size": location.size,
                }
        return columns | {"digest": payload_and_block_digests(b"", Payload(response.body).pieces())[0]}

    def _build_result(self) -> CrawlResult:
        counts = self._state.counts_by_status()
        return CrawlResult(
            {outcome: counts.get(outcome.value, 0) for outcome in CrawlOutcome},
            counts.get(QUEUED_STATUS, 0),
            self._state.excluded_links(),
            self._breakers.suspended_until(),
            self._state.count_robots_unreachable(),
            self._limit,
            self._is_stopped,
        )


def _shorten(value: str | None) -> str | None:
    return None if value is None else value[:_MAX_HEADER_CHARS]
