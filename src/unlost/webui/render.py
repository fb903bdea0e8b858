"""Renders pages with security headers, and reads forms: bounded bodies and CSRF tokens."""

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
"""Maximum size of an order or form; the largest valid one has a few thousand bytes."""
_BODY_SECONDS = 20.0  # to receive the body after the headers; the headers have the same limit
TOKEN_FIELD = "token"  # noqa: S105
VISITOR_COOKIE = "unlost_visitor"
_MAX_FIELDS = 300
_VISITOR = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
PAGE_HEADERS = {
    "content-security-policy": templating.CONTENT_SECURITY_POLICY,
    "referrer-policy": "no-referrer",  # the URL of a page may contain the key of a job
    "cache-control": "no-store",
    "x-robots-tag": "noindex",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
"""Headers of all HTML pages about jobs."""


async def read_body(request: Request) -> bytes:
    """Read the body of a request.

    Raises:
        HTTPException: 400 if the client disconnected, 408 if the body took too long, 413 if it is too large.
    """
    data = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in request.stream():
                data += chunk
                if len(data) > MAX_BODY_BYTES:
                    raise HTTPException(413, f"expected at most {MAX_BODY_BYTES} bytes")
    except ClientDisconnect:
        raise HTTPException(400, "the body ended early") from None
    except TimeoutError:
        raise HTTPException(408, f"expected the body within {_BODY_SECONDS:g} s", {"connection": "close"}) from None
    return bytes(data)


class FormValues(dict[str, str]):
    """The fields of a form. A field that occurs several times has its last value."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        super().__init__(pairs)
        self._pairs = pairs

    def text(self, name: str) -> str:
        """Return a value without surrounding whitespace; an empty string if the field is absent."""
        return self.get(name, "").strip()

    def get_all(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [value for each, value in self._pairs if each == name]


class CsrfForms:
    """Creates and verifies CSRF tokens.

    A token is derived from the visitor cookie and the secret of the service, so none is stored. Tokens of
    administrators are bound to their session, too: the token of a public page is not valid for them.

    Args:
        signer: Derives the tokens.
        is_secure: Whether to restrict cookies to TLS.
    """

    def __init__(self, signer: LinkSigner, *, is_secure: bool) -> None:
        self._signer = signer
        self.is_secure = is_secure

    def visitor(self, request: Request) -> tuple[str, bool]:
        """Return the value of the visitor cookie, and whether it was newly generated."""
        cookie = request.cookies.get(VISITOR_COOKIE, "")
        return (cookie, False) if _VISITOR.fullmatch(cookie) else (secrets.token_urlsafe(32), True)

    def set_visitor_cookie(self, response: Response, visitor: str) -> None:
        """Set the visitor cookie. It is random, identifies no one, and expires with the browser session."""
        response.set_cookie(VISITOR_COOKIE, visitor, path="/", httponly=True, samesite="strict", secure=self.is_secure)

    def token(self, visitor: str, session: str = "") -> str:
        """Return the CSRF token for a visitor, bound to the session of an administrator if given."""
        return self._signer.digest("form", f"{visitor} {session}")

    async def read(self, request: Request, session: str = "") -> FormValues:
        """Read a form and verify its CSRF token.

        Raises:
            HTTPException: 403 if the form was not sent from a page of this service; 400, 408, 413, 415 for an invalid
                body.
        """
        # Browsers set this header themselves; scripts cannot change it.
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise HTTPException(403, "form")
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/x-www-form-urlencoded":
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
    except ValueError:  # not ASCII, not UTF-8 after decoding, or too many fields
        raise HTTPException(400, "form") from None
    return FormValues(pairs)


class PageRenderer:
    """Renders templates with automatic escaping.

    Args:
        forms: Creates CSRF tokens.
        archive_names: Names of archives by ID.
        base: Path prefix of the service's URLs.
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
        **context: Any,  # noqa: ANN401  passed to the template
    ) -> Response:
        """Render a template as a response. `session` is the secret of an administrator's session, for CSRF tokens."""
        t = strings_for_request(request)
        visitor, is_new = self._forms.visitor(request)
        text = self._templates.get_template(template).render(
            **templating.layout_context(request.url.path, t, request.url.query),
            token=self._forms.token(visitor, session),
            is_admin=bool(session),
            **context,
        )
        response = HTMLResponse(text, status, {**PAGE_HEADERS, "content-language": t.language, **(headers or {})})
        if is_new:
            self._forms.set_visitor_cookie(response, visitor)
        self.remember_language(request, response)
        return response

    def remember_language(self, request: Request, response: Response) -> None:
        """Store the language that was selected by this request in a cookie."""
        remember_language(request, response, is_secure=self._forms.is_secure)

    def render_problem(self, request: Request, name: str, status: int, session: str = "", **values: object) -> Response:
        """Render the page for an error. `name` is the key of a text in `problem`."""
        t = strings_for_request(request)
        return self.render(
            request, "order/problem.html", status, session=session, problem=t(f"problem.{name}", **values)
        )
