"""Text of OLE documents: doc (Word 6 and later, [MS-DOC]) and ppt (PowerPoint 97 and later, [MS-PPT]).

The text of a doc file consists of pieces, listed in a piece table. A ppt file is a tree of records, located by a
persist directory; the text is in the slides, or in an outline that they refer to.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO

import olefile

from unlost.documents.limits import DocumentLimits, TextCollector, TextSection
from unlost.errors import DocumentError


class OleStreams:
    """The streams in the root of an OLE file. Raises DocumentError for a damaged file."""

    def __init__(self, body: bytes) -> None:
        try:
            self._file = olefile.OleFileIO(BytesIO(body))
        except (OSError, ValueError, IndexError) as error:
            raise DocumentError("it is no whole OLE file", "damaged") from error

    def read(self, name: str) -> bytes:
        """Return the content of a stream. Raises DocumentError if it is missing or damaged."""
        try:
            return bytes(self._file.openstream(name).read())
        except (OSError, ValueError, IndexError) as error:
            raise DocumentError(f"its stream {name!r} is missing or damaged", "damaged") from error


def read_uint(data: bytes, position: int, size: int = 4) -> int:
    """Return a little-endian unsigned integer. Raises DocumentError at the end of the data."""
    if not 0 <= position <= len(data) - size:
        raise DocumentError("a number in it is missing", "damaged")
    return int.from_bytes(data[position : position + size], "little")


# Flags of FibBase, [MS-DOC].
_WORD_ENCRYPTED = 0x0100  # fEncrypted
_SECOND_TABLE = 0x0200  # fWhichTblStm
_COMPLEX = 0x0004  # fComplex; in Word 6 and 95: whether there is a piece table
_WORD_97 = 0xC1  # nFib of Word 97
# The order of the stories in the text: main text, footnotes, headers, macros, comments, endnotes, text boxes, text
# boxes of headers. None is omitted.
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
# In Word 6 and 95, a file has one encoding, that of its language (the lower ten bits of the language ID). Other
# languages have cp1252.
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
# Non-breaking and optional hyphens; ends of cells, lines, pages and paragraphs; placeholders of images and notes.
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
    """A range of characters of the text, the offset of its bytes in the stream, and its encoding."""

    start: int
    end: int
    offset: int
    encoding: str

    @property
    def width(self) -> int:
        return 2 if self.encoding == "utf-16-le" else 1


def read_doc(body: bytes, collector: TextCollector, _limits: DocumentLimits) -> None:
    """Collect the text including text boxes, then notes, headers and footers. Comments and field codes are omitted."""
    streams = OleStreams(body)
    stream = streams.read("WordDocument")
    if read_uint(stream, 0, 2) not in {0xA5EC, 0xA5DC}:  # wIdent of Word 97 and later, and of Word 6 and 95
        raise DocumentError("it does not begin as Word's files do", "damaged")
    flags = read_uint(stream, 0x0A, 2)
    if flags & _WORD_ENCRYPTED:
        raise DocumentError("it can be read with a password only", "encrypted")
    if read_uint(stream, 2, 2) >= _WORD_97:
        lengths_at = 0x4C  # ccpText and the lengths of the other stories
        table = streams.read("1Table" if flags & _SECOND_TABLE else "0Table")
        pieces = _read_piece_table(table, read_uint(stream, 0x1A2), read_uint(stream, 0x1A6), None)  # fcClx, lcbClx
    else:
        lengths_at = 0x34
        code_page = _CODE_PAGES.get(read_uint(stream, 6, 2) & 0x3FF, "cp1252")
        if flags & _COMPLEX:
            pieces = _read_piece_table(stream, read_uint(stream, 0x160), read_uint(stream, 0x164), code_page)
        else:
            first = read_uint(stream, 0x18)
            pieces = [_TextPiece(0, read_uint(stream, 0x1C) - first, first, code_page)]
    start = 0
    for index, section in enumerate(_STORIES):
        end = start + read_uint(stream, lengths_at + 4 * index)
        if section is not None:
            _read_story(stream, pieces, start, end, collector, section)
        start = end


def _read_piece_table(table: bytes, position: int, length: int, code_page: str | None) -> list[_TextPiece]:
    """Read the piece table (Clx). `code_page` is the encoding of all pieces in files of Word 6 and 95, else None."""
    end = min(position + length, len(table))
    while position < end and table[position] == 1:  # skip the formatting of pieces
        position += 3 + read_uint(table, position + 1, 2)
    if position >= end or table[position] != 2:
        raise DocumentError("its table of pieces is missing", "damaged")
    size, position = read_uint(table, position + 1), position + 5
    count = (min(size, len(table) - position) - 4) // 12
    pieces = []
    for index in range(count):
        offset = read_uint(table, position + 4 * (count + 1) + 8 * index + 2)
        first, last = read_uint(table, position + 4 * index), read_uint(table, position + 4 * index + 4)
        if code_page is not None:
            pieces.append(_TextPiece(first, last, offset, code_page))
        elif offset & 0x40000000:  # fCompressed: one byte per character
            pieces.append(_TextPiece(first, last, (offset & 0x3FFFFFFF) // 2, "cp1252"))
        else:
            pieces.append(_TextPiece(first, last, offset & 0x3FFFFFFF, "utf-16-le"))
    return pieces


def _read_story(
    stream: bytes, pieces: list[_TextPiece], start: int, end: int, collector: TextCollector, section: TextSection
) -> None:
    """Collect the characters of one story. Field codes are omitted, field results are not."""
    fields: list[bool] = []  # for each open field, whether its code is being read
    for piece in pieces:
        first, last = max(start, piece.start), min(end, piece.end)
        if first >= last:
            continue
        offset = piece.offset + (first - piece.start) * piece.width
        content = stream[offset : offset + (last - first) * piece.width]
        if len(content) < (last - first) * piece.width:
            collector.is_truncated = True
        for part in _FIELDS.split(content.decode(piece.encoding, "replace")):
            if part == "\x13":
                fields.append(True)
            elif part == "\x14" and fields:
                fields[-1] = False
            elif part == "\x15" and fields:
                fields.pop()
            elif True not in fields:
                collector.add(part.translate(_SPECIAL), section)
    collector.add("\n", section)


_POWERPOINT_ENCRYPTED = 0xF3D1C4DF  # headerToken of CurrentUserAtom
# Record types, RecordType of [MS-PPT].
_SLIDE, _NOTES_SLIDE = 0x03EE, 0x03F0
_SLIDE_PERSIST = 0x03F3
_LIST_WITH_TEXT = 0x0FF0
_OUTLINE_REFERENCE = 0x0F9E
_TEXT_CHARS, _TEXT_BYTES = 0x0FA0, 0x0FA8
_USER_EDIT, _PERSIST_DIRECTORY = 0x0FF5, 0x1772
_LISTS = {0: TextSection.TEXT, 2: TextSection.NOTES}  # by instance; 1 is the list of masters
_MAX_RECORD_DEPTH = 64  # files of PowerPoint have about ten levels


@dataclass(frozen=True, slots=True)
class _Record:
    """A record: its type, its instance, the range of its content, and whether its content consists of records."""

    kind: int
    instance: int
    start: int
    end: int
    is_container: bool


def read_ppt(body: bytes, collector: TextCollector, _limits: DocumentLimits) -> None:
    """Collect the text of the slides in order, then the notes. Masters and comments are omitted."""
    streams = OleStreams(body)
    current_user = streams.read("Current User")
    if read_uint(current_user, 12) == _POWERPOINT_ENCRYPTED:
        raise DocumentError("it can be read with a password only", "encrypted")
    stream = streams.read("PowerPoint Document")
    offsets, document = _read_persist_directory(stream, read_uint(current_user, 16))
    for record in _children(stream, _read_record(stream, offsets.get(document, -1))):
        if record.kind == _LIST_WITH_TEXT and record.instance in _LISTS:
            _read_slide_list(stream, record, offsets, collector, _LISTS[record.instance])


def _read_slide_list(
    stream: bytes, record: _Record, offsets: dict[int, int], collector: TextCollector, section: TextSection
) -> None:
    """Collect the text of the slides or notes in a list. The outline of each follows its entry."""
    slides: list[tuple[int, list[str]]] = []
    for child in _children(stream, record):
        if child.kind == _SLIDE_PERSIST:
            slides.append((read_uint(stream, child.start), []))
        elif slides and (text := _record_text(stream, child)) is not None:
            slides[-1][1].append(text)
    for reference, outline in slides:
        offset = offsets.get(reference)
        slide = _read_record(stream, offset) if offset is not None else None
        if slide is None or slide.kind not in {_SLIDE, _NOTES_SLIDE}:
            collector.is_truncated = True
            continue
        for part in _descendants(stream, slide):
            text = _record_text(stream, part)
            if text is None and part.kind == _OUTLINE_REFERENCE:
                index = read_uint(stream, part.start)
                text = outline[index] if index < len(outline) else None
            if text is not None:
                collector.add(text + "\n", section)


def _record_text(stream: bytes, record: _Record) -> str | None:
    """Return the text of a text record; None for other records.

    Its line ends are control characters, which the collector treats as white space.
    """
    content = stream[record.start : record.end]
    if record.kind == _TEXT_CHARS:
        return content.decode("utf-16-le", "replace")
    if record.kind == _TEXT_BYTES:
        return content.decode("latin-1")
    return None


def _read_persist_directory(stream: bytes, edit: int) -> tuple[dict[int, int], int]:
    """Return the offsets of the records by persist ID, and the persist ID of the document record.

    `edit` is the offset of the last UserEditAtom; each refers to the previous one, whose offsets it overrides.
    """
    offsets: dict[int, int] = {}
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
        position = directory.start
        while position < directory.end:
            first = read_uint(stream, position)
            count, first = first >> 20, first & 0xFFFFF
            for index in range(count):
                offsets.setdefault(first + index, read_uint(stream, position + 4 + 4 * index))
            position += 4 + 4 * count
        edit = read_uint(stream, record.start + 8)
    return offsets, document


def _read_record(stream: bytes, position: int) -> _Record:
    head = read_uint(stream, position, 2)
    start = position + 8
    end = min(start + read_uint(stream, position + 4), len(stream))
    return _Record(read_uint(stream, position + 2, 2), head >> 4, start, end, head & 0xF == 0xF)


def _children(stream: bytes, record: _Record) -> Iterator[_Record]:
    position = record.start
    while position + 8 <= record.end:
        child = _read_record(stream, position)
        yield child
        position = child.end


def _descendants(stream: bytes, record: _Record, depth: int = 0) -> Iterator[_Record]:
    """Yield the records within a record that are not containers, depth first."""
    for child in _children(stream, record):
        if not child.is_container:
            yield child
        elif depth < _MAX_RECORD_DEPTH:
            yield from _descendants(stream, child, depth + 1)
