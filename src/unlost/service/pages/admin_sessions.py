"""Who is logged in: administrators come by a name and a password, and stay by a cookie for these pages alone."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from unlost.errors import BusyError
from unlost.service.jobs.admins import AdminStore
from unlost.service.jobs_desk import JobService
from unlost.service.pages.catalogue import strings_for_request
from unlost.service.pages.forms import CsrfForms
from unlost.service.pages.looks import PAGE_HEADERS, PageRenderer

SESSION_COOKIE = "unlost_session"
_ADMIN_PATH = "/admin"
_LOGIN_PATH = "/admin/login"


@dataclass(frozen=True, slots=True)
class AdminSession:
    """Somebody who is logged in. secret: of the session; forms are good for that one alone."""

    name: str
    secret: str


AdminHandler = Callable[[Request, AdminSession], Awaitable[Response]]


class AdminSessions:
    """Lets administrators in and out."""

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
        """Return what answers those who are logged in; all others are led to where they can."""

        async def guarded(request: Request) -> Response:
            secret = request.cookies.get(SESSION_COOKIE, "")
            name = await self._service.run_query(self._admins.find_session, secret)
            if name is None:
                return RedirectResponse(_LOGIN_PATH, 303, PAGE_HEADERS)
            return await handler(request, AdminSession(name, secret))

        return guarded

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
            answer = self._form(request, problem, 429)
            answer.headers["retry-after"] = str(int(error.seconds))
            return answer
        if secret is None:
            return self._form(request, strings_for_request(request)("problem.login"), 403)
        come = RedirectResponse(_ADMIN_PATH, 303, PAGE_HEADERS)
        secure = self._forms.is_secure
        come.set_cookie(SESSION_COOKIE, secret, path=_ADMIN_PATH, httponly=True, samesite="strict", secure=secure)
        return come

    def _form(self, request: Request, problem: str = "", status: int = 200) -> Response:
        return self._renderer.render(request, "admin/login.html", status, problem=problem)

    async def _log_out(self, request: Request, session: AdminSession) -> Response:
        await self._forms.read(request, session.secret)
        await self._service.run_query(self._admins.log_out, session.secret)
        gone = RedirectResponse(_LOGIN_PATH, 303, PAGE_HEADERS)
        gone.delete_cookie(SESSION_COOKIE, path=_ADMIN_PATH)
        return gone
