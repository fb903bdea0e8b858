"""The pages of administrators: login, jobs, workers, archives, mail, statistics, limits, blocked domains, clock."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from starlette.concurrency import iterate_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from unlost.aggregate.archive_status import ArchiveStatusProvider, describe_archives
from unlost.clock import Clock
from unlost.errors import BusyError, UsageError
from unlost.jobs import states
from unlost.jobs.auth import AdminStore
from unlost.jobs.limits import OrderLimits, parse_domain
from unlost.jobs.models import Job, JobState
from unlost.jobs.serializers import HISTORY_MEDIA_TYPES, write_history
from unlost.jobs.service import JobService
from unlost.jobs.statistics import compute_statistics
from unlost.jobs.store import list_events
from unlost.webui.render import PAGE_HEADERS, CsrfForms, FormValues, PageRenderer
from unlost.webui.templating import strings_for_request

SESSION_COOKIE = "unlost_session"
_ADMIN_PATH = "/admin"
_LOGIN_PATH = "/admin/login"
_PAGE_SIZE = 50
_MAX_PLACE = 1 << 40
_MAX_NUMBER = 1 << 60  # of jobs; fits into the 64-bit integers of the database
_MAX_MAILS = 200  # listed on the mail page
_LIMIT_NAMES = tuple(each.name for each in fields(OrderLimits))


@dataclass(frozen=True, slots=True)
class AdminSession:
    """A logged-in administrator. CSRF tokens are bound to the secret of the session."""

    name: str
    secret: str


AdminHandler = Callable[[Request, AdminSession], Awaitable[Response]]


class AdminSessions:
    """Login and logout of administrators."""

    def __init__(self, service: JobService, renderer: PageRenderer, forms: CsrfForms) -> None:
        self._service = service
        self._renderer = renderer
        self._forms = forms
        self._admins = AdminStore(service.store.database)
        self.routes = [
            Route(_LOGIN_PATH, self._log_in, methods=["GET", "POST"]),
            Route("/admin/logout", self.require_login(self._log_out), methods=["POST"]),
        ]

    def require_login(self, handler: AdminHandler) -> Callable[[Request], Awaitable[Response]]:
        """Wrap a handler so that it requires a login. Other requests are redirected to the login page."""

        async def check_session(request: Request) -> Response:
            secret = request.cookies.get(SESSION_COOKIE, "")
            name = await self._service.run_query(self._admins.find_session, secret)
            if name is None:
                return RedirectResponse(_LOGIN_PATH, 303, PAGE_HEADERS)
            return await handler(request, AdminSession(name, secret))

        return check_session

    async def _log_in(self, request: Request) -> Response:
        if request.method != "POST":
            return self._form(request)
        values = await self._forms.read(request)
        client = self._service.clients.client_hash(request)
        name, password = values.text("name"), values.get("password", "")
        try:
            secret = await self._service.login_pool.run(self._admins.log_in, name, password, client)
        except BusyError as error:
            t = strings_for_request(request)
            problem = t("problem.throttled", span=t.span(error.seconds))
            response = self._form(request, problem, 429)
            response.headers["retry-after"] = str(int(error.seconds))
            return response
        if secret is None:
            return self._form(request, strings_for_request(request)("problem.login"), 403)
        response = RedirectResponse(_ADMIN_PATH, 303, PAGE_HEADERS)
        secure = self._forms.is_secure
        response.set_cookie(SESSION_COOKIE, secret, path=_ADMIN_PATH, httponly=True, samesite="strict", secure=secure)
        return response

    def _form(self, request: Request, problem: str = "", status: int = 200) -> Response:
        return self._renderer.render(request, "admin/login.html", status, problem=problem)

    async def _log_out(self, request: Request, session: AdminSession) -> Response:
        await self._forms.read(request, session.secret)
        await self._service.run_query(self._admins.log_out, session.secret)
        response = RedirectResponse(_LOGIN_PATH, 303, PAGE_HEADERS)
        response.delete_cookie(SESSION_COOKIE, path=_ADMIN_PATH)
        return response


class AdminJobPages:
    """The pages about jobs below `/admin`."""

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
        require_login = sessions.require_login
        self.routes = [
            Route("/admin", require_login(self._list), methods=["GET"]),
            Route("/admin/pending/delete", require_login(self._delete_pending), methods=["POST"]),
            Route("/admin/history", require_login(self._history), methods=["GET"]),
            Route("/admin/jobs/{number:int}", require_login(self._job), methods=["GET"]),
            Route("/admin/jobs/{number:int}/delete", require_login(self._delete), methods=["GET", "POST"]),
            Route("/admin/jobs/{number:int}/{action}", require_login(self._act), methods=["POST"]),
        ]

    async def _list(self, request: Request, session: AdminSession) -> Response:
        service, query = self._service, request.query_params
        selected = query.get("state", "")
        state = JobState(selected) if selected in set(JobState) else None
        after = _parse_number(query.get("after", "0"), 0, _MAX_NUMBER, 0)
        counts = await service.run_query(service.store.count_by_state)
        if not selected:
            states_shown: tuple[JobState | None, ...] = (JobState.PROCESSING, JobState.QUEUED)
        else:
            states_shown = (state,)
        lists = []
        for each in states_shown:
            jobs = await service.run_query(service.store.list_jobs, each, _PAGE_SIZE, after)
            lists.append((each, jobs, _next_page_start(jobs, each, after)))
        workers = await service.run_query(service.store.workers)
        usage = await service.run_query(service.space.usage)
        return self._renderer.render(
            request, "admin/jobs.html", session=session.secret, who=session.name, tab="jobs", counts=counts,
            lists=lists, workers=workers, usage=usage, selected=selected, after=after,
            until=service.store.retention.removal_time, waiting=await service.run_query(service.outbox.count_waiting),
        )  # fmt: skip

    async def _find_job(self, request: Request) -> Job:
        number = request.path_params["number"]
        job = await self._service.find_job(number if 0 < number < _MAX_NUMBER else None)
        if job is None:
            raise HTTPException(404)
        return job

    async def _job(self, request: Request, session: AdminSession) -> Response:
        service, job = self._service, await self._find_job(request)
        return self._renderer.render(
            request, "admin/job.html", session=session.secret, who=session.name, tab="jobs", job=job,
            place=await service.queue_place(job),
            events=await service.run_query(list_events, service.store.database, job.number),
            mails=await service.run_query(service.outbox.log, job.number),
            size=await service.run_query(service.folders.size, job.number),
            workers=await service.run_query(service.store.workers), until=service.store.retention.removal_time(job),
            link=f"/jobs/{service.signer.owner_key(job.number)}",
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
        # An assigned job should be the next one of its worker.
        return self._service.store.move(number, 1) if worker is not None and job.state is JobState.QUEUED else job

    async def _history(self, request: Request, session: AdminSession) -> Response:
        form = request.query_params.get("format", "")
        if form in HISTORY_MEDIA_TYPES:
            chunks = iterate_in_threadpool(write_history(self._service.store.history(), form))
            headers = {**PAGE_HEADERS, "content-disposition": f'attachment; filename="jobs.{form}"'}
            return StreamingResponse(chunks, media_type=HISTORY_MEDIA_TYPES[form], headers=headers)
        after = _parse_number(request.query_params.get("after", "0"), 0, _MAX_NUMBER, 0)
        jobs = await self._service.run_query(partial(self._service.store.list_jobs, None, _PAGE_SIZE, after))
        return self._renderer.render(
            request, "admin/history.html", session=session.secret, who=session.name, tab="history", jobs=jobs,
            forms=list(HISTORY_MEDIA_TYPES), after=_next_page_start(jobs, None, after),
        )  # fmt: skip


def _next_page_start(jobs: list[Job], state: JobState | None, after: int) -> int | None:
    """Return the `after` parameter of the next page, or None if this is the last one."""
    if len(jobs) < _PAGE_SIZE:
        return None
    return after + len(jobs) if state is JobState.QUEUED else jobs[-1].number


def _redirect_back(values: FormValues) -> Response:
    """Redirect to the administrators' page that a form was sent from. Other targets are not allowed."""
    target = values.text("back")
    is_local = (
        target.startswith("/admin") and target.isascii() and target.isprintable() and not set(target) & set('\\"<> ')
    )
    return RedirectResponse(target if is_local and "//" not in target else "/admin", 303, PAGE_HEADERS)


def _parse_number(text: str, minimum: int, maximum: int, default: int) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) < 20
    return int(text) if is_number and minimum <= int(text) <= maximum else default


class AdminServicePages:
    """The other pages below `/admin`."""

    def __init__(
        self,
        service: JobService,
        archive_status: ArchiveStatusProvider,
        clock: Clock,
        renderer: PageRenderer,
        forms: CsrfForms,
        sessions: AdminSessions,
    ) -> None:
        self._service = service
        self._archive_status = archive_status
        self._clock = clock
        self._renderer = renderer
        self._forms = forms
        require_login = sessions.require_login
        self.routes = [
            Route("/admin/workers", require_login(self._workers), methods=["GET"]),
            Route("/admin/archives", require_login(self._archives), methods=["GET"]),
            Route("/admin/mail", require_login(self._mail), methods=["GET"]),
            Route("/admin/statistics", require_login(self._statistics), methods=["GET"]),
            Route("/admin/limits", require_login(self._limits), methods=["GET", "POST"]),
            Route("/admin/domains", require_login(self._domains), methods=["GET", "POST"]),
            Route("/admin/clock", require_login(self._clock_page), methods=["GET", "POST"]),
            Route("/admin/takedown", require_login(self._takedown), methods=["POST"]),
        ]

    def _page(
        self,
        request: Request,
        session: AdminSession,
        tab: str,
        status: int = 200,
        **context: Any,  # noqa: ANN401  passed to the template
    ) -> Response:
        return self._renderer.render(
            request, f"admin/{tab}.html", status, session=session.secret, who=session.name, tab=tab, **context
        )  # fmt: skip

    async def _workers(self, request: Request, session: AdminSession) -> Response:
        service = self._service
        workers, now = await service.run_query(service.store.workers), await service.run_query(service.store.now)
        jobs = {number: await service.find_job(number) for each in workers for number in each.jobs}
        return self._page(request, session, "workers", workers=workers, now=now, jobs=jobs)

    async def _archives(self, request: Request, session: AdminSession) -> Response:
        description = describe_archives(self._archive_status.archive_statuses(), self._clock)
        return self._page(request, session, "archives", description=description)

    async def _mail(self, request: Request, session: AdminSession) -> Response:
        mails = await self._service.run_query(self._service.outbox.log, None, _MAX_MAILS)
        waiting = await self._service.run_query(self._service.outbox.count_waiting)
        sends = self._service.sends_mail
        return self._page(request, session, "mail", mails=mails, waiting=waiting, sends_mail=sends)

    async def _statistics(self, request: Request, session: AdminSession) -> Response:
        statistics = await self._service.run_query(lambda: compute_statistics(self._service.store.history()).to_json())
        return self._page(request, session, "statistics", figures=statistics)

    async def _limits(self, request: Request, session: AdminSession) -> Response:
        rules = self._service.store.rules
        limits = await self._service.run_query(rules.limits)
        if request.method != "POST":
            return self._page(request, session, "limits", limits=limits, names=_LIMIT_NAMES, notice="")
        values = await self._forms.read(request, session.secret)
        t = strings_for_request(request)
        new_values = {name: values.text(name) for name in _LIMIT_NAMES if name in values}
        if any(not (text.isascii() and text.isdigit() and len(text) < 12) for text in new_values.values()):
            notice = t("admin.limits_wrong")
            return self._page(request, session, "limits", 400, limits=limits, names=_LIMIT_NAMES, notice=notice)
        limits = replace(limits, **{name: int(text) for name, text in new_values.items()})
        await self._service.run_query(rules.set_limits, limits)
        return self._page(request, session, "limits", limits=limits, names=_LIMIT_NAMES, notice=t("admin.saved"))

    async def _clock_page(self, request: Request, session: AdminSession) -> Response:
        service = self._service
        if request.method == "POST":
            await self._forms.read(request, session.secret)
            await service.run_query(service.clock_guard.confirm)
            return RedirectResponse("/admin/clock", 303, PAGE_HEADERS)
        now = await service.run_query(service.store.now)
        return self._page(
            request, session, "clock", now=now, jumped=await service.run_query(service.clock_guard.reason)
        )

    async def _domains(self, request: Request, session: AdminSession) -> Response:
        if request.method == "POST":
            values = await self._forms.read(request, session.secret)
            if values.text("what") == "unblock":
                await self._service.run_query(self._service.store.rules.unblock, values.text("domain"))
                return RedirectResponse("/admin/domains", 303, PAGE_HEADERS)
            try:
                domain = parse_domain(values.text("domain"))
            except UsageError:
                return await self._render_domains(request, session, problem=True)
            # Show the jobs to be removed before anything is removed.
            jobs = await self._service.run_query(self._service.store.list_below_domain, domain)
            return self._page(request, session, "takedown", domain=domain, reason=values.text("reason"), jobs=jobs)
        return await self._render_domains(request, session)

    async def _render_domains(self, request: Request, session: AdminSession, *, problem: bool = False) -> Response:
        blocked = await self._service.run_query(self._service.store.rules.list_blocked)
        return self._page(request, session, "domains", 400 if problem else 200, blocked=blocked, problem=problem)

    async def _takedown(self, request: Request, session: AdminSession) -> Response:
        """Block a domain, then remove all jobs below it."""
        values = await self._forms.read(request, session.secret)
        # Block first, so that no further order is accepted meanwhile.
        domain = await self._service.run_query(
            self._service.store.rules.block, values.text("domain"), values.text("reason")
        )
        for job in await self._service.run_query(self._service.store.list_below_domain, domain):
            await self._service.remove(job.number)
        return RedirectResponse("/admin/domains", 303, PAGE_HEADERS)
