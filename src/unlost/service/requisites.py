"""Pictures, styles and scripts of a page: whoever had the page most likely has them, and is asked first."""

import re
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlsplit

from unlost.aggregate.found import Found
from unlost.aggregate.wish import Wish
from unlost.errors import InputError, UsageError
from unlost.service.address import MAX_TARGET_BYTES, page_in
from unlost.service.answers import Scope
from unlost.service.asked import SHAPES, Asked, Terms, asked_in

OF_ONE_COPY = ("timegate", "memento", "api")
"""Endpoints that answer with one copy: a list of all copies is not complete if one archive made it."""

_WEB = re.compile(rb"https?://", re.IGNORECASE)


def page_behind(referer: bytes, root: str) -> str | None:
    """Return the page that a request comes from: by its own address, or by one of ours at which it was looked at.

    root: our own address. None if the header names no page.

    >>> page_behind(b"http://us.example/memento/proxy/2014/http://a.example/x?y", "http://us.example")
    'http://a.example/x?y'
    >>> page_behind(b"http://a.example/x", "http://us.example"), page_behind(b"about:blank", "")
    ('http://a.example/x', None)
    """
    if len(referer) > MAX_TARGET_BYTES or not _WEB.match(referer):
        return None
    try:
        if root and referer.startswith(root.encode() + b"/"):
            parts = urlsplit(referer[len(root) :])
            name, _, rest = parts.path[1:].partition(b"/")
            endpoint = name.decode("latin-1")
            return asked_in(endpoint, rest, parts.query).uri if endpoint in SHAPES else None
        return page_in(referer.partition(b"#")[0].decode("latin-1"))
    except (InputError, UsageError, ValueError):
        return None  # a header that nobody can read is no reason to refuse


def referer_of(scope: Scope) -> bytes:
    """Return the header of a request that tells which page it comes from; nothing if there is none."""
    return next((value for name, value in scope["headers"] if name == b"referer"), b"")


def preferring(asked: Asked, terms: Terms, referer: bytes, kept: Callable[[str, Wish], Found | None]) -> Wish | None:
    """Return the wish for a page's requisite: first the archive whose copy of the page is closest to the date.

    kept: finds an answer that is in memory. None if there is no page, nothing is known of it, or somebody said whom to
    ask.
    """
    wish = terms.wish
    if asked.endpoint not in OF_ONE_COPY or wish.archives is not None or wish.broadcast or not referer:
        return None
    page = page_behind(referer, terms.places.base)
    found = None if page is None or page == asked.uri else kept(page, wish)
    if found is None:
        return None
    place = found.closest(asked.date)
    if place is None:
        return None
    return replace(wish, prefers=frozenset({found.mementos[place].archive}))
