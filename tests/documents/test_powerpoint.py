"""The records of ppt files, by files that are made here."""

import struct

from tests.documents.samples import ole
from unlost.documents import DocumentKind, DocumentReader
from unlost.html import ExtractedText

TEXT_CHARS, TEXT_BYTES, OUTLINE = 0x0FA0, 0x0FA8, 0x0F9E
SLIDE, DOCUMENT, LIST = 0x03EE, 0x03E8, 0x0FF0


def atom(kind: int, content: bytes, instance: int = 0) -> bytes:
    """Return a record with content of its own."""
    return struct.pack("<HHL", instance << 4, kind, len(content)) + content


def container(kind: int, *records: bytes, instance: int = 0) -> bytes:
    """Return a record of records."""
    content = b"".join(records)
    return struct.pack("<HHL", instance << 4 | 0xF, kind, len(content)) + content


def listed(*slides: int, outline: tuple[str, ...] = ()) -> bytes:
    """Return a list of slides, the first of them with an outline."""
    records = []
    for number, slide in enumerate(slides):
        records.append(atom(0x03F3, struct.pack("<L16x", slide)))
        records += [atom(TEXT_CHARS, text.encode("utf-16-le")) for text in outline if number == 0]
    return container(LIST, *records)


def saved(*savings: dict[int, bytes]) -> bytes:
    """Return a ppt that was saved several times, each time with the records that had changed, by their numbers."""
    stream, edit = b"\0" * 16, 0
    for records in savings:
        directory = b""
        for number, record in records.items():
            directory += struct.pack("<LL", 1 << 20 | number, len(stream))
            stream += record
        place = len(stream)
        stream += atom(0x1772, directory)
        before, edit = edit, len(stream)
        stream += atom(0x0FF5, struct.pack("<LHBBLLLLHH", 0, 0, 0, 3, before, place, 1, 9, 0, 0))
    user = struct.pack("<HHLLLL", 0, 0x0FF6, 20, 20, 0xE391C05F, edit)
    return ole({"Current User": user, "PowerPoint Document": stream})


def test_slides_take_text_from_the_outline(documents: DocumentReader) -> None:
    """Text that stands in the outline comes where the slide refers to it, in the order of the list."""
    body = saved(
        {
            2: container(SLIDE, container(0xF00D, atom(TEXT_BYTES, b"second"))),
            3: container(
                SLIDE,
                container(0xF00D, atom(OUTLINE, struct.pack("<L", 1))),
                container(0xF00D, atom(TEXT_BYTES, b"caf\xe9")),
                container(0xF00D, atom(OUTLINE, struct.pack("<L", 0))),
            ),
            1: container(DOCUMENT, atom(1, b"x"), listed(3, 2, outline=("Привет", "Title"))),
        }
    )
    assert documents.extract_text(body, DocumentKind.PPT) == ExtractedText("Title café Привет second", cut=False)


def test_only_the_last_saving_counts(documents: DocumentReader) -> None:
    """What a slide said before it was changed is still in the file, and is not its text."""
    old, new = (container(SLIDE, container(0xF00D, atom(TEXT_BYTES, text))) for text in (b"old", b"new"))
    body = saved({1: container(DOCUMENT, listed(2)), 2: old}, {2: new})
    assert documents.extract_text(body, DocumentKind.PPT) == ExtractedText("new", cut=False)


def test_a_slide_that_is_missing_is_said_to_be(documents: DocumentReader) -> None:
    """A list with a slide that is not there gives the others, cut."""
    slide = container(SLIDE, container(0xF00D, atom(TEXT_BYTES, b"here")))
    body = saved({1: container(DOCUMENT, listed(7, 2)), 2: slide})
    assert documents.extract_text(body, DocumentKind.PPT) == ExtractedText("here", cut=True)
