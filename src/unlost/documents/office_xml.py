"""Text of zipped XML documents: docx and pptx (Office Open XML), odt and odp (OpenDocument)."""

import re
import zipfile
from collections.abc import Callable
from io import BytesIO
from xml.parsers import expat

from unlost.documents.kind import list_ole_names
from unlost.documents.limits import DocumentLimits, TextCollector, TextSection
from unlost.errors import DocumentError

_CHUNK_BYTES = 1 << 16
_MANIFEST = "META-INF/manifest.xml"


class OfficeZip:
    """The parts of an Office file. `max_bytes` limits their total decompressed size.

    Raises DocumentError if the file is not a ZIP file, or is encrypted.
    """

    def __init__(self, body: bytes, max_bytes: int) -> None:
        if "EncryptedPackage" in list_ole_names(body):
            raise DocumentError("it can be read with a password only", "encrypted")
        try:
            self._file = zipfile.ZipFile(BytesIO(body))
        except zipfile.BadZipFile as error:
            raise DocumentError("it is no whole zip file", "damaged") from error
        self._remaining = max_bytes
        self.names = self._file.namelist()

    def reject_encrypted(self) -> None:
        """Raise DocumentError if an OpenDocument file is encrypted, according to its manifest."""
        if _MANIFEST in self.names:
            self.parse(_MANIFEST, make_xml_parser(_reject_encryption, lambda _: None, lambda _: None))

    def parse(self, name: str, parser: expat.XMLParserType) -> None:
        """Parse one part. Raises DocumentError if it is damaged, encrypted, too big, or declares entities.

        Entities are rejected because they allow XML bombs and references to other files. Office files have none.
        """
        parser.EntityDeclHandler = _reject_entity
        try:
            if self._file.getinfo(name).flag_bits & 1:
                raise DocumentError("it can be read with a password only", "encrypted")
            with self._file.open(name) as part:
                while chunk := part.read(_CHUNK_BYTES):
                    self._remaining -= len(chunk)
                    if self._remaining < 0:
                        raise DocumentError("its parts are too big when they are unpacked", "too-big")
                    parser.Parse(chunk)
            parser.Parse(b"", True)
        except (zipfile.BadZipFile, expat.ExpatError, EOFError, KeyError) as error:
            raise DocumentError(f"its part {name[:60]!r} is damaged", "damaged") from error


def make_xml_parser(
    start: Callable[[str, dict[str, str]], None], end: Callable[[str], None], text: Callable[[str], None]
) -> expat.XMLParserType:
    """Return a parser that reports elements by local name, since namespace prefixes are arbitrary."""
    parser = expat.ParserCreate(namespace_separator="|")
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: start(name.rpartition("|")[2], attributes)
    parser.EndElementHandler = lambda name: end(name.rpartition("|")[2])
    parser.CharacterDataHandler = text
    return parser


def _reject_encryption(name: str, _attributes: dict[str, str]) -> None:
    if name == "encryption-data":
        raise DocumentError("it can be read with a password only", "encrypted")


def _reject_entity(*_: object) -> None:
    raise DocumentError("it declares entities, which Office files do not", "damaged")


# Elements that end words. In WordprocessingML and DrawingML, text is in elements named `t`.
_OPEN_XML_BREAKS = {"p", "br", "cr", "tab", "ptab", "tc"}
# Fallbacks repeat the text for older programs; fields are page numbers and dates.
_OPEN_XML_IGNORED = {"Fallback", "fld"}
_PART_NUMBER = re.compile(r"(\d*)\.xml$")


def read_docx(body: bytes, collector: TextCollector, limits: DocumentLimits) -> None:
    """Collect the text, then notes, headers and footers. Comments and deleted text are omitted."""
    parts = OfficeZip(body, limits.unpacked)
    if not _read_open_xml_parts(parts, r"word/document\d*\.xml", collector, TextSection.TEXT):
        raise DocumentError("it has no part with the text", "damaged")
    _read_open_xml_parts(parts, r"word/footnotes\d*\.xml", collector, TextSection.NOTES)
    _read_open_xml_parts(parts, r"word/endnotes\d*\.xml", collector, TextSection.NOTES)
    _read_open_xml_parts(parts, r"word/(header|footer)\d*\.xml", collector, TextSection.MARGINS)


def read_pptx(body: bytes, collector: TextCollector, limits: DocumentLimits) -> None:
    """Collect the text of the slides and of their diagrams, then the notes. Masters are omitted.

    Slides are in the order of the numbers of their parts, which is the order in which PowerPoint saves them.
    """
    parts = OfficeZip(body, limits.unpacked)
    slides = _read_open_xml_parts(parts, r"ppt/slides/slide\d*\.xml", collector, TextSection.TEXT)
    if not slides and "ppt/presentation.xml" not in parts.names:
        raise DocumentError("it has no slides", "damaged")
    _read_open_xml_parts(parts, r"ppt/diagrams/data\d*\.xml", collector, TextSection.TEXT)
    _read_open_xml_parts(parts, r"ppt/notesSlides/notesSlide\d*\.xml", collector, TextSection.NOTES)


def _read_open_xml_parts(parts: OfficeZip, pattern: str, collector: TextCollector, section: TextSection) -> int:
    """Collect the text of all parts whose names match, by number. Returns the number of parts."""
    names = sorted({name for name in parts.names if re.fullmatch(pattern, name)}, key=_numbered_name)
    for name in names:
        handler = _OpenXmlHandler(collector, section)
        parts.parse(name, make_xml_parser(handler.start, handler.end, handler.text))
    return len(names)


def _numbered_name(name: str) -> tuple[str, int, str]:
    match = _PART_NUMBER.search(name)
    digits = match[1] if match else ""
    return name[: -len(digits) - 4], int(digits[:9] or 0), name


class _OpenXmlHandler:
    """Handles the XML events of one part."""

    def __init__(self, collector: TextCollector, section: TextSection) -> None:
        self._collector = collector
        self._section = section
        self._in_text = 0
        self._ignored_depth = 0

    def start(self, name: str, _attributes: dict[str, str]) -> None:
        if name in _OPEN_XML_IGNORED:
            self._ignored_depth += 1
        elif name == "t":
            self._in_text += 1
        elif name in _OPEN_XML_BREAKS:
            self._collector.add("\n", self._section)
        elif name == "noBreakHyphen":
            self._collector.add("-", self._section)

    def end(self, name: str) -> None:
        if name in _OPEN_XML_IGNORED:
            self._ignored_depth -= 1
        elif name == "t":
            self._in_text -= 1
        elif name == "p":
            self._collector.add("\n", self._section)

    def text(self, piece: str) -> None:
        if self._in_text and not self._ignored_depth:
            self._collector.add(piece, self._section)


_OPEN_DOCUMENT_PARAGRAPHS = {"p", "h"}
_OPEN_DOCUMENT_BREAKS = {"s", "tab", "line-break"}
# Numbers of notes, comments, deleted text, and titles and descriptions of images.
_OPEN_DOCUMENT_IGNORED = {"note-citation", "annotation", "tracked-changes", "title", "desc"}
_OPEN_DOCUMENT_NOTES = {"note-body", "notes"}
_OPEN_DOCUMENT_MARGINS = {f"{name}{which}" for name in ("header", "footer") for which in ("", "-left", "-first")}


def read_odt(body: bytes, collector: TextCollector, limits: DocumentLimits) -> None:
    """Collect the text, then notes, headers and footers. Comments and deleted text are omitted."""
    parts = _open_document(body, limits)
    _read_open_document_part(
        parts, "content.xml", _OpenDocumentHandler(collector, _OPEN_DOCUMENT_NOTES, TextSection.NOTES)
    )
    if "styles.xml" in parts.names:
        _read_open_document_part(
            parts,
            "styles.xml",
            _OpenDocumentHandler(collector, _OPEN_DOCUMENT_MARGINS, TextSection.MARGINS, only_section=True),
        )


def read_odp(body: bytes, collector: TextCollector, limits: DocumentLimits) -> None:
    """Collect the text of the slides in order, then the notes. Masters are omitted."""
    _read_open_document_part(
        _open_document(body, limits),
        "content.xml",
        _OpenDocumentHandler(collector, _OPEN_DOCUMENT_NOTES, TextSection.NOTES),
    )


def _open_document(body: bytes, limits: DocumentLimits) -> OfficeZip:
    parts = OfficeZip(body, limits.unpacked)
    if "content.xml" not in parts.names:
        raise DocumentError("it has no part with the text", "damaged")
    parts.reject_encrypted()
    return parts


def _read_open_document_part(parts: OfficeZip, name: str, handler: "_OpenDocumentHandler") -> None:
    parts.parse(name, make_xml_parser(handler.start, handler.end, handler.text))


class _OpenDocumentHandler:
    """Handles the XML events of one part.

    Args:
        collector: Collects the text.
        elements: Elements whose text belongs to `section` instead of the main text.
        section: The section.
        only_section: Ignore all other text.
    """

    def __init__(
        self, collector: TextCollector, elements: set[str], section: TextSection, *, only_section: bool = False
    ) -> None:
        self._collector = collector
        self._elements = elements
        self._section = section
        self._only_section = only_section
        self._in_paragraph = 0
        self._in_section = 0
        self._ignored_depth = 0

    def start(self, name: str, _attributes: dict[str, str]) -> None:
        if name in _OPEN_DOCUMENT_IGNORED:
            self._ignored_depth += 1
        elif name in self._elements:
            self._in_section += 1
        elif name in _OPEN_DOCUMENT_PARAGRAPHS:
            self._in_paragraph += 1
            self._add("\n")
        elif name in _OPEN_DOCUMENT_BREAKS:
            self._add(" ")

    def end(self, name: str) -> None:
        if name in _OPEN_DOCUMENT_IGNORED:
            self._ignored_depth -= 1
        elif name in self._elements:
            self._in_section -= 1
        elif name in _OPEN_DOCUMENT_PARAGRAPHS:
            self._in_paragraph -= 1
            self._add("\n")

    def text(self, piece: str) -> None:
        if self._in_paragraph:
            self._add(piece)

    def _add(self, piece: str) -> None:
        if not self._ignored_depth and (self._in_section or not self._only_section):
            self._collector.add(piece, self._section if self._in_section else TextSection.TEXT)
