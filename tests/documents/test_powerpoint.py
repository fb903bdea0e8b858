"""Records of generated ppt files."""

import struct

from tests.documents.samples import make_ole
from unlost.documents import DocumentKind, DocumentReader
from unlost.html import ExtractedText

TEXT_CHARS, TEXT_BYTES, OUTLINE = 0x0FA0, 0x0FA8, 0x0F9E
SLIDE, DOCUMENT, LIST = 0x03EE, 0x03E8, 0x0FF0


def atom(kind: int, content: bytes, instance: int = 0) -> bytes:
    """Return a record with data."""
    return struct.pack("<HHL", instance << 4, kind, len(content)) + content


def container(kind: int, *records: bytes, instance: int = 0) -> bytes:
    """Return a record of records."""
    content = b"".join(records)
    return struct.pack("<HHL", instance << 4 | 0xF, kind, len(content)) + content


def make_slide_list(*slides: int, outline: tuple[str, ...] = ()) -> bytes:
    """Return a slide list; the first slide has an outline."""
    records = []
    for number, slide in enumerate(slides):
        records.append(atom(0x03F3, struct.pack("<L16x", slide)))
        records += [atom(TEXT_CHARS, text.encode("utf-16-le")) for text in outline if number == 0]
    return container(LIST, *records)


def make_ppt(*saves: dict[int, bytes]) -> bytes:
    """Return a ppt saved several times, each time with the changed records by number."""
    stream, edit = b"\0" * 16, 0
    for records in saves:
        directory = b""
        for number, record in records.items():
            directory += struct.pack("<LL", 1 << 20 | number, len(stream))
            stream += record
        offset = len(stream)
        stream += atom(0x1772, directory)
        before, edit = edit, len(stream)
        stream += atom(0x0FF5, struct.pack("<LHBBLLLLHH", 0, 0, 0, 3, before, offset, 1, 9, 0, 0))
    user = struct.pack("<HHLLLL", 0, 0x0FF6, 20, 20, 0xE391C05F, edit)
    return make_ole({"Current User": user, "PowerPoint Document": stream})


def test_ppt_slide_text_is_resolved_from_outline(documents: DocumentReader) -> None:
    """Outline text is inserted where the slide refers to it, in list order."""
    body = make_ppt(
        {
            2: container(SLIDE, container(0xF00D, atom(TEXT_BYTES, b"second"))),
            3: container(
                SLIDE,
                container(0xF00D, atom(OUTLINE, struct.pack("<L", 1))),
                container(0xF00D, atom(TEXT_BYTES, b"caf\xe9")),
                container(0xF00D, atom(OUTLINE, struct.pack("<L", 0))),
            ),
            1: container(DOCUMENT, atom(1, b"x"), make_slide_list(3, 2, outline=("Привет", "Title"))),
        }
    )
    assert documents.extract_text(body, DocumentKind.PPT) == ExtractedText("Title café Привет second", cut=False)


def test_ppt_text_is_from_last_save(documents: DocumentReader) -> None:
    """Earlier versions of a slide are ignored."""
    old, new = (container(SLIDE, container(0xF00D, atom(TEXT_BYTES, text))) for text in (b"old", b"new"))
    body = make_ppt({1: container(DOCUMENT, make_slide_list(2)), 2: old}, {2: new})
    assert documents.extract_text(body, DocumentKind.PPT) == ExtractedText("new", cut=False)


def test_ppt_with_missing_slide_is_marked_as_cut(documents: DocumentReader) -> None:
    """The other slides are extracted."""
    slide = container(SLIDE, container(0xF00D, atom(TEXT_BYTES, b"here")))
    body = make_ppt({1: container(DOCUMENT, make_slide_list(7, 2)), 2: slide})
    assert documents.extract_text(body, DocumentKind.PPT) == ExtractedText("here", cut=True)
