"""URLs that the scripts of a site may request."""

import re

from unlost import _core
from unlost.pages.rewriting import find_urls_in_script
from unlost.pages.told import replace_surrogates

MAX_SCRIPT_URLS = 10_000
"""URLs of one body: more are data, not a program."""

_SCRIPT = re.compile(r"(java|ecma)script|json", re.IGNORECASE)
_SCRIPT_FILE = re.compile(r"\.(m?js|json)$", re.IGNORECASE)


def find_script_urls(
    body: bytes, mime: str | None, uri: str, *, is_html: bool, charset: str | None = None
) -> list[str]:
    r"""Return URLs that scripts may request, each once, in the order of appearance; at most `MOST`.

    body: a page, or a file of JavaScript or JSON; in anything else nothing is found. mime: as it was told.
    uri: its URL. is_html: whether it is a page.
    charset: what a page was said to be written in; None if that was not said.

    Of a page, these are strings of its inline scripts and event handlers, as `script_candidates` finds them, and values
    of `data-*` attributes that look like a URL and are not links. They are guesses, to be requested only if they are
    known to be archived. Nothing is raised for what is in it.

    >>> page = b"<body onload='load(\"/head.html\")' data-next=/2.html><script>show('/img/a.png')</script>"
    >>> candidates(page, "text/html", "http://a.example/", is_html=True)
    ['http://a.example/head.html', 'http://a.example/2.html', 'http://a.example/img/a.png']
    """
    if is_html:
        told = mime if "html" in (mime or "").lower() else "text/html"
        return _core.page_candidates(
            body, replace_surrogates(told), replace_surrogates(uri), replace_surrogates(charset)
        )[:MAX_SCRIPT_URLS]
    if _SCRIPT.search(mime or "") or _SCRIPT_FILE.search(re.split("[?#]", uri, maxsplit=1)[0]):
        return find_urls_in_script(body, uri)[:MAX_SCRIPT_URLS]
    return []
