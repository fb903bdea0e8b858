"""The text of docx and pptx files."""

import re

from unlost.errors import DocumentError
from unlost.pages.documents.limits import DocumentLimits
from unlost.pages.documents.readers.gathered import TextCollector, TextSection
from unlost.pages.documents.readers.zip_parts import OfficeZip, make_xml_parser

# What words end at. In both formats text stands in `t`, wherever that is.
_OPEN_XML_BREAKS = {"p", "br", "cr", "tab", "ptab", "tc"}

# A second form of the same text for older programs; numbers and dates that are different on every page.
_OPEN_XML_IGNORED = {"Fallback", "fld"}

_PART_NUMBER = re.compile(r"(\d*)\.xml$")


def read_docx(body: bytes, gathered: TextCollector, limits: DocumentLimits) -> None:
    """Gather the text, then notes, headers and footers. Comments, and what was deleted, are left out."""
    parts = OfficeZip(body, limits.unpacked)
    if not _read_open_xml_parts(parts, r"word/document\d*\.xml", gathered, TextSection.TEXT):
        raise DocumentError("it has no part with the text", "damaged")
    _read_open_xml_parts(parts, r"word/footnotes\d*\.xml", gathered, TextSection.NOTES)
    _read_open_xml_parts(parts, r"word/endnotes\d*\.xml", gathered, TextSection.NOTES)
    _read_open_xml_parts(parts, r"word/(header|footer)\d*\.xml", gathered, TextSection.MARGINS)


def read_pptx(body: bytes, gathered: TextCollector, limits: DocumentLimits) -> None:
    """Gather the text of slides by their numbers, of diagrams on them, then the notes. Masters are left out."""
    parts = OfficeZip(body, limits.unpacked)
    slides = _read_open_xml_parts(parts, r"ppt/slides/slide\d*\.xml", gathered, TextSection.TEXT)
    if not slides and "ppt/presentation.xml" not in parts.names:
        raise DocumentError("it has no slides", "damaged")
    _read_open_xml_parts(parts, r"ppt/diagrams/data\d*\.xml", gathered, TextSection.TEXT)
    _read_open_xml_parts(parts, r"ppt/notesSlides/notesSlide\d*\.xml", gathered, TextSection.NOTES)


def _read_open_xml_parts(parts: OfficeZip, pattern: str, gathered: TextCollector, where: TextSection) -> int:
    """Gather the text of all parts whose names match, by their numbers, and return how many there are."""
    names = sorted({name for name in parts.names if re.fullmatch(pattern, name)}, key=_numbered_name)
    for name in names:
        content = _OpenXmlHandler(gathered, where)
        parts.parse(name, make_xml_parser(content.start, content.end, content.text))
    return len(names)


def _numbered_name(name: str) -> tuple[str, int, str]:
    found = _PART_NUMBER.search(name)
    digits = found[1] if found else ""
    return name[: -len(digits) - 4], int(digits[:9] or 0), name


class _OpenXmlHandler:
    """Takes one part's elements and gathers their text."""

    def __init__(self, gathered: TextCollector, where: TextSection) -> None:
        self._gathered = gathered
        self._where = where
        self._in_text = 0
        self._left_out = 0

    def start(self, name: str, _attributes: dict[str, str]) -> None:
        if name in _OPEN_XML_IGNORED:
            self._left_out += 1
        elif name == "t":
            self._in_text += 1
        elif name in _OPEN_XML_BREAKS:
            self._gathered.add("\n", self._where)
        elif name == "noBreakHyphen":
            self._gathered.add("-", self._where)

    def end(self, name: str) -> None:
        if name in _OPEN_XML_IGNORED:
            self._left_out -= 1
        elif name == "t":
            self._in_text -= 1
        elif name == "p":
            self._gathered.add("\n", self._where)

    def text(self, piece: str) -> None:
        if self._in_text and not self._left_out:
            self._gathered.add(piece, self._where)
