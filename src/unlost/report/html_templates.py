"""HTML reports: the Jinja environment, filters for untrusted text and URLs, and headers to sandbox untrusted pages."""

from importlib.resources import files
from urllib.parse import quote, urlsplit

import jinja2

from unlost.report.format import LANGUAGES, escape_unprintable, format_share

_MAX_TEXT_LENGTH = 500  # characters of an untrusted text
_MAX_URL_LENGTH = 4_000  # characters; some browsers and archives refuse longer URLs
_SHARED = ("page.html", "tables.html")
_URL_SAFE = "%/:?#[]@!$&'()*+,;=~"  # reserved characters (RFC 3986, section 2.2), `%` and `~`


def make_template_environment(package: str) -> jinja2.Environment:
    """Return the environment for the templates of a package, which may extend `page.html` and import `tables.html`.

    Templates of another package are named `PACKAGE/NAME`. All values are escaped. The filter `plain` is for untrusted
    text, `web` for untrusted URLs.
    """
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _load_template(package, name)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["language"] = LANGUAGES[0]  # overridden by the page
    environment.filters["plain"] = sanitize_text
    environment.filters["web"] = safe_url
    environment.filters["share"] = format_share
    environment.filters["number"] = "{:,}".format
    return environment


def _load_template(package: str, name: str) -> str:
    package_of_name, _, file = name.rpartition("/")
    source_package = package_of_name or ("unlost.report" if name in _SHARED else package)
    return files(source_package).joinpath("templates", file).read_text(encoding="utf-8")


def sanitize_text(text: str) -> str:
    """Escape unprintable characters in untrusted text and limit its length."""
    return escape_unprintable(text[:_MAX_TEXT_LENGTH]) + ("…" if len(text) > _MAX_TEXT_LENGTH else "")


def safe_url(text: str | None) -> str | None:
    """Return an untrusted URL for use in a link; None if it is not http or https, invalid, or too long.

    >>> safe_url("https://archive.example/2014/http://lost.example/ä b")
    'https://archive.example/2014/http://lost.example/%C3%A4%20b'
    >>> safe_url("javascript:alert(1)"), safe_url(" javascript://x/%0aalert(1)"), safe_url("http:/x")
    (None, None, None)
    """
    if text is None or len(text) > _MAX_URL_LENGTH:
        return None
    try:
        parts = urlsplit(text)
        escaped = quote(text, safe=_URL_SAFE)
    except ValueError:  # also for lone surrogates
        return None
    has_host = bool(parts.hostname) and all(char.isalnum() or char in "-._:" for char in parts.hostname or "")
    return escaped if has_host and text.lower().startswith(("http://", "https://")) else None


_RESOURCE_DIRECTIVES = ("img-src", "font-src", "media-src", "frame-src")


def sandbox_headers(source: str) -> dict[str, str]:
    """Return response headers for untrusted pages, which may only load their own files.

    Pages get an opaque origin and cannot run scripts, submit forms, open windows or refresh to other URLs.

    Args:
        source: URL prefix of the files, as a CSP source; `'none'` for none.

    >>> sandbox_headers("http://127.0.0.1/site/")["content-security-policy"][:30]
    "sandbox; default-src 'none'; i"
    """
    own = "; ".join(f"{each} {source}" for each in _RESOURCE_DIRECTIVES)
    policy = f"sandbox; default-src 'none'; {own}; style-src {source} 'unsafe-inline'"
    return {
        "content-security-policy": f"{policy}; form-action 'none'; base-uri 'none'",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "cross-origin",  # the requesting page has an opaque origin
    }
