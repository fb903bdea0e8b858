"""The page by which the owner of a mail address gets no more email, or email again."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from unlost.service.body import read_body
from unlost.service.jobs_desk import JobService
from unlost.service.pages.forms import CsrfForms
from unlost.service.pages.looks import PAGE_HEADERS, PageRenderer


class UnsubscribePages:
    """The pages below `/mail`. Only emails to the mail address have the code in the URL."""

    def __init__(self, service: JobService, renderer: PageRenderer, forms: CsrfForms) -> None:
        self._service = service
        self._renderer = renderer
        self._forms = forms
        self.routes = [
            Route("/mail/stop/{code}", self._stop, methods=["GET", "POST"]),
            Route("/mail/stop/{code}/undo", self._undo, methods=["POST"]),
        ]

    async def _stop(self, request: Request) -> Response:
        """Show a button on GET, as programs that check email follow links; POST is the one click of RFC 8058."""
        code = request.path_params["code"]
        customer = self._service.signer.verify_unsubscribe_code(code)
        if customer is None:
            return self._renderer.render_problem(request, "stop", 404)
        if request.method == "POST":
            await read_body(request)
            await self._service.run_query(self._service.store.unsubscribe, customer)
            is_stopped = True
        else:
            is_stopped = await self._service.run_query(self._service.store.is_unsubscribed, customer)
        return self._renderer.render(request, "order/stop.html", is_stopped=is_stopped, link=f"/mail/stop/{code}")

    async def _undo(self, request: Request) -> Response:
        code = request.path_params["code"]
        customer = self._service.signer.verify_unsubscribe_code(code)
        if customer is None:
            return self._renderer.render_problem(request, "stop", 404)
        await self._forms.read(request)
        await self._service.run_query(self._service.store.resubscribe, customer)
        return RedirectResponse(f"/mail/stop/{code}", 303, PAGE_HEADERS)
