"""Pages for people in one file each: no script, nothing that is asked for elsewhere, all text escaped."""

from importlib.resources import files
from urllib.parse import quote, urlsplit

import jinja2

from unlost.shown.language import LANGUAGES
from unlost.shown.words import printable, share

_MOST_LETTERS = 500  # of an address
_LONGEST_LINK = 4_000  # characters; browsers and archives refuse longer ones sooner or later
_SHARED = ("page.html", "tables.html")
_OF_ADDRESSES = "%/:?#[]@!$&'()*+,;=~"  # what an address may have beside letters and digits


def templates(package: str) -> jinja2.Environment:
    """Return what renders the templates of a package, which extend `page.html` here, and may take `tables.html`.

    Those of another package are called `PACKAGE/NAME`.
    Everything that is put into them is escaped; `plain` is the filter for text of others, `web` for their addresses.
    """
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _template(package, name)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["language"] = LANGUAGES[0]  # unless a page is told another
    made.filters["plain"] = plain
    made.filters["web"] = web_address
    made.filters["share"] = share
    made.filters["number"] = "{:,}".format
    return made


def _template(package: str, name: str) -> str:
    other, _, file = name.rpartition("/")
    place = other or ("unlost.shown" if name in _SHARED else package)
    return files(place).joinpath("templates", file).read_text(encoding="utf-8")


def plain(text: str) -> str:
    """Return untrusted text so that nothing in it is hidden and none of it is endless."""
    return printable(text[:_MOST_LETTERS]) + ("…" if len(text) > _MOST_LETTERS else "")


def web_address(text: str | None) -> str | None:
    """Return an untrusted address as a link may lead there; None if it is not one of the web, or too long.

    >>> web_address("https://archive.example/2014/http://lost.example/ä b")
    'https://archive.example/2014/http://lost.example/%C3%A4%20b'
    >>> web_address("javascript:alert(1)"), web_address(" javascript://x/%0aalert(1)"), web_address("http:/x")
    (None, None, None)
    """
    if text is None or len(text) > _LONGEST_LINK:
        return None
    try:
        parts = urlsplit(text)
        spelled = quote(text, safe=_OF_ADDRESSES)
    except ValueError:  # also for half a surrogate pair
        return None
    is_host = bool(parts.hostname) and all(char.isalnum() or char in "-._:" for char in parts.hostname or "")
    return spelled if is_host and text.lower().startswith(("http://", "https://")) else None
