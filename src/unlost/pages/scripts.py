"""What the scripts of a site may ask for."""

import re

from unlost.pages.rewriting import script_candidates

MOST = 10_000
"""Addresses of one body: more are data, not a program."""

_SCRIPT = re.compile(r"(java|ecma)script|json", re.IGNORECASE)
_SCRIPT_FILE = re.compile(r"\.(m?js|json)$", re.IGNORECASE)
_INLINE = 1_000  # scripts of one page
_SPACE_OR_END = b" \t\r\n\f/>"


def candidates(body: bytes, mime: str | None, uri: str, *, is_html: bool) -> list[str]:
    """Return addresses that scripts may ask for, each once, in the order of appearance; at most `MOST`.

    body: a page, of which the scripts between its tags are read, or a file of JavaScript or JSON; in anything else
        nothing is found. mime: as it was told. uri: its address. is_html: whether it is a page.

    They are guesses, as `script_candidates` makes them. Nothing is raised for what is in it.

    >>> candidates(b"<script>show('/img/a.png')</script>", "text/html", "http://a.example/", is_html=True)
    ['http://a.example/img/a.png']
    """
    if is_html:
        scripts = _inline(body)
    elif _SCRIPT.search(mime or "") or _SCRIPT_FILE.search(re.split("[?#]", uri, maxsplit=1)[0]):
        scripts = [body]
    else:
        return []
    found: dict[str, None] = {}
    for script in scripts:
        found.update(dict.fromkeys(script_candidates(script, uri)))
        if len(found) >= MOST:
            break
    return list(found)[:MOST]


def _inline(body: bytes) -> list[bytes]:
    """Return the scripts between the tags of a page. Each byte is looked at a few times, whatever is in it."""
    scripts: list[bytes] = []
    lower, place = body.lower(), 0
    while len(scripts) < _INLINE and (start := lower.find(b"<script", place)) >= 0:
        place = start + len(b"<script")
        if lower[place : place + 1] not in _SPACE_OR_END:
            continue
        begin = lower.find(b">", place) + 1
        end = lower.find(b"</script", begin)
        if begin == 0 or end < 0:
            break
        if end > begin:
            scripts.append(body[begin:end])
        place = end
    return scripts
