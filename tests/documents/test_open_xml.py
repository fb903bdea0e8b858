"""Text of docx, pptx and odt by element."""

import pytest

from tests.documents.samples import make_zip
from unlost.documents import DocumentKind, DocumentReader
from unlost.errors import DocumentError

DOCX = """<?xml version="1.0"?><x:document xmlns:x="http://purl.oclc.org/ooxml/wordprocessingml/main"
 xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><x:body>{}</x:body></x:document>"""

TEXT_BOX = (
    "<x:p><x:t>out</x:t><mc:AlternateContent><mc:Choice><x:p><x:t>box</x:t></x:p></mc:Choice>"
    "<mc:Fallback><x:p><x:t>box</x:t></x:p></mc:Fallback></mc:AlternateContent></x:p>"
)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("<x:p><x:r><x:t>par</x:t></x:r><x:r><x:t>ted</x:t></x:r></x:p><x:p><x:t>next</x:t></x:p>", "parted next"),
        ("<x:p><x:t>a</x:t><x:br/><x:t>b</x:t><x:tab/><x:t>c</x:t><x:noBreakHyphen/><x:t>d</x:t></x:p>", "a b c-d"),
        ("<x:p><x:instrText>HYPERLINK x</x:instrText><x:t>link</x:t><x:delText>gone</x:delText></x:p>", "link"),
        (TEXT_BOX, "out box"),
        ("<x:tbl><x:tr><x:tc><x:p><x:t>1</x:t></x:p></x:tc><x:tc><x:p><x:t>2</x:t></x:p></x:tc></x:tr></x:tbl>", "1 2"),
        ("<x:p><x:t>soft\xadhy\xadphen &amp; blank\xa0between</x:t></x:p>", "softhyphen & blank between"),
    ],
)
def test_docx_text_is_extracted_by_element(documents: DocumentReader, body: str, words: str) -> None:
    """Words end where they visibly end, for any namespace prefix."""
    document = make_zip({"word/document2.xml": DOCX.format(body).encode()})
    assert documents.extract_text(document, DocumentKind.DOCX).text == words


def test_pptx_slides_are_sorted_by_number(documents: DocumentReader) -> None:
    """Slide 10 follows slide 9, page numbers are omitted, notes are last."""
    slide = '<s xmlns:a="a"><a:p><a:r><a:t>{}</a:t></a:r><a:fld><a:t>7</a:t></a:fld></a:p></s>'
    parts = {f"ppt/slides/slide{n}.xml": slide.format(f"s{n}").encode() for n in (10, 9, 1)}
    parts |= {"ppt/notesSlides/notesSlide1.xml": slide.format("said").encode()}
    parts |= {"ppt/slideMasters/slideMaster1.xml": slide.format("Click to edit").encode()}
    assert documents.extract_text(make_zip(parts), DocumentKind.PPTX).text == "s1 s9 s10 said"


def test_odt_text_omits_deletions_and_comments(documents: DocumentReader) -> None:
    """Note numbers are omitted, too; elements for blanks separate words."""
    content = (
        '<d xmlns:text="t" xmlns:office="o"><text:tracked-changes><text:p>gone</text:p></text:tracked-changes>'
        "<text:p>a<text:s/>b<text:tab/>c<office:annotation><text:p>comment</text:p></office:annotation>d"
        "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>note</text:p></text:note-body>"
        "</text:note>e</text:p></d>"
    )
    assert documents.extract_text(make_zip({"content.xml": content.encode()}), DocumentKind.ODT).text == "a b cde note"


@pytest.mark.parametrize("kind", [DocumentKind.DOCX, DocumentKind.PPTX, DocumentKind.ODT, DocumentKind.ODP])
def test_document_without_text_part_is_damaged(documents: DocumentReader, kind: DocumentKind) -> None:
    """A missing part is not an empty text."""
    with pytest.raises(DocumentError) as caught:
        documents.extract_text(make_zip({"a.xml": b"<a/>"}), kind)
    assert caught.value.kind == "damaged"
