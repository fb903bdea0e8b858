"""Jobs, for those who look after them: lists by state, each one with its log, and everything that can be done."""

from functools import partial
from typing import TYPE_CHECKING

from starlette.concurrency import iterate_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from unlost.errors import UsageError
from unlost.service.jobs import states
from unlost.service.jobs.history import HISTORY_MEDIA_TYPES, write_history
from unlost.service.jobs.job import Job, JobState
from unlost.service.jobs.log import list_events
from unlost.service.jobs_desk import JobService
from unlost.service.pages.admin_sessions import AdminSessions, AdminSession
from unlost.service.pages.forms import CsrfForms, FormValues
from unlost.service.pages.looks import PAGE_HEADERS, PageRenderer

if TYPE_CHECKING:
    from collections.abc import Callable

_PAGE_SIZE = 50
_MAX_PLACE = 1 << 40
_MAX_NUMBER = 1 << 60


class AdminJobPages:
    """The pages below `/admin` that are about jobs."""

    def __init__(self, service: JobService, renderer: PageRenderer, forms: CsrfForms, sessions: AdminSessions) -> None:
        self._service = service
        self._renderer = renderer
        self._forms = forms
        jobs = service.store
        self._actions: dict[str, Callable[[int, FormValues], object]] = {
            "pause": lambda number, _: jobs.change(number, states.pause),
            "resume": lambda number, _: jobs.change(number, states.resume),
            "cancel": lambda number, _: jobs.change(number, states.cancel),
            "retry": lambda number, _: jobs.retry(number),
            "confirm": lambda number, _: jobs.confirm(number),
            "remind": lambda number, _: jobs.remind(number),
            "move": self._move,
            "assign": self._assign,
        }
        only = sessions.require_login
        self.routes = [
            Route("/admin", only(self._list), methods=["GET"]),
            Route("/admin/pending/delete", only(self._delete_pending), methods=["POST"]),
            Route("/admin/history", only(self._history), methods=["GET"]),
            Route("/admin/jobs/{number:int}", only(self._job), methods=["GET"]),
            Route("/admin/jobs/{number:int}/delete", only(self._delete), methods=["GET", "POST"]),
            Route("/admin/jobs/{number:int}/{action}", only(self._act), methods=["POST"]),
        ]

    async def _list(self, request: Request, session: AdminSession) -> Response:
        desk, query = self._service, request.query_params
        asked = query.get("state", "")
        state = JobState(asked) if asked in set(JobState) else None
        after = _parse_number(query.get("after", "0"), 0, _MAX_NUMBER, 0)
        counts = await desk.run_query(desk.store.count_by_state)
        if not asked:
            states_shown: tuple[JobState | None, ...] = (JobState.PROCESSING, JobState.QUEUED)
        else:
            states_shown = (state,)
        lists = []
        for each in states_shown:
            found = await desk.run_query(desk.store.list_jobs, each, _PAGE_SIZE, after)
            lists.append((each, found, _next_page_start(found, each, after)))
        workers = await desk.run_query(desk.store.workers)
        usage = await desk.run_query(desk.space.usage)
        return self._renderer.render(
            request, "admin/jobs.html", session=session.secret, who=session.name, tab="jobs", counts=counts,
            lists=lists, workers=workers, usage=usage, asked=asked, after=after,
            until=desk.store.retention.removal_time, waiting=await desk.run_query(desk.outbox.count_waiting),
        )  # fmt: skip

    async def _find_job(self, request: Request) -> Job:
        number = request.path_params["number"]
        job = await self._service.find_job(number if 0 < number < _MAX_NUMBER else None)
        if job is None:
            raise HTTPException(404)
        return job

    async def _job(self, request: Request, session: AdminSession) -> Response:
        desk, job = self._service, await self._find_job(request)
        return self._renderer.render(
            request, "admin/job.html", session=session.secret, who=session.name, tab="jobs", job=job,
            place=await desk.queue_place(job), events=await desk.run_query(list_events, desk.store.database, job.number),
            letters=await desk.run_query(desk.outbox.log, job.number), size=await desk.run_query(desk.folders.size, job.number),
            workers=await desk.run_query(desk.store.workers), until=desk.store.retention.removal_time(job),
            link=f"/jobs/{desk.signer.owner_key(job.number)}",
        )  # fmt: skip

    async def _act(self, request: Request, session: AdminSession) -> Response:
        job = await self._find_job(request)
        action = self._actions.get(request.path_params["action"])
        if action is None:
            raise HTTPException(404)
        values = await self._forms.read(request, session.secret)
        await self._service.run_query(action, job.number, values)
        return _redirect_back(values)

    async def _delete(self, request: Request, session: AdminSession) -> Response:
        job = await self._find_job(request)
        if request.method != "POST":
            return self._renderer.render(
                request, "admin/delete.html", session=session.secret, who=session.name, tab="jobs", job=job
            )  # fmt: skip
        await self._forms.read(request, session.secret)
        await self._service.remove(job.number)
        return RedirectResponse("/admin", 303, PAGE_HEADERS)

    async def _delete_pending(self, request: Request, session: AdminSession) -> Response:
        values = await self._forms.read(request, session.secret)
        text, domain = values.text("like"), values.text("mail_domain")
        like = _parse_number(text, 1, _MAX_NUMBER, 0) if text else None
        if like == 0:
            raise UsageError("like: expected the number of a job")
        await self._service.run_query(partial(self._service.store.remove_pending, mail_domain=domain, like=like))
        return RedirectResponse("/admin?state=pending", 303, PAGE_HEADERS)

    def _move(self, number: int, values: FormValues) -> Job:
        place = _parse_number(values.text("place"), 1, _MAX_PLACE, 0)
        if not place:
            raise UsageError("place: expected a number from 1 on")
        return self._service.store.move(number, place)

    def _assign(self, number: int, values: FormValues) -> Job:
        worker = values.text("worker") or None
        if worker is not None and worker not in {each.name for each in self._service.store.workers()}:
            raise UsageError("worker: expected one that is there")
        job = self._service.store.change(number, lambda job, _: states.assign(job, worker))
        # Whoever starts a job on a worker wants it to be the next one there.
        return self._service.store.move(number, 1) if worker is not None and job.state is JobState.QUEUED else job

    async def _history(self, request: Request, session: AdminSession) -> Response:
        form = request.query_params.get("format", "")
        if form in HISTORY_MEDIA_TYPES:
            pieces = iterate_in_threadpool(write_history(self._service.store.history(), form))
            headers = {**PAGE_HEADERS, "content-disposition": f'attachment; filename="jobs.{form}"'}
            return StreamingResponse(pieces, media_type=HISTORY_MEDIA_TYPES[form], headers=headers)
        after = _parse_number(request.query_params.get("after", "0"), 0, _MAX_NUMBER, 0)
        found = await self._service.run_query(partial(self._service.store.list_jobs, None, _PAGE_SIZE, after))
        return self._renderer.render(
            request, "admin/history.html", session=session.secret, who=session.name, tab="history", jobs=found,
            forms=list(HISTORY_MEDIA_TYPES), after=_next_page_start(found, None, after),
        )  # fmt: skip


def _next_page_start(found: list[Job], state: JobState | None, after: int) -> int | None:
    """Return behind what the next part of a list begins; None if this was the last."""
    if len(found) < _PAGE_SIZE:
        return None
    return after + len(found) if state is JobState.QUEUED else found[-1].number


def _redirect_back(values: FormValues) -> Response:
    """Lead back to the page of administrators that a form was sent from, and to no other."""
    to = values.text("back")
    is_ours = to.startswith("/admin") and to.isascii() and to.isprintable() and not set(to) & set('\\"<> ')
    return RedirectResponse(to if is_ours and "//" not in to else "/admin", 303, PAGE_HEADERS)


def _parse_number(text: str, least: int, most: int, otherwise: int) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) < 20
    return int(text) if is_number and least <= int(text) <= most else otherwise
