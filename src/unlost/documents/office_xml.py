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
    """The members of an Office file.

    most: how many bytes may be unpacked of it in all.
    Raises DocumentError if it is no zip file, or has a password.
    """

    def __init__(self, body: bytes, max_bytes: int) -> None:
        if "EncryptedPackage" in list_ole_names(body):
            raise DocumentError("it can be read with a password only", "encrypted")
        try:
            self._file = zipfile.ZipFile(BytesIO(body))
        except zipfile.BadZipFile as error:
            raise DocumentError("it is no whole zip file", "damaged") from error
        self._left = max_bytes
        self.names = self._file.namelist()

    def refuse_encrypted(self) -> None:
        """Raise DocumentError if an OpenDocument file has a password, which only its list of parts says."""
        if _MANIFEST in self.names:
            self.parse(_MANIFEST, make_xml_parser(_refuse_encryption, lambda _: None, lambda _: None))

    def parse(self, name: str, parser: expat.XMLParserType) -> None:
        """Read one part with a parser. Raises DocumentError if it is damaged, encrypted, too big or declares entities.

        Entities are what XML bombs are made of, and what other files are fetched by; Office files have none.
        """
        parser.EntityDeclHandler = _refuse_entity
        try:
            if self._file.getinfo(name).flag_bits & 1:
                raise DocumentError("it can be read with a password only", "encrypted")
            with self._file.open(name) as part:
                while piece := part.read(_CHUNK_BYTES):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise DocumentError("its parts are too big when they are unpacked", "too-big")
                    parser.Parse(piece)
            parser.Parse(b"", True)
        except (zipfile.BadZipFile, expat.ExpatError, EOFError, KeyError) as error:
            raise DocumentError(f"its part {name[:60]!r} is damaged", "damaged") from error


def make_xml_parser(
    start: Callable[[str, dict[str, str]], None], end: Callable[[str], None], text: Callable[[str], None]
) -> expat.XMLParserType:
    """Return a parser that tells elements by their local names: prefixes are anybody's choice."""
    parser = expat.ParserCreate(namespace_separator="|")
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: start(name.rpartition("|")[2], attributes)
    parser.EndElementHandler = lambda name: end(name.rpartition("|")[2])
    parser.CharacterDataHandler = text
    return parser


def _refuse_encryption(name: str, _attributes: dict[str, str]) -> None:
    if name == "encryption-data":
        raise DocumentError("it can be read with a password only", "encrypted")


def _refuse_entity(*_: object) -> None:
    raise DocumentError("it declares entities, which Office files do not", "damaged")


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


_OPEN_DOCUMENT_PARAGRAPHS = {"p", "h"}
_OPEN_DOCUMENT_BREAKS = {"s", "tab", "line-break"}
# The number of a note, comments, what was deleted, and names of pictures.
_OPEN_DOCUMENT_IGNORED = {"note-citation", "annotation", "tracked-changes", "title", "desc"}
_OPEN_DOCUMENT_NOTES = {"note-body", "notes"}
_OPEN_DOCUMENT_MARGINS = {f"{name}{which}" for name in ("header", "footer") for which in ("", "-left", "-first")}


def read_odt(body: bytes, gathered: TextCollector, limits: DocumentLimits) -> None:
    """Gather the text, then notes, headers and footers. Comments, and what was deleted, are left out."""
    parts = _open_document(body, limits)
    _read_open_document_part(
        parts, "content.xml", _OpenDocumentHandler(gathered, _OPEN_DOCUMENT_NOTES, TextSection.NOTES)
    )
    if "styles.xml" in parts.names:
        _read_open_document_part(
            parts,
            "styles.xml",
            _OpenDocumentHandler(gathered, _OPEN_DOCUMENT_MARGINS, TextSection.MARGINS, only_beside=True),
        )


def read_odp(body: bytes, gathered: TextCollector, limits: DocumentLimits) -> None:
    """Gather the text of slides in order, then the notes. Masters are left out."""
    _read_open_document_part(
        _open_document(body, limits),
        "content.xml",
        _OpenDocumentHandler(gathered, _OPEN_DOCUMENT_NOTES, TextSection.NOTES),
    )


def _open_document(body: bytes, limits: DocumentLimits) -> OfficeZip:
    parts = OfficeZip(body, limits.unpacked)
    if "content.xml" not in parts.names:
        raise DocumentError("it has no part with the text", "damaged")
    parts.refuse_encrypted()
    return parts


def _read_open_document_part(parts: OfficeZip, name: str, content: "_OpenDocumentHandler") -> None:
    parts.parse(name, make_xml_parser(content.start, content.end, content.text))


class _OpenDocumentHandler:
    """Takes one part's elements and gathers their text.

    beside: elements whose text stands beside the text, and where. only_beside: whether nothing else counts.
    """

    def __init__(
        self, gathered: TextCollector, beside: set[str], where: TextSection, *, only_beside: bool = False
    ) -> None:
        self._gathered = gathered
        self._beside = beside
        self._where = where
        self._only_beside = only_beside
        self._in_paragraph = 0
        self._in_beside = 0
        self._left_out = 0

    def start(self, name: str, _attributes: dict[str, str]) -> None:
        if name in _OPEN_DOCUMENT_IGNORED:
            self._left_out += 1
        elif name in self._beside:
            self._in_beside += 1
        elif name in _OPEN_DOCUMENT_PARAGRAPHS:
            self._in_paragraph += 1
            self._add("\n")
        elif name in _OPEN_DOCUMENT_BREAKS:
            self._add(" ")

    def end(self, name: str) -> None:
        if name in _OPEN_DOCUMENT_IGNORED:
            self._left_out -= 1
        elif name in self._beside:
            self._in_beside -= 1
        elif name in _OPEN_DOCUMENT_PARAGRAPHS:
            self._in_paragraph -= 1
            self._add("\n")

    def text(self, piece: str) -> None:
        if self._in_paragraph:
            self._add(piece)

    def _add(self, piece: str) -> None:
        if not self._left_out and (self._in_beside or not self._only_beside):
            self._gathered.add(piece, self._where if self._in_beside else TextSection.TEXT)
