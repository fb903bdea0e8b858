"""Which requests are about jobs, and who answers them. What it needs is imported only where there are jobs."""

from typing import TYPE_CHECKING

from unlost.aggregate.places import ServiceUrls
from unlost.service.answers import Receive, Scope, Send

if TYPE_CHECKING:
    from unlost.service.jobs_desk import JobService
    from unlost.service.parts import ServiceContext

_API_PATHS = (b"/api/jobs", b"/api/workers", b"/api/history", b"/api/statistics")
_PAGE_PATHS = (b"/recover", b"/jobs", b"/mail", b"/preview", b"/privacy", b"/admin")


class JobsRouter:
    """Answers requests about jobs: those of programs, and those of people."""

    def __init__(self, context: "ServiceContext", service: "JobService", urls: ServiceUrls | None) -> None:
        from unlost.service.jobs_api import JobsApi  # noqa: PLC0415
        from unlost.service.pages.router import JobPagesRouter  # noqa: PLC0415

        self._api = JobsApi(service, urls).router
        self._pages = JobPagesRouter(context, service, urls).app

    def classify(self, path: bytes) -> str:
        """Return whether a request for a path is about jobs: `api` for programs, `pages` for people, else nothing.

        >>> JobsRouter.takes(None, b"/api/jobs/1/events"), JobsRouter.takes(None, b"/api/jobsite")
        ('api', '')
        """
        for name, places in (("api", _API_PATHS), ("pages", _PAGE_PATHS)):
            if path.startswith(places) and any(path == each or path.startswith(each + b"/") for each in places):
                return name
        return ""

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        answer = self._api if self.classify(scope["raw_path"]) == "api" else self._pages
        await answer(scope, receive, send)
