"""Visits a site: one host at a time each, what is nearest first, until nothing is left or a limit is reached."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from unlost._core import VERSION
from unlost.archives.asking.addresses import Resolver, parse
from unlost.archives.asking.exchange import Deadlines
from unlost.clock import Clock, SystemClock
from unlost.crawl.bounds import host_of as named_host
from unlost.crawl.contents import Contents, contents_of
from unlost.crawl.following import Following
from unlost.crawl.hosts import to_its_end, visit_hosts
from unlost.crawl.plan import Plan
from unlost.crawl.polite import PATIENCE_SECONDS, PoliteVisitor, StoppedError, Tell
from unlost.crawl.resource import Outcome
from unlost.crawl.result import Result
from unlost.crawl.scope import Scope
from unlost.crawl.state import QUEUED, CrawlState, Queued
from unlost.crawl.visitor import DEADLINES, Answer, Request, Visitor
from unlost.crawl.warcs import MAX_BYTES, CrawlWarcs
from unlost.errors import RobotsError, SiteError, SiteWaitError, UriError
from unlost.formats.warc_writing.digests import digests_of
from unlost.formats.warc_writing.payload import Payload
from unlost.uri.naming import name_of

_SMALL = 1 << 17  # bytes of a body that is read and kept in less time than two threads take that wait for each other
_TRIES = 2  # visits of what broke off or took too long
_AGAIN = frozenset({"timeout", "reset"})
_GONE = frozenset({"refused", "dns", "unreachable", "proxy"})
_PATIENT = 5  # visits in a row that find nobody: then the host is left alone
_REST_SECONDS = 3_600.0  # for how long that is said to be
_MAX_TEXT = 4_096  # characters of a header that are kept in the state


async def crawl(
    plan: Plan,
    folder: Path,
    clock: Clock | None = None,
    *,
    contact: str | None = None,
    keep_warcs: bool = True,
    tell: Tell = lambda _, __: None,
    should_stop: Callable[[], bool] = lambda: False,
    deadlines: Deadlines = DEADLINES,
    patience: float = PATIENCE_SECONDS,
    proxies: bool = False,
    resolver: Resolver | None = None,
    warc_bytes: int = MAX_BYTES,
) -> Result:
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
    scope = Scope.of(plan)
    with suppress(FileExistsError):
        folder.mkdir()
    given = [*plan.starts, *plan.extra]
    with CrawlState(folder) as state:
        state.keep_plan(plan)
        warcs = None
        if keep_warcs:
            warcs = CrawlWarcs(folder / "warc", clock, f"unlost/{VERSION}", max_bytes=warc_bytes)
            warcs.agree(state)
        delay = plan.delay
        if contact is None:
            delay *= 2
            tell("no-contact", {"delay": delay})
        try:
            async with Visitor(given, clock, contact, deadlines, proxies=proxies, resolver=resolver) as visitor:
                polite = PoliteVisitor(
                    visitor, state, clock, delay, patience=patience, tell=tell, should_stop=should_stop
                )
                following = Following(plan, scope, state, clock)
                return await _Crawl(plan, scope, state, warcs, polite, following, clock, tell, should_stop).run()
        finally:
            state.commit()
            if warcs is not None:
                warcs.close()


class _Crawl:
    """One run of a crawl."""

    def __init__(
        self,
        plan: Plan,
        scope: Scope,
        state: CrawlState,
        warcs: CrawlWarcs | None,
        polite: PoliteVisitor,
        following: Following,
        clock: Clock,
        tell: Tell,
        should_stop: Callable[[], bool],
    ) -> None:
        self._plan, self._scope, self._state, self._warcs = plan, scope, state, warcs
        self._polite, self._following, self._clock, self._tell = polite, following, clock, tell
        self._should_stop = should_stop
        self._is_stopped = False
        self._limit: str | None = None
        self._fetched = state.counts().get(Outcome.FETCHED.value, 0)
        self._bytes = state.bytes()
        self._coming = 0
        self._closed: dict[str, float] = {}
        self._absent: dict[str, int] = {}
        self._begun: set[str] = set()
        self._disk = asyncio.Lock()
        self._more = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> Result:
        """Do all that can be done now."""
        self._state.forget_faults()
        self._state.requeue_for_now()
        self._following.begin()
        self._state.commit()
        await self._work()
        self._state.settle_hops()
        self._state.commit()
        return self._result()

    async def _work(self) -> None:
        """Have each host visited by one task, as many at once as the plan allows."""

        def hosts() -> list[str]:
            return [] if self._is_over() else [host for host in self._state.hosts() if host not in self._closed]

        await visit_hosts(hosts, self._visit_all, self._plan.hosts_at_once, self._tasks, self._more)

    def _is_over(self) -> bool:
        """Return whether somebody stopped it, or a limit is reached: nothing more is begun."""
        self._is_stopped = self._is_stopped or self._should_stop()
        if self._plan.resources is not None and self._fetched + self._coming >= self._plan.resources:
            self._limit = "resources"
        if self._plan.bytes_in_all is not None and self._bytes >= self._plan.bytes_in_all:
            self._limit = "bytes"
        return self._is_stopped or self._limit is not None

    async def _visit_all(self, host: str) -> None:
        """Visit what is to be visited on a host, one after the other."""
        while not self._is_over() and host not in self._closed:
            queued = self._state.take(host)
            if queued is None:
                return
            self._coming += 1
            try:
                await self._visit(queued, host)
            except StoppedError:
                return
            finally:
                self._coming -= 1
            self._state.commit()

    async def _visit(self, queued: Queued, host: str) -> None:
        try:
            await self._begin_lists(queued.uri)
            answer = await self._polite.visit(Request(queued.uri, max_bytes=self._plan.bytes_each))
        except SiteWaitError as error:
            self._close(host, error.until)
        except RobotsError as error:
            reason = "robots-unreachable" if error.is_for_now else "robots"
            self._end(queued, Outcome.FORBIDDEN, reason)
        except SiteError as error:
            self._failed(queued, host, error)
        else:
            self._absent.pop(host, None)
            with answer.body:
                await self._keep(queued, answer)

    async def _begin_lists(self, uri: str) -> None:
        """Look for the sitemaps of a site when it is visited for the first time."""
        origin = parse(uri).origin
        if not self._plan.sitemaps or origin in self._begun or not self._scope.has_host(named_host(name_of(uri))):
            return
        if not self._state.has_begun(origin):
            rules = await self._polite.rules(uri)
            if not rules.is_for_now:
                self._following.begin_lists(origin, rules.sitemaps)
                self._state.note_begun(origin)
        self._begun.add(origin)

    def _failed(self, queued: Queued, host: str, error: SiteError) -> None:
        if error.kind in _GONE:
            self._absent[host] = self._absent.get(host, 0) + 1
            if self._absent[host] >= _PATIENT:
                self._close(host, self._clock.now() + _REST_SECONDS)
        if error.kind in _AGAIN and queued.tries + 1 < _TRIES:
            self._state.try_again(queued.id)
            return
        self._end(queued, Outcome.FAILED, error.kind, str(error))

    def _close(self, host: str, until: float) -> None:
        self._closed[host] = until
        self._tell("closed", {"host": host, "until": until})

    def _end(self, queued: Queued, outcome: Outcome, reason: str, message: str | None = None) -> None:
        """Say that there was no answer."""
        if queued.is_guess:
            self._state.forget(queued.id)
            return
        self._state.finish(queued.id, outcome, reason=reason)
        self._tell(outcome.value, {"uri": queued.uri, "reason": reason, **({"message": message} if message else {})})

    async def _keep(self, queued: Queued, answer: Answer) -> None:
        if answer.size <= _SMALL:
            found = contents_of(answer)
        else:
            found = await asyncio.to_thread(contents_of, answer)
        if queued.is_guess and not (found.is_sitemap and 200 <= answer.status < 300):
            if found.redirect is not None:
                self._following.redirect(queued, found.redirect)
            self._state.forget(queued.id)
            return
        await to_its_end(self._note(queued, answer, found))
        self._tell(
            "fetched",
            {"uri": queued.uri, "status": answer.status, "fetched": self._fetched, "known": self._following.known},
        )
        if not self._following.hosts <= self._tasks.keys():
            self._more.set()
        self._following.hosts.clear()

    async def _note(self, queued: Queued, answer: Answer, found: Contents) -> None:
        """Keep an answer, and what it leads to."""
        async with self._disk:
            told = await self._stored(answer, found)
            # From here to the commit nobody else gets a turn: file and state agree whenever a kill comes.
            if found.redirect is not None:
                number, reason = self._following.redirect(queued, found.redirect)
                told |= {"redirect_id": number, "reason": reason}
            self._following.follow(queued, found.links, is_sitemap=queued.is_sitemap or found.is_sitemap)
            self._state.finish(queued.id, Outcome.FETCHED, **told)
            self._fetched += 1
            self._bytes += answer.size
            self._following.note()
            self._state.commit()

    async def _stored(self, answer: Answer, found: Contents) -> dict[str, object]:
        """Keep an answer, if it is to be, and return what is known of it."""
        told: dict[str, object] = {
            "status": answer.status,
            "mime": found.mime,
            "length": answer.size,
            "seen": answer.moment,
            "last_modified": found.last_modified,
            "redirect": found.redirect,
            "noarchive": found.is_noarchive,
            "cache_control": _short(answer.header("cache-control")),
            "etag": _short(answer.header("etag")),
            "truncated": answer.truncated,
            "reason": None,
        }
        if self._warcs is not None and (self._plan.keep_noarchive or not found.is_noarchive):
            with suppress(UriError):  # no record can have such an address
                store = self._warcs.store
                if answer.size <= _SMALL:
                    place, digest = store(answer, found.mime)
                else:
                    place, digest = await asyncio.to_thread(store, answer, found.mime)
                return told | {"digest": digest, "file": place.file, "offset": place.offset, "size": place.size}
        return told | {"digest": digests_of(b"", Payload(answer.body).pieces())[0]}

    def _result(self) -> Result:
        counts = self._state.counts()
        return Result(
            {outcome: counts.get(outcome.value, 0) for outcome in Outcome},
            counts.get(QUEUED, 0),
            self._state.left_out(),
            dict(self._closed),
            self._state.for_now(),
            self._limit,
            self._is_stopped,
        )


def _short(value: str | None) -> str | None:
    return None if value is None else value[:_MAX_TEXT]
