"""The JSON API for recovery jobs.

Orders, progress and packages for owners; lists, queue, history and statistics for administrators.
"""

import asyncio
import json
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from unlost.aggregate.request import parse_headers
from unlost.aggregate.urls import ServiceUrls
from unlost.errors import BusyError, DatabaseError, InputError, JobError, UnlostError, UsageError
from unlost.export.formats import DOWNLOAD_FORMATS
from unlost.jobs import states
from unlost.jobs.client_network import OrderOrigin
from unlost.jobs.limits import normalize_host
from unlost.jobs.models import PACKAGE_FORMATS, Job, JobState, Order, parse_order
from unlost.jobs.serializers import HISTORY_MEDIA_TYPES as HISTORIES
from unlost.jobs.serializers import job_to_admin_json, job_to_json, worker_to_json, write_history
from unlost.jobs.service import JobService
from unlost.jobs.statistics import compute_statistics
from unlost.jobs.watcher import JobSubscription
from unlost.web.responses import is_public_error, wait_for_disconnect
from unlost.webui.render import read_body

PRIVATE_JSON_HEADERS = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
"""Headers of responses about jobs."""
_log = logging.getLogger(__name__)
_MAX_LISTED = 1_000
_MAX_NUMBER = 1 << 60  # numbers of jobs and places; fits into the 64-bit integers of the database
_STATUSES = {JobError: 409, DatabaseError: 503, UsageError: 400, InputError: 400, BusyError: 429}
JobHandler = Callable[[Request], Awaitable[Response]]


class JobEventsResponse(Response):
    """Streams the events of a subscription, and releases its reservation at the end.

    Hundreds of streams may start and end within a second, so each needs only two tasks: one that sends, and one that
    waits for a disconnect.
    """

    media_type = "text/event-stream"

    def __init__(self, subscription: JobSubscription, reservation: ExitStack) -> None:
        super().__init__(headers={**PRIVATE_JSON_HEADERS, "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._subscription = subscription
        self._reservation = reservation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        with self._reservation:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b""})
                return
            disconnect = asyncio.create_task(_close_on_disconnect(self._subscription, receive))
            try:
                async for event in self._subscription.events():
                    await send({"type": "http.response.body", "body": event, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
            finally:
                disconnect.cancel()
                with suppress(asyncio.CancelledError):
                    await disconnect


async def _close_on_disconnect(subscription: JobSubscription, receive: Receive) -> None:
    await wait_for_disconnect(receive)
    subscription.close()


class PackageResponse(Response):
    """Sends a package file, with support of `Range`, `If-Range` and an entity tag.

    `on_complete` is called after the last byte was sent. Whether the client received it is not known.
    """

    def __init__(
        self, file: Path, name: str, media_type: str, digest: str, on_complete: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__()
        self._file = file
        self._on_complete = on_complete
        headers = {"etag": f'"{digest}"', "cache-control": "private, no-transform", "referrer-policy": "no-referrer"}
        self._response = FileResponse(file, media_type=media_type, filename=name, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file."""
        if not self._file.is_file():
            message = {"error": "the files of the job cannot be reached just now"}
            await JSONResponse(message, 503, {"retry-after": "60"})(scope, receive, send)
            return
        includes_end = is_sent = False

        async def track(message: Message) -> None:
            nonlocal includes_end, is_sent
            if message["type"] == "http.response.start":
                includes_end = message["status"] == 200 or _reaches_end(message)
            elif not message.get("more_body", False):
                is_sent = True
            await send(message)

        await self._response(scope, receive, track)
        if includes_end and is_sent and scope["method"] == "GET":
            try:
                await self._on_complete()
            except UnlostError as error:  # the file was sent nevertheless
                _log.warning("%s", error)


def _reaches_end(message: Message) -> bool:
    """Return whether a response includes the last byte of the file."""
    content_range = dict(message["headers"]).get(b"content-range", b"").decode()
    span, _, size = content_range.removeprefix("bytes ").partition("/")
    return bool(message["status"] == 206) and size.isdigit() and span.rpartition("-")[2] == str(int(size) - 1)


class JobsApi:
    """The routes below `/api/jobs`, `/api/workers`, `/api/history` and `/api/statistics`.

    Owners authenticate with the key in the URL of their job, administrators with a token.
    """

    def __init__(self, service: JobService, urls: ServiceUrls | None) -> None:
        self._service = service
        self._urls = urls
        job_path = "/api/jobs/{key}"
        handlers: dict[str, dict[str, JobHandler]] = {
            "/api/jobs": {"GET": self._list, "POST": self._submit, "DELETE": self._delete_pending},
            job_path: {"GET": self._status, "DELETE": self._delete},
            f"{job_path}/events": {"GET": self._events},
            f"{job_path}/package/{{form}}": {"GET": self._package},
            f"{job_path}/confirm": {"POST": self._confirm},
            f"{job_path}/cancel": {"POST": self._cancel},
            f"{job_path}/retry": {"POST": self._retry},
            f"{job_path}/pause": {"POST": self._pause},
            f"{job_path}/resume": {"POST": self._resume},
            f"{job_path}/move": {"POST": self._move},
            f"{job_path}/assign": {"POST": self._assign},
            "/api/workers": {"GET": self._workers},
            "/api/history": {"GET": self._history},
            "/api/statistics": {"GET": self._statistics},
        }
        routes = [
            Route(path, _dispatch_by_method(methods), methods=list(methods)) for path, methods in handlers.items()
        ]
        self.router = Starlette(
            routes=routes, exception_handlers={HTTPException: _handle_http_exception, UnlostError: _handle_error}
        )  # fmt: skip
        self.router.router.redirect_slashes = False

    # Authentication

    async def _admin(self, request: Request) -> str | None:
        """Return the name of the administrator whose token a request has, or None without a token.

        Raises:
            HTTPException: 401, the token is invalid.
        """
        authorization = request.headers.get("authorization", "")
        if not authorization:
            return None
        name = await self._service.authenticate_admin(authorization)
        if name is None:
            raise _unauthorized()
        return name

    async def _require_admin(self, request: Request) -> str:
        name = await self._admin(request)
        if name is None:
            raise _unauthorized()
        return name

    async def _job_number(self, request: Request) -> int:
        """Return the number of the job in the path of a request. Administrators may use its number instead of its key.

        Raises:
            HTTPException: 404, the key is invalid.
        """
        key = request.path_params["key"]
        number = self._service.signer.verify_owner_key(key)
        if number is None and key.isascii() and key.isdigit() and await self._admin(request) is not None:
            number = int(key[:19])
        if number is None or number > _MAX_NUMBER:
            raise _job_not_found()
        return number

    async def _job(self, request: Request) -> Job:
        """Return the job in the path of a request.

        Raises:
            HTTPException: 404, the key is invalid or the job does not exist.
        """
        number = await self._job_number(request)
        try:
            return await self._service.run_query(self._service.store.get, number)
        except UsageError:
            raise _job_not_found() from None

    async def _job_for_admin(self, request: Request) -> Job:
        """Return the job in the path of an administrator's request."""
        await self._require_admin(request)
        return await self._job(request)

    # Serialization

    async def _job_response(self, request: Request, job: Job, status: int = 200) -> Response:
        position = await self._service.queue_place(job)
        return JSONResponse(await self._job_object(request, job, position), status, PRIVATE_JSON_HEADERS)

    async def _job_object(self, request: Request, job: Job, position: int | None) -> dict[str, object]:
        is_admin = "authorization" in request.headers and await self._admin(request) is not None
        serialize = job_to_admin_json if is_admin else job_to_json
        return serialize(job, position, self._service.store.retention, self._link(request, job))

    def _link(self, request: Request, job: Job) -> str:
        base = parse_headers(request.scope, self._urls).urls.base
        return f"{base}/api/jobs/{self._service.signer.owner_key(job.number)}"

    # Owners

    async def _submit(self, request: Request) -> Response:
        is_admin = await self._admin(request) is not None
        order = parse_order(await _read_json(request), self._service.archives)
        origin = self._service.clients.order_origin(request)
        job, place = await self._service.run_order(self._submit_job, order, origin, is_confirmed=is_admin)
        link = self._link(request, job)
        body = {
            "key": self._service.signer.owner_key(job.number),
            "link": link,
            **job_to_json(job, place, self._service.store.retention, link),
        }
        return JSONResponse(body, 201, {**PRIVATE_JSON_HEADERS, "location": link})

    def _submit_job(self, order: Order, origin: OrderOrigin, *, is_confirmed: bool) -> tuple[Job, int | None]:
        job = self._service.store.submit(order, is_confirmed=is_confirmed, origin=origin)
        return job, self._service.store.place(job)

    async def _status(self, request: Request) -> Response:
        return await self._job_response(request, await self._job(request))

    async def _events(self, request: Request) -> Response:
        number, watcher = await self._job_number(request), self._service.watcher
        with ExitStack() as stack:
            stack.enter_context(watcher.reserve(number, self._service.clients.client_hash(request)))
            snapshot = await watcher.get_snapshot(number)
            if snapshot is None:
                raise _job_not_found()
            subscription = stack.enter_context(
                watcher.subscribe(number, self._serialize, self._link(request, snapshot[0]), snapshot)
            )
            return JobEventsResponse(subscription, stack.pop_all())

    def _serialize(self, job: Job, place: int | None, link: str) -> dict[str, object]:
        return job_to_json(job, place, self._service.store.retention, link)

    async def _confirm(self, request: Request) -> Response:
        body = await _read_json(request)
        code = body.get("code") if isinstance(body, dict) else None
        job = await self._job(request)
        if not isinstance(code, str) or self._service.signer.verify_confirmation(code) != job.number:
            raise UsageError("code: expected the one that was sent by mail")
        return await self._job_response(request, await self._service.run_query(self._service.store.confirm, job.number))

    async def _cancel(self, request: Request) -> Response:
        job = await self._job(request)
        return await self._job_response(
            request, await self._service.run_query(self._service.store.change, job.number, states.cancel)
        )

    async def _retry(self, request: Request) -> Response:
        job = await self._job(request)
        return await self._job_response(request, await self._service.run_query(self._service.store.retry, job.number))

    async def _package(self, request: Request) -> Response:
        job = await self._job(request)
        form = request.path_params["form"]
        package = next((each for each in job.packages if each.form == form), None)
        if package is None or not job.is_offered:
            reason = (
                f"expected one of {', '.join(PACKAGE_FORMATS)}"
                if form not in PACKAGE_FORMATS
                else f"the job is {job.state}"
            )
            raise HTTPException(404, f"there is nothing to pick up: {reason}")
        file = self._service.folders.folder_of(job.number) / package.file

        async def record_download() -> None:
            await self._service.run_query(self._service.store.change, job.number, states.pick_up)

        return PackageResponse(file, _download_name(job, form), DOWNLOAD_FORMATS[form], package.sha256, record_download)

    # Administrators

    async def _list(self, request: Request) -> Response:
        await self._require_admin(request)
        query = request.query_params
        name = query.get("state")
        if name is not None and name not in set(JobState):
            raise UsageError(f"state: expected one of {', '.join(JobState)}")
        state = None if name is None else JobState(name)
        limit = _parse_number(query.get("limit", "100"), "limit", 1, _MAX_LISTED)
        after = _parse_number(query.get("after", "0"), "after", 0, _MAX_NUMBER)
        listed = await self._service.run_query(self._service.store.list_jobs, state, limit, after)
        places = range(after + 1, after + 1 + len(listed)) if state is JobState.QUEUED else [None] * len(listed)
        jobs = [await self._job_object(request, job, place) for job, place in zip(listed, places, strict=True)]
        counts = await self._service.run_query(self._service.store.count_by_state)
        return JSONResponse(
            {"jobs": jobs, "counts": {key.value: n for key, n in counts.items()}}, headers=PRIVATE_JSON_HEADERS
        )

    async def _delete_pending(self, request: Request) -> Response:
        await self._require_admin(request)
        query = request.query_params
        if query.get("state") != JobState.PENDING:
            raise UsageError("state: expected pending: only unconfirmed orders are deleted in bulk")
        like = query.get("like")
        number = None if like is None else _parse_number(like, "like", 1, _MAX_NUMBER)
        domain = query.get("mail_domain", "")
        count = await self._service.run_query(
            partial(self._service.store.remove_pending, mail_domain=domain, like=number)
        )
        return JSONResponse({"deleted": count}, headers=PRIVATE_JSON_HEADERS)

    async def _pause(self, request: Request) -> Response:
        job = await self._job_for_admin(request)
        return await self._job_response(
            request, await self._service.run_query(self._service.store.change, job.number, states.pause)
        )

    async def _resume(self, request: Request) -> Response:
        job = await self._job_for_admin(request)
        return await self._job_response(
            request, await self._service.run_query(self._service.store.change, job.number, states.resume)
        )

    async def _move(self, request: Request) -> Response:
        job = await self._job_for_admin(request)
        body = await _read_json(request)
        place = body.get("place") if isinstance(body, dict) else None
        if not isinstance(place, int) or isinstance(place, bool) or not 1 <= place <= _MAX_NUMBER:
            raise UsageError("place: expected a number from 1 on")
        return await self._job_response(
            request, await self._service.run_query(self._service.store.move, job.number, place)
        )

    async def _assign(self, request: Request) -> Response:
        job = await self._job_for_admin(request)
        body = await _read_json(request)
        worker = body.get("worker", 0) if isinstance(body, dict) else 0
        if worker is not None and not (isinstance(worker, str) and 0 < len(worker) <= 200 and worker.isprintable()):
            raise UsageError("worker: expected the name of a worker, or null for any")
        changed = await self._service.run_query(
            self._service.store.change, job.number, lambda job, _: states.assign(job, worker)
        )
        return await self._job_response(request, changed)

    async def _delete(self, request: Request) -> Response:
        job = await self._job_for_admin(request)
        return await self._job_response(request, await self._service.remove(job.number))

    async def _workers(self, request: Request) -> Response:
        await self._require_admin(request)
        workers = await self._service.run_query(self._service.store.workers)
        return JSONResponse({"workers": [worker_to_json(each) for each in workers]}, headers=PRIVATE_JSON_HEADERS)

    async def _history(self, request: Request) -> Response:
        await self._require_admin(request)
        form = request.query_params.get("format", "json")
        if form not in HISTORIES:
            raise UsageError(f"format: expected one of {', '.join(HISTORIES)}")
        chunks: AsyncIterator[str] = iterate_in_threadpool(write_history(self._service.store.history(), form))
        headers = {**PRIVATE_JSON_HEADERS, "content-disposition": f'attachment; filename="jobs.{form}"'}
        return StreamingResponse(chunks, media_type=HISTORIES[form], headers=headers)

    async def _statistics(self, request: Request) -> Response:
        await self._require_admin(request)
        statistics = await self._service.run_query(lambda: compute_statistics(self._service.store.history()).to_json())
        return JSONResponse(statistics, headers=PRIVATE_JSON_HEADERS)


def _dispatch_by_method(handlers: Mapping[str, JobHandler]) -> JobHandler:
    async def dispatch(request: Request) -> Response:
        return await handlers["GET" if request.method == "HEAD" else request.method](request)

    return dispatch


def _download_name(job: Job, form: str) -> str:
    """Return the file name of a download: the host of its site, in ASCII characters that are valid on every system."""
    host = normalize_host(job.order.url)
    plain = "".join(char if char.isascii() and (char.isalnum() or char in ".-") else "_" for char in host)
    return f"{plain.strip('.')[:100] or 'site'}.{form}"


async def _read_json(request: Request) -> object:
    """Parse the JSON body of a request.

    Raises:
        UsageError: The body is not valid JSON.
        HTTPException: 408, 413 or 415.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "expected application/json")
    data = await read_body(request)
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise UsageError("expected JSON") from None


def _parse_number(text: str, name: str, minimum: int, maximum: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and minimum <= int(text) <= maximum):
        raise UsageError(f"{name}: expected a number from {minimum} to {maximum}")
    return int(text)


def _job_not_found() -> HTTPException:
    return HTTPException(404, "there is no such job")


def _unauthorized() -> HTTPException:
    return HTTPException(401, "expected the token of an administrator", {"www-authenticate": "Bearer"})


async def _handle_http_exception(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return JSONResponse({"error": error.detail}, error.status_code, {**PRIVATE_JSON_HEADERS, **(error.headers or {})})


async def _handle_error(_: Request, error: Exception) -> Response:
    status = next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 500)
    message = str(error)
    if isinstance(error, DatabaseError) or not is_public_error(error):
        # The message may contain the URL of a database or the path of a file.
        _log.error("%s", error)
        status, message = 503, "the database or a file of the service cannot be reached: try again later"
    seconds = {429: 3_600, 503: 5}.get(status)
    headers = {} if seconds is None else {"retry-after": str(math.ceil(getattr(error, "seconds", seconds)))}
    return JSONResponse({"error": message}, status, {**PRIVATE_JSON_HEADERS, **headers})
