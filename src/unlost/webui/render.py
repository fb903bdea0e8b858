"""Rendering of pages for one visitor: bounded request bodies, forms with CSRF tokens, security headers."""

import asyncio
import hmac
import re
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response

from unlost.jobs.auth import LinkSigner
from unlost.webui import templating
from unlost.webui.templating import create_environment, remember_language, strings_for_request

MAX_BODY_BYTES = 1 << 16
"""Of an order or a form: the largest has a few thousand."""
_BODY_SECONDS = 20.0  # from the end of the headers to that of the body: as long as for the headers themselves


async def read_body(request: Request) -> bytes:
    """Return the body of a request. Raises 400 if the client went away meanwhile, 408 and 413."""
    data = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for piece in request.stream():
                data += piece
                if len(data) > MAX_BODY_BYTES:
                    raise HTTPException(413, f"expected at most {MAX_BODY_BYTES} bytes")
    except ClientDisconnect:
        raise HTTPException(400, "the body ended early") from None
    except TimeoutError:
        raise HTTPException(408, f"expected the body within {_BODY_SECONDS:g} s", {"connection": "close"}) from None
    return bytes(data)


TOKEN_FIELD = "token"  # noqa: S105
VISITOR_COOKIE = "unlost_visitor"
_MAX_FIELDS = 300
_VISITOR = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


class FormValues(dict[str, str]):
    """What a form has, by name. many: all values of those that may come more than once."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        super().__init__(pairs)
        self._pairs = pairs

    def text(self, name: str) -> str:
        """Return a value, without space around it; nothing if there is none."""
        return self.get(name, "").strip()

    def get_all(self, name: str) -> list[str]:
        """Return all values of a name."""
        return [value for each, value in self._pairs if each == name]


class CsrfForms:
    """Makes tokens and checks them. is_secure: whether cookies are for TLS alone."""

    def __init__(self, signer: LinkSigner, *, is_secure: bool) -> None:
        self._signer = signer
        self.is_secure = is_secure

    def visitor(self, request: Request) -> tuple[str, bool]:
        """Return what a visitor's cookie says, and whether it is new."""
        found = request.cookies.get(VISITOR_COOKIE, "")
        return (found, False) if _VISITOR.fullmatch(found) else (secrets.token_urlsafe(32), True)

    def set_visitor_cookie(self, response: Response, visitor: str) -> None:
        """Give a visitor the cookie. It says nothing of who it is, and ends with the browser."""
        response.set_cookie(VISITOR_COOKIE, visitor, path="/", httponly=True, samesite="strict", secure=self.is_secure)

    def token(self, visitor: str, session: str = "") -> str:
        """Return what a form of this visitor must have."""
        return self._signer.digest("form", f"{visitor} {session}")

    async def read(self, request: Request, session: str = "") -> FormValues:
        """Return what a form has. Raises 403 for one that is not of our own pages, 400, 408, 413 and 415."""
        # Browsers say so by themselves, and no page can make them say something else.
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise HTTPException(403, "form")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise HTTPException(415, "form")
        values = _parse_values(await read_body(request))
        visitor, is_new = self.visitor(request)
        token = values.text(TOKEN_FIELD).encode()
        if is_new or not hmac.compare_digest(self.token(visitor, session).encode(), token):
            raise HTTPException(403, "form")
        return values


def _parse_values(data: bytes) -> FormValues:
    try:
        pairs = parse_qsl(
            data.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS
        )  # fmt: skip
    except ValueError:  # not ASCII, not UTF-8 when unescaped, or too many
        raise HTTPException(400, "form") from None
    return FormValues(pairs)


PAGE_HEADERS = {
    "content-security-policy": templating.CONTENT_SECURITY_POLICY,
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
            **templating.layout_context(request.url.path, t, request.url.query),
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
