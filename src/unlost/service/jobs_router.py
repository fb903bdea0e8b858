"""Which requests are about jobs, and who answers them. What it needs is imported only where there are jobs."""

from typing import TYPE_CHECKING

from unlost.aggregate.places import Places
from unlost.service.answers import Receive, Scope, Send

if TYPE_CHECKING:
    from unlost.service.jobs_desk import Desk
    from unlost.service.parts import Parts

_API = (b"/api/jobs", b"/api/workers", b"/api/history", b"/api/statistics")
_PAGES = (b"/recover", b"/jobs", b"/mail", b"/preview", b"/privacy", b"/admin")


class JobsRouter:
    """Answers requests about jobs: those of programs, and those of people."""

    def __init__(self, parts: "Parts", desk: "Desk", places: Places | None) -> None:
        from unlost.service.jobs_api import JobsApi  # noqa: PLC0415
        from unlost.service.pages.router import PagesRouter  # noqa: PLC0415

        self._api = JobsApi(desk, places).router
        self._pages = PagesRouter(parts, desk, places).answer

    def takes(self, path: bytes) -> str:
        """Return whether a request for a path is about jobs: `api` for programs, `pages` for people, else nothing.

        >>> JobsRouter.takes(None, b"/api/jobs/1/events"), JobsRouter.takes(None, b"/api/jobsite")
        ('api', '')
        """
        for name, places in (("api", _API), ("pages", _PAGES)):
            if path.startswith(places) and any(path == each or path.startswith(each + b"/") for each in places):
                return name
        return ""

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        answer = self._api if self.takes(scope["raw_path"]) == "api" else self._pages
        await answer(scope, receive, send)
