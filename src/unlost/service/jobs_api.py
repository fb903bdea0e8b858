"""Jobs over HTTP, for programs: orders, progress, packages for owners; lists, order and history for administrators."""

import json
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack
from functools import partial

from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from unlost.aggregate.places import Places
from unlost.errors import BusyError, DatabaseError, InputError, JobError, UnlostError, UsageError
from unlost.service.asked import terms_of
from unlost.service.body import body_of
from unlost.service.events_answer import NO_STORE as _NO_STORE
from unlost.service.events_answer import EventsAnswer
from unlost.service.jobs import states
from unlost.service.jobs.history import MEDIA_TYPES as HISTORIES
from unlost.service.jobs.history import written
from unlost.service.jobs.job import Job, State
from unlost.service.jobs.order import Order, order_of
from unlost.service.jobs.packages import FORMS, MEDIA_TYPES
from unlost.service.jobs.pending import Origin
from unlost.service.jobs.rules import host_of
from unlost.service.jobs.statistics import statistics_of
from unlost.service.jobs.told import told, told_admin, told_worker
from unlost.service.jobs_desk import Desk
from unlost.service.package_answer import PackageAnswer
from unlost.service.refusals import is_public

_MAX_LISTED = 1_000
_MAX_NUMBER = 1 << 60
_STATUSES = {JobError: 409, DatabaseError: 503, UsageError: 400, InputError: 400, BusyError: 429}

_log = logging.getLogger(__name__)

Answering = Callable[[Request], Awaitable[Response]]


class JobsApi:
    """The routes below `/api/jobs`, `/api/workers`, `/api/history` and `/api/statistics`.

    Owners are known by the key of their job, which is its address; administrators by a token.
    """

    def __init__(self, desk: Desk, places: Places | None) -> None:
        self._desk = desk
        self._places = places
        one = "/api/jobs/{key}"
        answers: dict[str, dict[str, Answering]] = {
            "/api/jobs": {"GET": self._list, "POST": self._submit, "DELETE": self._delete_pending},
            one: {"GET": self._status, "DELETE": self._delete},
            f"{one}/events": {"GET": self._events},
            f"{one}/package/{{form}}": {"GET": self._package},
            f"{one}/confirm": {"POST": self._confirm},
            f"{one}/cancel": {"POST": self._cancel},
            f"{one}/retry": {"POST": self._retry},
            f"{one}/pause": {"POST": self._pause},
            f"{one}/resume": {"POST": self._resume},
            f"{one}/move": {"POST": self._move},
            f"{one}/assign": {"POST": self._assign},
            "/api/workers": {"GET": self._workers},
            "/api/history": {"GET": self._history},
            "/api/statistics": {"GET": self._statistics},
        }
        routes = [Route(path, _by_method(methods), methods=list(methods)) for path, methods in answers.items()]
        self.router = Starlette(
            routes=routes, exception_handlers={HTTPException: _refused, UnlostError: _explained}
        )  # fmt: skip
        self.router.router.redirect_slashes = False

    # Who asks

    async def _admin(self, request: Request) -> str | None:
        """Return whose token a request has; None if it has none. Raises 401 for one that is nobody's."""
        authorization = request.headers.get("authorization", "")
        if not authorization:
            return None
        name = await self._desk.admin(authorization)
        if name is None:
            raise _unknown()
        return name

    async def _only_admin(self, request: Request) -> str:
        name = await self._admin(request)
        if name is None:
            raise _unknown()
        return name

    async def _number(self, request: Request) -> int:
        """Return the number of the job that a request is about. Raises 404 for a key that opens none."""
        key = request.path_params["key"]
        number = self._desk.keys.owned(key)
        if number is None and key.isascii() and key.isdigit() and await self._admin(request) is not None:
            number = int(key[:19])
        if number is None or number > _MAX_NUMBER:
            raise _no_job()
        return number

    async def _job(self, request: Request) -> Job:
        """Return the job that a request is about. Raises 404 for a key that opens none."""
        number = await self._number(request)
        try:
            return await self._desk.do(self._desk.jobs.get, number)
        except UsageError:
            raise _no_job() from None

    async def _numbered(self, request: Request) -> Job:
        """Return the job that an administrator names."""
        await self._only_admin(request)
        return await self._job(request)

    # What is told

    async def _told(self, request: Request, job: Job, status: int = 200) -> Response:
        place = await self._desk.place(job)
        return JSONResponse(await self._object(request, job, place), status, _NO_STORE)

    async def _object(self, request: Request, job: Job, place: int | None) -> dict[str, object]:
        is_admin = "authorization" in request.headers and await self._admin(request) is not None
        tell = told_admin if is_admin else told
        return tell(job, place, self._desk.jobs.terms, self._link(request, job))

    def _link(self, request: Request, job: Job) -> str:
        base = terms_of(request.scope, self._places).places.base
        return f"{base}/api/jobs/{self._desk.keys.owner(job.number)}"

    # Owners

    async def _submit(self, request: Request) -> Response:
        is_admin = await self._admin(request) is not None
        order = order_of(await _body(request), self._desk.archives)
        origin = self._desk.clients.origin(request)
        job, place = await self._desk.take(self._submitted, order, origin, is_confirmed=is_admin)
        link = self._link(request, job)
        found = {
            "key": self._desk.keys.owner(job.number),
            "link": link,
            **told(job, place, self._desk.jobs.terms, link),
        }
        return JSONResponse(found, 201, {**_NO_STORE, "location": link})

    def _submitted(self, order: Order, origin: Origin, *, is_confirmed: bool) -> tuple[Job, int | None]:
        job = self._desk.jobs.submit(order, is_confirmed=is_confirmed, origin=origin)
        return job, self._desk.jobs.place(job)

    async def _status(self, request: Request) -> Response:
        return await self._told(request, await self._job(request))

    async def _events(self, request: Request) -> Response:
        number, following = await self._number(request), self._desk.following
        with ExitStack() as stack:
            stack.enter_context(following.seat(number, self._desk.clients.code(request)))
            seen = await following.look_up(number)
            if seen is None:
                raise _no_job()
            watch = stack.enter_context(following.watch(number, self._tell, self._link(request, seen[0]), seen))
            return EventsAnswer(watch, stack.pop_all())

    def _tell(self, job: Job, place: int | None, link: str) -> dict[str, object]:
        return told(job, place, self._desk.jobs.terms, link)

    async def _confirm(self, request: Request) -> Response:
        body = await _body(request)
        code = body.get("code") if isinstance(body, dict) else None
        job = await self._job(request)
        if not isinstance(code, str) or self._desk.keys.confirmed(code) != job.number:
            raise UsageError("code: expected the one that was sent by mail")
        return await self._told(request, await self._desk.do(self._desk.jobs.confirm, job.number))

    async def _cancel(self, request: Request) -> Response:
        job = await self._job(request)
        return await self._told(request, await self._desk.do(self._desk.jobs.change, job.number, states.cancel))

    async def _retry(self, request: Request) -> Response:
        job = await self._job(request)
        return await self._told(request, await self._desk.do(self._desk.jobs.retry, job.number))

    async def _package(self, request: Request) -> Response:
        job = await self._job(request)
        form = request.path_params["form"]
        package = next((each for each in job.packages if each.form == form), None)
        if package is None or not job.is_offered:
            what = f"expected one of {', '.join(FORMS)}" if form not in FORMS else f"the job is {job.state}"
            raise HTTPException(404, f"there is nothing to pick up: {what}")
        file = self._desk.folders.of(job.number) / package.file

        async def picked_up() -> None:
            await self._desk.do(self._desk.jobs.change, job.number, states.pick_up)

        return PackageAnswer(file, _name(job, form), MEDIA_TYPES[form], package.sha256, picked_up)

    # Administrators

    async def _list(self, request: Request) -> Response:
        await self._only_admin(request)
        query = request.query_params
        name = query.get("state")
        if name is not None and name not in set(State):
            raise UsageError(f"state: expected one of {', '.join(State)}")
        state = None if name is None else State(name)
        limit = _number(query.get("limit", "100"), "limit", 1, _MAX_LISTED)
        after = _number(query.get("after", "0"), "after", 0, _MAX_NUMBER)
        found = await self._desk.do(self._desk.jobs.listed, state, limit, after)
        places = range(after + 1, after + 1 + len(found)) if state is State.QUEUED else [None] * len(found)
        jobs = [await self._object(request, job, place) for job, place in zip(found, places, strict=True)]
        counts = await self._desk.do(self._desk.jobs.counts)
        return JSONResponse({"jobs": jobs, "counts": {key.value: n for key, n in counts.items()}}, headers=_NO_STORE)

    async def _delete_pending(self, request: Request) -> Response:
        await self._only_admin(request)
        query = request.query_params
        if query.get("state") != State.PENDING:
            raise UsageError("state: expected pending: only unconfirmed orders are deleted in bulk")
        like = query.get("like")
        number = None if like is None else _number(like, "like", 1, _MAX_NUMBER)
        domain = query.get("mail_domain", "")
        count = await self._desk.do(partial(self._desk.jobs.remove_pending, mail_domain=domain, like=number))
        return JSONResponse({"deleted": count}, headers=_NO_STORE)

    async def _pause(self, request: Request) -> Response:
        job = await self._numbered(request)
        return await self._told(request, await self._desk.do(self._desk.jobs.change, job.number, states.pause))

    async def _resume(self, request: Request) -> Response:
        job = await self._numbered(request)
        return await self._told(request, await self._desk.do(self._desk.jobs.change, job.number, states.resume))

    async def _move(self, request: Request) -> Response:
        job = await self._numbered(request)
        body = await _body(request)
        place = body.get("place") if isinstance(body, dict) else None
        if not isinstance(place, int) or isinstance(place, bool) or not 1 <= place <= _MAX_NUMBER:
            raise UsageError("place: expected a number from 1 on")
        return await self._told(request, await self._desk.do(self._desk.jobs.move, job.number, place))

    async def _assign(self, request: Request) -> Response:
        job = await self._numbered(request)
        body = await _body(request)
        worker = body.get("worker", 0) if isinstance(body, dict) else 0
        if worker is not None and not (isinstance(worker, str) and 0 < len(worker) <= 200 and worker.isprintable()):
            raise UsageError("worker: expected the name of a worker, or null for any")
        changed = await self._desk.do(self._desk.jobs.change, job.number, lambda job, _: states.assign(job, worker))
        return await self._told(request, changed)

    async def _delete(self, request: Request) -> Response:
        job = await self._numbered(request)
        return await self._told(request, await self._desk.remove(job.number))

    async def _workers(self, request: Request) -> Response:
        await self._only_admin(request)
        workers = await self._desk.do(self._desk.jobs.workers)
        return JSONResponse({"workers": [told_worker(each) for each in workers]}, headers=_NO_STORE)

    async def _history(self, request: Request) -> Response:
        await self._only_admin(request)
        form = request.query_params.get("format", "json")
        if form not in HISTORIES:
            raise UsageError(f"format: expected one of {', '.join(HISTORIES)}")
        pieces: AsyncIterator[str] = iterate_in_threadpool(written(self._desk.jobs.history(), form))
        headers = {**_NO_STORE, "content-disposition": f'attachment; filename="jobs.{form}"'}
        return StreamingResponse(pieces, media_type=HISTORIES[form], headers=headers)

    async def _statistics(self, request: Request) -> Response:
        await self._only_admin(request)
        found = await self._desk.do(lambda: statistics_of(self._desk.jobs.history()).to_json())
        return JSONResponse(found, headers=_NO_STORE)


def _by_method(answers: Mapping[str, Answering]) -> Answering:
    async def answer(request: Request) -> Response:
        return await answers["GET" if request.method == "HEAD" else request.method](request)

    return answer


def _name(job: Job, form: str) -> str:
    """Return what a package is called when it is saved: its site's host, in letters that every system takes."""
    host = host_of(job.order.url)
    plain = "".join(char if char.isascii() and (char.isalnum() or char in ".-") else "_" for char in host)
    return f"{plain.strip('.')[:100] or 'site'}.{form}"


async def _body(request: Request) -> object:
    """Return the JSON in a request. Raises UsageError, and 408, 413 and 415."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "expected application/json")
    data = await body_of(request)
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise UsageError("expected JSON") from None


def _number(text: str, name: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
        raise UsageError(f"{name}: expected a number from {least} to {most}")
    return int(text)


def _no_job() -> HTTPException:
    return HTTPException(404, "there is no such job")


def _unknown() -> HTTPException:
    return HTTPException(401, "expected the token of an administrator", {"www-authenticate": "Bearer"})


async def _refused(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return JSONResponse({"error": error.detail}, error.status_code, {**_NO_STORE, **(error.headers or {})})


async def _explained(_: Request, error: Exception) -> Response:
    status = next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 500)
    message = str(error)
    if isinstance(error, DatabaseError) or not is_public(error):
        # The message may have a URL of a database or a path of a file.
        _log.error("%s", error)
        status, message = 503, "the database or a file of the service cannot be reached: try again later"
    seconds = {429: 3_600, 503: 5}.get(status)
    more = {} if seconds is None else {"retry-after": str(math.ceil(getattr(error, "seconds", seconds)))}
    return JSONResponse({"error": message}, status, {**_NO_STORE, **more})
