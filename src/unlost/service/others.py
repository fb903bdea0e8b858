"""The endpoints that have no page's address in their path: pages for people, numbers, descriptions, files."""

from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from unlost.aggregate.found import Found
from unlost.aggregate.places import Places
from unlost.errors import BusyError, DatabaseError, InputError, NotKeptError, UsageError
from unlost.service import metrics, page
from unlost.service.about import about
from unlost.service.address import page_in
from unlost.service.answers import Answer, text_answer
from unlost.service.asked import LISTS, SHAPES, Asked, terms_of
from unlost.service.lists import Lists, compute_digest
from unlost.service.openapi import description
from unlost.service.pages.catalogue import remember_language, strings_for
from unlost.service.parts import Parts
from unlost.service.preferences import combined, date_of, wished_by
from unlost.service.published_map import PATH, PublishedMap
from unlost.service.refusals import refusal

_PLAIN = ("/", "/about", "/api/find", "/health", "/metrics", "/monitor", "/openapi.json")
_OPTIONS = ("uri", "archives", "broadcast", "top_k", "archive", "year")
_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}


class Others:
    """Answers by Starlette's router."""

    def __init__(self, parts: Parts, lists: Lists, places: Places | None) -> None:
        self._parts = parts
        self._lists = lists
        self._places = places
        names = {each.archive.id: each.archive.name for each in parts.stands.standings()}
        self._page = page.Page(names, places.prefix if places else "", takes_orders=parts.desk is not None)
        self._files = {
            name: files("unlost.service").joinpath("static", name).read_bytes() for name in page.static_files()
        }
        self._endpoints = {*_PLAIN, *(f"/static/{name}" for name in self._files)}
        routes = [
            Route("/", self._home),
            Route("/about", self._about),
            Route("/api/find", self._find),
            Route("/health", self._health),
            Route("/metrics", self._metrics),
            Route("/openapi.json", self._openapi),
            Route("/static/{name}", self._static),
        ]
        if parts.published:
            routes.append(Route(PATH, PublishedMap(parts.published).answer))
            self._endpoints.add(PATH)
        self._router = Starlette(routes=routes, exception_handlers={HTTPException: self._refused, UsageError: _bad})
        self._router.router.redirect_slashes = False

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> str:
        """Answer a request; return the endpoint's name for counting, nothing if there is no such endpoint."""
        path: str = scope["path"]
        await self._router(scope, receive, send)
        return (path[1:] or "home") if path in self._endpoints else ""

    async def _refused(self, _: Request, error: Exception) -> Response:
        """Say what there is, where somebody looked for something else."""
        there_is = [*SHAPES.values(), *sorted(self._endpoints)]
        status = error.status_code if isinstance(error, HTTPException) else 500
        return PlainTextResponse("There is nothing here. There is:\n" + "\n".join(there_is) + "\n", status)

    async def _home(self, request: Request) -> Response:
        options = {name: request.query_params.get(name, "") for name in _OPTIONS}
        found, problem, status = None, "", 200
        if options["uri"].strip():
            try:
                found = await self._look(options["uri"], request.query_params)
            except (InputError, UsageError, NotKeptError, BusyError) as error:
                refused = refusal(error)
                problem, status = refused.body.decode().strip(), refused.status
        choice = page.Choice(options["archive"], options["year"])
        text = await self._page.home(options, found, problem, choice, strings_for(request), request.url.query)
        return _remembered(request, _html(text, status))

    async def _look(self, address: str, options: Mapping[str, str]) -> Found:
        wish = combined(wished_by(options), self._parts.wish)
        found = await self._parts.finds.find(page_in(address), wish)
        self._parts.metrics.found(found.from_cache)
        return found

    async def _find(self, request: Request) -> Response:
        """Answer as a TimeMap does, or with a date as a description does; every option is a parameter."""
        options = request.query_params
        try:
            asked = _asked_for(options)
            terms = terms_of(request.scope, self._places, self._parts.wish)
            terms.wish = combined(wished_by(options), terms.wish)
            found = await self._parts.finds.find(asked.uri, terms.wish, terms.freshness)
            self._parts.metrics.found(found.from_cache)
            await compute_digest(found)
        except (InputError, UsageError, NotKeptError, BusyError) as error:
            return _response(refusal(error))
        return _response(self._lists.answer(asked, terms, found))

    async def _about(self, request: Request) -> Response:
        told = about(self._parts.stands.standings(), self._parts.clock, is_public=True)
        wants = request.query_params.get("format") or _preferred_type(request.headers.get("accept", ""))
        if wants == "html":
            return _remembered(
                request,
                _html(self._page.about(told, strings_for(request), request.url.query), headers={"vary": "accept"}),
            )
        return JSONResponse(told, headers={"vary": "accept", "cache-control": "no-store"})

    async def _health(self, _: Request) -> Response:
        found, status = {"status": "ok"}, 200
        if self._parts.desk is not None:
            try:
                await self._parts.desk.do(self._parts.desk.jobs.check)
            except DatabaseError:
                found, status = {"status": "the database of jobs cannot be reached"}, 503
            else:
                if shortage := await self._parts.desk.do(self._parts.desk.space.shortage):
                    found = {"status": shortage}  # everything but jobs works, so there is no reason for a restart
        return JSONResponse(found, status, {"cache-control": "no-store"})

    async def _metrics(self, _: Request) -> Response:
        monitor = self._parts.monitor
        gauges: dict[str, tuple[str, float]] = {
            "unlost_monitor_readers": ("How many watch what happens.", monitor.readers),
            "unlost_monitor_lost_total": ("Events that readers were too slow for.", monitor.lost),
        }
        if self._parts.desk is not None:
            with suppress(DatabaseError, OSError):  # the other numbers are wanted all the more then
                gauges |= await self._parts.desk.gauges()
        text = self._parts.metrics.text(self._parts.stands.standings(), gauges)
        return Response(text, headers={"content-type": metrics.MEDIA_TYPE, "cache-control": "no-store"})

    async def _openapi(self, request: Request) -> Response:
        base = terms_of(request.scope, self._places).places.base
        jobs: dict[str, object] | None = None
        if self._parts.desk is not None:
            from unlost.service import jobs_openapi  # noqa: PLC0415  only where there are jobs

            jobs = {"paths": jobs_openapi.paths(), "components": jobs_openapi.components()}
        return JSONResponse(description(base, self._parts.published is not None, jobs))

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            raise HTTPException(404)
        headers = {"content-type": _TYPES[name.rpartition(".")[2]], "cache-control": "max-age=3600"}
        return Response(self._files[name], headers=headers)


def _remembered(request: Request, answer: Response) -> Response:
    """Keep the language that somebody chose."""
    remember_language(request, answer, is_secure=False)
    return answer


def _asked_for(options: Mapping[str, str]) -> Asked:
    """Return what the parameters of a query ask for. Raises UsageError, UriError, DateError."""
    form = options.get("format", "json")
    date = options.get("date", "")
    formats = ("link", "json", "cdxj") if date else LISTS
    if form not in formats:
        raise UsageError(f"format: expected one of {', '.join(formats)}")
    if not options.get("uri", "").strip():
        raise UsageError(
            "expected /api/find?uri=URI[&format=…][&date=…][&archives=a,b][&broadcast=1][&top_k=N][&min_probability=P]"
        )
    return Asked("memento" if date else "timemap", form, date_of(date) if date else "", page_in(options["uri"]))


async def _bad(_: Request, error: Exception) -> Response:
    return _response(text_answer(400, str(error)))


def _html(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    more = {
        "content-security-policy": page.POLICY,
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        **(headers or {}),
    }
    return HTMLResponse(text, status, more)


def _response(answer: Answer) -> Response:
    if answer.pieces is not None:
        long = StreamingResponse(answer.pieces, answer.status)
        long.raw_headers = list(answer.headers)
        return long
    response = Response(answer.body, answer.status)
    length = [] if answer.status == 304 else [(b"content-length", b"%d" % len(answer.body))]
    response.raw_headers = [*answer.headers, *length]
    return response


def _preferred_type(accept: str) -> str:
    """Return `html` if somebody would rather have that than JSON, which programs take that say nothing."""
    kinds = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    html = kinds.index("text/html") if "text/html" in kinds else None
    json = kinds.index("application/json") if "application/json" in kinds else len(kinds)
    return "html" if html is not None and html < json else "json"
