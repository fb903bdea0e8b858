"""What those who look after a service see and decide beside jobs: workers, archives, mail, limits, takedown."""

from dataclasses import fields, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from unlost.clock import Clock
from unlost.errors import UsageError
from unlost.service.about import about
from unlost.service.jobs.rules import Limits, domain_of
from unlost.service.jobs.statistics import statistics_of
from unlost.service.jobs_desk import Desk
from unlost.service.pages.admin_sessions import AdminSessions, Session
from unlost.service.pages.catalogue import strings_for
from unlost.service.pages.forms import Forms
from unlost.service.pages.looks import HEADERS, Looks
from unlost.service.standing import Stands

_LETTERS_SHOWN = 200
_LIMITS = tuple(each.name for each in fields(Limits))


class AdminPages:
    """The other pages below `/admin`."""

    def __init__(
        self, desk: Desk, stands: Stands, clock: Clock, looks: Looks, forms: Forms, sessions: AdminSessions
    ) -> None:
        self._desk = desk
        self._stands = stands
        self._clock = clock
        self._looks = looks
        self._forms = forms
        only = sessions.only
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
        session: Session,
        tab: str,
        status: int = 200,
        **context: Any,  # noqa: ANN401  whatever the template wants
    ) -> Response:
        return self._looks.page(
            request, f"admin/{tab}.html", status, session=session.secret, who=session.name, tab=tab, **context
        )  # fmt: skip

    async def _workers(self, request: Request, session: Session) -> Response:
        desk = self._desk
        workers, now = await desk.do(desk.jobs.workers), await desk.do(desk.jobs.now)
        jobs = {number: await desk.found(number) for each in workers for number in each.jobs}
        return self._page(request, session, "workers", workers=workers, now=now, jobs=jobs)

    async def _archives(self, request: Request, session: Session) -> Response:
        told = about(self._stands.standings(), self._clock)
        return self._page(request, session, "archives", told=told)

    async def _mail(self, request: Request, session: Session) -> Response:
        letters = await self._desk.do(self._desk.letters.log, None, _LETTERS_SHOWN)
        waiting = await self._desk.do(self._desk.letters.waiting)
        sends = self._desk.sends_mail
        return self._page(request, session, "mail", letters=letters, waiting=waiting, sends_mail=sends)

    async def _statistics(self, request: Request, session: Session) -> Response:
        found = await self._desk.do(lambda: statistics_of(self._desk.jobs.history()).to_json())
        return self._page(request, session, "statistics", figures=found)

    async def _limits(self, request: Request, session: Session) -> Response:
        rules = self._desk.jobs.rules
        limits = await self._desk.do(rules.limits)
        if request.method != "POST":
            return self._page(request, session, "limits", limits=limits, names=_LIMITS, said="")
        values = await self._forms.read(request, session.secret)
        t = strings_for(request)
        given = {name: values.text(name) for name in _LIMITS if name in values}
        if any(not (text.isascii() and text.isdigit() and len(text) < 12) for text in given.values()):
            said = t("admin.limits_wrong")
            return self._page(request, session, "limits", 400, limits=limits, names=_LIMITS, said=said)
        limits = replace(limits, **{name: int(text) for name, text in given.items()})
        await self._desk.do(rules.set_limits, limits)
        return self._page(request, session, "limits", limits=limits, names=_LIMITS, said=t("admin.saved"))

    async def _clock_page(self, request: Request, session: Session) -> Response:
        desk = self._desk
        if request.method == "POST":
            await self._forms.read(request, session.secret)
            await desk.do(desk.clock_guard.confirm)
            return RedirectResponse("/admin/clock", 303, HEADERS)
        now = await desk.do(desk.jobs.now)
        return self._page(request, session, "clock", now=now, jumped=await desk.do(desk.clock_guard.reason))

    async def _domains(self, request: Request, session: Session) -> Response:
        if request.method == "POST":
            values = await self._forms.read(request, session.secret)
            if values.text("what") == "unblock":
                await self._desk.do(self._desk.jobs.rules.unblock, values.text("domain"))
                return RedirectResponse("/admin/domains", 303, HEADERS)
            try:
                domain = domain_of(values.text("domain"))
            except UsageError:
                return await self._shown(request, session, problem=True)
            # What is to be removed is shown before it is.
            jobs = await self._desk.do(self._desk.jobs.below, domain)
            return self._page(request, session, "takedown", domain=domain, reason=values.text("reason"), jobs=jobs)
        return await self._shown(request, session)

    async def _shown(self, request: Request, session: Session, *, problem: bool = False) -> Response:
        blocked = await self._desk.do(self._desk.jobs.rules.blocked)
        return self._page(request, session, "domains", 400 if problem else 200, blocked=blocked, problem=problem)

    async def _takedown(self, request: Request, session: Session) -> Response:
        """Have a domain recovered no more, then remove all that was."""
        values = await self._forms.read(request, session.secret)
        # First the one, so that nobody orders it between.
        domain = await self._desk.do(self._desk.jobs.rules.block, values.text("domain"), values.text("reason"))
        for job in await self._desk.do(self._desk.jobs.below, domain):
            await self._desk.remove(job.number)
        return RedirectResponse("/admin/domains", 303, HEADERS)
