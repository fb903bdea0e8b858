"""What pages and letters of the service say, and which language a visitor wants."""

from starlette.requests import Request
from starlette.responses import Response

from unlost.shown.catalogue import Translations
from unlost.shown.language import LANGUAGES, negotiate_language

TRANSLATION_PACKAGES = ("unlost.recover.report", "unlost.service.pages")
"""Whose texts they have: kinds of files are called as in reports."""

_LANGUAGE_COOKIE = "unlost_language"  # where the language is kept that somebody chose
_YEAR_SECONDS = 31_536_000


def load_strings(language: str) -> Translations:
    """Return the texts in a language."""
    return Translations.load(language, *TRANSLATION_PACKAGES)


def strings_for_request(request: Request) -> Translations:
    """Return the texts in a visitor's language."""
    asked, kept = request.query_params.get("lang"), request.cookies.get(_LANGUAGE_COOKIE)
    return load_strings(negotiate_language(asked, kept, request.headers.get("accept-language", "")))


def remember_language(request: Request, response: Response, *, is_secure: bool) -> None:
    """Have the browser keep a language that was chosen by this very request. is_secure: by https alone."""
    if (chosen := request.query_params.get("lang")) in LANGUAGES:
        response.set_cookie(
            _LANGUAGE_COOKIE, chosen, _YEAR_SECONDS, path="/", httponly=True, samesite="lax", secure=is_secure
        )
