"""Visits one page: chooses the fetch method, follows redirects, applies the policy, and measures the host."""

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
from unlost.refresh.policy import Policy, RefreshDecision, history_host
from unlost.refresh.visit import Visit, visit_from_headers

REQUEST_COST_BYTES = 700
"""Approximate size of a request and its response headers: the cost of an unnecessary HEAD."""
ABORT_COST_BYTES = 14_600
"""Bytes in flight when a GET is aborted: the initial congestion window of ten segments (RFC 6928)."""
DEFAULT_CHANGE_PROBABILITY = 0.116
"""Probability that an unknown page has changed: the fraction of changed pairs in the study's download history, 599,143
of 5,182,034.
"""

MAX_REDIRECTS = 5
PageHeaders = tuple[tuple[str, str], ...]
_NO_CACHE_HEADERS = (("Cache-Control", "no-cache"), ("Pragma", "no-cache"))  # after an unsolicited 304
_HEAD_UNSUPPORTED = frozenset({400, 403, 404, 405, 406, 501})  # responses of servers that do not support HEAD
_COMPARED_FIELDS = ("etag", "last_modified")


class FetchMethod(Enum):
    """How a page is fetched."""

    SKIP = "skip"
    """No request: the previous response is still fresh, and the scheme relies on that."""
    HEAD = "head"
    """HEAD, then GET if the headers require it."""
    ABORTED = "aborted"
    """GET, aborted after the headers unless they indicate a change."""
    CONDITIONAL = "conditional"
    """GET with validators; a 304 response counts as unchanged. Aborted after the headers, like ABORTED."""
    GET = "get"
    """GET of the whole page."""


def choose_fetch_method(
    policy: Policy,
    behaviour: HostBehaviour,
    snapshot: PageSnapshot | None,
    now: int,
    change_probability: float = DEFAULT_CHANGE_PROBABILITY,
) -> FetchMethod:
    """Choose how to fetch a page.

    A conditional request is chosen only if the host's responses to it were found to agree with the policy: servers
    differ in how they evaluate two validators.

    Args:
        policy: The policy.
        behaviour: Measured behaviour of the host.
        snapshot: The latest content of the page; None if there is none.
        now: Milliseconds since 1970.
        change_probability: Probability that the page has changed.

    >>> snapshot = PageSnapshot(Visit("http://a.example/", "sha1:A", etag='"1"'), None, "http://a.example/")
    >>> choose_fetch_method(Policy(), HostBehaviour(), snapshot, 0)
    <FetchMethod.GET: 'get'>
    """
    if snapshot is None or snapshot.visit.digest is None:
        return FetchMethod.GET
    host = history_host(snapshot.visit.uri)
    if _is_fresh(policy, host, snapshot.visit, now):
        return FetchMethod.SKIP
    unchanged_visit = replace(snapshot.visit, time=now, date=_http_date(now), age=None)
    if policy.decide(host, snapshot.visit, unchanged_visit).download:
        return FetchMethod.GET  # the scheme downloads the page even if no header has changed
    if snapshot.validators and behaviour.matches_scheme:
        return FetchMethod.CONDITIONAL
    if behaviour.head_differs:
        return FetchMethod.ABORTED
    size = ABORT_COST_BYTES if snapshot.size is None else snapshot.size
    expected_abort_cost = (1 - change_probability) * min(size, ABORT_COST_BYTES)
    return FetchMethod.ABORTED if change_probability * REQUEST_COST_BYTES > expected_abort_cost else FetchMethod.HEAD


def _is_fresh(policy: Policy, host: str, last: Visit, now: int) -> bool:
    """Return whether the scheme skips the page because `max-age` or `Expires` of the last visit has not passed."""
    if last.cache_control is None and last.expires is None:
        return False
    cached = Visit(last.uri, date=last.date, cache_control=last.cache_control, expires=last.expires, time=last.time)
    this = Visit(last.uri, time=now)
    decision = policy.decide_cell(host, compute_cell(cached, this), this)
    return format_cell(decision.cell).endswith(".fresh") and not decision.download and not decision.audit


def _http_date(milliseconds: int) -> str:
    return to_http(from_epoch(str(milliseconds // 1000)))


@dataclass(frozen=True, slots=True)
class HarvestResponse:
    """Response for a page.

    Attributes:
        last: The final response.
        redirects: The redirects that led to it, in order.
        had_condition: Whether the last request had validators.
    """

    last: FetchResponse
    redirects: tuple[FetchResponse, ...]
    had_condition: bool

    def close(self) -> None:
        """Close all bodies."""
        for response in (*self.redirects, self.last):
            response.body.close()


@dataclass(frozen=True, slots=True)
class HarvestRequest:
    """Request for a page.

    Attributes:
        uri: The URL.
        method: GET or HEAD.
        condition: Validators of the snapshot, sent only to `final_url`.
        final_url: URL of the snapshot after redirects.
        wants_body: Decides by the headers whether to read the body; None for always. Error pages are always read.
        max_bytes: Limit of the body after content decoding.
        extra_headers: Additional headers.
    """

    uri: str
    method: str = "GET"
    condition: PageHeaders = ()
    final_url: str | None = None
    wants_body: Callable[[Visit], bool] | None = None
    max_bytes: int = 64 << 20
    extra_headers: PageHeaders = ()


async def fetch_page(fetcher: PoliteFetcher, page_request: HarvestRequest) -> HarvestResponse:
    """Fetch a page, following redirects.

    Raises:
        SiteError: As raised by `PoliteFetcher.fetch`; of the kind `redirects` for too many redirects or a loop.
    """
    redirects: list[FetchResponse] = []
    url = page_request.uri
    try:
        while True:
            is_final = url == page_request.final_url
            headers = page_request.extra_headers + (page_request.condition if is_final else ())
            request = FetchRequest(
                url, page_request.method, headers, _body_predicate(page_request), page_request.max_bytes
            )
            response = await fetcher.fetch(request)
            target = _redirect_target(response)
            if target is None:
                return HarvestResponse(response, tuple(redirects), bool(page_request.condition) and is_final)
            redirects.append(response)
            url = _follow_redirect(redirects, target)
    except BaseException:
        for each in redirects:
            each.body.close()
        raise


def _follow_redirect(redirects: list[FetchResponse], target: str) -> str:
    if len(redirects) > MAX_REDIRECTS or target in {each.uri for each in redirects}:
        raise SiteError(f"more than {MAX_REDIRECTS} redirects, or in a circle", "redirects")
    return target


def _body_predicate(request: HarvestRequest) -> bool | Callable[[int, PageHeaders], bool]:
    wants_body = request.wants_body
    if wants_body is None:
        return True

    def wants_response_body(status: int, headers: PageHeaders) -> bool:
        return not 200 <= status < 300 or wants_body(
            visit_from_headers(request.uri, 0, status, lowercase_names(headers))
        )

    return wants_response_body


def _redirect_target(response: FetchResponse) -> str | None:
    location = response.header("location")
    if response.status not in REDIRECT_STATUSES or not location:
        return None
    with suppress(ValueError):
        return str(resolve_redirect(location, parse_url(response.uri)))
    return None


def lowercase_names(headers: PageHeaders) -> dict[str, str]:
    """Return headers by lower-case name; the first one if a name is repeated."""
    return {name.lower(): value for name, value in reversed(headers)}


def visit_from_response(uri: str, response: FetchResponse) -> Visit:
    """Return a response as a visit without digests."""
    time = int(to_datetime(response.requested_at).timestamp()) * 1000
    return visit_from_headers(uri, time, response.status, lowercase_names(response.headers))


@dataclass(slots=True)
class PageVisitResult:
    """Result of a visit.

    Attributes:
        outcome: `skipped`, `not-modified` or `answered`.
        visit: The visit for the log, without digests.
        behaviour: Behaviour of the host, including this visit.
        response: The last response; None if no request was sent.
        decision: Decision of the policy; None without snapshot or headers.
        weight: Number of skips that an audit stands for; None if it was none.
        had_304: Whether the server responded 304 to a conditional request.
    """

    outcome: str
    visit: Visit
    behaviour: HostBehaviour
    response: HarvestResponse | None = None
    decision: RefreshDecision | None = None
    weight: int | None = None
    had_304: bool = False

    def close(self) -> None:
        """Close the bodies of the response."""
        if self.response is not None:
            self.response.close()


class PageVisitor:
    """Visits pages by a policy.

    Args:
        fetcher: Sends the requests.
        policy: The policy.
        now: Returns milliseconds since 1970.
        max_bytes: Limit of one body after content decoding.
    """

    def __init__(self, fetcher: PoliteFetcher, policy: Policy, now: Callable[[], int], max_bytes: int) -> None:
        self._fetcher, self._policy, self._now, self._max_bytes = fetcher, policy, now, max_bytes

    async def visit(
        self, uri: str, host: str, snapshot: PageSnapshot | None, behaviour: HostBehaviour, method: FetchMethod
    ) -> PageVisitResult:
        """Visit a page. The caller must close the result. Raises SiteError and its subclasses."""
        if method is FetchMethod.SKIP:
            return PageVisitResult("skipped", Visit(uri, time=self._now(), status=0), behaviour)
        page_visit = _PageVisit(self._fetcher, self._policy, uri, host, snapshot, behaviour, self._now, self._max_bytes)
        if snapshot is None or method is FetchMethod.GET:
            return await page_visit.fetch_whole()
        if method is FetchMethod.HEAD:
            return await page_visit.fetch_by_head()
        return await page_visit.fetch_by_policy(snapshot, condition=method is FetchMethod.CONDITIONAL)


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
        """Fetch the whole page unconditionally; repeat the request with no-cache after an unsolicited 304."""
        response = await fetch_page(self.fetcher, HarvestRequest(self.uri, max_bytes=self.max_bytes))
        if response.last.status == 304:
            response.close()
            self._count("unasked")
            response = await fetch_page(
                self.fetcher, HarvestRequest(self.uri, max_bytes=self.max_bytes, extra_headers=_NO_CACHE_HEADERS)
            )
        visit = visit_from_response(self.uri, response.last)
        if decision is None and self.snapshot is not None and _is_success(response):
            decision = self.policy.decide(self.host, self.snapshot.visit, visit)
        if response.last.status == 304:
            response.close()
            raise SiteError("it says 304 although nobody asked whether it changed", "unasked-304")
        return PageVisitResult("answered", visit, self.behaviour, response, decision, weight)

    async def fetch_by_head(self) -> PageVisitResult:
        """Send HEAD, then GET if the headers require it."""
        snapshot = self._require_snapshot()
        response = await fetch_page(self.fetcher, HarvestRequest(self.uri, "HEAD", max_bytes=self.max_bytes))
        response.close()
        if not _is_success(response):
            if response.last.status in _HEAD_UNSUPPORTED:
                self._count("head_unlike")
            return await self.fetch_by_policy(snapshot, condition=False)
        head_visit = visit_from_response(self.uri, response.last)
        decision = self.policy.decide(self.host, snapshot.visit, head_visit)
        can_revalidate = bool(snapshot.validators) and response.last.uri == snapshot.final_url
        if decision.download or decision.audit:
            return await self._download_after_head(head_visit, decision, can_revalidate=can_revalidate)
        if can_revalidate and self.behaviour.needs_skip_probe:
            return await self._probe_skip(snapshot, head_visit, decision, response)
        return PageVisitResult("skipped", head_visit, self.behaviour, response, decision)

    async def _download_after_head(
        self, head_visit: Visit, decision: RefreshDecision, *, can_revalidate: bool
    ) -> PageVisitResult:
        """Download a page that HEAD reports as changed, or that is audited, and compare the headers of both."""
        weight = None if decision.download else self.policy.audit_weight
        if can_revalidate and decision.download and self.behaviour.needs_download_probe:
            snapshot = self._require_snapshot()
            response = await fetch_page(self.fetcher, self._page_request(snapshot.validators))
            if response.last.status != 304:
                self._count("sent")
                result = PageVisitResult(
                    "answered", visit_from_response(self.uri, response.last), self.behaviour, response, decision, weight
                )
            else:
                response.close()
                self._count("against")
                result = await self.fetch_whole(decision, weight)
        else:
            result = await self.fetch_whole(decision, weight)
        if result.response is not None and _is_success(result.response):
            is_alike = all(getattr(head_visit, name) == getattr(result.visit, name) for name in _COMPARED_FIELDS)
            # Values may differ because the page changed between both requests; a missing header is systematic.
            is_missing = any(
                (getattr(head_visit, name) is None) != (getattr(result.visit, name) is None)
                for name in _COMPARED_FIELDS
            )
            self._count("head_alike" if is_alike else "head_unlike" if is_missing else None)
            result.behaviour = self.behaviour
        return result

    async def _probe_skip(
        self, snapshot: PageSnapshot, visit: Visit, decision: RefreshDecision, previous: HarvestResponse
    ) -> PageVisitResult:
        """Send a conditional request where the scheme skips. A 304 response is stored instead of the skip."""
        response = await fetch_page(self.fetcher, self._page_request(snapshot.validators, wants_body=lambda _: False))
        if response.last.status == 304:
            self._count("spared")
            return PageVisitResult(
                "not-modified", replace(visit, status=304), self.behaviour, response, decision, had_304=True
            )
        response.close()
        if _is_success(response):
            self._count("needless")
        return PageVisitResult("skipped", visit, self.behaviour, previous, decision)

    async def fetch_by_policy(self, snapshot: PageSnapshot, *, condition: bool) -> PageVisitResult:
        """Send GET and abort it after the headers if the scheme skips the page."""
        decisions: list[RefreshDecision] = []

        def wants_body(visit: Visit) -> bool:
            decisions.append(self.policy.decide(self.host, snapshot.visit, replace(visit, time=self.now())))
            return decisions[-1].download or decisions[-1].audit

        response = await fetch_page(
            self.fetcher, self._page_request(snapshot.validators if condition else (), wants_body=wants_body)
        )
        if response.last.status == 304 and response.had_condition:
            return await self._handle_not_modified(snapshot, response)
        if response.last.status == 304:
            response.close()
            self._count("unasked")
            return await self.fetch_whole()
        visit = visit_from_response(self.uri, response.last)
        if not _is_success(response) or not decisions:
            return PageVisitResult("answered", visit, self.behaviour, response)
        decision = decisions[-1]
        can_revalidate = bool(snapshot.validators) and response.last.uri == snapshot.final_url
        if condition and response.had_condition:
            self._count("sent" if decision.download else "needless")
        elif can_revalidate and decision.download and not self.behaviour.sent and not self.behaviour.against:
            await self._probe_download(snapshot)
        if not response.last.has_body:
            if not condition and can_revalidate and self.behaviour.needs_skip_probe:
                return await self._probe_skip(snapshot, visit, decision, response)
            return PageVisitResult("skipped", visit, self.behaviour, response, decision)
        weight = None if decision.download else self.policy.audit_weight
        return PageVisitResult("answered", visit, self.behaviour, response, decision, weight)

    async def _probe_download(self, snapshot: PageSnapshot) -> None:
        """Send a conditional request where the scheme downloads and the page has already been fetched."""
        response = await fetch_page(self.fetcher, self._page_request(snapshot.validators, wants_body=lambda _: False))
        response.close()
        self._count("against" if response.last.status == 304 else "sent" if _is_success(response) else None)

    async def _handle_not_modified(self, snapshot: PageSnapshot, response: HarvestResponse) -> PageVisitResult:
        """Accept a 304 response unless the scheme downloads the page or it is audited."""
        visit = merge_not_modified(snapshot.visit, visit_from_response(self.uri, response.last))
        decision = self.policy.decide(self.host, snapshot.visit, visit)
        if decision.download:
            response.close()
            self._count("against")
            return await self.fetch_whole(decision)
        if decision.audit:
            response.close()
            result = await self.fetch_whole(decision, self.policy.audit_weight)
            result.had_304 = True
            return result
        self._count("spared")
        return PageVisitResult(
            "not-modified", replace(visit, digest=None), self.behaviour, response, decision, had_304=True
        )

    def _page_request(
        self, condition: tuple[tuple[str, str], ...], wants_body: Callable[[Visit], bool] | None = None
    ) -> HarvestRequest:
        return HarvestRequest(
            self.uri, "GET", condition, self._require_snapshot().final_url, wants_body, self.max_bytes
        )

    def _require_snapshot(self) -> PageSnapshot:
        if self.snapshot is None:
            raise RuntimeError("nothing is held")
        return self.snapshot

    def _count(self, name: str | None) -> None:
        if name is not None:
            self.behaviour = self.behaviour.increment(name)


def _is_success(response: HarvestResponse) -> bool:
    return 200 <= response.last.status < 300
