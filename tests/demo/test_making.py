"""Tests that generated images, documents and pages are valid."""

import struct
import zlib

from unlost.demo import build_body, build_pdf, build_png
from unlost.documents import DocumentKind, DocumentReader


def pixels(picture: bytes) -> list[list[bytes]]:
    """Return the colours of a PNG with a palette, row by row; verify all checksums."""
    chunks, offset = {}, 8
    while offset < len(picture):
        size, kind = struct.unpack(">I4s", picture[offset : offset + 8])
        data = picture[offset + 8 : offset + 8 + size]
        assert struct.unpack(">I", picture[offset + 8 + size :][:4])[0] == zlib.crc32(kind + data)
        chunks[kind] = data
        offset += 12 + size
    wide, tall = struct.unpack(">II", chunks[b"IHDR"][:8])
    lines = zlib.decompress(chunks[b"IDAT"])
    assert len(lines) == tall * (wide + 1)
    rows = [lines[row * (wide + 1) + 1 : (row + 1) * (wide + 1)] for row in range(tall)]
    return [[chunks[b"PLTE"][3 * each : 3 * each + 3] for each in row] for row in rows]


def test_png_has_the_colours_of_the_drawing() -> None:
    """Each letter is a square of its colour, in the given scale."""
    red, blue = b"\xff\0\0", b"\0\0\xff"
    assert pixels(build_png("scale 2\nr #ff0000\nb #0000ff\n\nrb\n")) == [[red, red, blue, blue]] * 2


def test_pdf_contains_all_lines() -> None:
    """PDFium extracts the text, including brackets."""
    with DocumentReader() as documents:
        text = documents.extract_text(build_pdf(["one (1)", "two"]), DocumentKind.PDF).text
    assert text.split() == ["one", "(1)", "two"]


def test_relative_links_depend_on_page_depth() -> None:
    """Links of the navigation lead to the top folder."""
    assert b'href="../index.html"' in build_body("news.html", "news/", "News")
    assert b'href="index.html"' in build_body("visit.html", "visit.html", "Visit us")
