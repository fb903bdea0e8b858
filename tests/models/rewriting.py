"""Python model of `unlost.html.rewrite`: pages built from links at known positions."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, urljoin


@dataclass(frozen=True)
class Place:
    """A position for a URL: the text before and after it, its kind, and its escaping."""

    before: str
    after: str
    use: str
    writing: str


def entities(text: str, quotes: str) -> str:
    """Escape a text for a quoted attribute value."""
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    for mark, entity in (('"', "&quot;"), ("'", "&#39;")):
        if mark in quotes:
            text = text.replace(mark, entity)
    return text


def backslashes(text: str, specials: str) -> str:
    """Escape a text for CSS."""
    text = re.sub(r"[\\" + re.escape(specials) + "]", lambda found: "\\" + found[0], text)
    return text.replace("<", "\\3c ").replace(">", "\\3e ")


def unquoted(text: str) -> str:
    """Escape a text for an unquoted attribute value."""
    text = entities(text, "'\"").replace(">", "&gt;").replace(" ", "&#32;")
    return text.replace("=", "&#61;") if text.startswith("=") else text


def literal(text: str, quotes: str) -> str:
    """Escape a text for a string in a script, without tags."""
    text = re.sub(r"[\\" + quotes + "]", lambda found: "\\" + found[0], text)
    return text.replace("<", r"\x3c").replace(">", r"\x3e")


def commas(text: str) -> str:
    """Escape commas at the ends of a srcset URL."""
    inside = text.strip(",")
    before, _, after = text.partition(inside)
    return before.replace(",", "%2C") + inside + after.replace(",", "%2C")


WRITINGS: dict[str, Callable[[str], str]] = {
    "double": lambda text: entities(text, '"'),
    "single": lambda text: entities(text, "'"),
    "bare": unquoted,
    "css double": lambda text: backslashes(text, '"'),
    "css single": lambda text: backslashes(text, "'"),
    "css bare": lambda text: backslashes(text, "\"'()"),
    "css bare in double": lambda text: entities(backslashes(text, "\"'()"), '"'),
    "css double in single": lambda text: entities(backslashes(text, '"'), "'"),
    "css single in double": lambda text: entities(backslashes(text, "'"), '"'),
    "candidate": lambda text: entities(commas(text), '"'),
    "list": lambda text: entities(text.replace(",", "%2C"), '"'),
    "refresh": lambda text: entities(text.replace("'", "%27").replace('"', "%22"), '"'),
    "page in a value": lambda text: entities(entities(text, "'"), '"'),
    "script double": lambda text: literal(text, '"'),
    "script single": lambda text: literal(text, "'"),
    "script single in double": lambda text: entities(literal(text, "'"), '"'),
    "script double in single": lambda text: entities(literal(text, '"'), "'"),
}

PLACES = [
    Place('<a href="', '">', "page", "double"),
    Place("<A  HREF = ' ", " '>", "page", "single"),
    Place("<a title='>' href=", " class=x>", "page", "bare"),
    Place("<a href=", ">", "page", "bare"),
    Place('<img alt="a" src="', '"/>', "requisite", "double"),
    Place('<img srcset=" ,', ' 2x, data:,x 3x">', "requisite", "candidate"),
    Place('<img srcset="data:,x, ', ', data:,y">', "requisite", "candidate"),
    Place('<source srcset="', '">', "requisite", "candidate"),
    Place('<p style="color: red; background: url(', ')">', "requisite", "css bare in double"),
    Place("<p style=\"background: url('", "') no-repeat\">", "requisite", "css single in double"),
    Place("<style>a { b: url( ", " ) }</style>", "requisite", "css bare"),
    Place("<style>@import '", "'; a { b: c }</style>", "requisite", "css single"),
    Place('<style>@import url("', '") print;</style>', "requisite", "css double"),
    Place('<meta http-equiv=refresh content="5; URL=', '">', "page", "refresh"),
    Place("<meta http-equiv=refresh content=\"0;url='", "'\">", "page", "refresh"),
    Place('<svg><image xlink:href="', '"/></svg>', "requisite", "double"),
    Place("<svg><use href='", "'></use></svg>", "requisite", "single"),
    Place('<svg><path fill="url(', ')"/></svg>', "requisite", "css bare in double"),
    Place("<object><param name=movie value='", "'></object>", "requisite", "single"),
    Place('<applet archive="data:x ', ',">', "requisite", "list"),
    Place("<noscript><img src='", "'></noscript>", "requisite", "single"),
    Place("<iframe srcdoc=\"<a href='", "'>\"></iframe>", "page", "page in a value"),
    Place("<iframe src='", "'></iframe>", "page", "single"),
    Place("<template><a href='", "'></template>", "page", "single"),
    Place("<link rel=stylesheet href='", "'>", "requisite", "single"),
    Place("<link rel=alternate type=application/rss+xml href='", "'>", "list", "single"),
    Place("<video poster='", "'></video>", "requisite", "single"),
    Place("<body background='", "'>", "requisite", "single"),
    Place('<img data-lazy-src="', '">', "requisite", "double"),
    Place('<img data-lazy-srcset="', ' 2x, data:,x 3x">', "requisite", "candidate"),
    Place("<p DATA-BG='url(\"", "\")'>", "requisite", "css double in single"),
    Place('<p data-background-image="url(', ')">', "requisite", "css bare in double"),
]

# Script candidates: the reference must resemble a URL.
CANDIDATES = [
    Place('<p data-x="', '">', "candidate", "double"),
    Place("<p DATA-next=' ", "'>", "candidate", "single"),
    Place("<p data-href=", " class=z>", "candidate", "bare"),
    Place("<p onclick=\"go('", "', 'x')\">", "candidate", "script single in double"),
    Place("<a ONMOUSEOVER='go(\"", "\")'>", "candidate", "script double in single"),
    Place("<script>location = '", "';</script>", "candidate", "script single"),
    Place('<script>window.location.replace( "', '" )</script>', "candidate", "script double"),
    Place('<script>document.location.href="', '"+(anchor?"#"+anchor:"")</script>', "candidate", "script double"),
    Place("<noscript><p data-x='", "'></noscript>", "candidate", "single"),
]

STYLES = [
    Place("a { b: url(", ") }\n", "requisite", "css bare"),
    Place("@import\t'", "';", "requisite", "css single"),
    Place('@font-face { src: url("', '") }', "requisite", "css double"),
    Place("a { b: image-set('", "' 1x) }", "requisite", "css single"),
]

DRAWING = [
    Place("<image xlink:href='", "'/>", "requisite", "single"),
    Place('<use href="', '"/>', "requisite", "double"),
    Place("<image ns1:href='", "'/>", "requisite", "single"),
    Place('<path clip-path="url(', ')"/>', "requisite", "css bare in double"),
    Place('<a xlink:href = "', '"></a>', "page", "double"),
    Place("<style>a { b: url(", ") }</style>", "requisite", "xml css"),
    Place("<style><![CDATA[ @import '", "'; ]]></style>", "requisite", "css single"),
    Place("<?xml-stylesheet href='", "'?>", "requisite", "single"),
]
WRITINGS["xml css"] = lambda text: (
    backslashes(text, "\"'()").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
)


@dataclass(frozen=True)
class PlacedLink:
    """A link at its position: a reference without escapes, and an optional fragment."""

    place: Place
    reference: str
    fragment: str = ""

    def uri(self, base: str) -> str:
        """Return the absolute URL."""
        return urljoin(base, quote(self.reference, safe="/:?=.~-_"))

    def written(self, new: str | None, charset: str) -> bytes:
        """Return the link as in a page, optionally with a replacement."""
        if new is None:
            inside = self.reference + self.fragment
        else:
            inside = WRITINGS[self.place.writing](new) + ("" if "#" in new else self.fragment)
        return (self.place.before + inside + self.place.after).encode(charset)


def page(parts: list[PlacedLink | bytes], charset: str, new: dict[tuple[str, str], str], base: str) -> bytes:
    """Return a page in which the given URLs are replaced."""
    return b"".join(
        part if isinstance(part, bytes) else part.written(new.get((part.uri(base), part.place.use)), charset)
        for part in parts
    )
