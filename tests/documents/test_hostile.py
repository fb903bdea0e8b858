"""Documents that are damaged, or made to do harm: each ends with a text or an error, and the next one is read."""

import random
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.documents.samples import HELLO, WORDS, ole, pdf, postscript, sample, zipped
from unlost.documents import DocumentKind, DocumentLimits, DocumentReader
from unlost.errors import DocumentError

KINDS = ("damaged", "encrypted", "too-long", "too-big")

SHORT = DocumentLimits(memory=512 << 20, unpacked=64 << 20)


def outcome(documents: DocumentReader, body: bytes, kind: DocumentKind) -> str:
    """Return `text`, or the kind of the error."""
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
def test_truncated_documents(documents: DocumentReader, kind: DocumentKind, tmp_path: Path) -> None:
    """Cut anywhere, a document gives what is left of it or is damaged."""
    body = pdf(postscript("words"), tmp_path) if kind is DocumentKind.PDF else sample(kind)
    seen = {outcome(documents, body[: len(body) * part // 25], kind) for part in range(25)}
    assert seen <= {"text", "damaged"}
    assert is_working(documents)


@pytest.mark.parametrize("kind", [*WORDS, DocumentKind.PDF])
def test_changed_documents(documents: DocumentReader, kind: DocumentKind, tmp_path: Path) -> None:
    """With bytes changed at random, or nothing right but the first ones, there is an answer of the right kind."""
    body = pdf(postscript("words"), tmp_path) if kind is DocumentKind.PDF else sample(kind)
    chance = random.Random(8)  # noqa: S311  nobody gains by guessing it
    for _ in range(25):
        changed = bytearray(body)
        for _ in range(chance.choice((1, 10, 100))):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        outcome(documents, bytes(changed), kind)
    for length in (10, 1_000, 100_000):
        outcome(documents, body[:8] + chance.randbytes(length), kind)
        outcome(documents, body[:600] + chance.randbytes(length), kind)
    assert is_working(documents)


@pytest.mark.parametrize("kind", DocumentKind)
def test_every_kind_refuses_what_is_none(documents: DocumentReader, kind: DocumentKind) -> None:
    """An empty body and nonsense are damaged, in PostScript and RTF, which are programs, at most empty."""
    for body in (b"", b"\0", b"nonsense " * 100):
        assert outcome(documents, body, kind) in {"damaged", "text"}
    if kind not in {DocumentKind.RTF, DocumentKind.POSTSCRIPT}:
        assert outcome(documents, b"nonsense " * 100, kind) == "damaged"


def entities() -> bytes:
    """Return XML of which some hundred bytes become gigabytes."""
    declared = b"".join(b'<!ENTITY %c "%s">' % (98 + level, b"&%c;" % (97 + level) * 10) for level in range(9))
    return b'<!DOCTYPE a [<!ENTITY a "lollollol">' + declared + b"]><p><t>&j;</t></p>"


def far_cell(name: str) -> bytes:
    """Return a spreadsheet of two cells with all others between them."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = (
        f'<worksheet xmlns="{main}"><sheetData><row r="1"><c r="A1"><v>1</v></c></row>'
        f'<row r="1048576"><c r="{name}"><v>2</v></c></row></sheetData></worksheet>'
    )
    return zipped({"xl/worksheets/sheet1.xml": sheet.encode()}, sample(DocumentKind.XLSX))


def pages(kids: bytes, count: int) -> bytes:
    """Return a PDF with such a tree of pages."""
    return (
        b"%%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[%b]/Count %d>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\ntrailer<</Root 1 0 R>>\n" % (kids, count)
    )


def cyclic(*, directory: bool) -> bytes:
    """Return a doc in which the sectors of its directory, or of its text, follow each other in a circle."""
    body = bytearray(ole({"WordDocument": bytes(20_000), "0Table": b""}))
    table = (int.from_bytes(body[0x4C:0x50], "little") + 1) * 512
    place = int.from_bytes(body[0x30:0x34], "little") if directory else 20
    body[table + 4 * place : table + 4 * place + 4] = (place if directory else 3).to_bytes(4, "little")
    return bytes(body)


# What kind it is, what makes it (when it is its turn: some are large), and what may come of it; None is anything.
BOMBS: dict[str, tuple[DocumentKind, Callable[[], bytes], set[str] | None]] = {
    "a part that is too big": (
        DocumentKind.DOCX,
        lambda: zipped({"word/document.xml": b"<p>" + b" " * (80 << 20)}),
        {"too-big"},
    ),
    "text that is too long": (
        DocumentKind.ODT,
        lambda: zipped({"content.xml": b"<p>" + b"a" * (40 << 20)}),
        {"text"},
    ),
    "a name that is too long": (
        DocumentKind.PPTX,
        lambda: zipped({"ppt/slides/slide1.xml": b"<" + b"a" * (60 << 20)}),
        None,
    ),
    "elements that are too deep": (
        DocumentKind.DOCX,
        lambda: zipped({"word/document.xml": b"<p>" * (8 << 20)}),
        None,
    ),
    "entities": (DocumentKind.DOCX, lambda: zipped({"word/document.xml": entities()}), {"damaged"}),
    "entities in an odt": (DocumentKind.ODT, lambda: zipped({"content.xml": entities()}), {"damaged"}),
    "entities in a sheet": (
        DocumentKind.XLSX,
        lambda: zipped({"xl/workbook.xml": entities()}, sample(DocumentKind.XLSX)),
        None,
    ),
    "a cell that is far off": (DocumentKind.XLSX, lambda: far_cell("XFD1048576"), {"too-big", "damaged"}),
    "more memory than it may": (DocumentKind.XLSX, lambda: far_cell("Z1048576"), {"too-big"}),
    "pages that lead to themselves": (DocumentKind.PDF, lambda: pages(b"2 0 R", 1_000_000_000), None),
    "pages that are not there": (DocumentKind.PDF, lambda: pages(b"3 0 R", 2_000_000_000), None),
    "too many pages": (DocumentKind.PDF, lambda: pages(b"3 0 R " * 500_000, 500_000), {"too-long"}),
    "sectors in a circle": (DocumentKind.DOC, lambda: cyclic(directory=False), {"damaged"}),
    "a directory in a circle": (DocumentKind.DOC, lambda: cyclic(directory=True), {"damaged"}),
    "groups that are too deep": (DocumentKind.RTF, lambda: b"{\\rtf" + b"{" * (1 << 17), {"text"}),
    "too many groups": (DocumentKind.RTF, lambda: b"{\\rtf" + b"{a}" * (10 << 20), {"too-long"}),
    "a loop": (DocumentKind.POSTSCRIPT, lambda: b"%!PS\n{} loop", {"too-long"}),
    "all the memory": (DocumentKind.POSTSCRIPT, lambda: b"%!PS\n[ {65000 string} loop", None),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_end(name: str) -> None:
    """What would take all memory or time takes its share, and the next document is read."""
    kind, body, expected = BOMBS[name]
    seconds = 2 if expected in (None, {"too-long"}) else 15
    with DocumentReader(processes=1, limits=replace(SHORT, seconds=seconds)) as documents:
        seen = outcome(documents, body(), kind)
        assert seen in (expected or {"text", *KINDS})
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
def test_postscript_reaches_no_files(documents: DocumentReader, program: str, tmp_path: Path) -> None:
    """A program in a document reads, writes, deletes and makes no files, also where temporary ones are."""
    kept = tmp_path / "kept"
    kept.write_text("precious\n")
    body = postscript("before", then=program.format(path=kept))
    try:
        seen = documents.extract_text(body, DocumentKind.POSTSCRIPT).text
    except DocumentError as error:
        seen = error.kind
    assert seen in {"before", "damaged"}
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"kept": "precious\n"}


def test_a_body_beyond_the_limit_is_not_read() -> None:
    """Its length is enough, and no process is started for it."""
    with DocumentReader(limits=DocumentLimits(body=100)) as documents:
        assert outcome(documents, b"%PDF-" + bytes(100), DocumentKind.PDF) == "too-big"


def test_records_of_slides_that_lie_about_their_lengths(documents: DocumentReader) -> None:
    """A ppt whose records claim to be longer than they are, or lead back, ends."""
    user = bytearray(100)
    struct.pack_into("<LLL", user, 8, 20, 0xE391C05F, 8)
    edit = struct.pack("<HHL", 0, 0x0FF5, 0xFFFFFFFF) + struct.pack("<LHBBLLL", 0, 0, 0, 3, 8, 48, 1)
    directory = struct.pack("<HHLLL", 0, 0x1772, 8, 1 << 20 | 1, 0)
    stream = (bytes(8) + edit).ljust(48, b"\0") + directory
    body = ole({"Current User": bytes(user), "PowerPoint Document": stream})
    assert outcome(documents, body, DocumentKind.PPT) in {"text", "damaged"}
    assert is_working(documents)
