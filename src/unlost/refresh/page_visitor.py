"""Visits one page.

Chooses the fetch method, sends the requests through redirects, decides by the policy, and measures the host.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum

from unlost.crawl.extractor import REDIRECT_STATUSES
from unlost.crawl.fetcher import FetchRequest, FetchResponse
from unlost.crawl.politeness import PoliteFetcher
from unlost.dates import from_epoch, to_datetime, to_http
from unlost.errors import SiteError
from unlost.http.url import parse_url, resolve_redirect
from unlost.refresh.decision_matrix import compute_cell, format_cell
from unlost.refresh.harvest_state import HostBehaviour, PageSnapshot, merge_not_modified
from unlost.refresh.policy import Policy, RefreshDecision, url_host
from unlost.refresh.visit import Visit, visit_from_headers

REQUEST_COST_BYTES = 700
"""What a request and the headers of its answer weigh, about: a HEAD in vain costs that."""
ABORT_COST_BYTES = 14_600
"""Bytes that are under way when a GET is broken off: ten segments, with which connections begin."""
DEFAULT_CHANGE_PROBABILITY = 0.116
"""That a page has changed, of which nothing is known: the share of changed pairs in the study of front pages."""


class FetchMethod(Enum):
    """How a page is asked for."""

    SKIP = "skip"
    """Not at all: a cache may keep it still, and the scheme believes that."""
    HEAD = "head"
    """For its headers; then GET if they say so."""
    ABORTED = "aborted"
    """GET, broken off behind the headers unless they say that it changed."""
    CONDITIONAL = "conditional"
    """GET with what the last answer was known by; 304 is believed. Broken off like the one above."""
    GET = "get"
    """The whole page, whatever its headers say."""


def choose_fetch_method(
    policy: Policy,
    behaviour: HostBehaviour,
    snapshot: PageSnapshot | None,
    now: int,
    change_probability: float = DEFAULT_CHANGE_PROBABILITY,
) -> FetchMethod:
    """Return how to ask for a page.

    held: what is held of it; None if nothing is. now: milliseconds since 1970. chance: how likely it is that it changed
    meanwhile, as far as its past tells.

    >>> held = PageSnapshot(Visit("http://a.example/", "sha1:A", etag='"1"'), None, "http://a.example/")
    >>> choose_fetch_method(Policy(), HostBehaviour(), held, 0)
    <FetchMethod.GET: 'get'>
    """
    if snapshot is None or snapshot.visit.digest is None:
        return FetchMethod.GET
    host = url_host(snapshot.visit.uri)
    if _is_fresh(policy, host, snapshot.visit, now):
        return FetchMethod.SKIP
    as_before = replace(snapshot.visit, time=now, date=_http_date(now), age=None)
    if policy.decide(host, snapshot.visit, as_before).download:
        return FetchMethod.GET  # headers that say the same would not be believed
    if snapshot.validators and behaviour.matches_scheme:
        return FetchMethod.CONDITIONAL
    if behaviour.head_differs:
        return FetchMethod.ABORTED
    size = ABORT_COST_BYTES if snapshot.size is None else snapshot.size
    in_vain = (1 - change_probability) * min(size, ABORT_COST_BYTES)
    return FetchMethod.ABORTED if change_probability * REQUEST_COST_BYTES > in_vain else FetchMethod.HEAD


def _is_fresh(policy: Policy, host: str, last: Visit, now: int) -> bool:
    """Return whether the scheme believes a cache's permission alone: `max-age` or `Expires` that is not over yet."""
    if last.cache_control is None and last.expires is None:
        return False
    permitted = Visit(last.uri, date=last.date, cache_control=last.cache_control, expires=last.expires, time=last.time)
    this = Visit(last.uri, time=now)
    decision = policy.decide_cell(host, compute_cell(permitted, this), this)
    return format_cell(decision.cell).endswith(".fresh") and not decision.download and not decision.audit


def _http_date(milliseconds: int) -> str:
    return to_http(from_epoch(str(milliseconds // 1000)))


MAX_REDIRECTS = 5
PageHeaders = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class HarvestResponse:
    """What came for a page.

    last: the answer at the end. chain: the redirects that led there, the first one first.
    had_condition: whether the last request had one.
    """

    last: FetchResponse
    redirects: tuple[FetchResponse, ...]
    had_condition: bool

    def close(self) -> None:
        """Let go of all bodies."""
        for answer in (*self.redirects, self.last):
            answer.body.close()


@dataclass(frozen=True, slots=True)
class HarvestRequest:
    """How to ask for a page.

    condition: what the copy that is held is known by, sent only to the address it came from: `final`.
    wants: whether the body is wanted, of a visit that has the headers; of an answer that is no success it is read.
    """

    uri: str
    method: str = "GET"
    condition: PageHeaders = ()
    final_url: str | None = None
    wants_body: Callable[[Visit], bool] | None = None
    max_bytes: int = 64 << 20
    extra_headers: PageHeaders = ()


async def fetch_page(fetcher: PoliteFetcher, page_request: HarvestRequest) -> HarvestResponse:
    """Return what comes. Raises SiteError and its kinds as `PoliteVisitor.visit`, of kind `redirects` for too many."""
    chain: list[FetchResponse] = []
    address = page_request.uri
    try:
        while True:
            is_final = address == page_request.final_url
            headers = page_request.extra_headers + (page_request.condition if is_final else ())
            request = FetchRequest(
                address, page_request.method, headers, _body_predicate(page_request), page_request.max_bytes
            )
            answer = await fetcher.fetch(request)
            target = _redirect_target(answer)
            if target is None:
                return HarvestResponse(answer, tuple(chain), bool(page_request.condition) and is_final)
            chain.append(answer)
            address = _follow_redirect(chain, target)
    except BaseException:
        for each in chain:
            each.body.close()
        raise


def _follow_redirect(redirects: list[FetchResponse], target: str) -> str:
    if len(redirects) > MAX_REDIRECTS or target in {each.uri for each in redirects}:
        raise SiteError(f"more than {MAX_REDIRECTS} redirects, or in a circle", "redirects")
    return target


def _body_predicate(request: HarvestRequest) -> bool | Callable[[int, PageHeaders], bool]:
    wants = request.wants_body
    if wants is None:
        return True

    def wanting(status: int, headers: PageHeaders) -> bool:
        return not 200 <= status < 300 or wants(visit_from_headers(request.uri, 0, status, lowercase_names(headers)))

    return wanting


def _redirect_target(response: FetchResponse) -> str | None:
    location = response.header("location")
    if response.status not in REDIRECT_STATUSES or not location:
        return None
    with suppress(ValueError):
        return str(resolve_redirect(location, parse_url(response.uri)))
    return None


def lowercase_names(headers: PageHeaders) -> dict[str, str]:
    """Return headers by their names in lower case; of those that came twice the first."""
    return {name.lower(): value for name, value in reversed(headers)}


def visit_from_response(uri: str, response: FetchResponse) -> Visit:
    """Return what an answer says as a visit to a page, without digests."""
    time = int(to_datetime(response.requested_at).timestamp()) * 1000
    return visit_from_headers(uri, time, response.status, lowercase_names(response.headers))


_NO_CACHE_HEADERS = (("Cache-Control", "no-cache"), ("Pragma", "no-cache"))  # for a server that says 304 unasked
_HEAD_UNSUPPORTED = frozenset({400, 403, 404, 405, 406, 501})  # what servers without HEAD answer to it
_COMPARED_FIELDS = ("etag", "last_modified")


@dataclass(slots=True)
class PageVisitResult:
    """What came of asking for a page.

    outcome: `skipped`, `not-modified`, `answered`. reply: the last one; None where nothing was asked.
    decision: what the scheme said; None where nothing was held, or no headers came.
    visit: what the log gets, without digests. treatment: of the host, with what was measured.
    weight: how many skips an audit stands for; None if it was none.
    """

    outcome: str
    visit: Visit
    behaviour: HostBehaviour
    response: HarvestResponse | None = None
    decision: RefreshDecision | None = None
    weight: int | None = None
    had_304: bool = False

    def close(self) -> None:
        """Let go of what came."""
        if self.response is not None:
            self.response.close()


class PageVisitor:
    """Visits pages by a policy.

    now: gives milliseconds since 1970. max_bytes: of one body that are read.
    """

    def __init__(self, fetcher: PoliteFetcher, policy: Policy, now: Callable[[], int], max_bytes: int) -> None:
        self._fetcher, self._policy, self._now, self._max_bytes = fetcher, policy, now, max_bytes

    async def visit(
        self, uri: str, host: str, snapshot: PageSnapshot | None, behaviour: HostBehaviour, method: FetchMethod
    ) -> PageVisitResult:
        """Return what came of it, whose `close` the caller calls. Raises SiteError and its kinds."""
        if method is FetchMethod.SKIP:
            return PageVisitResult("skipped", Visit(uri, time=self._now(), status=0), behaviour)
        visiting = _PageVisit(self._fetcher, self._policy, uri, host, snapshot, behaviour, self._now, self._max_bytes)
        if snapshot is None or method is FetchMethod.GET:
            return await visiting.fetch_whole()
        if method is FetchMethod.HEAD:
            return await visiting.fetch_by_head()
        return await visiting.fetch_by_policy(snapshot, condition=method is FetchMethod.CONDITIONAL)


@dataclass(slots=True)
class _PageVisit:
    """One visit of one page."""

    fetcher: PoliteFetcher
    policy: Policy
    uri: str
    host: str
    snapshot: PageSnapshot | None
    behaviour: HostBehaviour
    now: Callable[[], int]
    max_bytes: int

    async def fetch_whole(self, decision: RefreshDecision | None = None, weight: int | None = None) -> PageVisitResult:
        """Ask for the whole page, without a condition; once more of a server that says 304 to that."""
        reply = await fetch_page(self.fetcher, HarvestRequest(self.uri, max_bytes=self.max_bytes))
        if reply.last.status == 304:
            reply.close()
            self._count("unasked")
            reply = await fetch_page(
                self.fetcher, HarvestRequest(self.uri, max_bytes=self.max_bytes, extra_headers=_NO_CACHE_HEADERS)
            )
        visit = visit_from_response(self.uri, reply.last)
        if decision is None and self.snapshot is not None and _is_success(reply):
            decision = self.policy.decide(self.host, self.snapshot.visit, visit)
        if reply.last.status == 304:
            reply.close()
            raise SiteError("it says 304 although nobody asked whether it changed", "unasked-304")
        return PageVisitResult("answered", visit, self.behaviour, reply, decision, weight)

    async def fetch_by_head(self) -> PageVisitResult:
        """Ask for the headers, and for the page if they say so."""
        held = self._require_snapshot()
        reply = await fetch_page(self.fetcher, HarvestRequest(self.uri, "HEAD", max_bytes=self.max_bytes))
        reply.close()
        if not _is_success(reply):
            if reply.last.status in _HEAD_UNSUPPORTED:
                self._count("head_unlike")
            return await self.fetch_by_policy(held, condition=False)
        shown = visit_from_response(self.uri, reply.last)
        decision = self.policy.decide(self.host, held.visit, shown)
        can_ask = bool(held.validators) and reply.last.uri == held.final_url
        if decision.download or decision.audit:
            return await self._download_after_head(shown, decision, can_ask=can_ask)
        if can_ask and self.behaviour.needs_skip_probe:
            return await self._probe_skip(held, shown, decision, reply)
        return PageVisitResult("skipped", shown, self.behaviour, reply, decision)

    async def _download_after_head(self, shown: Visit, decision: RefreshDecision, *, can_ask: bool) -> PageVisitResult:
        """Download what HEAD says has changed, or what is to be audited, and compare what both say."""
        weight = None if decision.download else self.policy.audit_weight
        if can_ask and decision.download and self.behaviour.needs_download_probe:
            held = self._require_snapshot()
            reply = await fetch_page(self.fetcher, self._page_request(held.validators))
            if reply.last.status != 304:
                self._count("sent")
                found = PageVisitResult(
                    "answered", visit_from_response(self.uri, reply.last), self.behaviour, reply, decision, weight
                )
            else:
                reply.close()
                self._count("against")
                found = await self.fetch_whole(decision, weight)
        else:
            found = await self.fetch_whole(decision, weight)
        if found.response is not None and _is_success(found.response):
            is_alike = all(getattr(shown, name) == getattr(found.visit, name) for name in _COMPARED_FIELDS)
            # A page may change between the two: only what is not there at all is a habit.
            is_missing = any(
                (getattr(shown, name) is None) != (getattr(found.visit, name) is None) for name in _COMPARED_FIELDS
            )
            self._count("head_alike" if is_alike else "head_unlike" if is_missing else None)
            found.behaviour = self.behaviour
        return found

    async def _probe_skip(
        self, snapshot: PageSnapshot, shown: Visit, decision: RefreshDecision, before: HarvestResponse
    ) -> PageVisitResult:
        """See whether a condition gets 304 where the scheme skips: then that is what is kept."""
        reply = await fetch_page(self.fetcher, self._page_request(snapshot.validators, wants=lambda _: False))
        if reply.last.status == 304:
            self._count("spared")
            return PageVisitResult(
                "not-modified", replace(shown, status=304), self.behaviour, reply, decision, had_304=True
            )
        reply.close()
        if _is_success(reply):
            self._count("needless")
        return PageVisitResult("skipped", shown, self.behaviour, before, decision)

    async def fetch_by_policy(self, snapshot: PageSnapshot, *, condition: bool) -> PageVisitResult:
        """Ask for the page, and break off behind the headers if the scheme skips it; 304 does the same."""
        decided: list[RefreshDecision] = []

        def wants(visit: Visit) -> bool:
            decided.append(self.policy.decide(self.host, snapshot.visit, replace(visit, time=self.now())))
            return decided[-1].download or decided[-1].audit

        reply = await fetch_page(
            self.fetcher, self._page_request(snapshot.validators if condition else (), wants=wants)
        )
        if reply.last.status == 304 and reply.had_condition:
            return await self._handle_not_modified(snapshot, reply)
        if reply.last.status == 304:
            reply.close()
            self._count("unasked")
            return await self.fetch_whole()
        visit = visit_from_response(self.uri, reply.last)
        if not _is_success(reply) or not decided:
            return PageVisitResult("answered", visit, self.behaviour, reply)
        decision = decided[-1]
        can_ask = bool(snapshot.validators) and reply.last.uri == snapshot.final_url
        if condition and reply.had_condition:
            self._count("sent" if decision.download else "needless")
        elif can_ask and decision.download and not self.behaviour.sent and not self.behaviour.against:
            await self._probe_download(snapshot)
        if not reply.last.has_body:
            if not condition and can_ask and self.behaviour.needs_skip_probe:
                return await self._probe_skip(snapshot, visit, decision, reply)
            return PageVisitResult("skipped", visit, self.behaviour, reply, decision)
        weight = None if decision.download else self.policy.audit_weight
        return PageVisitResult("answered", visit, self.behaviour, reply, decision, weight)

    async def _probe_download(self, snapshot: PageSnapshot) -> None:
        """See whether a condition gets the page where the scheme downloads it; that has come already."""
        reply = await fetch_page(self.fetcher, self._page_request(snapshot.validators, wants=lambda _: False))
        reply.close()
        self._count("against" if reply.last.status == 304 else "sent" if _is_success(reply) else None)

    async def _handle_not_modified(self, snapshot: PageSnapshot, response: HarvestResponse) -> PageVisitResult:
        """Believe 304, unless the scheme does not, or it is to be audited."""
        visit = merge_not_modified(snapshot.visit, visit_from_response(self.uri, response.last))
        decision = self.policy.decide(self.host, snapshot.visit, visit)
        if decision.download:
            response.close()
            self._count("against")
            return await self.fetch_whole(decision)
        if decision.audit:
            response.close()
            found = await self.fetch_whole(decision, self.policy.audit_weight)
            found.had_304 = True
            return found
        self._count("spared")
        return PageVisitResult(
            "not-modified", replace(visit, digest=None), self.behaviour, response, decision, had_304=True
        )

    def _page_request(
        self, condition: tuple[tuple[str, str], ...], wants: Callable[[Visit], bool] | None = None
    ) -> HarvestRequest:
        return HarvestRequest(self.uri, "GET", condition, self._require_snapshot().final_url, wants, self.max_bytes)

    def _require_snapshot(self) -> PageSnapshot:
        if self.snapshot is None:
            raise RuntimeError("nothing is held")
        return self.snapshot

    def _count(self, name: str | None) -> None:
        if name is not None:
            self.behaviour = self.behaviour.increment(name)


def _is_success(response: HarvestResponse) -> bool:
    return 200 <= response.last.status < 300
