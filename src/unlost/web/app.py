"""The ASGI application.

It serves TimeMaps, TimeGates and mementos from the raw path, without a router: a cached TimeMap then costs about as
much as a bare Starlette route. All other requests go to Starlette.
"""

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
SINGLE_MEMENTO_ENDPOINTS = ("timegate", "memento", "api")
"""Endpoints that respond with one memento. A TimeMap from a single archive would not be complete."""
_HTTP_URL = re.compile(rb"https?://", re.IGNORECASE)
_log = logging.getLogger(__name__)
_BEARER_CHALLENGE: Header = (b"www-authenticate", b"Bearer")
_REDIRECTING_ENDPOINTS = ("timegate", "memento")  # redirect to one memento, so not all mementos are needed
_ENDPOINTS = {name.encode(): name for name in ENDPOINT_PATTERNS}


class JobsRouter:
    """Routes requests about jobs to the API or to the HTML pages."""

    def __init__(self, context: "ServiceContext", service: "JobService", urls: ServiceUrls | None) -> None:
        from unlost.web.jobs_api import JobsApi  # noqa: PLC0415
        from unlost.web.page_router import JobPagesRouter  # noqa: PLC0415

        self._api = JobsApi(service, urls).router
        self._pages = JobPagesRouter(context, service, urls).app

    def classify(self, path: bytes) -> str:
        """Return `api` or `pages` if a path belongs to jobs, else an empty string.

        >>> JobsRouter.classify(None, b"/api/jobs/1/events"), JobsRouter.classify(None, b"/api/jobsite")
        ('api', '')
        """
        for name, prefixes in (("api", _API_PATHS), ("pages", _PAGE_PATHS)):
            if path.startswith(prefixes) and any(path == each or path.startswith(each + b"/") for each in prefixes):
                return name
        return ""

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        app = self._api if self.classify(scope["raw_path"]) == "api" else self._pages
        await app(scope, receive, send)


def referring_page(referer: bytes, root: str) -> str | None:
    """Return the URL of the page that a request comes from, or None if the header contains no HTTP URL.

    A referer below `root` is a replayed page; its original URL is returned.

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
        return None  # an invalid Referer header is no reason to reject a request


def get_referer(scope: Scope) -> bytes:
    """Return the Referer header of a request, or an empty value."""
    return next((value for name, value in scope["headers"] if name == b"referer"), b"")


def route_by_referer(
    request: MementoRequest,
    headers: RequestHeaders,
    referer: bytes,
    get_cached: Callable[[str, RoutingOptions], AggregateResult | None],
) -> RoutingOptions | None:
    """Return routing options that prefer the archive with the closest memento of the referring page.

    A page and its embedded resources are often in the same archive, so it is queried first.

    Args:
        request: The request.
        headers: Its headers.
        referer: Its Referer header.
        get_cached: Returns a cached result.

    Returns:
        The options, or None if there is no referring page, it is not cached, or the request selects archives itself.
    """
    options = headers.options
    if (
        request.endpoint not in SINGLE_MEMENTO_ENDPOINTS
        or options.archives is not None
        or options.broadcast
        or not referer
    ):
        return None
    page = referring_page(referer, headers.urls.base)
    result = None if page is None or page == request.uri else get_cached(page, options)
    if result is None:
        return None
    index = result.closest_index(request.date)
    if index is None:
        return None
    return replace(options, preferred=frozenset({result.mementos[index].archive}))


def _no_cache(_uri: str, _options: RoutingOptions) -> AggregateResult | None:
    return None


class Application:
    """The service as an ASGI application, without lifespan events: the context's creator closes it."""

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
        """Serve one request."""
        if scope["type"] != "http":
            return
        started_at = self._clock.now()
        path: bytes = scope["raw_path"]
        if self._prefix and path.startswith(self._prefix.encode()):
            scope = strip_prefix(scope, self._prefix)
            path = scope["raw_path"]
        name, _, path_rest = path[1:].partition(b"/")
        endpoint = _ENDPOINTS.get(name, "")
        method: str = scope["method"]
        jobs_kind = "" if self._jobs is None else self._jobs.classify(path)
        if self._jobs is not None and jobs_kind:
            endpoint = "jobs"
            common = COMMON_HEADERS if jobs_kind == "api" else PRIVATE_HEADERS
            status = await self._serve_with_headers(self._jobs.serve, scope, receive, send, common)
        elif name == b"monitor" and not path_rest:
            endpoint = "monitor"
            status = await self._serve_events(method, scope, receive, send)
        elif method not in ALLOWED_METHODS:
            status = await send_response(
                text_response(405, f"expected {', '.join(ALLOWED_METHODS)}", PREFLIGHT_HEADERS[0]), method, send
            )
        elif method == "OPTIONS":
            status = await send_response(WebResponse(204, b"", list(PREFLIGHT_HEADERS)), method, send)
        elif len(path) + len(scope["query_string"]) > MAX_TARGET_BYTES:
            status = await send_response(text_response(414, f"expected at most {MAX_TARGET_BYTES} bytes"), method, send)
        elif endpoint and not (endpoint == "api" and path_rest == b"find"):
            status = await self._serve_endpoint(endpoint, path_rest, scope, send)
        else:
            status, endpoint = await self._serve_other(scope, receive, send)
        seconds = self._clock.now() - started_at
        self._metrics.count_request(endpoint or "other", status, seconds)
        if self._events.readers:
            # Without the path, which contains the URL that a user looks up, or the key of a job.
            self._events.publish("request", endpoint=endpoint or "other", status=status, seconds=seconds)

    async def _serve_events(self, method: str, scope: Scope, receive: Receive, send: Send) -> int:
        """Serve the event stream. It requires an administrator's token if the service has jobs."""
        response = None
        if method == "OPTIONS":
            response = WebResponse(204, b"", [PREFLIGHT_HEADERS[0]])
        elif method not in ALLOWED_METHODS:
            response = text_response(405, f"expected {', '.join(ALLOWED_METHODS)}", PREFLIGHT_HEADERS[0])
        elif self._context.job_service is not None:
            authorization = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
            try:
                if await self._context.job_service.authenticate_admin(authorization) is None:
                    response = text_response(401, "expected the token of an administrator", _BEARER_CHALLENGE)
            except DatabaseError:
                response = text_response(503, "the database of jobs cannot be reached", (b"retry-after", b"5"))
        if response is None:
            return await self._events.serve(method, receive, send, self._client(scope))
        await send_response(response, method, send, PRIVATE_HEADERS)
        return response.status

    def _client(self, scope: Scope) -> str:
        """Return a key of the client's network. `X-Forwarded-For` is only evaluated where jobs are served."""
        if self._context.job_service is not None:
            from starlette.requests import HTTPConnection  # noqa: PLC0415  jobs only

            return self._context.job_service.clients.client_hash(HTTPConnection(scope))
        return client_network(scope["client"][0] if scope.get("client") else "")

    async def _serve_endpoint(self, endpoint: str, rest: bytes, scope: Scope, send: Send) -> int:
        """Serve a request with a URL in its path, and return the status."""
        try:
            request = parse_path(endpoint, rest, scope["query_string"])
            headers = parse_headers(scope, self._urls, self._context.default_options)
            if endpoint == "timegate" and headers.accept_datetime is not None:
                request.date = parse_accept_datetime(headers.accept_datetime)
            referer = b""
            if self._context.routes_by_referer and endpoint in SINGLE_MEMENTO_ENDPOINTS:
                send, referer = _vary_on_referer(send), get_referer(scope)
            result = await self._find_by_referer(request, headers, referer)
            await compute_digest(result)
            if request.form == "proxy":
                return await self._proxy.serve(request, headers, result, scope["method"], send)
            response = self._views.respond(request, headers, result)
        except (InputError, UsageError, NotKeptError, BusyError) as error:
            response = error_response(error)
            if endpoint == "timegate":
                response.headers.append(TIMEGATE_VARY)
        except Exception:  # noqa: BLE001  the client gets a response, and the log has the details
            _log.exception("a request for %s failed", endpoint)
            response = text_response(500, "A fault of ours; it has been logged", NO_STORE)
        return await send_response(response, scope["method"], send)

    async def _find_by_referer(
        self, request: MementoRequest, headers: RequestHeaders, referer: bytes
    ) -> AggregateResult:
        if referer and (options := route_by_referer(request, headers, referer, self._get_cached)) is not None:
            result = await self._find(request, headers, options)
            if result.mementos:
                return result
            # The page's archive does not have the resource; others may.
        return await self._find(request, headers, headers.options)

    async def _find(self, request: MementoRequest, headers: RequestHeaders, options: RoutingOptions) -> AggregateResult:
        result = self._get_cached(request.uri, options) if headers.cache_control is DEFAULT_CACHE_CONTROL else None
        if result is None:
            if request.endpoint in _REDIRECTING_ENDPOINTS and not request.form:
                options = replace(options, closest_to=request.date or LAST_MEMENTO)
            result = await self._finder.find(request.uri, options, headers.cache_control)
            self._metrics.count_lookup(result.from_cache)
        else:
            self._metrics.count_lookup(True)
        # The result may have been cached for another spelling of the URL.
        return result if result.uri == request.uri else replace(result, uri=request.uri)

    async def _serve_other(self, scope: Scope, receive: Receive, send: Send) -> tuple[int, str]:
        """Serve a request by Starlette. Returns the status, and the endpoint's name if it exists."""
        endpoint = ""

        async def handler(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal endpoint
            endpoint = await self._routes.serve(scope, receive, send)

        status = await self._serve_with_headers(handler, scope, receive, send)
        return status, endpoint

    async def _serve_with_headers(
        self,
        handler: "Callable[[Scope, Receive, Send], Awaitable[None]]",
        scope: Scope,
        receive: Receive,
        send: Send,
        common: tuple[Header, ...] = COMMON_HEADERS,
    ) -> int:
        """Serve a request, add the common headers to the response, and return its status."""
        status = 500

        async def with_common_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*common, *self._secure, *map(self._add_prefix, message["headers"])]
                # TimeMaps requested by query parameters have the link already.
                if self._map_link and all(name != b"link" for name, _ in message["headers"]):
                    message["headers"].append((b"link", self._map_link.encode()))
            await send(message)

        await handler(scope, receive, with_common_headers)
        return status

    def _add_prefix(self, header: Header) -> Header:
        """Return a header, with the service's prefix added to a `Location` on this server."""
        name, value = header
        is_local = self._prefix and name == b"location" and value.startswith(b"/") and not value.startswith(b"//")
        return (name, self._prefix.encode() + value) if is_local else header


def strip_prefix(scope: Scope, prefix: str) -> Scope:
    """Remove the prefix from the path of a request. A path that is not below the prefix is unchanged.

    A reverse proxy may pass the prefix on or remove it; both work.
    """
    path: bytes = scope["raw_path"]
    stripped = path.removeprefix(prefix.encode())
    if stripped and not stripped.startswith(b"/"):
        return scope
    return {**scope, "raw_path": stripped or b"/", "path": scope["path"].removeprefix(unquote(prefix)) or "/"}


def _vary_on_referer(send: Send) -> Send:
    """Add `Vary: Referer` to a response, since it depends on the referring page."""

    async def send_with_vary(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (b"vary", b"referer")]}
        await send(message)

    return send_with_vary
