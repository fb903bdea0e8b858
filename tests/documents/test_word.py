"""Text pieces of generated doc files."""

import struct

import pytest

from tests.documents.samples import make_ole
from unlost.documents import DocumentKind, DocumentReader
from unlost.errors import DocumentError
from unlost.html import ExtractedText


def make_word_97(pieces: list[tuple[str, str]], lengths: list[int]) -> bytes:
    """Return a fast-saved Word file, with text pieces in reverse order of their file offsets.

    pieces: text and encoding. lengths: of the eight texts, in characters.
    """
    stream = bytearray(2048)
    struct.pack_into("<HH", stream, 0, 0xA5EC, 0xC1)
    struct.pack_into("<8L", stream, 0x4C, *lengths)
    starts, offsets = [0], []
    for text, _ in pieces:
        starts.append(starts[-1] + len(text))
    for text, encoding in reversed(pieces):
        offsets.append(len(stream) if encoding == "utf-16-le" else len(stream) * 2 | 0x40000000)
        stream += text.encode(encoding)
    table = struct.pack(f"<{len(starts)}L", *starts)
    table += b"".join(struct.pack("<HLH", 0, place, 0) for place in reversed(offsets))
    clx = b"\x01\x02\x00ab" + b"\x02" + struct.pack("<L", len(table)) + table
    struct.pack_into("<LL", stream, 0x1A2, 7, len(clx))
    return make_ole({"WordDocument": bytes(stream), "0Table": b"1234567" + clx})


def make_word_95(text: bytes, language: int) -> bytes:
    """Return a Word 95 file."""
    stream = bytearray(1024)
    struct.pack_into("<HHHH", stream, 0, 0xA5DC, 104, 0, language)
    struct.pack_into("<LL", stream, 0x18, len(stream), len(stream) + len(text))
    struct.pack_into("<8L", stream, 0x34, len(text), *[0] * 7)
    return make_ole({"WordDocument": bytes(stream) + text})


def test_word_pieces_are_joined_in_order(documents: DocumentReader) -> None:
    """Pieces of both encodings are joined, also within a word, and assigned to their texts."""
    body = make_word_97(
        [
            ("The naï", "cp1252"),
            ("ve Привет\r", "utf-16-le"),
            ("a note\rhead", "cp1252"),
            ("er\rcomment\r", "utf-16-le"),
        ],
        [17, 7, 7, 0, 8, 0, 0, 0],
    )
    assert documents.extract_text(body, DocumentKind.DOC) == ExtractedText("The naïve Привет a note header", cut=False)


def test_word_field_codes_are_omitted(documents: DocumentReader) -> None:
    """Codes of nested fields and across pieces are omitted."""
    text = 'see \x13 HYPERLINK "http://a.example" \x13 PAGE \x14 7 \x15 \x14the \x01link\x15 there\x07cell\x1e1\r'
    body = make_word_97([(text[:20], "cp1252"), (text[20:], "cp1252")], [len(text), 0, 0, 0, 0, 0, 0, 0])
    assert documents.extract_text(body, DocumentKind.DOC).text == "see the link there cell-1"


@pytest.mark.parametrize(("language", "encoding"), [(0x0419, "cp1251"), (0x0405, "cp1250"), (0x0407, "cp1252")])
def test_word_95_encoding_depends_on_language(documents: DocumentReader, language: int, encoding: str) -> None:
    """Word 6 and 95 use one encoding per file."""
    words = {"cp1251": "Привет, мир", "cp1250": "příliš žluťoučký", "cp1252": "Grüße aus Köln"}[encoding]
    body = make_word_95(words.encode(encoding) + b"\r", language)
    assert documents.extract_text(body, DocumentKind.DOC) == ExtractedText(words, cut=False)


def test_word_piece_beyond_file_is_marked_as_cut(documents: DocumentReader) -> None:
    """The available text is returned."""
    body = make_word_97([("abc", "cp1252")], [3, 0, 0, 0, 0, 0, 0, 0])
    place = body.rindex(struct.pack("<2L", 0, 3))
    body = body[: place + 4] + struct.pack("<L", 9_000) + body[place + 8 :]
    head = body.index(struct.pack("<L", 3) + bytes(28))
    body = body[:head] + struct.pack("<L", 9_000) + body[head + 4 :]
    text = documents.extract_text(body, DocumentKind.DOC)
    assert text.text.startswith("abc")
    assert text.cut


def test_word_file_without_table_is_damaged(documents: DocumentReader) -> None:
    """A missing table is not an empty text."""
    with pytest.raises(DocumentError, match="Table") as caught:
        documents.extract_text(make_ole({"WordDocument": b"\xec\xa5\xc1\0".ljust(2048, b"\0")}), DocumentKind.DOC)
    assert caught.value.kind == "damaged"
