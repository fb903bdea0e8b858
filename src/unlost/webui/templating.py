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
"""Packages with translations. Names of resource kinds are shared with reports."""
_LANGUAGE_COOKIE = "unlost_language"  # stores the selected language
_YEAR_SECONDS = 31_536_000
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Policy of HTML pages: own resources only, no inline scripts."""


def load_strings(language: str) -> Translations:
    """Load the translations for a language."""
    return Translations.load(language, *TRANSLATION_PACKAGES)


def strings_for_request(request: Request) -> Translations:
    """Load the translations for the language of a request: query parameter, cookie or `Accept-Language`."""
    selected, stored = request.query_params.get("lang"), request.cookies.get(_LANGUAGE_COOKIE)
    return load_strings(negotiate_language(selected, stored, request.headers.get("accept-language", "")))


def remember_language(request: Request, response: Response, *, is_secure: bool) -> None:
    """Store the language that was selected by this request in a cookie. With `is_secure`, it is restricted to TLS."""
    if (selected := request.query_params.get("lang")) in LANGUAGES:
        response.set_cookie(
            _LANGUAGE_COOKIE, selected, _YEAR_SECONDS, path="/", httponly=True, samesite="lax", secure=is_secure
        )


def layout_context(path: str, strings: Translations | None = None, query: str = "") -> dict[str, object]:
    """Return the context of the layout template.

    Args:
        path: Path of the page.
        strings: Translations; English by default.
        query: Query string of the request, which links to other languages retain.
    """
    other_parameters = [part for part in query.split("&") if part and part.partition("=")[0] != "lang"]
    languages = [
        (each, load_strings(each)("language.name"), f"{path}?{'&'.join([*other_parameters, f'lang={each}'])}")
        for each in LANGUAGES
    ]
    return {"t": strings or load_strings(LANGUAGES[0]), "here": path, "languages": languages}


def load_template(name: str) -> str:
    """Load the source of a template."""
    return files("unlost.webui").joinpath("templates", name).read_text(encoding="utf-8")


def list_static_files() -> Sequence[str]:
    """Return the names of the static files."""
    return ("unlost.css", "unlost.js")


def create_environment() -> jinja2.Environment:
    """Create the template environment, with automatic escaping and strict undefined variables."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(load_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["path"] = lambda text: quote(text, safe="/")
    return environment
