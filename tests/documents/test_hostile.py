"""Damaged and malicious documents yield a text or an error, and the reader remains usable."""

import random
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.documents.samples import HELLO, WORDS, make_ole, make_pdf, make_postscript, make_zip, sample
from unlost.documents import DocumentKind, DocumentLimits, DocumentReader
from unlost.errors import DocumentError

KINDS = ("damaged", "encrypted", "too-long", "too-big")

SHORT = DocumentLimits(memory=512 << 20, unpacked=64 << 20)


def extract_outcome(documents: DocumentReader, body: bytes, kind: DocumentKind) -> str:
    """Return `text` or the kind of the error."""
    try:
        documents.extract_text(body, kind)
    except DocumentError as error:
        caught = error
    else:
        return "text"
    assert caught.kind in KINDS
    assert len(str(caught)) < 200
    return caught.kind


def is_working(documents: DocumentReader) -> bool:
    """Return whether the next document is read."""
    return documents.extract_text(HELLO, DocumentKind.RTF).text == "Hello"


@pytest.mark.parametrize("kind", [*WORDS, DocumentKind.PDF])
def test_truncated_document_yields_text_or_error(documents: DocumentReader, kind: DocumentKind, tmp_path: Path) -> None:
    """A document cut anywhere yields its remaining text or is damaged."""
    body = make_pdf(make_postscript("words"), tmp_path) if kind is DocumentKind.PDF else sample(kind)
    outcomes = {extract_outcome(documents, body[: len(body) * part // 25], kind) for part in range(25)}
    assert outcomes <= {"text", "damaged"}
    assert is_working(documents)


@pytest.mark.parametrize("kind", [*WORDS, DocumentKind.PDF])
def test_corrupt_document_yields_text_or_error(documents: DocumentReader, kind: DocumentKind, tmp_path: Path) -> None:
    """Random changes, also of everything but the magic bytes, yield a valid outcome."""
    body = make_pdf(make_postscript("words"), tmp_path) if kind is DocumentKind.PDF else sample(kind)
    rng = random.Random(8)  # noqa: S311  not used for cryptography
    for _ in range(25):
        changed = bytearray(body)
        for _ in range(rng.choice((1, 10, 100))):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        extract_outcome(documents, bytes(changed), kind)
    for length in (10, 1_000, 100_000):
        extract_outcome(documents, body[:8] + rng.randbytes(length), kind)
        extract_outcome(documents, body[:600] + rng.randbytes(length), kind)
    assert is_working(documents)


@pytest.mark.parametrize("kind", DocumentKind)
def test_invalid_document_of_each_kind_is_rejected(documents: DocumentReader, kind: DocumentKind) -> None:
    """Empty bodies and plain text are damaged; in PostScript and RTF they may be empty text."""
    for body in (b"", b"\0", b"nonsense " * 100):
        assert extract_outcome(documents, body, kind) in {"damaged", "text"}
    if kind not in {DocumentKind.RTF, DocumentKind.POSTSCRIPT}:
        assert extract_outcome(documents, b"nonsense " * 100, kind) == "damaged"


def exponential_entities() -> bytes:
    """Return XML whose entities expand from some hundred bytes to gigabytes."""
    declared = b"".join(b'<!ENTITY %c "%s">' % (98 + level, b"&%c;" % (97 + level) * 10) for level in range(9))
    return b'<!DOCTYPE a [<!ENTITY a "lollollol">' + declared + b"]><p><t>&j;</t></p>"


def make_sparse_sheet(name: str) -> bytes:
    """Return a spreadsheet with two cells at opposite corners."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = (
        f'<worksheet xmlns="{main}"><sheetData><row r="1"><c r="A1"><v>1</v></c></row>'
        f'<row r="1048576"><c r="{name}"><v>2</v></c></row></sheetData></worksheet>'
    )
    return make_zip({"xl/worksheets/sheet1.xml": sheet.encode()}, sample(DocumentKind.XLSX))


def make_page_tree(kids: bytes, count: int) -> bytes:
    """Return a PDF with such a page tree."""
    return (
        b"%%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[%b]/Count %d>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\ntrailer<</Root 1 0 R>>\n" % (kids, count)
    )


def make_cyclic_ole(*, directory: bool) -> bytes:
    """Return a doc whose directory or text sectors form a cycle."""
    body = bytearray(make_ole({"WordDocument": bytes(20_000), "0Table": b""}))
    table = (int.from_bytes(body[0x4C:0x50], "little") + 1) * 512
    place = int.from_bytes(body[0x30:0x34], "little") if directory else 20
    body[table + 4 * place : table + 4 * place + 4] = (place if directory else 3).to_bytes(4, "little")
    return bytes(body)


# Kind, builder (called by the test, since some are large), and expected outcomes; None allows any.
BOMBS: dict[str, tuple[DocumentKind, Callable[[], bytes], set[str] | None]] = {
    "oversized part": (
        DocumentKind.DOCX,
        lambda: make_zip({"word/document.xml": b"<p>" + b" " * (80 << 20)}),
        {"too-big"},
    ),
    "oversized text": (
        DocumentKind.ODT,
        lambda: make_zip({"content.xml": b"<p>" + b"a" * (40 << 20)}),
        {"text"},
    ),
    "oversized element name": (
        DocumentKind.PPTX,
        lambda: make_zip({"ppt/slides/slide1.xml": b"<" + b"a" * (60 << 20)}),
        None,
    ),
    "deeply nested elements": (
        DocumentKind.DOCX,
        lambda: make_zip({"word/document.xml": b"<p>" * (8 << 20)}),
        None,
    ),
    "entities": (DocumentKind.DOCX, lambda: make_zip({"word/document.xml": exponential_entities()}), {"damaged"}),
    "entities in an odt": (DocumentKind.ODT, lambda: make_zip({"content.xml": exponential_entities()}), {"damaged"}),
    "entities in a sheet": (
        DocumentKind.XLSX,
        lambda: make_zip({"xl/workbook.xml": exponential_entities()}, sample(DocumentKind.XLSX)),
        None,
    ),
    "sparse sheet": (DocumentKind.XLSX, lambda: make_sparse_sheet("XFD1048576"), {"too-big", "damaged"}),
    "memory limit": (DocumentKind.XLSX, lambda: make_sparse_sheet("Z1048576"), {"too-big"}),
    "cyclic page tree": (DocumentKind.PDF, lambda: make_page_tree(b"2 0 R", 1_000_000_000), None),
    "missing pages": (DocumentKind.PDF, lambda: make_page_tree(b"3 0 R", 2_000_000_000), None),
    "too many pages": (DocumentKind.PDF, lambda: make_page_tree(b"3 0 R " * 500_000, 500_000), {"too-long"}),
    "cyclic sectors": (DocumentKind.DOC, lambda: make_cyclic_ole(directory=False), {"damaged"}),
    "cyclic directory": (DocumentKind.DOC, lambda: make_cyclic_ole(directory=True), {"damaged"}),
    "deeply nested groups": (DocumentKind.RTF, lambda: b"{\\rtf" + b"{" * (1 << 17), {"text"}),
    "too many groups": (DocumentKind.RTF, lambda: b"{\\rtf" + b"{a}" * (10 << 20), {"too-long"}),
    "endless loop": (DocumentKind.POSTSCRIPT, lambda: b"%!PS\n{} loop", {"too-long"}),
    "unbounded allocation": (DocumentKind.POSTSCRIPT, lambda: b"%!PS\n[ {65000 string} loop", None),
}


@pytest.mark.parametrize("name", BOMBS)
def test_document_bomb_is_stopped(name: str) -> None:
    """Time and memory are limited, and the next document is read."""
    kind, body, expected = BOMBS[name]
    seconds = 2 if expected in (None, {"too-long"}) else 15
    with DocumentReader(processes=1, limits=replace(SHORT, seconds=seconds)) as documents:
        result = extract_outcome(documents, body(), kind)
        assert result in (expected or {"text", *KINDS})
        assert is_working(documents)


@pytest.mark.parametrize(
    "program",
    [
        "({path}) (r) file 100 string readline pop show",
        "({path}) (w) file closefile",
        "({path}) (a) file dup (more) writestring closefile",
        "({path}) deletefile",
        "({path}) ({path}2) renamefile",
        "(%pipe%rm {path}) (r) file closefile",
        "({path}2) (w) file dup (made) writestring closefile",
        "(/etc/passwd) (r) file 100 string readline pop show",
        "<< /OutputFile ({path}) >> setpagedevice",
    ],
)
def test_postscript_cannot_access_files(documents: DocumentReader, program: str, tmp_path: Path) -> None:
    """A program in a document cannot read, write, delete or create files, also in temporary folders."""
    existing = tmp_path / "existing"
    existing.write_text("precious\n")
    body = make_postscript("before", then=program.format(path=existing))
    try:
        result = documents.extract_text(body, DocumentKind.POSTSCRIPT).text
    except DocumentError as error:
        result = error.kind
    assert result in {"before", "damaged"}
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"existing": "precious\n"}


def test_document_beyond_size_limit_is_rejected_unread() -> None:
    """No process is started."""
    with DocumentReader(limits=DocumentLimits(body=100)) as documents:
        assert extract_outcome(documents, b"%PDF-" + bytes(100), DocumentKind.PDF) == "too-big"


def test_ppt_with_invalid_record_lengths_yields_text_or_error(documents: DocumentReader) -> None:
    """Records that exceed their container or refer backwards do not cause endless loops."""
    user = bytearray(100)
    struct.pack_into("<LLL", user, 8, 20, 0xE391C05F, 8)
    edit = struct.pack("<HHL", 0, 0x0FF5, 0xFFFFFFFF) + struct.pack("<LHBBLLL", 0, 0, 0, 3, 8, 48, 1)
    directory = struct.pack("<HHLLL", 0, 0x1772, 8, 1 << 20 | 1, 0)
    stream = (bytes(8) + edit).ljust(48, b"\0") + directory
    body = make_ole({"Current User": bytes(user), "PowerPoint Document": stream})
    assert extract_outcome(documents, body, DocumentKind.PPT) in {"text", "damaged"}
    assert is_working(documents)
