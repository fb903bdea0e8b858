"""The page by which the owner of a mail address gets no more email, or email again."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from unlost.service.body import body_of
from unlost.service.jobs_desk import Desk
from unlost.service.pages.forms import Forms
from unlost.service.pages.looks import HEADERS, Looks


class Unsubscribe:
    """The pages below `/mail`. Only emails to the mail address have the code in the URL."""

    def __init__(self, desk: Desk, looks: Looks, forms: Forms) -> None:
        self._desk = desk
        self._looks = looks
        self._forms = forms
        self.routes = [
            Route("/mail/stop/{code}", self._stop, methods=["GET", "POST"]),
            Route("/mail/stop/{code}/undo", self._undo, methods=["POST"]),
        ]

    async def _stop(self, request: Request) -> Response:
        """Show a button on GET, as programs that check email follow links; POST is the one click of RFC 8058."""
        code = request.path_params["code"]
        customer = self._desk.keys.unsubscribed(code)
        if customer is None:
            return self._looks.problem(request, "stop", 404)
        if request.method == "POST":
            await body_of(request)
            await self._desk.do(self._desk.jobs.unsubscribe, customer)
            is_stopped = True
        else:
            is_stopped = await self._desk.do(self._desk.jobs.is_unsubscribed, customer)
        return self._looks.page(request, "order/stop.html", is_stopped=is_stopped, link=f"/mail/stop/{code}")

    async def _undo(self, request: Request) -> Response:
        code = request.path_params["code"]
        customer = self._desk.keys.unsubscribed(code)
        if customer is None:
            return self._looks.problem(request, "stop", 404)
        await self._forms.read(request)
        await self._desk.do(self._desk.jobs.resubscribe, customer)
        return RedirectResponse(f"/mail/stop/{code}", 303, HEADERS)
