"""The text of odt and odp files."""

from unlost.errors import DocumentError
from unlost.pages.documents.limits import Limits
from unlost.pages.documents.readers.gathered import Gathered, Where
from unlost.pages.documents.readers.zip_parts import ZipParts, xml_parser

_PARAGRAPHS = {"p", "h"}
_BREAKS = {"s", "tab", "line-break"}

# The number of a note, comments, what was deleted, and names of pictures.
_LEFT_OUT = {"note-citation", "annotation", "tracked-changes", "title", "desc"}

_NOTES = {"note-body", "notes"}
_MARGINS = {f"{name}{which}" for name in ("header", "footer") for which in ("", "-left", "-first")}


def read_odt(body: bytes, gathered: Gathered, limits: Limits) -> None:
    """Gather the text, then notes, headers and footers. Comments, and what was deleted, are left out."""
    parts = _opened(body, limits)
    _read(parts, "content.xml", _Content(gathered, _NOTES, Where.NOTES))
    if "styles.xml" in parts.names:
        _read(parts, "styles.xml", _Content(gathered, _MARGINS, Where.MARGINS, only_beside=True))


def read_odp(body: bytes, gathered: Gathered, limits: Limits) -> None:
    """Gather the text of slides in order, then the notes. Masters are left out."""
    _read(_opened(body, limits), "content.xml", _Content(gathered, _NOTES, Where.NOTES))


def _opened(body: bytes, limits: Limits) -> ZipParts:
    parts = ZipParts(body, limits.unpacked)
    if "content.xml" not in parts.names:
        raise DocumentError("it has no part with the text", "damaged")
    parts.refuse_encrypted()
    return parts


def _read(parts: ZipParts, name: str, content: "_Content") -> None:
    parts.read(name, xml_parser(content.start, content.end, content.text))


class _Content:
    """Takes one part's elements and gathers their text.

    beside: elements whose text stands beside the text, and where. only_beside: whether nothing else counts.
    """

    def __init__(self, gathered: Gathered, beside: set[str], where: Where, *, only_beside: bool = False) -> None:
        self._gathered = gathered
        self._beside = beside
        self._where = where
        self._only_beside = only_beside
        self._in_paragraph = 0
        self._in_beside = 0
        self._left_out = 0

    def start(self, name: str, _attributes: dict[str, str]) -> None:
        if name in _LEFT_OUT:
            self._left_out += 1
        elif name in self._beside:
            self._in_beside += 1
        elif name in _PARAGRAPHS:
            self._in_paragraph += 1
            self._add("\n")
        elif name in _BREAKS:
            self._add(" ")

    def end(self, name: str) -> None:
        if name in _LEFT_OUT:
            self._left_out -= 1
        elif name in self._beside:
            self._in_beside -= 1
        elif name in _PARAGRAPHS:
            self._in_paragraph -= 1
            self._add("\n")

    def text(self, piece: str) -> None:
        if self._in_paragraph:
            self._add(piece)

    def _add(self, piece: str) -> None:
        if not self._left_out and (self._in_beside or not self._only_beside):
            self._gathered.add(piece, self._where if self._in_beside else Where.TEXT)
