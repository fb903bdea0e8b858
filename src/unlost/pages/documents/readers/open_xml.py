"""The text of docx and pptx files."""

import re

from unlost.errors import DocumentError
from unlost.pages.documents.limits import Limits
from unlost.pages.documents.readers.gathered import Gathered, Where
from unlost.pages.documents.readers.zip_parts import ZipParts, xml_parser

# What words end at. In both formats text stands in `t`, wherever that is.
_BREAKS = {"p", "br", "cr", "tab", "ptab", "tc"}

# A second form of the same text for older programs; numbers and dates that are different on every page.
_LEFT_OUT = {"Fallback", "fld"}

_NUMBER = re.compile(r"(\d*)\.xml$")


def read_docx(body: bytes, gathered: Gathered, limits: Limits) -> None:
    """Gather the text, then notes, headers and footers. Comments, and what was deleted, are left out."""
    parts = ZipParts(body, limits.unpacked)
    if not _read(parts, r"word/document\d*\.xml", gathered, Where.TEXT):
        raise DocumentError("it has no part with the text", "damaged")
    _read(parts, r"word/footnotes\d*\.xml", gathered, Where.NOTES)
    _read(parts, r"word/endnotes\d*\.xml", gathered, Where.NOTES)
    _read(parts, r"word/(header|footer)\d*\.xml", gathered, Where.MARGINS)


def read_pptx(body: bytes, gathered: Gathered, limits: Limits) -> None:
    """Gather the text of slides by their numbers, of diagrams on them, then the notes. Masters are left out."""
    parts = ZipParts(body, limits.unpacked)
    slides = _read(parts, r"ppt/slides/slide\d*\.xml", gathered, Where.TEXT)
    if not slides and "ppt/presentation.xml" not in parts.names:
        raise DocumentError("it has no slides", "damaged")
    _read(parts, r"ppt/diagrams/data\d*\.xml", gathered, Where.TEXT)
    _read(parts, r"ppt/notesSlides/notesSlide\d*\.xml", gathered, Where.NOTES)


def _read(parts: ZipParts, pattern: str, gathered: Gathered, where: Where) -> int:
    """Gather the text of all parts whose names match, by their numbers, and return how many there are."""
    names = sorted({name for name in parts.names if re.fullmatch(pattern, name)}, key=_order)
    for name in names:
        content = _Content(gathered, where)
        parts.read(name, xml_parser(content.start, content.end, content.text))
    return len(names)


def _order(name: str) -> tuple[str, int, str]:
    found = _NUMBER.search(name)
    digits = found[1] if found else ""
    return name[: -len(digits) - 4], int(digits[:9] or 0), name


class _Content:
    """Takes one part's elements and gathers their text."""

    def __init__(self, gathered: Gathered, where: Where) -> None:
        self._gathered = gathered
        self._where = where
        self._in_text = 0
        self._left_out = 0

    def start(self, name: str, _attributes: dict[str, str]) -> None:
        if name in _LEFT_OUT:
            self._left_out += 1
        elif name == "t":
            self._in_text += 1
        elif name in _BREAKS:
            self._gathered.add("\n", self._where)
        elif name == "noBreakHyphen":
            self._gathered.add("-", self._where)

    def end(self, name: str) -> None:
        if name in _LEFT_OUT:
            self._left_out -= 1
        elif name == "t":
            self._in_text -= 1
        elif name == "p":
            self._gathered.add("\n", self._where)

    def text(self, piece: str) -> None:
        if self._in_text and not self._left_out:
            self._gathered.add(piece, self._where)
