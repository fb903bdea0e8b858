"""The text of doc files, of Word 6 and all later versions that write them.

A file's text lies in pieces, in any order and each in one of two encodings; a table of pieces says which characters of
the text are where. The text is several texts behind each other: the main one, notes, headers and so on, whose lengths
stand in the file's head. Published as [MS-DOC].
"""

import re
from dataclasses import dataclass

from unlost.errors import DocumentError
from unlost.pages.documents.limits import DocumentLimits
from unlost.pages.documents.readers.gathered import TextCollector, TextSection
from unlost.pages.documents.readers.ole import OleStreams, read_uint

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
