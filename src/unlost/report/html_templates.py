"""HTML reports.

The shared Jinja environment, filters for untrusted text and URLs, and the headers that sandbox untrusted pages.
"""

from importlib.resources import files
from urllib.parse import quote, urlsplit

import jinja2

from unlost.report.format import LANGUAGES, escape_unprintable, format_share

_MAX_TEXT_LENGTH = 500  # of an address
_MAX_URL_LENGTH = 4_000  # characters; browsers and archives refuse longer ones sooner or later
_SHARED = ("page.html", "tables.html")
_URL_SAFE = "%/:?#[]@!$&'()*+,;=~"  # what an address may have beside letters and digits


def make_template_environment(package: str) -> jinja2.Environment:
    """Return what renders the templates of a package, which extend `page.html` here, and may take `tables.html`.

    Those of another package are called `PACKAGE/NAME`.
    Everything that is put into them is escaped; `plain` is the filter for text of others, `web` for their addresses.
    """
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _load_template(package, name)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["language"] = LANGUAGES[0]  # unless a page is told another
    made.filters["plain"] = sanitize_text
    made.filters["web"] = safe_url
    made.filters["share"] = format_share
    made.filters["number"] = "{:,}".format
    return made


def _load_template(package: str, name: str) -> str:
    other, _, file = name.rpartition("/")
    place = other or ("unlost.report" if name in _SHARED else package)
    return files(place).joinpath("templates", file).read_text(encoding="utf-8")


def sanitize_text(text: str) -> str:
    """Return untrusted text so that nothing in it is hidden and none of it is endless."""
    return escape_unprintable(text[:_MAX_TEXT_LENGTH]) + ("…" if len(text) > _MAX_TEXT_LENGTH else "")


def safe_url(text: str | None) -> str | None:
    """Return an untrusted address as a link may lead there; None if it is not one of the web, or too long.

    >>> safe_url("https://archive.example/2014/http://lost.example/ä b")
    'https://archive.example/2014/http://lost.example/%C3%A4%20b'
    >>> safe_url("javascript:alert(1)"), safe_url(" javascript://x/%0aalert(1)"), safe_url("http:/x")
    (None, None, None)
    """
    if text is None or len(text) > _MAX_URL_LENGTH:
        return None
    try:
        parts = urlsplit(text)
        spelled = quote(text, safe=_URL_SAFE)
    except ValueError:  # also for half a surrogate pair
        return None
    is_host = bool(parts.hostname) and all(char.isalnum() or char in "-._:" for char in parts.hostname or "")
    return spelled if is_host and text.lower().startswith(("http://", "https://")) else None


_RESOURCE_DIRECTIVES = ("img-src", "font-src", "media-src", "frame-src")


def sandbox_headers(source: str) -> dict[str, str]:
    """Return the headers of answers with pages of strangers: they load their own files, and are seen.

    place: the address below which these are; `'none'` for none. Pages have no origin, run no script, send no form, open
    no window and refresh to nowhere.

    >>> sandbox_headers("http://127.0.0.1/site/")["content-security-policy"][:30]
    "sandbox; default-src 'none'; i"
    """
    own = "; ".join(f"{each} {source}" for each in _RESOURCE_DIRECTIVES)
    policy = f"sandbox; default-src 'none'; {own}; style-src {source} 'unsafe-inline'"
    return {
        "content-security-policy": f"{policy}; form-action 'none'; base-uri 'none'",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "cross-origin",  # the page that asks has no origin
    }
