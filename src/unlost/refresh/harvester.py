"""Harvests pages repeatedly: rounds of due pages, visited with several hosts in parallel."""

import asyncio
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Self

from unlost._core import VERSION
from unlost.clock import Clock, SystemClock
from unlost.crawl.extractor import extract_contents
from unlost.crawl.fetcher import Fetcher, FetchResponse
from unlost.crawl.models import DEFAULT_DELAY_SECONDS, MAX_RESOURCE_BYTES
from unlost.crawl.politeness import (
    EventCallback,
    FetchStoppedError,
    PoliteFetcher,
    run_host_tasks,
    run_shielded,
)
from unlost.crawl.warc_store import MAX_WARC_BYTES, CrawlWarcStore, RevisitedCapture, WarcLocation
from unlost.errors import InputError, RobotsError, SiteError, SiteWaitError, UriError
from unlost.http.circuit_breaker import BreakerRegistry
from unlost.http.policy import MAX_WAITS, POLICIES, RETRIES, TIMEOUTS, Timeouts
from unlost.http.pool import Resolver
from unlost.http.url import parse_url
from unlost.index.cdx import index_key
from unlost.refresh.confidence import change_probability, estimate_change_rate, estimate_page_rate
from unlost.refresh.harvest_state import (
    HarvestedCapture,
    HarvestPage,
    HarvestState,
    HostBehaviour,
    PageSnapshot,
    has_body_changed,
)
from unlost.refresh.page_text_digest import MAX_TEXT_BYTES, PageTextSketch, sketch_page_text
from unlost.refresh.page_visitor import (
    DEFAULT_CHANGE_PROBABILITY,
    FetchMethod,
    PageVisitor,
    PageVisitResult,
    choose_fetch_method,
)
from unlost.refresh.policy import Policy, history_host
from unlost.refresh.visit import Visit, serialize_visit
from unlost.uri.normalize import normalize_input_url
from unlost.warc.records import Payload, payload_and_block_digests

LOG_NAME = "visits.ndjson"
"""Name of the visit log in the folder of a harvest."""


class VisitLog:
    """The visit log of a harvest. Use it as a context manager.

    The state contains the end of the log. Lines after it were written by a process that was killed, and are removed.

    Raises:
        InputError: The log is a symbolic link.
        OSError: The log cannot be read or written.
    """

    def __init__(self, folder: Path, state: HarvestState) -> None:
        path = folder / LOG_NAME
        if path.is_symlink():
            raise InputError(f"{path}: a link, which is not followed: remove it")
        self._state = state
        self._file = path.open("r+b" if path.exists() else "w+b")
        self._file.seek(0, os.SEEK_END)
        size = self._file.tell()
        end = min(size, state.log_end())
        if end < state.log_end():  # lines were lost in a power failure: remove the incomplete last line
            end = _last_line_end(self._file.fileno(), end)
        self._file.truncate(end)
        self._file.seek(end)
        self._end = end

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()

    def add(self, visit: Visit, method: str, outcome: str) -> None:
        """Write a visit with its fetch method and outcome. It is durable once the state is committed."""
        line = serialize_visit(visit)
        harvest_fields = json.dumps({"way": method, "outcome": outcome}, separators=(",", ":")).encode()
        self._file.write(line.removesuffix(b"}\n") + b"," + harvest_fields.removeprefix(b"{") + b"\n")
        self._file.flush()
        self._end = self._file.tell()
        self._state.store_log_end(self._end)


def _last_line_end(file: int, end: int) -> int:
    """Return the end of the last complete line before `end`."""
    step = 1 << 16
    while end > 0:
        begin = max(0, end - step)
        newline = os.pread(file, end - begin, begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return 0


@dataclass(frozen=True, slots=True)
class StoredVisit:
    """What was stored of a visit.

    Attributes:
        outcome: `new`, `changed`, `unchanged`, `not-modified`, `skipped`, `no-success`, `cut` or `noarchive`.
        visit: The visit with its digests.
        snapshot: The new snapshot; None to retain the previous one.
        locations: Locations of the records.
        changed: Whether the page had changed; None if unknown.
    """

    outcome: str
    visit: Visit
    snapshot: PageSnapshot | None
    locations: tuple[WarcLocation, ...]
    changed: bool | None


def store_visit(
    result: PageVisitResult,
    snapshot: PageSnapshot | None,
    warcs: CrawlWarcStore,
    *,
    by_text: bool,
    keep_noarchive: bool,
) -> StoredVisit:
    """Write a response to WARC files. Raises InputError if they cannot be written."""
    # A skip has neither a 304 response nor a digest, so no revisit profile is true of it: it is only logged.
    if result.outcome == "skipped" or result.response is None:
        return StoredVisit("skipped", result.visit, None, (), False)
    if result.outcome == "not-modified":
        return _store_not_modified(result, snapshot, warcs)
    return _store_response(result, snapshot, warcs, by_text=by_text, keep_noarchive=keep_noarchive)


def _store_not_modified(result: PageVisitResult, snapshot: PageSnapshot | None, warcs: CrawlWarcStore) -> StoredVisit:
    """Write a revisit record for a 304 response, unless the original body is not stored."""
    response = result.response
    locations = []
    if response is not None and snapshot is not None and snapshot.capture is not None:
        original = RevisitedCapture(snapshot.capture.uri, snapshot.capture.timestamp)
        locations = _store_redirects(result, warcs)
        try:
            locations.append(warcs.store_revisit(response.last, original, None))
        except UriError:
            locations = []  # the URL cannot be written as WARC-Target-URI
    return StoredVisit("not-modified", result.visit, None, tuple(locations), False)


def _store_response(
    result: PageVisitResult,
    snapshot: PageSnapshot | None,
    warcs: CrawlWarcStore,
    *,
    by_text: bool,
    keep_noarchive: bool,
) -> StoredVisit:
    harvest_response = result.response
    if harvest_response is None:
        raise RuntimeError("nothing came")
    response = harvest_response.last
    contents = extract_contents(response)
    digest = payload_and_block_digests(b"", Payload(response.body).pieces())[0]
    response.body.seek(0)
    is_success = 200 <= response.status < 300
    text: PageTextSketch | None = None
    if is_success and response.size <= MAX_TEXT_BYTES:
        text = sketch_page_text(response.body.read(), contents.mime, response.uri)
        response.body.seek(0)
        if text is not None and snapshot is not None and snapshot.text is not None and text.is_similar(snapshot.text):
            text = snapshot.text  # retain the first of similar texts, so that small changes add up to a change
    is_cut = response.truncated is not None
    visit = replace(result.visit, weight=result.weight)
    if is_success and not is_cut:
        visit = replace(visit, digest=digest, text_digest=None if text is None else text.digest)
    may_store = keep_noarchive or not contents.is_noarchive
    changed = has_body_changed(snapshot, visit, by_text=by_text) if snapshot is not None and visit.digest else None
    capture = snapshot.capture if snapshot is not None else None
    is_same_capture = capture is not None and capture.digest == digest and not is_cut and is_success
    locations: list[WarcLocation] = []
    if may_store:
        locations = _store_redirects(result, warcs)
        try:
            if capture is not None and is_same_capture:
                locations.append(
                    warcs.store_revisit(response, RevisitedCapture(capture.uri, capture.timestamp), digest)
                )
            else:
                location, _ = warcs.store(response, contents.mime)
                locations.append(location)
                capture = _new_capture(response, digest, location, contents.mime)
        except UriError:
            may_store, locations = False, []  # the URL cannot be written as WARC-Target-URI
    if not is_success or is_cut:
        return StoredVisit("cut" if is_success else "no-success", visit, None, tuple(locations), None)
    new_snapshot = PageSnapshot(
        clear_weight(visit), capture if may_store else None, response.uri, response.size, text=text
    )
    outcome = _outcome(is_stored=may_store, is_first=snapshot is None, changed=changed, is_same_capture=is_same_capture)
    return StoredVisit(outcome, visit, new_snapshot, tuple(locations), changed)


def _outcome(*, is_stored: bool, is_first: bool, changed: bool | None, is_same_capture: bool) -> str:
    if not is_stored:
        return "noarchive"
    if is_first:
        return "new"
    return "unchanged" if changed is False or is_same_capture else "changed"


def clear_weight(visit: Visit) -> Visit:
    """Return a visit for a snapshot, without the audit weight."""
    return replace(visit, weight=None)


def _new_capture(response: FetchResponse, digest: str, location: WarcLocation, mime: str | None) -> HarvestedCapture:
    return HarvestedCapture(
        response.uri,
        response.requested_at,
        digest,
        location.file,
        location.offset,
        location.size,
        mime,
        response.status,
    )


def _store_redirects(result: PageVisitResult, warcs: CrawlWarcStore) -> list[WarcLocation]:
    """Write the redirects that led to a response."""
    locations = []
    for redirect in result.response.redirects if result.response is not None else ():
        if redirect.has_body:
            try:
                locations.append(warcs.store(redirect, extract_contents(redirect).mime)[0])
            except UriError:
                continue
    return locations


_MAX_HOST_INTERVALS = 500  # intervals for the change rate of a host
_BATCH_SIZE = 1000


@dataclass(slots=True)
class HarvestRound:
    """A round of visits.

    Attributes:
        is_resumed: Whether the round was begun earlier.
        pending: Number of pages to visit.
        not_due: Number of pages that have probably not changed since their last visit.
    """

    is_resumed: bool
    pending: int = 0
    not_due: int = 0


def normalize_visit_url(uri: str) -> str:
    """Return a URL as requested. Raises UriError if it is invalid.

    >>> normalize_visit_url("Example.com/a b#c")
    'http://example.com/a%20b'
    """
    try:
        return str(parse_url(normalize_input_url(uri)))
    except ValueError as error:
        raise UriError(f"not an address to visit: {error}", "malformed") from error


def add_pages(state: HarvestState, uris: Iterable[str], *, is_given: bool = True) -> None:
    """Add pages by their normalized URLs.

    Args:
        state: The state of the harvest.
        uris: The URLs.
        is_given: Whether the user named them.
    """
    pages = ((uri, index_key(uri), history_host(uri)) for uri in uris)
    while batch := list(islice(pages, _BATCH_SIZE)):
        state.add_pages(batch, is_given=is_given)


def begin_round(
    state: HarvestState,
    now: int,
    *,
    only_listed: bool,
    min_change_probability: float | None = None,
    restart: bool = False,
) -> HarvestRound:
    """Begin a round, or resume the last one if it is not finished; new pages join it.

    Args:
        state: The state of the harvest.
        now: Milliseconds since 1970.
        only_listed: Whether to visit only the listed pages.
        min_change_probability: Visit a page only if it has changed with this probability; None for all pages.
        restart: Whether to begin a new round even if the last one is not finished.
    """
    result = HarvestRound(is_resumed=not restart and state.count_pending() > 0)
    if not result.is_resumed:
        state.begin_round()
    round_number, schedule = state.round(), _RoundSchedule(state, now, min_change_probability)
    for page in state.pages(only_listed=only_listed):
        if page.round == round_number:
            continue  # visited in this round
        if schedule.is_due(page):
            state.enqueue(page.id)
        else:
            result.not_due += 1
    state.commit()
    result.pending = state.count_pending()
    return result


class _RoundSchedule:
    """Decides which pages are due, by their change rates and those of their hosts."""

    def __init__(self, state: HarvestState, now: int, min_change_probability: float | None) -> None:
        self._state, self._now, self._min_change_probability = state, now, min_change_probability
        self._host_rates: dict[str, float | None] = {}

    def is_due(self, page: HarvestPage) -> bool:
        """Return whether a page has probably changed. Pages without snapshot are always due."""
        if (
            self._min_change_probability is None
            or page.snapshot is None
            or page.last_visit is None
            or page.last_visit > self._now
        ):
            return True  # also if the last visit is in the future, as imported from an index
        rate = estimate_page_rate(page.intervals, self._host_rate(history_host(page.uri)))
        probability = change_probability(rate, (self._now - page.last_visit) / 1000)
        return probability is None or probability >= self._min_change_probability

    def _host_rate(self, host: str) -> float | None:
        if host not in self._host_rates:
            if len(self._host_rates) > _BATCH_SIZE:
                self._host_rates.clear()  # a simple bound: pages of a host are usually adjacent
            estimate = estimate_change_rate(self._state.host_intervals(host, _MAX_HOST_INTERVALS))
            self._host_rates[host] = estimate.per_second if estimate is not None and estimate.changes else None
        return self._host_rates[host]


@dataclass(frozen=True, slots=True)
class HarvestOptions:
    """How to visit pages.

    Attributes:
        contact: Email address or URL for site operators, sent in User-Agent. Without it, delays are doubled.
        delay: Minimum seconds between two requests to one host.
        hosts_at_once: Number of hosts visited in parallel, one request each.
        proxies: Whether to use the proxies of the environment.
        max_wait: Longest wait in seconds that a host may demand by Retry-After.
        keep_noarchive: Whether to store pages that say `noarchive`.
        max_bytes: Limit of one body after content decoding.
        timeouts: Limits of one fetch.
        warc_bytes: Size in bytes at which a WARC file is closed and the next one begun.
        resolver: Resolves host names; None for the system's resolver.
    """

    contact: str | None = None
    delay: float = DEFAULT_DELAY_SECONDS
    hosts_at_once: int = 4
    proxies: bool = False
    max_wait: float = MAX_WAITS["live"]
    keep_noarchive: bool = False
    max_bytes: int = MAX_RESOURCE_BYTES
    timeouts: Timeouts = TIMEOUTS["live"]
    warc_bytes: int = MAX_WARC_BYTES
    resolver: Resolver | None = None


@dataclass(slots=True)
class HarvestResult:
    """Result of a run.

    Attributes:
        outcomes: Number of pages by outcome in this round.
        pending: Number of pages still to be visited.
        suspended_hosts: Hosts that were still suspended at the end, with the time to retry in seconds since 1970.
        is_stopped: Whether the run was stopped by its caller.
        audited: Number of skips audited in this run.
        false_claims: Number of audited pages that had changed.
    """

    outcomes: dict[str, int]
    pending: int
    suspended_hosts: dict[str, float]
    is_stopped: bool
    audited: int = 0
    false_claims: int = 0


async def harvest(
    state: HarvestState,
    folder: Path,
    policy: Policy,
    options: HarvestOptions,
    clock: Clock | None = None,
    *,
    on_event: EventCallback = lambda _, __: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> HarvestResult:
    """Visit all pending pages, and store changed ones in `warc/` of the folder.

    The same call resumes a run, even one that was killed. URLs with private and local IP addresses are fetched only on
    origins that the user named.

    Args:
        state: The state of the harvest.
        folder: The folder of the harvest.
        policy: Decides which pages are downloaded.
        options: How to visit pages.
        clock: The source of time; the system's clock by default.
        on_event: Called with each event and its details; docs/refresh.md lists the events.
        should_stop: Polled; the run stops gracefully once it returns True.

    Raises:
        InputError: The folder has unusable files.
        OSError: The folder cannot be read or written.
    """
    clock = clock or SystemClock()
    warcs = CrawlWarcStore(folder / "warc", clock, f"unlost/{VERSION}", max_bytes=options.warc_bytes)
    warcs.reconcile(state)
    for host, changes_by_group in state.false_claims().items():
        for group, (changed, _) in changes_by_group.items():
            policy.record_page(host, group, changed=True, times=changed)
    delay = options.delay
    if options.contact is None:
        delay *= 2
        on_event("no-contact", {"delay": delay})
    try:
        with VisitLog(folder, state) as log:
            async with Fetcher(
                state.given_urls(),
                clock,
                options.contact,
                options.timeouts,
                use_proxies=options.proxies,
                resolver=options.resolver,
            ) as fetcher:
                polite_fetcher = PoliteFetcher(
                    fetcher, state, clock, delay, max_wait=options.max_wait, on_event=on_event, should_stop=should_stop
                )
                return await _Harvester(
                    state, policy, options, polite_fetcher, warcs, log, clock, on_event, should_stop
                ).run()
    finally:
        state.commit()
        warcs.close()


class _Harvester:
    """One run of a harvest."""

    def __init__(
        self,
        state: HarvestState,
        policy: Policy,
        options: HarvestOptions,
        fetcher: PoliteFetcher,
        warcs: CrawlWarcStore,
        log: VisitLog,
        clock: Clock,
        on_event: EventCallback,
        should_stop: Callable[[], bool],
    ) -> None:
        self._state, self._policy, self._options, self._warcs, self._log = state, policy, options, warcs, log
        self._clock, self._on_event, self._should_stop = clock, on_event, should_stop
        self._visitor = PageVisitor(fetcher, policy, self._now, options.max_bytes)
        self._is_stopped = False
        self._breakers = BreakerRegistry(clock, POLICIES["harvest"])
        self._audited = self._false_claims = 0
        self._disk = asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> HarvestResult:
        """Visit all pages that can be visited now."""
        self._state.forget_failed_robots()
        self._state.commit()

        def hosts() -> list[str]:
            return (
                []
                if self._is_over()
                else [host for host in self._state.pending_hosts() if self._breakers.allows_request(host)]
            )

        await run_host_tasks(hosts, self._visit_host, self._options.hosts_at_once, self._tasks, asyncio.Event())
        return HarvestResult(
            self._state.count_outcomes(),
            self._state.count_pending(),
            self._breakers.suspended_until(),
            self._is_stopped,
            self._audited,
            self._false_claims,
        )

    def _now(self) -> int:
        return int(self._clock.now() * 1000)

    def _is_over(self) -> bool:
        self._is_stopped = self._is_stopped or self._should_stop()
        return self._is_stopped

    async def _visit_host(self, host: str) -> None:
        while not self._is_over() and self._breakers.allows_request(host):
            page = self._state.next_page(host)
            if page is None:
                return
            try:
                await self._visit(page, host)
            except FetchStoppedError:
                self._is_stopped = True
                return
            self._state.commit()

    async def _visit(self, page: HarvestPage, host: str) -> None:
        behaviour = self._state.host_behaviour(host)
        now = self._now()
        elapsed = 0.0 if page.last_visit is None else (now - page.last_visit) / 1000
        probability = change_probability(estimate_page_rate(page.intervals), elapsed)
        method = choose_fetch_method(
            self._policy,
            behaviour,
            page.snapshot,
            now,
            DEFAULT_CHANGE_PROBABILITY if probability is None else probability,
        )
        try:
            result = await self._visitor.visit(page.uri, history_host(page.uri), page.snapshot, behaviour, method)
        except SiteWaitError as error:
            self._suspend_host(host, error.until, "told-to-wait", error)
        except RobotsError as error:
            if error.is_temporary:
                self._suspend_host(host, self._clock.now() + POLICIES["harvest"].pause, "robots-unreachable", error)
            else:
                self._finish_unvisited(page, method, "forbidden", "robots")
        except SiteError as error:
            self._handle_failure(page, host, method, error)
        else:
            self._breakers.record_success(host)
            try:
                await run_shielded(self._store(page, host, method, result))
            finally:
                result.close()

    async def _store(self, page: HarvestPage, host: str, method: FetchMethod, result: PageVisitResult) -> None:
        """Store a response and what was learned from it in one transaction."""
        async with self._disk:
            by_text, keep_noarchive = self._policy.by_text, self._options.keep_noarchive
            stored = await asyncio.to_thread(
                store_visit, result, page.snapshot, self._warcs, by_text=by_text, keep_noarchive=keep_noarchive
            )
            # No await from here to the commit, so that files and state agree if the process is killed.
            behaviour = self._update_behaviour(page, result, stored)
            if behaviour != self._state.host_behaviour(host):
                self._state.store_host_behaviour(host, behaviour)
            for location in stored.locations:
                self._state.add_record(location, page.id)
            if stored.snapshot is not None:
                self._state.store_snapshot(page.id, stored.snapshot)
            self._state.record_visit(page, stored.visit.time, stored.changed)
            self._log.add(stored.visit, method.value, stored.outcome)
            self._state.finish(page.id, stored.outcome)
            self._state.commit()
        details = {"uri": page.uri, "way": method.value, "status": stored.visit.status}
        if result.weight is not None:
            details["audit"] = "changed" if stored.changed else "same"
        self._on_event(stored.outcome, details)

    def _update_behaviour(self, page: HarvestPage, result: PageVisitResult, stored: StoredVisit) -> HostBehaviour:
        """Count what a download or an audit revealed; return the updated behaviour of the host."""
        behaviour, decision = result.behaviour, result.decision
        if result.weight is not None and stored.changed is not None:
            self._audited += 1
            self._false_claims += stored.changed
            if result.had_304:
                behaviour = behaviour.increment("against" if stored.changed else "spared")
        if decision is not None and stored.changed and stored.visit.digest is not None:
            host = history_host(page.uri)
            self._policy.record_page(host, decision.group, changed=True)
            self._state.add_false_claim(host, decision.group)
        return behaviour

    def _handle_failure(self, page: HarvestPage, host: str, method: FetchMethod, error: SiteError) -> None:
        breaker = self._breakers.breaker(host)
        breaker.record_failure(error.kind, str(error))
        if breaker.suspension is not None:
            self._report_suspension(host, breaker.suspension.until)
        if RETRIES["harvest"].allows(error.kind, page.attempts):
            self._state.requeue(page.id)
            return
        self._finish_unvisited(page, method, "failed", error.kind)

    def _suspend_host(self, host: str, until: float, reason: str, error: SiteError) -> None:
        self._breakers.breaker(host).open(until, reason, str(error))
        self._report_suspension(host, until)

    def _report_suspension(self, host: str, until: float) -> None:
        self._on_event("closed", {"host": host, "until": until})

    def _finish_unvisited(self, page: HarvestPage, method: FetchMethod, outcome: str, reason: str) -> None:
        """Record and report that there was no response."""
        self._log.add(Visit(page.uri, time=self._now(), status=0), method.value, outcome)
        self._state.finish(page.id, outcome)
        self._on_event(outcome, {"uri": page.uri, "way": method.value, "reason": reason})
