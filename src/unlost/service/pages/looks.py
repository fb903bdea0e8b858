"""How pages look: templates, the visitor's language, and the headers that every page has."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from unlost.service import page
from unlost.service.pages.catalogue import remember_language, strings_for_request
from unlost.service.pages.forms import CsrfForms

PAGE_HEADERS = {
    "content-security-policy": page.CONTENT_SECURITY_POLICY,
    "referrer-policy": "no-referrer",  # the address of a page may be what opens a job
    "cache-control": "no-store",
    "x-robots-tag": "noindex",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
"""What every page has that is not for everybody."""


class PageRenderer:
    """Renders pages; everything that is put into them is escaped.

    names: of archives, by id. base: path prefix of our URLs.
    """

    def __init__(self, forms: CsrfForms, archive_names: Mapping[str, str], base: str = "") -> None:
        self._forms = forms
        self.archive_names = archive_names
        self.base = base
        self._templates = create_environment()
        self._templates.globals["takes_orders"] = True
        self._templates.globals["base"] = base
        self._templates.globals["name_of"] = self._templates.filters["name_of"] = lambda archive: archive_names.get(
            archive, archive
        )

    def render(
        self,
        request: Request,
        template: str,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        session: str = "",
        **context: Any,  # noqa: ANN401  whatever the template wants
    ) -> Response:
        """Return a page. session: of an administrator; forms in the page are good for that one alone."""
        t = strings_for_request(request)
        visitor, is_new = self._forms.visitor(request)
        text = self._templates.get_template(template).render(
            **page.layout_context(request.url.path, t, request.url.query),
            token=self._forms.token(visitor, session),
            is_admin=bool(session),
            **context,
        )
        answer = HTMLResponse(text, status, {**PAGE_HEADERS, "content-language": t.language, **(headers or {})})
        if is_new:
            self._forms.set_visitor_cookie(answer, visitor)
        self.remember_language(request, answer)
        return answer

    def remember_language(self, request: Request, response: Response) -> None:
        """Have the browser keep the language that somebody chose by this very request."""
        remember_language(request, response, is_secure=self._forms.is_secure)

    def render_problem(self, request: Request, name: str, status: int, session: str = "", **values: object) -> Response:
        """Return a page that says what is wrong. name: of the text in `problem`."""
        t = strings_for_request(request)
        return self.render(
            request, "order/problem.html", status, session=session, problem=t(f"problem.{name}", **values)
        )


def create_environment() -> jinja2.Environment:
    """Return what renders our templates: all is escaped, and a name that nobody set is a fault."""
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(page.load_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["path"] = lambda text: quote(text, safe="/")
    return made
