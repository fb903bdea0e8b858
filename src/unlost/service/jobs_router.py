"""Which requests are about jobs, and who answers them. What it needs is imported only where there are jobs."""

from typing import TYPE_CHECKING

from unlost.aggregate.places import Places
from unlost.service.answers import Receive, Scope, Send

if TYPE_CHECKING:
    from unlost.service.jobs_desk import Desk

_PLACES = (b"/api/jobs", b"/api/workers", b"/api/history", b"/api/statistics", b"/jobs")


class JobsRouter:
    """Answers requests about jobs: those of programs, and those of owners who follow a link in a letter."""

    def __init__(self, desk: "Desk", places: Places | None) -> None:
        from unlost.service.jobs_api import JobsApi  # noqa: PLC0415
        from unlost.service.jobs_pages import JobsPages  # noqa: PLC0415

        self._router = JobsApi(desk, places).router
        self._router.router.routes.extend(JobsPages(desk).routes)

    def takes(self, path: bytes) -> bool:
        """Return whether a request for a path is about jobs.

        >>> JobsRouter.takes(None, b"/api/jobs/1/events"), JobsRouter.takes(None, b"/api/jobsite")
        (True, False)
        """
        return path.startswith(_PLACES) and any(path == each or path.startswith(each + b"/") for each in _PLACES)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._router(scope, receive, send)
