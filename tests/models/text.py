"""The slow, obvious models of `unlost.html.text`: Python's own parsers, for pages and XML that are well formed.

Of pages they know only what Python's parser and browsers read alike: every tag is whole and spelled in letters, every
element that hides something is closed and nested as it should be, comments end with `-->`, and there are no tags in
titles, scripts and styles.
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
    """Reads a page with Python's own parser."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        """Part words, or hide what comes."""
        self.hidden += tag in HIDES | RAW
        self.part(tag)

    def handle_endtag(self, tag: str) -> None:
        """Part words, or show what comes."""
        self.part(tag)
        self.hidden -= tag in HIDES | RAW

    def part(self, tag: str) -> None:
        """Part words where a tag does."""
        self.handle_data(BREAK if tag in BREAKS else " " if tag in BLANKS else "")

    def handle_data(self, data: str) -> None:
        """Take text."""
        if not self.hidden:
            self.parts.append(data)


def page(text: str) -> str:
    """Return the text of a page."""
    reader = Page()
    reader.feed(text)
    reader.close()
    return flowing("".join(reader.parts))


def xml(text: str) -> str:
    """Return the text of a well-formed document, with a break at every tag."""
    return flowing(BREAK.join(ET.fromstring(text).itertext()))  # noqa: S314


def flowing(text: str) -> str:
    """Return text with one space, or one line end where there is a break, for all white space in a row."""
    return re.sub(rf"[ \t\n\f\r{BREAK}]+", lambda gap: "\n" if BREAK in gap[0] else " ", text).strip(" \n")
