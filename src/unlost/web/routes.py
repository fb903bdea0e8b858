"""Endpoints without a URL in their path: search page, `/about`, `/api/find`, health, metrics, static files, map."""

from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Receive, Scope, Send

from unlost.aggregate.archive_status import describe_archives
from unlost.aggregate.models import AggregateResult
from unlost.aggregate.request import (
    ENDPOINT_PATTERNS,
    TIMEMAP_FORMATS,
    MementoRequest,
    merge_routing_options,
    parse_date_digits,
    parse_headers,
    parse_routing_parameters,
    parse_typed_url,
)
from unlost.aggregate.urls import ServiceUrls
from unlost.errors import BusyError, DatabaseError, InputError, NotKeptError, UsageError
from unlost.web.factory import ServiceContext
from unlost.web.metrics import METRICS_MEDIA_TYPE
from unlost.web.openapi import build_openapi
from unlost.web.responses import WebResponse, error_response, text_response
from unlost.web.timemap_views import TimeMapViews, compute_digest
from unlost.webui import search_page, templating
from unlost.webui.templating import remember_language, strings_for_request

MAP_PATH = "/mementomap"
MAP_RELATION = "mementomap"
# By the first two bytes: gzip (RFC 1952, section 2.3.1) and Zstandard (RFC 8878, section 3.1.1).
_COMPRESSED_TYPES = {b"\x1f\x8b": "application/gzip", b"\x28\xb5": "application/zstd"}
_MAX_AGE_SECONDS = 3_600  # cache lifetime of the map; maps are rebuilt at most once a day
_PLAIN_PATHS = ("/", "/about", "/api/find", "/health", "/metrics", "/monitor", "/openapi.json")
_SEARCH_PARAMETERS = ("uri", "archives", "broadcast", "top_k", "archive", "year")
_STATIC_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}


class PublishedMap:
    """Serves a MementoMap file. The file may be replaced at any time by renaming."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._unmodified = StaticFiles().is_not_modified

    async def respond(self, request: Request) -> Response:
        """Serve the file or a range of it, or respond that it has not been modified."""
        try:
            status = await run_in_threadpool(self._file.stat)
            media_type = await run_in_threadpool(self._media_type)
        except OSError:
            return PlainTextResponse("The map is not there just now\n", 503, {"retry-after": "60"})
        headers = {"cache-control": f"max-age={_MAX_AGE_SECONDS}"}
        response = FileResponse(self._file, media_type=media_type, stat_result=status, headers=headers)
        if self._unmodified(Headers(raw=response.raw_headers), request.headers):
            return NotModifiedResponse(Headers(raw=response.raw_headers))
        return response

    def _media_type(self) -> str:
        with self._file.open("rb") as file:
            return _COMPRESSED_TYPES.get(file.read(2), "text/plain; charset=utf-8")


class SecondaryRoutes:
    """Serves the endpoints without a URL in their path, by Starlette's router."""

    def __init__(self, context: ServiceContext, views: TimeMapViews, urls: ServiceUrls | None) -> None:
        self._context = context
        self._views = views
        self._urls = urls
        names = {each.archive.id: each.archive.name for each in context.archive_status.archive_statuses()}
        self._page = search_page.SearchPage(
            names, urls.prefix if urls else "", takes_orders=context.job_service is not None
        )
        self._files = {
            name: files("unlost.webui").joinpath("static", name).read_bytes() for name in templating.list_static_files()
        }
        self._endpoints = {*_PLAIN_PATHS, *(f"/static/{name}" for name in self._files)}
        routes = [
            Route("/", self._home),
            Route("/about", self._about),
            Route("/api/find", self._find),
            Route("/health", self._health),
            Route("/metrics", self._metrics),
            Route("/openapi.json", self._openapi),
            Route("/static/{name}", self._static),
        ]
        if context.published_map:
            routes.append(Route(MAP_PATH, PublishedMap(context.published_map).respond))
            self._endpoints.add(MAP_PATH)
        self._router = Starlette(
            routes=routes, exception_handlers={HTTPException: self._not_found, UsageError: _bad_request}
        )
        self._router.router.redirect_slashes = False

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> str:
        """Serve a request. Returns the endpoint's name for metrics, or an empty string if it does not exist."""
        path: str = scope["path"]
        await self._router(scope, receive, send)
        return (path[1:] or "home") if path in self._endpoints else ""

    async def _not_found(self, _: Request, error: Exception) -> Response:
        """Respond with a list of the endpoints."""
        endpoints = [*ENDPOINT_PATTERNS.values(), *sorted(self._endpoints)]
        status = error.status_code if isinstance(error, HTTPException) else 500
        return PlainTextResponse("There is nothing here. There is:\n" + "\n".join(endpoints) + "\n", status)

    async def _home(self, request: Request) -> Response:
        options = {name: request.query_params.get(name, "") for name in _SEARCH_PARAMETERS}
        result, problem, status = None, "", 200
        if options["uri"].strip():
            try:
                result = await self._lookup(options["uri"], request.query_params)
            except (InputError, UsageError, NotKeptError, BusyError) as error:
                error_page = error_response(error)
                problem, status = error_page.body.decode().strip(), error_page.status
        capture_filter = search_page.CaptureFilter(options["archive"], options["year"])
        text = await self._page.render_home(
            options, result, problem, capture_filter, strings_for_request(request), request.url.query
        )
        return _with_language(request, _html_response(text, status))

    async def _lookup(self, url: str, options: Mapping[str, str]) -> AggregateResult:
        routing = merge_routing_options(parse_routing_parameters(options), self._context.default_options)
        result = await self._context.finder.find(parse_typed_url(url), routing)
        self._context.metrics.count_lookup(result.from_cache)
        return result

    async def _find(self, request: Request) -> Response:
        """Respond with a TimeMap, or with a memento description if a date is given.

        All options are query parameters.
        """
        options = request.query_params
        try:
            query = _parse_find_query(options)
            headers = parse_headers(request.scope, self._urls, self._context.default_options)
            headers.options = merge_routing_options(parse_routing_parameters(options), headers.options)
            result = await self._context.finder.find(query.uri, headers.options, headers.cache_control)
            self._context.metrics.count_lookup(result.from_cache)
            await compute_digest(result)
        except (InputError, UsageError, NotKeptError, BusyError) as error:
            return _to_starlette(error_response(error))
        return _to_starlette(self._views.respond(query, headers, result))

    async def _about(self, request: Request) -> Response:
        description = describe_archives(
            self._context.archive_status.archive_statuses(), self._context.clock, is_public=True
        )
        media_type = request.query_params.get("format") or _preferred_type(request.headers.get("accept", ""))
        if media_type == "html":
            return _with_language(
                request,
                _html_response(
                    self._page.render_about(description, strings_for_request(request), request.url.query),
                    headers={"vary": "accept"},
                ),
            )
        return JSONResponse(description, headers={"vary": "accept", "cache-control": "no-store"})

    async def _health(self, _: Request) -> Response:
        body, status = {"status": "ok"}, 200
        if self._context.job_service is not None:
            try:
                await self._context.job_service.run_query(self._context.job_service.store.check_connection)
            except DatabaseError:
                body, status = {"status": "the database of jobs cannot be reached"}, 503
            else:
                if shortage := await self._context.job_service.run_query(self._context.job_service.space.shortage):
                    body = {"status": shortage}  # all but jobs works, so the service should not be restarted
        return JSONResponse(body, status, {"cache-control": "no-store"})

    async def _metrics(self, _: Request) -> Response:
        events = self._context.events
        gauges: dict[str, tuple[str, float]] = {
            "unlost_monitor_readers": ("How many watch what happens.", events.readers),
            "unlost_monitor_lost_total": ("Events that readers were too slow for.", events.lost),
        }
        if self._context.job_service is not None:
            with suppress(DatabaseError, OSError):  # the other metrics are still useful
                gauges |= await self._context.job_service.gauges()
        text = self._context.metrics.render(self._context.archive_status.archive_statuses(), gauges)
        return Response(text, headers={"content-type": METRICS_MEDIA_TYPE, "cache-control": "no-store"})

    async def _openapi(self, request: Request) -> Response:
        base = parse_headers(request.scope, self._urls).urls.base
        jobs: dict[str, object] | None = None
        if self._context.job_service is not None:
            from unlost.web import jobs_openapi  # noqa: PLC0415  jobs only

            jobs = {"paths": jobs_openapi.paths(), "components": jobs_openapi.components()}
        return JSONResponse(build_openapi(base, self._context.published_map is not None, jobs))

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            raise HTTPException(404)
        headers = {"content-type": _STATIC_TYPES[name.rpartition(".")[2]], "cache-control": "max-age=3600"}
        return Response(self._files[name], headers=headers)


def _with_language(request: Request, response: Response) -> Response:
    """Store the language that the user selected in a cookie."""
    remember_language(request, response, is_secure=False)
    return response


def _parse_find_query(options: Mapping[str, str]) -> MementoRequest:
    """Parse the query parameters of `/api/find`.

    Raises:
        UsageError: A parameter is invalid.
        UriError: The URL is invalid.
        DateError: The date is invalid.
    """
    form = options.get("format", "json")
    date = options.get("date", "")
    formats = ("link", "json", "cdxj") if date else TIMEMAP_FORMATS
    if form not in formats:
        raise UsageError(f"format: expected one of {', '.join(formats)}")
    if not options.get("uri", "").strip():
        raise UsageError(
            "expected /api/find?uri=URI[&format=…][&date=…][&archives=a,b][&broadcast=1][&top_k=N][&min_probability=P]"
        )
    return MementoRequest(
        "memento" if date else "timemap", form, parse_date_digits(date) if date else "", parse_typed_url(options["uri"])
    )


async def _bad_request(_: Request, error: Exception) -> Response:
    return _to_starlette(text_response(400, str(error)))


def _html_response(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    all_headers = {
        "content-security-policy": templating.CONTENT_SECURITY_POLICY,
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        **(headers or {}),
    }
    return HTMLResponse(text, status, all_headers)


def _to_starlette(web_response: WebResponse) -> Response:
    if web_response.pieces is not None:
        streaming = StreamingResponse(web_response.pieces, web_response.status)
        streaming.raw_headers = list(web_response.headers)
        return streaming
    response = Response(web_response.body, web_response.status)
    length = [] if web_response.status == 304 else [(b"content-length", b"%d" % len(web_response.body))]
    response.raw_headers = [*web_response.headers, *length]
    return response


def _preferred_type(accept: str) -> str:
    """Return `html` if the client prefers it over JSON, which is the default."""
    kinds = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    html = kinds.index("text/html") if "text/html" in kinds else None
    json = kinds.index("application/json") if "application/json" in kinds else len(kinds)
    return "html" if html is not None and html < json else "json"
