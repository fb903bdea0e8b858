"""Templates, translations and static files of pages and emails, and the language of a visitor."""

from collections.abc import Sequence
from importlib.resources import files
from urllib.parse import quote

import jinja2
from starlette.requests import Request
from starlette.responses import Response

from unlost.report.format import LANGUAGES
from unlost.report.i18n import Translations, negotiate_language

TRANSLATION_PACKAGES = ("unlost.report.recovery", "unlost.webui")
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


CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What the page may load and run: our own files, and no script that is in the page itself."""


def layout_context(path: str, strings: Translations | None = None, query: str = "") -> dict[str, object]:
    """Return what the template around all pages wants. here: the path of the page. query: of its URL.

    languages: code, name, and the URL of this page in that language, which has the same query.
    """
    others = [part for part in query.split("&") if part and part.partition("=")[0] != "lang"]
    known = [
        (each, load_strings(each)("language.name"), f"{path}?{'&'.join([*others, f'lang={each}'])}")
        for each in LANGUAGES
    ]
    return {"t": strings or load_strings(LANGUAGES[0]), "here": path, "languages": known}


def load_template(name: str) -> str:
    """Return the text of one of our templates."""
    return files("unlost.webui").joinpath("templates", name).read_text(encoding="utf-8")


def list_static_files() -> Sequence[str]:
    """Return the names of the files that pages load."""
    return ("unlost.css", "unlost.js")


def create_environment() -> jinja2.Environment:
    """Return what renders our templates: all is escaped, and a name that nobody set is a fault."""
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(load_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["path"] = lambda text: quote(text, safe="/")
    return made
