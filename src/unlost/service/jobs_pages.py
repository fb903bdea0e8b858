"""The pages that letters to owners lead to: an order is confirmed by a button there, and seen how it stands."""

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from unlost.errors import JobError, UsageError
from unlost.service import page
from unlost.service.jobs.job import Job
from unlost.service.jobs.told import told
from unlost.service.jobs_desk import Desk

_HEADERS = {
    "content-security-policy": page.POLICY,
    "referrer-policy": "no-referrer",  # the address of the page is what opens the job
    "cache-control": "no-store",
    "x-robots-tag": "noindex",
}


class JobsPages:
    """Two pages, without scripts. To look at the first changes nothing: programs that check mail follow links, too."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._templates = jinja2.Environment(
            loader=jinja2.FunctionLoader(page.template), autoescape=True, undefined=jinja2.StrictUndefined
        )
        self.routes = [
            Route("/jobs/confirm/{code}", self._confirm, methods=["GET", "POST"]),
            Route("/jobs/{key}", self._status, methods=["GET"]),
        ]

    async def _confirm(self, request: Request) -> Response:
        number = self._desk.keys.confirmed(request.path_params["code"])
        job = await self._job(number)
        if job is None or number is None:
            return self._page("", None, "There is no such order: it was removed, or the link is not whole.", 404)
        if request.method == "POST":
            try:
                await self._desk.do(self._desk.jobs.confirm, number)
            except JobError as error:
                return self._page("", None, f"The order cannot be confirmed: {error}.", 409)
            return RedirectResponse(f"/jobs/{self._desk.keys.owner(number)}", 303, _HEADERS)
        return self._page(request.path_params["code"], job, "")

    async def _status(self, request: Request) -> Response:
        job = await self._job(self._desk.keys.owned(request.path_params["key"]))
        if job is None:
            return self._page("", None, "There is no such job: it was removed, or the link is not whole.", 404)
        return self._page("", job, "", place=await self._desk.place(job))

    async def _job(self, number: int | None) -> Job | None:
        if number is None:
            return None
        try:
            return await self._desk.do(self._desk.jobs.get, number)
        except UsageError:
            return None

    def _page(self, code: str, job: Job | None, problem: str, status: int = 200, place: int | None = None) -> Response:
        link = "" if job is None else f"/api/jobs/{self._desk.keys.owner(job.number)}"
        about = None if job is None else told(job, place, self._desk.jobs.terms, link)
        text = self._templates.get_template("job.html").render(job=about, code=code, problem=problem, link=link)
        return HTMLResponse(text, status, _HEADERS)
