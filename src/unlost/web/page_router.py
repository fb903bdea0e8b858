"""Routes of the HTML pages for recovery jobs, and their error pages."""

import logging

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from unlost.aggregate.urls import ServiceUrls
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
from unlost.jobs.limits import LookupRateLimit
from unlost.jobs.service import JobService
from unlost.web.factory import ServiceContext
from unlost.webui.admin import AdminJobPages, AdminServicePages, AdminSessions
from unlost.webui.job_pages import JobPages, PreviewPages, UnsubscribePages
from unlost.webui.render import CsrfForms, PageRenderer
from unlost.webui.submit import SubmitPages

_log = logging.getLogger(__name__)
_ERRORS: dict[type[UnlostError], tuple[str, int]] = {
    BusyError: ("busy", 429),
    BlockedError: ("blocked", 400),
    JobError: ("state", 409),
    DatabaseError: ("database", 503),
    UsageError: ("form", 400),
    InputError: ("form", 400),
}
# The page of each HTTP status; others get the page `fault`.
_PROBLEMS = {403: "form", 400: "form", 408: "form", 413: "large", 415: "form", 404: "nowhere", 405: "method"}


class JobPagesRouter:
    """Serves the HTML pages for recovery jobs."""

    def __init__(self, context: ServiceContext, service: JobService, urls: ServiceUrls | None) -> None:
        names = {each.archive.id: each.archive.name for each in context.archive_status.archive_statuses()}
        is_secure = context.root is not None and context.root.startswith("https://")
        csrf_forms = CsrfForms(service.signer, is_secure=is_secure)
        self._renderer = PageRenderer(csrf_forms, names, urls.prefix if urls else "")
        job_pages = JobPages(service, self._renderer, csrf_forms)
        sessions = AdminSessions(service, self._renderer, csrf_forms)
        routes = [
            *SubmitPages(
                service, context.finder, self._renderer, csrf_forms, LookupRateLimit(service.store.database)
            ).routes,
            *job_pages.routes,
            *UnsubscribePages(service, self._renderer, csrf_forms).routes,
            *PreviewPages(service, self._renderer, urls).routes,
            *sessions.routes,
            *AdminJobPages(service, self._renderer, csrf_forms, sessions).routes,
            *AdminServicePages(
                service, context.archive_status, context.clock, self._renderer, csrf_forms, sessions
            ).routes,
        ]
        handlers = {
            HTTPException: self._handle_http_exception,
            UnlostError: self._handle_error,
            Exception: self._handle_fault,
        }
        self._router = Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]
        self._router.router.redirect_slashes = False

    @property
    def app(self) -> Starlette:
        """The ASGI application."""
        return self._router

    async def _handle_http_exception(self, request: Request, error: HTTPException) -> Response:
        name = _PROBLEMS.get(error.status_code, "fault")
        response = self._renderer.render_problem(request, name, error.status_code)
        response.headers.update(error.headers or {})
        return response

    async def _handle_error(self, request: Request, error: UnlostError) -> Response:
        if isinstance(error, LimitError):
            return self._renderer.render_problem(request, f"limit_{error.kind}", 429)
        for kind, (name, status) in _ERRORS.items():
            if isinstance(error, kind):
                return self._renderer.render_problem(request, name, status)
        return self._handle_fault(request, error)

    def _handle_fault(self, request: Request, error: Exception) -> Response:
        _log.error("a page failed: %s", type(error).__name__, exc_info=error)
        return self._renderer.render_problem(request, "fault", 500)
