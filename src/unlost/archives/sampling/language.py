"""In which language a copy says that it is: what its page or its server told, and nothing that would be a guess."""

import re

from unlost.archives.repository import FetchedCapture

_INSPECTED_BYTES = 1 << 16  # bytes of a page: its first tag is near its beginning
_HTML_TAG = re.compile(rb"<html\b([^>]{0,4000})>", re.IGNORECASE)
_LANG_ATTRIBUTE = re.compile(rb"""(?:^|\s)(?:xml:)?lang\s*=\s*["']?\s*([A-Za-z0-9_-]{1,64})""", re.IGNORECASE)
# The first part of a tag of RFC 5646 names the language; private use (`x-…`) and `i-…` name none that others know.
_LANGUAGE_TAG = re.compile(r"([A-Za-z]{2,8})(?:[-_][A-Za-z0-9]{1,8})*", re.ASCII)


def language_tag(text: object) -> str | None:
    """Return the language that a tag names, in lower case and without its region; None if it is no tag.

    >>> language_tag("pt-BR"), language_tag("EN"), language_tag("x-klingon"), language_tag(7), language_tag("")
    ('pt', 'en', None, None, None)
    """
    found = _LANGUAGE_TAG.fullmatch(text.strip()) if isinstance(text, str) and len(text) <= 100 else None
    return found[1].lower() if found else None


def capture_language(capture: FetchedCapture) -> str | None:
    """Return the language of a stored copy: of its `<html lang>`, or else of a Content-Language with just one.

    The body is left at its beginning.
    """
    head = capture.body.read(_INSPECTED_BYTES)
    capture.body.seek(0)
    tag = _HTML_TAG.search(head)
    attribute = _LANG_ATTRIBUTE.search(tag[1]) if tag else None
    if attribute and (told := language_tag(attribute[1].decode("ascii"))):
        return told
    # Several languages are an audience's, not the page's.
    return language_tag(capture.header("Content-Language"))
