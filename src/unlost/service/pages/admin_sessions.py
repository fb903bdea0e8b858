"""Who is logged in: administrators come by a name and a password, and stay by a cookie for these pages alone."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from unlost.errors import BusyError
from unlost.service.jobs.admins import Admins
from unlost.service.jobs_desk import Desk
from unlost.service.pages.catalogue import strings_for
from unlost.service.pages.forms import Forms
from unlost.service.pages.looks import HEADERS, Looks

COOKIE = "unlost_session"
_PATH = "/admin"
_LOGIN = "/admin/login"


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who is logged in. secret: of the session; forms are good for that one alone."""

    name: str
    secret: str


Answering = Callable[[Request, Session], Awaitable[Response]]


class AdminSessions:
    """Lets administrators in and out."""

    def __init__(self, desk: Desk, looks: Looks, forms: Forms) -> None:
        self._desk = desk
        self._looks = looks
        self._forms = forms
        self._admins = Admins(desk.jobs.database)
        self.routes = [
            Route(_LOGIN, self._log_in, methods=["GET", "POST"]),
            Route("/admin/logout", self.only(self._log_out), methods=["POST"]),
        ]

    def only(self, answer: Answering) -> Callable[[Request], Awaitable[Response]]:
        """Return what answers those who are logged in; all others are led to where they can."""

        async def guarded(request: Request) -> Response:
            secret = request.cookies.get(COOKIE, "")
            name = await self._desk.do(self._admins.name_of, secret)
            if name is None:
                return RedirectResponse(_LOGIN, 303, HEADERS)
            return await answer(request, Session(name, secret))

        return guarded

    async def _log_in(self, request: Request) -> Response:
        if request.method != "POST":
            return self._form(request)
        values = await self._forms.read(request)
        client = self._desk.clients.code(request)
        name, password = values.text("name"), values.get("password", "")
        try:
            secret = await self._desk.logins.run(self._admins.log_in, name, password, client)
        except BusyError as error:
            t = strings_for(request)
            problem = t("problem.throttled", span=t.span(error.seconds))
            answer = self._form(request, problem, 429)
            answer.headers["retry-after"] = str(int(error.seconds))
            return answer
        if secret is None:
            return self._form(request, strings_for(request)("problem.login"), 403)
        come = RedirectResponse(_PATH, 303, HEADERS)
        secure = self._forms.is_secure
        come.set_cookie(COOKIE, secret, path=_PATH, httponly=True, samesite="strict", secure=secure)
        return come

    def _form(self, request: Request, problem: str = "", status: int = 200) -> Response:
        return self._looks.page(request, "admin/login.html", status, problem=problem)

    async def _log_out(self, request: Request, session: Session) -> Response:
        await self._forms.read(request, session.secret)
        await self._desk.do(self._admins.log_out, session.secret)
        gone = RedirectResponse(_LOGIN, 303, HEADERS)
        gone.delete_cookie(COOKIE, path=_PATH)
        return gone
