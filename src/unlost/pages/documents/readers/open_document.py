"""The text of odt and odp files."""

from unlost.errors import DocumentError
from unlost.pages.documents.limits import DocumentLimits
from unlost.pages.documents.readers.gathered import TextCollector, TextSection
from unlost.pages.documents.readers.zip_parts import OfficeZip, make_xml_parser

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
