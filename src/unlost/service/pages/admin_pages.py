"""What those who look after a service see and decide beside jobs: workers, archives, mail, limits, takedown."""

from dataclasses import fields, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from unlost.clock import Clock
from unlost.errors import UsageError
from unlost.service.about import describe_archives
from unlost.service.jobs.rules import OrderLimits, parse_domain
from unlost.service.jobs.statistics import compute_statistics
from unlost.service.jobs_desk import JobService
from unlost.service.pages.admin_sessions import AdminSessions, AdminSession
from unlost.service.pages.catalogue import strings_for_request
from unlost.service.pages.forms import CsrfForms
from unlost.service.pages.looks import PAGE_HEADERS, PageRenderer
from unlost.service.standing import ArchiveStatusProvider

_MAX_MAILS = 200
_LIMIT_NAMES = tuple(each.name for each in fields(OrderLimits))


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
        only = sessions.require_login
        self.routes = [
            Route("/admin/workers", only(self._workers), methods=["GET"]),
            Route("/admin/archives", only(self._archives), methods=["GET"]),
            Route("/admin/mail", only(self._mail), methods=["GET"]),
            Route("/admin/statistics", only(self._statistics), methods=["GET"]),
            Route("/admin/limits", only(self._limits), methods=["GET", "POST"]),
            Route("/admin/domains", only(self._domains), methods=["GET", "POST"]),
            Route("/admin/clock", only(self._clock_page), methods=["GET", "POST"]),
            Route("/admin/takedown", only(self._takedown), methods=["POST"]),
        ]

    def _page(
        self,
        request: Request,
        session: AdminSession,
        tab: str,
        status: int = 200,
        **context: Any,  # noqa: ANN401  whatever the template wants
    ) -> Response:
        return self._renderer.render(
            request, f"admin/{tab}.html", status, session=session.secret, who=session.name, tab=tab, **context
        )  # fmt: skip

    async def _workers(self, request: Request, session: AdminSession) -> Response:
        desk = self._service
        workers, now = await desk.run_query(desk.store.workers), await desk.run_query(desk.store.now)
        jobs = {number: await desk.find_job(number) for each in workers for number in each.jobs}
        return self._page(request, session, "workers", workers=workers, now=now, jobs=jobs)

    async def _archives(self, request: Request, session: AdminSession) -> Response:
        told = describe_archives(self._archive_status.archive_statuses(), self._clock)
        return self._page(request, session, "archives", told=told)

    async def _mail(self, request: Request, session: AdminSession) -> Response:
        letters = await self._service.run_query(self._service.outbox.log, None, _MAX_MAILS)
        waiting = await self._service.run_query(self._service.outbox.count_waiting)
        sends = self._service.sends_mail
        return self._page(request, session, "mail", letters=letters, waiting=waiting, sends_mail=sends)

    async def _statistics(self, request: Request, session: AdminSession) -> Response:
        found = await self._service.run_query(lambda: compute_statistics(self._service.store.history()).to_json())
        return self._page(request, session, "statistics", figures=found)

    async def _limits(self, request: Request, session: AdminSession) -> Response:
        rules = self._service.store.rules
        limits = await self._service.run_query(rules.limits)
        if request.method != "POST":
            return self._page(request, session, "limits", limits=limits, names=_LIMIT_NAMES, said="")
        values = await self._forms.read(request, session.secret)
        t = strings_for_request(request)
        given = {name: values.text(name) for name in _LIMIT_NAMES if name in values}
        if any(not (text.isascii() and text.isdigit() and len(text) < 12) for text in given.values()):
            said = t("admin.limits_wrong")
            return self._page(request, session, "limits", 400, limits=limits, names=_LIMIT_NAMES, said=said)
        limits = replace(limits, **{name: int(text) for name, text in given.items()})
        await self._service.run_query(rules.set_limits, limits)
        return self._page(request, session, "limits", limits=limits, names=_LIMIT_NAMES, said=t("admin.saved"))

    async def _clock_page(self, request: Request, session: AdminSession) -> Response:
        desk = self._service
        if request.method == "POST":
            await self._forms.read(request, session.secret)
            await desk.run_query(desk.clock_guard.confirm)
            return RedirectResponse("/admin/clock", 303, PAGE_HEADERS)
        now = await desk.run_query(desk.store.now)
        return self._page(request, session, "clock", now=now, jumped=await desk.run_query(desk.clock_guard.reason))

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
            # What is to be removed is shown before it is.
            jobs = await self._service.run_query(self._service.store.list_below_domain, domain)
            return self._page(request, session, "takedown", domain=domain, reason=values.text("reason"), jobs=jobs)
        return await self._render_domains(request, session)

    async def _render_domains(self, request: Request, session: AdminSession, *, problem: bool = False) -> Response:
        blocked = await self._service.run_query(self._service.store.rules.list_blocked)
        return self._page(request, session, "domains", 400 if problem else 200, blocked=blocked, problem=problem)

    async def _takedown(self, request: Request, session: AdminSession) -> Response:
        """Have a domain recovered no more, then remove all that was."""
        values = await self._forms.read(request, session.secret)
        # First the one, so that nobody orders it between.
        domain = await self._service.run_query(
            self._service.store.rules.block, values.text("domain"), values.text("reason")
        )
        for job in await self._service.run_query(self._service.store.list_below_domain, domain):
            await self._service.remove(job.number)
        return RedirectResponse("/admin/domains", 303, PAGE_HEADERS)
