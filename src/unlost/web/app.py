"""The ASGI application: the most frequent requests are answered before any router, the rest by Starlette."""

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from unlost.aggregate.models import LAST_MEMENTO, AggregateResult, RoutingOptions
from unlost.aggregate.request import (
    DEFAULT_CACHE_CONTROL,
    ENDPOINT_PATTERNS,
    MAX_TARGET_BYTES,
    MementoRequest,
    RequestHeaders,
    Scope,
    parse_accept_datetime,
    parse_headers,
    parse_path,
    parse_typed_url,
)
from unlost.aggregate.urls import ServiceUrls
from unlost.errors import BusyError, DatabaseError, InputError, NotKeptError, UsageError
from unlost.jobs.client_network import client_network
from unlost.web.factory import ServiceContext
from unlost.web.proxy import ReplayProxy
from unlost.web.responses import (
    ALLOWED_METHODS,
    COMMON_HEADERS,
    HSTS,
    NO_STORE,
    PREFLIGHT_HEADERS,
    PRIVATE_HEADERS,
    Header,
    Message,
    Receive,
    Send,
    WebResponse,
    error_response,
    send_response,
    text_response,
)
from unlost.web.routes import MAP_PATH, MAP_RELATION, SecondaryRoutes
from unlost.web.timemap_views import TIMEGATE_VARY, TimeMapViews, compute_digest

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from unlost.jobs.service import JobService


_API_PATHS = (b"/api/jobs", b"/api/workers", b"/api/history", b"/api/statistics")
_PAGE_PATHS = (b"/recover", b"/jobs", b"/mail", b"/preview", b"/privacy", b"/admin")


class JobsRouter:
    """Answers requests about jobs: those of programs, and those of people."""

    def __init__(self, context: "ServiceContext", service: "JobService", urls: ServiceUrls | None) -> None:
        from unlost.web.jobs_api import JobsApi  # noqa: PLC0415
        from unlost.web.page_router import JobPagesRouter  # noqa: PLC0415

        self._api = JobsApi(service, urls).router
        self._pages = JobPagesRouter(context, service, urls).app

    def classify(self, path: bytes) -> str:
        """Return whether a request for a path is about jobs: `api` for programs, `pages` for people, else nothing.

        >>> JobsRouter.classify(None, b"/api/jobs/1/events"), JobsRouter.classify(None, b"/api/jobsite")
        ('api', '')
        """
        for name, places in (("api", _API_PATHS), ("pages", _PAGE_PATHS)):
            if path.startswith(places) and any(path == each or path.startswith(each + b"/") for each in places):
                return name
        return ""

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        answer = self._api if self.classify(scope["raw_path"]) == "api" else self._pages
        await answer(scope, receive, send)


SINGLE_MEMENTO_ENDPOINTS = ("timegate", "memento", "api")
"""Endpoints that answer with one copy: a list of all copies is not complete if one archive made it."""
_HTTP_URL = re.compile(rb"https?://", re.IGNORECASE)


def referring_page(referer: bytes, root: str) -> str | None:
    """Return the page that a request comes from: by its own address, or by one of ours at which it was looked at.

    root: our own address. None if the header names no page.

    >>> referring_page(b"http://us.example/memento/proxy/2014/http://a.example/x?y", "http://us.example")
    'http://a.example/x?y'
    >>> referring_page(b"http://a.example/x", "http://us.example"), referring_page(b"about:blank", "")
    ('http://a.example/x', None)
    """
    if len(referer) > MAX_TARGET_BYTES or not _HTTP_URL.match(referer):
        return None
    try:
        if root and referer.startswith(root.encode() + b"/"):
            parts = urlsplit(referer[len(root) :])
            name, _, rest = parts.path[1:].partition(b"/")
            endpoint = name.decode("latin-1")
            return parse_path(endpoint, rest, parts.query).uri if endpoint in ENDPOINT_PATTERNS else None
        return parse_typed_url(referer.partition(b"#")[0].decode("latin-1"))
    except (InputError, UsageError, ValueError):
        return None  # a header that nobody can read is no reason to refuse


def get_referer(scope: Scope) -> bytes:
    """Return the header of a request that tells which page it comes from; nothing if there is none."""
    return next((value for name, value in scope["headers"] if name == b"referer"), b"")


def route_by_referer(
    request: MementoRequest,
    headers: RequestHeaders,
    referer: bytes,
    get_cached: Callable[[str, RoutingOptions], AggregateResult | None],
) -> RoutingOptions | None:
    """Return the wish for a page's requisite: first the archive whose copy of the page is closest to the date.

    kept: finds an answer that is in memory. None if there is no page, nothing is known of it, or somebody said whom to
    ask.
    """
    wish = headers.options
    if request.endpoint not in SINGLE_MEMENTO_ENDPOINTS or wish.archives is not None or wish.broadcast or not referer:
        return None
    page = referring_page(referer, headers.urls.base)
    found = None if page is None or page == request.uri else get_cached(page, wish)
    if found is None:
        return None
    place = found.closest_index(request.date)
    if place is None:
        return None
    return replace(wish, preferred=frozenset({found.mementos[place].archive}))


_log = logging.getLogger(__name__)
_BEARER_CHALLENGE: Header = (b"www-authenticate", b"Bearer")
_REDIRECTING_ENDPOINTS = ("timegate", "memento")  # to one memento, so that not all have to be known
_ENDPOINTS = {name.encode(): name for name in ENDPOINT_PATTERNS}


def _no_cache(_uri: str, _wish: RoutingOptions) -> AggregateResult | None:
    return None


class Application:
    """The service, for any ASGI server. It has no lifespan of its own: whoever made its parts ends them."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._finder = context.finder
        self._clock = context.clock
        self._metrics = context.metrics
        self._events = context.events
        self._urls = ServiceUrls(context.root) if context.root else None
        self._prefix = self._urls.prefix if self._urls else ""
        self._map_link = f'<{context.root or ""}{MAP_PATH}>; rel="{MAP_RELATION}"' if context.published_map else ""
        self._get_cached: Callable[[str, RoutingOptions], AggregateResult | None] = getattr(
            context.finder, "get_cached", _no_cache
        )
        self._views = TimeMapViews(context.clock, self._map_link, context.memory)
        self._proxy = ReplayProxy(context.replay_source, self._views, context.clock)
        self._routes = SecondaryRoutes(context, self._views, self._urls)
        self._jobs = None if context.job_service is None else JobsRouter(context, context.job_service, self._urls)
        is_secure = context.root is not None and context.root.startswith("https://")
        self._secure: tuple[Header, ...] = (HSTS,) if is_secure else ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        begun = self._clock.now()
        path: bytes = scope["raw_path"]
        if self._prefix and path.startswith(self._prefix.encode()):
            scope = strip_prefix(scope, self._prefix)
            path = scope["raw_path"]
        name, _, rest = path[1:].partition(b"/")
        endpoint = _ENDPOINTS.get(name, "")
        method: str = scope["method"]
        about_jobs = "" if self._jobs is None else self._jobs.classify(path)
        if self._jobs is not None and about_jobs:
            endpoint = "jobs"
            common = COMMON_HEADERS if about_jobs == "api" else PRIVATE_HEADERS
            status = await self._serve_with_headers(self._jobs.serve, scope, receive, send, common)
        elif name == b"monitor" and not rest:
            endpoint = "monitor"
            status = await self._serve_events(method, scope, receive, send)
        elif method not in ALLOWED_METHODS:
            status = await _send_response(
                text_response(405, f"expected {', '.join(ALLOWED_METHODS)}", PREFLIGHT_HEADERS[0]), method, send
            )
        elif method == "OPTIONS":
            status = await _send_response(WebResponse(204, b"", list(PREFLIGHT_HEADERS)), method, send)
        elif len(path) + len(scope["query_string"]) > MAX_TARGET_BYTES:
            status = await _send_response(
                text_response(414, f"expected at most {MAX_TARGET_BYTES} bytes"), method, send
            )
        elif endpoint and not (endpoint == "api" and rest == b"find"):
            status = await self._serve_endpoint(endpoint, rest, scope, send)
        else:
            status, endpoint = await self._serve_other(scope, receive, send)
        seconds = self._clock.now() - begun
        self._metrics.count_request(endpoint or "other", status, seconds)
        if self._events.readers:
            # Without the path: it names a page that a user looks up, or opens a job.
            self._events.publish("request", endpoint=endpoint or "other", status=status, seconds=seconds)

    async def _serve_events(self, method: str, scope: Scope, receive: Receive, send: Send) -> int:
        """Answer a request for events, which need the token of an administrator where jobs are served."""
        answer = None
        if method == "OPTIONS":
            answer = WebResponse(204, b"", [PREFLIGHT_HEADERS[0]])
        elif method not in ALLOWED_METHODS:
            answer = text_response(405, f"expected {', '.join(ALLOWED_METHODS)}", PREFLIGHT_HEADERS[0])
        elif self._context.job_service is not None:
            authorization = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
            try:
                if await self._context.job_service.authenticate_admin(authorization) is None:
                    answer = text_response(401, "expected the token of an administrator", _BEARER_CHALLENGE)
            except DatabaseError:
                answer = text_response(503, "the database of jobs cannot be reached", (b"retry-after", b"5"))
        if answer is None:
            return await self._events.serve(method, receive, send, self._client(scope))
        await send_response(answer, method, send, PRIVATE_HEADERS)
        return answer.status

    def _client(self, scope: Scope) -> str:
        """Return whence a request comes; behind a proxy that is only told where recoveries are ordered."""
        if self._context.job_service is not None:
            from starlette.requests import HTTPConnection  # noqa: PLC0415  only where there are jobs

            return self._context.job_service.clients.client_hash(HTTPConnection(scope))
        return client_network(scope["client"][0] if scope.get("client") else "")

    async def _serve_endpoint(self, endpoint: str, rest: bytes, scope: Scope, send: Send) -> int:
        """Answer a request that has a page's address in its path; return the status."""
        try:
            asked = parse_path(endpoint, rest, scope["query_string"])
            terms = parse_headers(scope, self._urls, self._context.default_options)
            if endpoint == "timegate" and terms.accept_datetime is not None:
                asked.date = parse_accept_datetime(terms.accept_datetime)
            referer = b""
            if self._context.routes_by_referer and endpoint in SINGLE_MEMENTO_ENDPOINTS:
                send, referer = _vary_on_referer(send), get_referer(scope)
            found = await self._find_by_referer(asked, terms, referer)
            await compute_digest(found)
            if asked.form == "proxy":
                return await self._proxy.serve(asked, terms, found, scope["method"], send)
            answer = self._views.respond(asked, terms, found)
        except (InputError, UsageError, NotKeptError, BusyError) as error:
            answer = error_response(error)
            if endpoint == "timegate":
                answer.headers.append(TIMEGATE_VARY)
        except Exception:  # noqa: BLE001  whatever it is, the client is told, and the log tells the rest
            _log.exception("a request for %s failed", endpoint)
            answer = text_response(500, "A fault of ours; it has been logged", NO_STORE)
        return await _send_response(answer, scope["method"], send)

    async def _find_by_referer(self, asked: MementoRequest, terms: RequestHeaders, referer: bytes) -> AggregateResult:
        if referer and (first := route_by_referer(asked, terms, referer, self._get_cached)) is not None:
            found = await self._find(asked, terms, first)
            if found.mementos:
                return found
            # The page's archive has it not: others may.
        return await self._find(asked, terms, terms.options)

    async def _find(self, asked: MementoRequest, terms: RequestHeaders, wish: RoutingOptions) -> AggregateResult:
        found = self._get_cached(asked.uri, wish) if terms.cache_control is DEFAULT_CACHE_CONTROL else None
        if found is None:
            if asked.endpoint in _REDIRECTING_ENDPOINTS and not asked.form:
                wish = replace(wish, closest_to=asked.date or LAST_MEMENTO)
            found = await self._finder.find(asked.uri, wish, terms.cache_control)
            self._metrics.count_lookup(found.from_cache)
        else:
            self._metrics.count_lookup(True)
        # It may have been found under another spelling of the same address.
        return found if found.uri == asked.uri else replace(found, uri=asked.uri)

    async def _serve_other(self, scope: Scope, receive: Receive, send: Send) -> tuple[int, str]:
        """Let Starlette answer; return the status, and the endpoint if it is one."""
        endpoint = ""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal endpoint
            endpoint = await self._routes.serve(scope, receive, send)

        status = await self._serve_with_headers(answer, scope, receive, send)
        return status, endpoint

    async def _serve_with_headers(
        self,
        answer: "Callable[[Scope, Receive, Send], Awaitable[None]]",
        scope: Scope,
        receive: Receive,
        send: Send,
        common: tuple[Header, ...] = COMMON_HEADERS,
    ) -> int:
        """Have a request answered with the headers that all answers have; return the status."""
        status = 500

        async def with_common_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*common, *self._secure, *map(self._add_prefix, message["headers"])]
                # Lists that were asked for by parameters have it already.
                if self._map_link and all(name != b"link" for name, _ in message["headers"]):
                    message["headers"].append((b"link", self._map_link.encode()))
            await send(message)

        await answer(scope, receive, with_common_headers)
        return status

    def _add_prefix(self, header: Header) -> Header:
        """Return a header, a `Location` on this server with the prefix of our URLs."""
        name, value = header
        is_local = self._prefix and name == b"location" and value.startswith(b"/") and not value.startswith(b"//")
        return (name, self._prefix.encode() + value) if is_local else header


def strip_prefix(scope: Scope, prefix: str) -> Scope:
    """Return a request with the prefix removed from its path; unchanged if the path is not below the prefix.

    A reverse proxy may pass the prefix on, or remove it: both work.
    """
    path: bytes = scope["raw_path"]
    rest = path.removeprefix(prefix.encode())
    if rest and not rest.startswith(b"/"):
        return scope
    return {**scope, "raw_path": rest or b"/", "path": scope["path"].removeprefix(unquote(prefix)) or "/"}


async def _send_response(answer: WebResponse, method: str, send: Send) -> int:
    await send_response(answer, method, send)
    return answer.status


def _vary_on_referer(send: Send) -> Send:
    """Say of an answer that it depends on the page that a request comes from, so that caches tell them apart."""

    async def varied(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (b"vary", b"referer")]}
        await send(message)

    return varied
