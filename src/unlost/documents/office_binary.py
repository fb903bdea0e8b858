"""Text of OLE documents: doc (Word 6 and later, [MS-DOC]) and ppt (PowerPoint 97 and later, [MS-PPT]).

A doc file has its text in pieces, listed in a piece table. A ppt file is a tree of records, found by a persist
directory; text is in the slides or in an outline that they refer to.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO

import olefile

from unlost.documents.limits import DocumentLimits, TextCollector, TextSection
from unlost.errors import DocumentError


class OleStreams:
    """The streams at the top of an OLE file. Raises DocumentError if it is none."""

    def __init__(self, body: bytes) -> None:
        try:
            self._file = olefile.OleFileIO(BytesIO(body))
        except (OSError, ValueError, IndexError) as error:
            raise DocumentError("it is no whole OLE file", "damaged") from error

    def read(self, name: str) -> bytes:
        """Return all of a stream. Raises DocumentError if it is not there or not whole."""
        try:
            return bytes(self._file.openstream(name).read())
        except (OSError, ValueError, IndexError) as error:
            raise DocumentError(f"its stream {name!r} is missing or damaged", "damaged") from error


def read_uint(data: bytes, at: int, size: int = 4) -> int:
    """Return a little-endian number. Raises DocumentError if the data ends before it."""
    if not 0 <= at <= len(data) - size:
        raise DocumentError("a number in it is missing", "damaged")
    return int.from_bytes(data[at : at + size], "little")


_WORD_ENCRYPTED = 0x0100
_SECOND_TABLE = 0x0200
_COMPLEX = 0x0004  # in Word 6 and 95: whether there is a table of pieces at all
_WORD_97 = 0xC1
# The main text, footnotes, headers, macros, comments, endnotes, text boxes, text boxes of headers.
_STORIES = (
    TextSection.TEXT,
    TextSection.NOTES,
    TextSection.MARGINS,
    None,
    None,
    TextSection.NOTES,
    TextSection.TEXT,
    TextSection.MARGINS,
)
# In Word 6 and 95 a file has one encoding, that of its language (its lower ten bits); most were Western.
_CODE_PAGES = {
    **dict.fromkeys((0x02, 0x19, 0x22, 0x23), "cp1251"),
    **dict.fromkeys((0x05, 0x0E, 0x15, 0x18, 0x1A, 0x1B, 0x24), "cp1250"),
    0x08: "cp1253",
    0x1F: "cp1254",
    0x0D: "cp1255",
    0x01: "cp1256",
    **dict.fromkeys((0x25, 0x26, 0x27), "cp1257"),
    0x11: "cp932",
}
# Cells, lines, pages and paragraphs end words; hyphens that do not part; marks of pictures, notes and the like.
_SPECIAL = str.maketrans(
    {
        0x1E: "-",
        0x1F: None,
        **dict.fromkeys((7, 9, 10, 11, 12, 13, 14), "\n"),
        **dict.fromkeys((1, 2, 3, 4, 5, 6, 8), None),
    }
)
_FIELDS = re.compile("([\x13\x14\x15])")


@dataclass(frozen=True, slots=True)
class _TextPiece:
    """Some characters of the text: from which to which, where in the stream, and how they are written."""

    start: int
    end: int
    place: int
    encoding: str

    @property
    def width(self) -> int:
        return 2 if self.encoding == "utf-16-le" else 1


def read_doc(body: bytes, gathered: TextCollector, _limits: DocumentLimits) -> None:
    """Gather the text with its boxes, then notes, headers and footers. Comments are left out, field codes too."""
    streams = OleStreams(body)
    stream = streams.read("WordDocument")
    if read_uint(stream, 0, 2) not in {0xA5EC, 0xA5DC}:
        raise DocumentError("it does not begin as Word's files do", "damaged")
    flags = read_uint(stream, 0x0A, 2)
    if flags & _WORD_ENCRYPTED:
        raise DocumentError("it can be read with a password only", "encrypted")
    if read_uint(stream, 2, 2) >= _WORD_97:
        lengths_at = 0x4C
        table = streams.read("1Table" if flags & _SECOND_TABLE else "0Table")
        pieces = _read_piece_table(table, read_uint(stream, 0x1A2), read_uint(stream, 0x1A6), None)
    else:
        lengths_at = 0x34
        code_page = _CODE_PAGES.get(read_uint(stream, 6, 2) & 0x3FF, "cp1252")
        if flags & _COMPLEX:
            pieces = _read_piece_table(stream, read_uint(stream, 0x160), read_uint(stream, 0x164), code_page)
        else:
            first = read_uint(stream, 0x18)
            pieces = [_TextPiece(0, read_uint(stream, 0x1C) - first, first, code_page)]
    start = 0
    for index, where in enumerate(_STORIES):
        end = start + read_uint(stream, lengths_at + 4 * index)
        if where is not None:
            _read_story(stream, pieces, start, end, gathered, where)
        start = end


def _read_piece_table(table: bytes, at: int, length: int, code_page: str | None) -> list[_TextPiece]:
    """Return the table of pieces. code_page: of a file of old, in which pieces do not say how they are written."""
    end = min(at + length, len(table))
    while at < end and table[at] == 1:  # formatting of pieces, which comes first
        at += 3 + read_uint(table, at + 1, 2)
    if at >= end or table[at] != 2:
        raise DocumentError("its table of pieces is missing", "damaged")
    size, at = read_uint(table, at + 1), at + 5
    count = (min(size, len(table) - at) - 4) // 12
    pieces = []
    for index in range(count):
        place = read_uint(table, at + 4 * (count + 1) + 8 * index + 2)
        first, last = read_uint(table, at + 4 * index), read_uint(table, at + 4 * index + 4)
        if code_page is not None:
            pieces.append(_TextPiece(first, last, place, code_page))
        elif place & 0x40000000:
            pieces.append(_TextPiece(first, last, (place & 0x3FFFFFFF) // 2, "cp1252"))
        else:
            pieces.append(_TextPiece(first, last, place & 0x3FFFFFFF, "utf-16-le"))
    return pieces


def _read_story(
    stream: bytes, pieces: list[_TextPiece], start: int, end: int, gathered: TextCollector, where: TextSection
) -> None:
    """Gather the characters of one text, without the codes of its fields, of which only the results are seen."""
    fields: list[bool] = []  # for each open field, whether this is its code
    for piece in pieces:
        first, last = max(start, piece.start), min(end, piece.end)
        if first >= last:
            continue
        place = piece.place + (first - piece.start) * piece.width
        content = stream[place : place + (last - first) * piece.width]
        if len(content) < (last - first) * piece.width:
            gathered.is_truncated = True
        for part in _FIELDS.split(content.decode(piece.encoding, "replace")):
            if part == "\x13":
                fields.append(True)
            elif part == "\x14" and fields:
                fields[-1] = False
            elif part == "\x15" and fields:
                fields.pop()
            elif True not in fields:
                gathered.add(part.translate(_SPECIAL), where)
    gathered.add("\n", where)


_POWERPOINT_ENCRYPTED = 0xF3D1C4DF
_SLIDE, _NOTES_SLIDE = 0x03EE, 0x03F0
_SLIDE_PERSIST = 0x03F3
_LIST_WITH_TEXT = 0x0FF0
_OUTLINE_REFERENCE = 0x0F9E
_TEXT_CHARS, _TEXT_BYTES = 0x0FA0, 0x0FA8
_USER_EDIT, _PERSIST_DIRECTORY = 0x0FF5, 0x1772
_LISTS = {0: TextSection.TEXT, 2: TextSection.NOTES}  # the list of masters is 1
_MAX_RECORD_DEPTH = 64  # groups in groups; a file of PowerPoint's has some ten


@dataclass(frozen=True, slots=True)
class _Record:
    """A record: what it is, which of its kind, where its content begins and ends, whether that is records again."""

    kind: int
    instance: int
    start: int
    end: int
    is_container: bool


def read_ppt(body: bytes, gathered: TextCollector, _limits: DocumentLimits) -> None:
    """Gather the text of the slides in order, then the notes. Masters and comments are left out."""
    streams = OleStreams(body)
    user = streams.read("Current User")
    if read_uint(user, 12) == _POWERPOINT_ENCRYPTED:
        raise DocumentError("it can be read with a password only", "encrypted")
    stream = streams.read("PowerPoint Document")
    places, document = _read_persist_directory(stream, read_uint(user, 16))
    for record in _children(stream, _read_record(stream, places.get(document, -1))):
        if record.kind == _LIST_WITH_TEXT and record.instance in _LISTS:
            _read_slide_list(stream, record, places, gathered, _LISTS[record.instance])


def _read_slide_list(
    stream: bytes, record: _Record, places: dict[int, int], gathered: TextCollector, where: TextSection
) -> None:
    """Gather the text of the slides, or notes, that a list names; the outline of each stands behind its name."""
    slides: list[tuple[int, list[str]]] = []
    for child in _children(stream, record):
        if child.kind == _SLIDE_PERSIST:
            slides.append((read_uint(stream, child.start), []))
        elif slides and (text := _record_text(stream, child)) is not None:
            slides[-1][1].append(text)
    for reference, outline in slides:
        place = places.get(reference)
        slide = _read_record(stream, place) if place is not None else None
        if slide is None or slide.kind not in {_SLIDE, _NOTES_SLIDE}:
            gathered.is_truncated = True
            continue
        for part in _descendants(stream, slide):
            text = _record_text(stream, part)
            if text is None and part.kind == _OUTLINE_REFERENCE:
                index = read_uint(stream, part.start)
                text = outline[index] if index < len(outline) else None
            if text is not None:
                gathered.add(text + "\n", where)


def _record_text(stream: bytes, record: _Record) -> str | None:
    """Return what a record of text says; None if it is of another kind. Lines end by controls, which are blanks."""
    content = stream[record.start : record.end]
    if record.kind == _TEXT_CHARS:
        return content.decode("utf-16-le", "replace")
    if record.kind == _TEXT_BYTES:
        return content.decode("latin-1")
    return None


def _read_persist_directory(stream: bytes, edit: int) -> tuple[dict[int, int], int]:
    """Return where the records are by their numbers, and the number of the document.

    edit: where the last saving is described; each description leads to the one before it.
    """
    places: dict[int, int] = {}
    document = -1
    seen: set[int] = set()
    while edit and edit not in seen:
        seen.add(edit)
        record = _read_record(stream, edit)
        if record.kind != _USER_EDIT:
            raise DocumentError("the list of its savings is damaged", "damaged")
        directory = _read_record(stream, read_uint(stream, record.start + 12))
        if directory.kind != _PERSIST_DIRECTORY:
            raise DocumentError("its directory is damaged", "damaged")
        document = read_uint(stream, record.start + 16) if document < 0 else document
        at = directory.start
        while at < directory.end:
            first = read_uint(stream, at)
            count, first = first >> 20, first & 0xFFFFF
            for index in range(count):
                places.setdefault(first + index, read_uint(stream, at + 4 + 4 * index))
            at += 4 + 4 * count
        edit = read_uint(stream, record.start + 8)
    return places, document


def _read_record(stream: bytes, at: int) -> _Record:
    head = read_uint(stream, at, 2)
    start = at + 8
    end = min(start + read_uint(stream, at + 4), len(stream))
    return _Record(read_uint(stream, at + 2, 2), head >> 4, start, end, head & 0xF == 0xF)


def _children(stream: bytes, record: _Record) -> Iterator[_Record]:
    at = record.start
    while at + 8 <= record.end:
        child = _read_record(stream, at)
        yield child
        at = child.end


def _descendants(stream: bytes, record: _Record, depth: int = 0) -> Iterator[_Record]:
    """Yield the records in a record that are no containers, in order."""
    for child in _children(stream, record):
        if not child.is_container:
            yield child
        elif depth < _MAX_RECORD_DEPTH:
            yield from _descendants(stream, child, depth + 1)
