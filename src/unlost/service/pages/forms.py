"""Forms that only our own pages can send: each has a token that fits the visitor's cookie, which no other site has."""

import hmac
import re
import secrets
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from unlost.service.body import read_body
from unlost.service.jobs.keys import LinkSigner

TOKEN_FIELD = "token"
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
