"""Python models of text extraction for well-formed pages and XML, based on Python's parsers.

Pages are limited to markup that Python's parser and browsers read alike: tags are complete, hidden elements are closed
and properly nested, comments end with `-->`, and titles, scripts and styles contain no tags.
"""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

BREAKS = frozenset((
    "address", "article", "aside", "blockquote", "body", "br", "center", "dd", "div", "dl", "dt", "fieldset",
    "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr", "html", "legend", "li",
    "main", "nav", "ol", "optgroup", "option", "p", "pre", "section", "table", "tbody", "thead", "title", "tr",
    "ul",
))  # fmt: skip
BLANKS = frozenset(["td", "th", "button", "input", "select", "textarea"])
HIDES = frozenset(["script", "style", "template", "video", "canvas"])
RAW = frozenset(["noscript", "iframe", "noframes"])
BREAK = "\1"


class Page(HTMLParser):
    """Parses a page with Python's parser."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        """Insert a break, or hide the following text."""
        self.hidden += tag in HIDES | RAW
        self.separate(tag)

    def handle_endtag(self, tag: str) -> None:
        """Insert a break, or show the following text."""
        self.separate(tag)
        self.hidden -= tag in HIDES | RAW

    def separate(self, tag: str) -> None:
        """Insert a break or space according to the tag."""
        self.handle_data(BREAK if tag in BREAKS else " " if tag in BLANKS else "")

    def handle_data(self, data: str) -> None:
        """Collect text."""
        if not self.hidden:
            self.parts.append(data)


def page(text: str) -> str:
    """Return the text of a page."""
    reader = Page()
    reader.feed(text)
    reader.close()
    return collapse_white_space("".join(reader.parts))


def xml(text: str) -> str:
    """Return the text of a well-formed document, with a break at every tag."""
    return collapse_white_space(BREAK.join(ET.fromstring(text).itertext()))  # noqa: S314


def collapse_white_space(text: str) -> str:
    """Return text in which each white space run is one space, or one line end if it contains a break."""
    return re.sub(rf"[ \t\n\f\r{BREAK}]+", lambda gap: "\n" if BREAK in gap[0] else " ", text).strip(" \n")
