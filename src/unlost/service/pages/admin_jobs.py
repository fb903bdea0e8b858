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
from unlost.service.jobs.history import MEDIA_TYPES, written
from unlost.service.jobs.job import Job, State
from unlost.service.jobs.log import events_of
from unlost.service.jobs_desk import Desk
from unlost.service.pages.admin_sessions import AdminSessions, Session
from unlost.service.pages.forms import Forms, Values
from unlost.service.pages.looks import HEADERS, Looks

if TYPE_CHECKING:
    from collections.abc import Callable

_SHOWN = 50
_MAX_PLACE = 1 << 40
_MAX_NUMBER = 1 << 60


class AdminJobs:
    """The pages below `/admin` that are about jobs."""

    def __init__(self, desk: Desk, looks: Looks, forms: Forms, sessions: AdminSessions) -> None:
        self._desk = desk
        self._looks = looks
        self._forms = forms
        jobs = desk.jobs
        self._actions: dict[str, Callable[[int, Values], object]] = {
            "pause": lambda number, _: jobs.change(number, states.pause),
            "resume": lambda number, _: jobs.change(number, states.resume),
            "cancel": lambda number, _: jobs.change(number, states.cancel),
            "retry": lambda number, _: jobs.retry(number),
            "confirm": lambda number, _: jobs.confirm(number),
            "remind": lambda number, _: jobs.remind(number),
            "move": self._move,
            "assign": self._assign,
        }
        only = sessions.only
        self.routes = [
            Route("/admin", only(self._list), methods=["GET"]),
            Route("/admin/pending/delete", only(self._delete_pending), methods=["POST"]),
            Route("/admin/history", only(self._history), methods=["GET"]),
            Route("/admin/jobs/{number:int}", only(self._job), methods=["GET"]),
            Route("/admin/jobs/{number:int}/delete", only(self._delete), methods=["GET", "POST"]),
            Route("/admin/jobs/{number:int}/{action}", only(self._act), methods=["POST"]),
        ]

    async def _list(self, request: Request, session: Session) -> Response:
        desk, query = self._desk, request.query_params
        asked = query.get("state", "")
        state = State(asked) if asked in set(State) else None
        after = _number(query.get("after", "0"), 0, _MAX_NUMBER, 0)
        counts = await desk.do(desk.jobs.counts)
        if not asked:
            states_shown: tuple[State | None, ...] = (State.PROCESSING, State.QUEUED)
        else:
            states_shown = (state,)
        lists = []
        for each in states_shown:
            found = await desk.do(desk.jobs.listed, each, _SHOWN, after)
            lists.append((each, found, _next(found, each, after)))
        workers = await desk.do(desk.jobs.workers)
        usage = await desk.do(desk.space.usage)
        return self._looks.page(
            request, "admin/jobs.html", session=session.secret, who=session.name, tab="jobs", counts=counts,
            lists=lists, workers=workers, usage=usage, asked=asked, after=after,
            until=desk.jobs.terms.until, waiting=await desk.do(desk.letters.waiting),
        )  # fmt: skip

    async def _found(self, request: Request) -> Job:
        number = request.path_params["number"]
        job = await self._desk.found(number if 0 < number < _MAX_NUMBER else None)
        if job is None:
            raise HTTPException(404)
        return job

    async def _job(self, request: Request, session: Session) -> Response:
        desk, job = self._desk, await self._found(request)
        return self._looks.page(
            request, "admin/job.html", session=session.secret, who=session.name, tab="jobs", job=job,
            place=await desk.place(job), events=await desk.do(events_of, desk.jobs.database, job.number),
            letters=await desk.do(desk.letters.log, job.number), size=await desk.do(desk.folders.size, job.number),
            workers=await desk.do(desk.jobs.workers), until=desk.jobs.terms.until(job),
            link=f"/jobs/{desk.keys.owner(job.number)}",
        )  # fmt: skip

    async def _act(self, request: Request, session: Session) -> Response:
        job = await self._found(request)
        action = self._actions.get(request.path_params["action"])
        if action is None:
            raise HTTPException(404)
        values = await self._forms.read(request, session.secret)
        await self._desk.do(action, job.number, values)
        return _back(values)

    async def _delete(self, request: Request, session: Session) -> Response:
        job = await self._found(request)
        if request.method != "POST":
            return self._looks.page(
                request, "admin/delete.html", session=session.secret, who=session.name, tab="jobs", job=job
            )  # fmt: skip
        await self._forms.read(request, session.secret)
        await self._desk.remove(job.number)
        return RedirectResponse("/admin", 303, HEADERS)

    async def _delete_pending(self, request: Request, session: Session) -> Response:
        values = await self._forms.read(request, session.secret)
        text, domain = values.text("like"), values.text("mail_domain")
        like = _number(text, 1, _MAX_NUMBER, 0) if text else None
        if like == 0:
            raise UsageError("like: expected the number of a job")
        await self._desk.do(partial(self._desk.jobs.remove_pending, mail_domain=domain, like=like))
        return RedirectResponse("/admin?state=pending", 303, HEADERS)

    def _move(self, number: int, values: Values) -> Job:
        place = _number(values.text("place"), 1, _MAX_PLACE, 0)
        if not place:
            raise UsageError("place: expected a number from 1 on")
        return self._desk.jobs.move(number, place)

    def _assign(self, number: int, values: Values) -> Job:
        worker = values.text("worker") or None
        if worker is not None and worker not in {each.name for each in self._desk.jobs.workers()}:
            raise UsageError("worker: expected one that is there")
        job = self._desk.jobs.change(number, lambda job, _: states.assign(job, worker))
        # Whoever starts a job on a worker wants it to be the next one there.
        return self._desk.jobs.move(number, 1) if worker is not None and job.state is State.QUEUED else job

    async def _history(self, request: Request, session: Session) -> Response:
        form = request.query_params.get("format", "")
        if form in MEDIA_TYPES:
            pieces = iterate_in_threadpool(written(self._desk.jobs.history(), form))
            headers = {**HEADERS, "content-disposition": f'attachment; filename="jobs.{form}"'}
            return StreamingResponse(pieces, media_type=MEDIA_TYPES[form], headers=headers)
        after = _number(request.query_params.get("after", "0"), 0, _MAX_NUMBER, 0)
        found = await self._desk.do(partial(self._desk.jobs.listed, None, _SHOWN, after))
        return self._looks.page(
            request, "admin/history.html", session=session.secret, who=session.name, tab="history", jobs=found,
            forms=list(MEDIA_TYPES), after=_next(found, None, after),
        )  # fmt: skip


def _next(found: list[Job], state: State | None, after: int) -> int | None:
    """Return behind what the next part of a list begins; None if this was the last."""
    if len(found) < _SHOWN:
        return None
    return after + len(found) if state is State.QUEUED else found[-1].number


def _back(values: Values) -> Response:
    """Lead back to the page of administrators that a form was sent from, and to no other."""
    to = values.text("back")
    is_ours = to.startswith("/admin") and to.isascii() and to.isprintable() and not set(to) & set('\\"<> ')
    return RedirectResponse(to if is_ours and "//" not in to else "/admin", 303, HEADERS)


def _number(text: str, least: int, most: int, otherwise: int) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) < 20
    return int(text) if is_number and least <= int(text) <= most else otherwise
