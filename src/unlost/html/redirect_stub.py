"""Detects pages that are nothing but a redirect, as static site generators write them."""

import codecs
import html
import re
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from unlost import _core
from unlost.html.text import extract_text, replace_surrogates

_MAX_BYTES = 32 << 10  # of a stub, with the navigation of its site
_MAX_TEXT_LENGTH = 500  # of its text
_MAX_DELAY_SECONDS = 10
_IMMEDIATE_SECONDS = 1  # a page that is meant to be seen first takes longer
# A page that only scripts redirect may be an application, or break out of frames: a stub is shorter.
_MAX_SCRIPTED_BYTES = 4 << 10
_MAX_SCRIPTED_TEXT_LENGTH = 200
_MAX_SCRIPT_LENGTH = 1_500
_CHARSET = re.compile(rb"<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_DELAY = re.compile(r"\s*(\d{1,9})")
_NAVIGATION = re.compile(
    r"""(?<![\w$.])(?:(?:window|document|self)\.)?location(?:(?:\.href)?\s*=\s*|\.(?:replace|assign)\s*\(\s*)"""
    r"""(["'])((?:(?!\1)[^\\\n]){1,2000})\1""",
    re.ASCII,
)
_CONDITION = re.compile(r"\b(?:if|switch|while|for|confirm|screen|userAgent)\b")
_TAG = re.compile(
    r"""<!--.*?(?:-->|\Z)|<(/?)([a-z][a-z0-9:-]*)((?:[^<>"']|"[^"<]*"|'[^'<]*')*)>""", re.IGNORECASE | re.DOTALL
)
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")
_MEDIA_ELEMENTS = frozenset(("img", "picture", "video", "audio", "object", "embed", "canvas", "iframe", "applet"))
_INTERACTIVE_ELEMENTS = frozenset(("form", "input", "frameset", "frame"))


@dataclass
class _StubFeatures:
    """What of a page tells whether it is a stub. delay: of its refresh, in seconds."""

    delay: int = 0
    refresh: str | None = None
    base: str | None = None
    script: str = ""
    title: str = ""
    elements: set[str] = field(default_factory=set)


class _StubParser:
    """Reads the parts. What is inside `<noscript>` counts for browsers without scripts only, if the page has any.

    Tags are read by a pattern: time grows with the length, which is not so of Python's own parser.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._lower = text.lower()
        self._in_noscript = False
        self._fallback: tuple[int, str] | None = None
        self._features = _StubFeatures()

    def parse(self) -> _StubFeatures:
        """Return the parts of the page."""
        place = 0
        while (found := _TAG.search(self._text, place)) is not None:
            place = found.end()
            name = (found[2] or "").lower()
            if found[1]:
                self._in_noscript &= name != "noscript"
            elif name in ("script", "title"):
                place = self._take_raw_text(name, place)
            elif name:
                self._take_start_tag(name, found[3])
        if self._fallback is not None and self._features.refresh is None and _find_navigation(self._features.script):
            self._features.delay, self._features.refresh = self._fallback
        return self._features

    def _take_raw_text(self, name: str, place: int) -> int:
        """Take the text of an element; return where it ends."""
        end = self._lower.find(f"</{name}", place)
        end = len(self._text) if end < 0 else end
        if name == "script":
            self._features.script += self._text[place:end]
        else:
            self._features.title += self._text[place:end]
        return end

    def _take_start_tag(self, name: str, attributes: str) -> None:
        if name == "noscript":
            self._in_noscript = True
        elif name == "base":
            self._features.base = self._features.base or _parse_attributes(attributes).get("href")
        elif name == "meta":
            given = _parse_attributes(attributes)
            is_refresh = given.get("http-equiv", "").strip().lower() == "refresh"
            found = _parse_refresh(given.get("content", "")) if is_refresh else None
            if found is not None and self._in_noscript:
                self._fallback = self._fallback or found
            elif found is not None and self._features.refresh is None:
                self._features.delay, self._features.refresh = found
        elif not self._in_noscript:
            self._features.elements.add(name)


def _parse_attributes(written: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(written):
        found.setdefault(match[1].lower(), html.unescape(match[2] or match[3] or match[4] or ""))
    return found


def redirect_stub_target(body: bytes, mime: str | None, uri: str, charset: str | None = None) -> str | None:
    """Return the URL that a page redirects to if it is nothing but a redirect; None for any other page.

    body, mime, charset: of the page, as for `unlost.html.links.links`. uri: its URL.

    A stub has a `<meta http-equiv=refresh>` of at most 10 seconds, or a script that sets `location` in any case, and
    little text. A page that reloads itself is none, unless it has no text at all. Nothing is raised for what is in it.

    >>> page = b'<meta http-equiv="refresh" content="0; url=/new/"><p>Moved <a href="/new/">there</a>'
    >>> redirect_stub_target(page, "text/html", "http://a.example/old.html")
    'http://a.example/new/'
    """
    lower = body[:_MAX_BYTES].lower()
    if len(body) > _MAX_BYTES or not (b"refresh" in lower or b"location" in lower):
        return None
    read = extract_text(body, replace_surrogates(mime), replace_surrogates(uri), replace_surrogates(charset))
    if read is None or (letters := len("".join(read.text.split()))) > _MAX_TEXT_LENGTH:
        return None
    parts = _StubParser(_decode_body(body, charset)).parse()
    if parts.elements & _INTERACTIVE_ELEMENTS:
        return None
    if parts.refresh is not None:
        is_meant_to_be_seen = parts.delay > _IMMEDIATE_SECONDS and parts.elements & _MEDIA_ELEMENTS
        written = None if parts.delay > _MAX_DELAY_SECONDS or is_meant_to_be_seen else parts.refresh
    else:
        is_short = len(body) <= _MAX_SCRIPTED_BYTES and len(parts.script) <= _MAX_SCRIPT_LENGTH
        is_stub = is_short and letters <= _MAX_SCRIPTED_TEXT_LENGTH and not parts.elements & _MEDIA_ELEMENTS
        written = _find_navigation(parts.script) if is_stub else None
    target = None if written is None else _resolve_url(uri, parts.base, written)
    if target is None:
        return None
    has_text = letters > len("".join(parts.title.split()))
    return None if has_text and _is_same_page(target, uri) else target


def _parse_refresh(content: str) -> tuple[int, str] | None:
    delay, span = _DELAY.match(content), _core.refresh_address(replace_surrogates(content))
    if span is None:
        return None
    target = replace_surrogates(content).encode()[slice(*span)].decode("utf-8", "replace").strip()
    return (int(delay[1]) if delay else 0, target) if target else None


def _find_navigation(script: str) -> str | None:
    """Return what a script navigates to whatever the visitor has and does."""
    found = _NAVIGATION.search(script[:_MAX_SCRIPT_LENGTH])
    return None if found is None or _CONDITION.search(script) else found[2].strip()


def _resolve_url(uri: str, base: str | None, written: str) -> str | None:
    try:
        target = urljoin(urljoin(uri, (base or "").strip()), written)
        parts = urlsplit(target)
    except ValueError:
        return None
    return target if parts.scheme in ("http", "https") and parts.hostname else None


def _is_same_page(one: str, other: str) -> bool:
    """Return whether two URLs are one page, apart from scheme, `www.` and fragment."""

    def place(uri: str) -> str:
        host, slash, path = uri.partition("#")[0].partition("://")[2].partition("/")
        return f"{host.lower().removeprefix('www.')}{slash or '/'}{path}"

    return place(one) == place(other)


def _decode_body(body: bytes, charset: str | None) -> str:
    found = _CHARSET.search(body, 0, 4096)
    name = charset or (found[1].decode("ascii", "replace") if found else "utf-8")
    try:
        codec = codecs.lookup(name).name
        return body.decode(codec, "replace")
    except (LookupError, ValueError):  # unknown, or not a text encoding
        return body.decode("latin-1")
