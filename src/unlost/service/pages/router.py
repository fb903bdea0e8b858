"""Which pages there are for people, and what they are told when something goes wrong."""

import logging

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from unlost.aggregate.places import Places
from unlost.errors import (
    BlockedError,
    BusyError,
    DatabaseError,
    InputError,
    JobError,
    LimitError,
    UnlostError,
    UsageError,
)
from unlost.service.jobs_desk import Desk
from unlost.service.pages.admin_jobs import AdminJobs
from unlost.service.pages.admin_pages import AdminPages
from unlost.service.pages.admin_sessions import AdminSessions
from unlost.service.pages.forms import Forms
from unlost.service.pages.look_limit import LookLimit
from unlost.service.pages.looks import Looks
from unlost.service.pages.ordering import Ordering
from unlost.service.pages.owner import Owner
from unlost.service.pages.preview import Preview
from unlost.service.pages.unsubscribe import Unsubscribe
from unlost.service.parts import Parts

_log = logging.getLogger(__name__)
_ERRORS: dict[type[UnlostError], tuple[str, int]] = {
    BusyError: ("busy", 429),
    BlockedError: ("blocked", 400),
    JobError: ("state", 409),
    DatabaseError: ("database", 503),
    UsageError: ("form", 400),
    InputError: ("form", 400),
}
_PROBLEMS = {403: "form", 400: "form", 408: "form", 413: "large", 415: "form", 404: "nowhere", 405: "method"}


class PagesRouter:
    """Answers requests for pages for people."""

    def __init__(self, parts: Parts, desk: Desk, places: Places | None) -> None:
        names = {each.archive.id: each.archive.name for each in parts.stands.standings()}
        is_secure = parts.root is not None and parts.root.startswith("https://")
        forms = Forms(desk.keys, is_secure=is_secure)
        self._looks = Looks(forms, names, places.prefix if places else "")
        owner = Owner(desk, self._looks, forms)
        sessions = AdminSessions(desk, self._looks, forms)
        routes = [
            *Ordering(desk, parts.finds, self._looks, forms, LookLimit(desk.jobs.database)).routes,
            *owner.routes,
            *Unsubscribe(desk, self._looks, forms).routes,
            *Preview(desk, self._looks, places).routes,
            *sessions.routes,
            *AdminJobs(desk, self._looks, forms, sessions).routes,
            *AdminPages(desk, parts.stands, parts.clock, self._looks, forms, sessions).routes,
        ]
        handlers = {HTTPException: self._refused, UnlostError: self._explained, Exception: self._fault}
        self._router = Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]
        self._router.router.redirect_slashes = False

    @property
    def answer(self) -> Starlette:
        """Whoever answers."""
        return self._router

    async def _refused(self, request: Request, error: HTTPException) -> Response:
        name = _PROBLEMS.get(error.status_code, "fault")
        answer = self._looks.problem(request, name, error.status_code)
        answer.headers.update(error.headers or {})
        return answer

    async def _explained(self, request: Request, error: UnlostError) -> Response:
        if isinstance(error, LimitError):
            return self._looks.problem(request, f"limit_{error.kind}", 429)
        for kind, (name, status) in _ERRORS.items():
            if isinstance(error, kind):
                return self._looks.problem(request, name, status)
        return self._fault(request, error)

    def _fault(self, request: Request, error: Exception) -> Response:
        _log.error("a page failed: %s", type(error).__name__, exc_info=error)
        return self._looks.problem(request, "fault", 500)
