"""Pictures, styles and scripts of a page: whoever had the page most likely has them, and is asked first."""

import re
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlsplit

from unlost.aggregate.found import AggregateResult
from unlost.aggregate.wish import RoutingOptions
from unlost.errors import InputError, UsageError
from unlost.service.address import MAX_TARGET_BYTES, parse_typed_url
from unlost.service.answers import Scope
from unlost.service.asked import ENDPOINT_PATTERNS, MementoRequest, RequestHeaders, parse_path

SINGLE_MEMENTO_ENDPOINTS = ("timegate", "memento", "api")
"""Endpoints that answer with one copy: a list of all copies is not complete if one archive made it."""

_HTTP_URL = re.compile(rb"https?://", re.IGNORECASE)


def referring_page(referer: bytes, root: str) -> str | None:
    """Return the page that a request comes from: by its own address, or by one of ours at which it was looked at.

    root: our own address. None if the header names no page.

    >>> page_behind(b"http://us.example/memento/proxy/2014/http://a.example/x?y", "http://us.example")
    'http://a.example/x?y'
    >>> page_behind(b"http://a.example/x", "http://us.example"), page_behind(b"about:blank", "")
    ('http://a.example/x', None)
    """
    if len(referer) > MAX_TARGET_BYTES or not _HTTP_URL.match(referer):
        return None
    try:
        if root and referer.startswith(root.encode() + b"/"):
            parts = urlsplit(referer[len(root) :])
            name, _, rest = parts.path[1:].partition(b"/")
            endpoint = name.decode("latin-1")
            return parse_path(endpoint, rest, parts.query).uri if endpoint in ENDPOINT_PATTERNS else None
        return parse_typed_url(referer.partition(b"#")[0].decode("latin-1"))
    except (InputError, UsageError, ValueError):
        return None  # a header that nobody can read is no reason to refuse


def get_referer(scope: Scope) -> bytes:
    """Return the header of a request that tells which page it comes from; nothing if there is none."""
    return next((value for name, value in scope["headers"] if name == b"referer"), b"")


def route_by_referer(
    request: MementoRequest,
    headers: RequestHeaders,
    referer: bytes,
    get_cached: Callable[[str, RoutingOptions], AggregateResult | None],
) -> RoutingOptions | None:
    """Return the wish for a page's requisite: first the archive whose copy of the page is closest to the date.

    kept: finds an answer that is in memory. None if there is no page, nothing is known of it, or somebody said whom to
    ask.
    """
    wish = headers.options
    if request.endpoint not in SINGLE_MEMENTO_ENDPOINTS or wish.archives is not None or wish.broadcast or not referer:
        return None
    page = referring_page(referer, headers.urls.base)
    found = None if page is None or page == request.uri else get_cached(page, wish)
    if found is None:
        return None
    place = found.closest_index(request.date)
    if place is None:
        return None
    return replace(wish, preferred=frozenset({found.mementos[place].archive}))
