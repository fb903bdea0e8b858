"""What pages and letters of the service say, and which language a visitor wants."""

from starlette.requests import Request
from starlette.responses import Response

from unlost.shown.catalogue import Strings
from unlost.shown.language import LANGUAGES, chosen_language

PACKAGES = ("unlost.recover.report", "unlost.service.pages")
"""Whose texts they have: kinds of files are called as in reports."""

_COOKIE = "unlost_language"  # where the language is kept that somebody chose
_YEAR_SECONDS = 31_536_000


def strings_of(language: str) -> Strings:
    """Return the texts in a language."""
    return Strings.of(language, *PACKAGES)


def strings_for(request: Request) -> Strings:
    """Return the texts in a visitor's language."""
    asked, kept = request.query_params.get("lang"), request.cookies.get(_COOKIE)
    return strings_of(chosen_language(asked, kept, request.headers.get("accept-language", "")))


def remember_language(request: Request, answer: Response, *, is_secure: bool) -> None:
    """Have the browser keep a language that was chosen by this very request. is_secure: by https alone."""
    if (chosen := request.query_params.get("lang")) in LANGUAGES:
        answer.set_cookie(_COOKIE, chosen, _YEAR_SECONDS, path="/", httponly=True, samesite="lax", secure=is_secure)
