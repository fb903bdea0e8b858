"""Detects redirect stubs: pages that are nothing but a redirect.

Static site generators write them (jekyll-redirect-from, mkdocs-redirects, Hugo's aliases), because they cannot
configure the server.
"""

import codecs
import html
import re
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from unlost import _core
from unlost.html.text import extract_text, replace_surrogates

_MAX_BYTES = 32 << 10  # of a stub, which may include the navigation of its site
_MAX_TEXT_LENGTH = 500  # characters, without white space
_MAX_DELAY_SECONDS = 10
_IMMEDIATE_SECONDS = 1  # a longer delay means that the page is shown first
# Stricter limits for pages redirected by a script, which may be applications or break out of frames.
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
    """The features of a page that decide whether it is a stub. `delay` is the delay of its refresh in seconds."""

    delay: int = 0
    refresh: str | None = None
    base: str | None = None
    script: str = ""
    title: str = ""
    elements: set[str] = field(default_factory=set)


class _StubParser:
    """Collects the features of a page.

    A refresh in `<noscript>` counts only if a script redirects, too. Tags are matched by a pattern in linear time,
    which `html.parser` does not guarantee.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._lower = text.lower()
        self._in_noscript = False
        self._fallback: tuple[int, str] | None = None
        self._features = _StubFeatures()

    def parse(self) -> _StubFeatures:
        """Return the features."""
        position = 0
        while (tag := _TAG.search(self._text, position)) is not None:
            position = tag.end()
            name = (tag[2] or "").lower()
            if tag[1]:
                self._in_noscript &= name != "noscript"
            elif name in ("script", "title"):
                position = self._take_raw_text(name, position)
            elif name:
                self._take_start_tag(name, tag[3])
        if self._fallback is not None and self._features.refresh is None and _find_navigation(self._features.script):
            self._features.delay, self._features.refresh = self._fallback
        return self._features

    def _take_raw_text(self, name: str, start: int) -> int:
        """Add the text of a script or title element; return its end."""
        end = self._lower.find(f"</{name}", start)
        end = len(self._text) if end < 0 else end
        if name == "script":
            self._features.script += self._text[start:end]
        else:
            self._features.title += self._text[start:end]
        return end

    def _take_start_tag(self, name: str, attributes: str) -> None:
        if name == "noscript":
            self._in_noscript = True
        elif name == "base":
            self._features.base = self._features.base or _parse_attributes(attributes).get("href")
        elif name == "meta":
            values = _parse_attributes(attributes)
            is_refresh = values.get("http-equiv", "").strip().lower() == "refresh"
            refresh = _parse_refresh(values.get("content", "")) if is_refresh else None
            if refresh is not None and self._in_noscript:
                self._fallback = self._fallback or refresh
            elif refresh is not None and self._features.refresh is None:
                self._features.delay, self._features.refresh = refresh
        elif not self._in_noscript:
            self._features.elements.add(name)


def _parse_attributes(text: str) -> dict[str, str]:
    attributes: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(text):
        attributes.setdefault(match[1].lower(), html.unescape(match[2] or match[3] or match[4] or ""))
    return attributes


def redirect_stub_target(body: bytes, mime: str | None, uri: str, charset: str | None = None) -> str | None:
    """Return the URL that a page redirects to if it is nothing but a redirect; None for any other page.

    A stub has little text, and either a `<meta http-equiv=refresh>` of at most 10 seconds or a script that sets
    `location` unconditionally. A page that reloads itself is not a stub unless it has no text. Invalid input never
    raises.

    Args:
        body: The page; see `unlost.html.links.extract_links`, also for `mime` and `charset`.
        mime: Declared media type.
        uri: URL of the page.
        charset: Declared charset.

    >>> page = b'<meta http-equiv="refresh" content="0; url=/new/"><p>Moved <a href="/new/">there</a>'
    >>> redirect_stub_target(page, "text/html", "http://a.example/old.html")
    'http://a.example/new/'
    """
    lower = body[:_MAX_BYTES].lower()
    if len(body) > _MAX_BYTES or not (b"refresh" in lower or b"location" in lower):
        return None
    extracted = extract_text(body, replace_surrogates(mime), replace_surrogates(uri), replace_surrogates(charset))
    if extracted is None or (text_length := len("".join(extracted.text.split()))) > _MAX_TEXT_LENGTH:
        return None
    features = _StubParser(_decode_body(body, charset)).parse()
    if features.elements & _INTERACTIVE_ELEMENTS:
        return None
    if features.refresh is not None:
        is_shown_first = features.delay > _IMMEDIATE_SECONDS and features.elements & _MEDIA_ELEMENTS
        reference = None if features.delay > _MAX_DELAY_SECONDS or is_shown_first else features.refresh
    else:
        is_short = len(body) <= _MAX_SCRIPTED_BYTES and len(features.script) <= _MAX_SCRIPT_LENGTH
        is_stub = is_short and text_length <= _MAX_SCRIPTED_TEXT_LENGTH and not features.elements & _MEDIA_ELEMENTS
        reference = _find_navigation(features.script) if is_stub else None
    target = None if reference is None else _resolve_url(uri, features.base, reference)
    if target is None:
        return None
    has_text = text_length > len("".join(features.title.split()))
    return None if has_text and _is_same_page(target, uri) else target


def _parse_refresh(content: str) -> tuple[int, str] | None:
    delay, span = _DELAY.match(content), _core.refresh_url(replace_surrogates(content))
    if span is None:
        return None
    target = replace_surrogates(content).encode()[slice(*span)].decode("utf-8", "replace").strip()
    return (int(delay[1]) if delay else 0, target) if target else None


def _find_navigation(script: str) -> str | None:
    """Return the URL that a script navigates to unconditionally; None if there is a condition or no navigation."""
    navigation = _NAVIGATION.search(script[:_MAX_SCRIPT_LENGTH])
    return None if navigation is None or _CONDITION.search(script) else navigation[2].strip()


def _resolve_url(uri: str, base: str | None, reference: str) -> str | None:
    try:
        target = urljoin(urljoin(uri, (base or "").strip()), reference)
        parts = urlsplit(target)
    except ValueError:
        return None
    return target if parts.scheme in ("http", "https") and parts.hostname else None


def _is_same_page(first: str, second: str) -> bool:
    """Return whether two URLs are equal except for scheme, `www.` and fragment."""

    def identity(uri: str) -> str:
        host, slash, path = uri.partition("#")[0].partition("://")[2].partition("/")
        return f"{host.lower().removeprefix('www.')}{slash or '/'}{path}"

    return identity(first) == identity(second)


def _decode_body(body: bytes, charset: str | None) -> str:
    declaration = _CHARSET.search(body, 0, 4096)
    name = charset or (declaration[1].decode("ascii", "replace") if declaration else "utf-8")
    try:
        codec = codecs.lookup(name).name
        return body.decode(codec, "replace")
    except (LookupError, ValueError):  # unknown, or not a text encoding
        return body.decode("latin-1")
