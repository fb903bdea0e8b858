"""What kind of document a body is."""

import pytest

from tests.documents.samples import FILES, WORDS, ole, sample, zipped
from unlost.documents import DocumentKind, detect_document_kind

SOMEWHERE = "http://a.example/x"


@pytest.mark.parametrize("kind", WORDS)
def test_real_files_are_told_by_their_bytes(kind: DocumentKind) -> None:
    """What LibreOffice wrote is known without a type, and under a wrong one."""
    assert detect_document_kind(sample(kind), None, SOMEWHERE) is kind
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
        (ole({"WordDocument": b"", "Workbook2": b""}), DocumentKind.DOC),
        (ole({"Other": b"", "Book": b""}), DocumentKind.XLS),
        (ole({"PowerPoint Document": b""}), DocumentKind.PPT),
        (ole({"Other": b""}), None),
        (zipped({"xl/workbook.bin": b""}), DocumentKind.XLSX),
        (zipped({"a.txt": b"word/"}), None),
        (b"", None),
        (b"just words", None),
    ],
)
def test_first_bytes_tell(body: bytes, kind: DocumentKind | None) -> None:
    """The mark of a format is enough, and an unknown one is no document."""
    assert detect_document_kind(body, None, SOMEWHERE) is kind


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
def test_unclear_bytes_are_told_by_type(mime: str | None, kind: DocumentKind | None) -> None:
    """Where bytes say nothing, the told type counts."""
    assert detect_document_kind(b"\0\1\2\3", mime, SOMEWHERE) is kind


def test_the_ending_counts_last() -> None:
    """A type goes before an ending, and an ending is that of the path, whatever its case."""
    assert (
        detect_document_kind(b"\0\1", "application/octet-stream", "http://a.example/A.PPSX?x=y.doc")
        is DocumentKind.PPTX
    )
    assert detect_document_kind(b"\0\1", "application/pdf", "http://a.example/a.doc") is DocumentKind.PDF
    assert detect_document_kind(b"\0\1", "image/png", "http://a.example/a.doc") is None
    assert detect_document_kind(b"\0\1", None, "http://a.example/doc") is None
    assert detect_document_kind(b"\0\1", None, "http://[") is None


@pytest.mark.parametrize("body", [b"<html>Not found", b"\xef\xbb\xbf\n<!DOCTYPE html>", b"GIF89a", b"\x1f\x8b\x08"])
def test_a_page_in_the_place_of_a_document_is_none(body: bytes) -> None:
    """A soft 404 with the type of the document that it stands for is not read as one."""
    assert detect_document_kind(body, "application/pdf", "http://a.example/a.pdf") is None


def test_what_was_cut_is_told_by_its_type() -> None:
    """A zip file without its directory, and an OLE file without its own, are what they were said to be."""
    cut = sample(DocumentKind.DOCX)[:2000]
    assert detect_document_kind(cut, None, SOMEWHERE) is None
    assert detect_document_kind(cut, None, "http://a.example/a.docx") is DocumentKind.DOCX
    assert detect_document_kind(cut, "application/msword", SOMEWHERE) is None
    assert detect_document_kind(sample(DocumentKind.DOC)[:600], "application/msword", SOMEWHERE) is DocumentKind.DOC


def test_locked_files_are_told_by_their_type() -> None:
    """A file with a password shows no parts, and is what it was said to be."""
    body = (FILES / "locked.docx").read_bytes()
    assert detect_document_kind(body, None, "http://a.example/a.pptx") is DocumentKind.PPTX
    assert detect_document_kind(body, None, SOMEWHERE) is DocumentKind.DOCX


@pytest.mark.parametrize("kind", WORDS)
def test_looking_at_damaged_files_raises_nothing(kind: DocumentKind) -> None:
    """Whatever is cut or changed, there is an answer."""
    body = sample(kind)
    for place in range(0, len(body), max(1, len(body) // 300)):
        detect_document_kind(body[:place], "application/msword", SOMEWHERE)
        detect_document_kind(body[:place] + b"\xff" * 40 + body[place + 40 :], None, SOMEWHERE)


def test_cyclic_chains_end() -> None:
    """An OLE file whose directory leads to itself is looked at once."""
    body = bytearray(ole({"Other": b""}))
    directory, table = (int.from_bytes(body[at : at + 4], "little") for at in (0x30, 0x4C))
    place = (table + 1) * 512 + 4 * directory
    body[place : place + 4] = directory.to_bytes(4, "little")
    entry = (directory + 1) * 512 + 128
    body[entry + 0x44 : entry + 0x4C] = struct_of(1, 0)
    assert detect_document_kind(bytes(body), None, SOMEWHERE) is None


def struct_of(*numbers: int) -> bytes:
    """Return numbers as OLE files have them."""
    return b"".join(number.to_bytes(4, "little") for number in numbers)
