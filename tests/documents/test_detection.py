"""Document kinds are detected from bytes, media type and URL."""

import pytest

from tests.documents.samples import FILES, WORDS, make_ole, make_zip, sample
from unlost.documents import DocumentKind, detect_document_kind

URL = "http://a.example/x"


@pytest.mark.parametrize("kind", WORDS)
def test_kind_of_real_document_is_detected_from_bytes(kind: DocumentKind) -> None:
    """LibreOffice documents are detected without and with a wrong media type."""
    assert detect_document_kind(sample(kind), None, URL) is kind
    assert detect_document_kind(sample(kind), "text/html", "http://a.example/x.pdf") is kind


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"%PDF-1.4\n", DocumentKind.PDF),
        (b"\r\n\r\nHTTP junk\n%PDF-1.0", DocumentKind.PDF),
        (b"%!PS-Adobe-2.0", DocumentKind.POSTSCRIPT),
        (b"\x04%!PS", DocumentKind.POSTSCRIPT),
        (b"\xc5\xd0\xd3\xc6\x1e\0\0\0", DocumentKind.POSTSCRIPT),
        (b"{\\rtf1\\ansi", DocumentKind.RTF),
        (make_ole({"WordDocument": b"", "Workbook2": b""}), DocumentKind.DOC),
        (make_ole({"Other": b"", "Book": b""}), DocumentKind.XLS),
        (make_ole({"PowerPoint Document": b""}), DocumentKind.PPT),
        (make_ole({"Other": b""}), None),
        (make_zip({"xl/workbook.bin": b""}), DocumentKind.XLSX),
        (make_zip({"a.txt": b"word/"}), None),
        (b"", None),
        (b"just words", None),
    ],
)
def test_kind_is_detected_from_magic_bytes(body: bytes, kind: DocumentKind | None) -> None:
    """Unknown magic bytes are not a document."""
    assert detect_document_kind(body, None, URL) is kind


@pytest.mark.parametrize(
    ("mime", "kind"),
    [
        ("application/pdf", DocumentKind.PDF),
        ("Application/PostScript; charset=x", DocumentKind.POSTSCRIPT),
        ("application/msword", DocumentKind.DOC),
        ("application/vnd.ms-excel", DocumentKind.XLS),
        ("application/vnd.ms-excel.sheet.macroEnabled.12", DocumentKind.XLSX),
        ("application/vnd.ms-powerpoint", DocumentKind.PPT),
        ("application/vnd.ms-word.document.macroEnabled.12", DocumentKind.DOCX),
        ("application/vnd.openxmlformats-officedocument.presentationml.slideshow", DocumentKind.PPTX),
        ("application/vnd.oasis.opendocument.text-template", DocumentKind.ODT),
        ("text/rtf", DocumentKind.RTF),
        ("text/plain", None),
        (None, None),
    ],
)
def test_kind_of_unknown_bytes_is_detected_from_media_type(mime: str | None, kind: DocumentKind | None) -> None:
    """The declared type is used only if the bytes are inconclusive."""
    assert detect_document_kind(b"\0\1\2\3", mime, URL) is kind


def test_kind_is_detected_from_extension_last() -> None:
    """The media type precedes the extension of the URL path, in any case."""
    assert (
        detect_document_kind(b"\0\1", "application/octet-stream", "http://a.example/A.PPSX?x=y.doc")
        is DocumentKind.PPTX
    )
    assert detect_document_kind(b"\0\1", "application/pdf", "http://a.example/a.doc") is DocumentKind.PDF
    assert detect_document_kind(b"\0\1", "image/png", "http://a.example/a.doc") is None
    assert detect_document_kind(b"\0\1", None, "http://a.example/doc") is None
    assert detect_document_kind(b"\0\1", None, "http://[") is None


@pytest.mark.parametrize("body", [b"<html>Not found", b"\xef\xbb\xbf\n<!DOCTYPE html>", b"GIF89a", b"\x1f\x8b\x08"])
def test_html_declared_as_document_has_no_kind(body: bytes) -> None:
    """A soft 404 with the media type of a document is not one."""
    assert detect_document_kind(body, "application/pdf", "http://a.example/a.pdf") is None


def test_kind_of_truncated_document_is_from_declaration() -> None:
    """ZIP and OLE files without their directory have the declared kind."""
    cut = sample(DocumentKind.DOCX)[:2000]
    assert detect_document_kind(cut, None, URL) is None
    assert detect_document_kind(cut, None, "http://a.example/a.docx") is DocumentKind.DOCX
    assert detect_document_kind(cut, "application/msword", URL) is None
    assert detect_document_kind(sample(DocumentKind.DOC)[:600], "application/msword", URL) is DocumentKind.DOC


def test_kind_of_encrypted_document_is_from_declaration() -> None:
    """An encrypted file lists no parts."""
    body = (FILES / "locked.docx").read_bytes()
    assert detect_document_kind(body, None, "http://a.example/a.pptx") is DocumentKind.PPTX
    assert detect_document_kind(body, None, URL) is DocumentKind.DOCX


@pytest.mark.parametrize("kind", WORDS)
def test_kind_detection_of_damaged_document_raises_no_exception(kind: DocumentKind) -> None:
    """Truncated and modified documents yield a result."""
    body = sample(kind)
    for place in range(0, len(body), max(1, len(body) // 300)):
        detect_document_kind(body[:place], "application/msword", URL)
        detect_document_kind(body[:place] + b"\xff" * 40 + body[place + 40 :], None, URL)


def test_kind_detection_of_cyclic_ole_ends() -> None:
    """A directory that refers to itself is read once."""
    body = bytearray(make_ole({"Other": b""}))
    directory, table = (int.from_bytes(body[at : at + 4], "little") for at in (0x30, 0x4C))
    table_entry = (table + 1) * 512 + 4 * directory
    body[table_entry : table_entry + 4] = directory.to_bytes(4, "little")
    entry = (directory + 1) * 512 + 128
    body[entry + 0x44 : entry + 0x4C] = pack_numbers(1, 0)
    assert detect_document_kind(bytes(body), None, URL) is None


def pack_numbers(*numbers: int) -> bytes:
    """Return numbers as in OLE files."""
    return b"".join(number.to_bytes(4, "little") for number in numbers)
