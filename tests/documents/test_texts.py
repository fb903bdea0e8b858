"""The words of documents that other programs made."""

from pathlib import Path

import pytest

from tests.documents.samples import FILES, TEXT_WORDS, WORDS, pdf, postscript, sample, zipped
from unlost.documents import DocumentKind, DocumentReader
from unlost.errors import DocumentError
from unlost.html import ExtractedText


@pytest.mark.parametrize("kind", WORDS)
def test_the_same_words_in_all_formats(documents: DocumentReader, kind: DocumentKind) -> None:
    """Text, tables, notes and headers come out as the same words in the same order, whichever format they are in."""
    assert documents.extract_text(sample(kind), kind) == ExtractedText(WORDS[kind], cut=False)


@pytest.mark.parametrize("kind", [DocumentKind.PDF, DocumentKind.POSTSCRIPT])
def test_the_words_of_printed_pages(documents: DocumentReader, kind: DocumentKind, tmp_path: Path) -> None:
    """PostScript, and a PDF made of it, have the words that it draws, line by line."""
    body = postscript("Bringing a website back", "Grüße aus Köln: naïve café")
    if kind is DocumentKind.PDF:
        body = pdf(body, tmp_path)
    text = documents.extract_text(body, kind)
    assert text == ExtractedText("Bringing a website back Grüße aus Köln: naïve café", cut=False)


def test_an_eps_of_a_pc_is_read_without_its_picture(documents: DocumentReader) -> None:
    """What stands before and behind the PostScript is not taken for it."""
    program = postscript("inside")
    head = b"\xc5\xd0\xd3\xc6" + (30).to_bytes(4, "little") + len(program).to_bytes(4, "little")
    body = head.ljust(30, b"\xff") + program + b"\x89 a picture"
    assert documents.extract_text(body, DocumentKind.POSTSCRIPT).text == "inside"


def test_what_is_printed_while_drawing_is_no_text(documents: DocumentReader) -> None:
    """A program's own messages do not come into the text."""
    body = postscript("drawn", then="(said) print (said) == flush")
    assert documents.extract_text(body, DocumentKind.POSTSCRIPT).text == "drawn"


@pytest.mark.parametrize("kind", [DocumentKind.DOCX, DocumentKind.XLSX, DocumentKind.PPTX])
def test_a_password_is_told(documents: DocumentReader, kind: DocumentKind) -> None:
    """A locked Office file is encrypted, whichever kind it was said to be."""
    with pytest.raises(DocumentError) as caught:
        documents.extract_text((FILES / "locked.docx").read_bytes(), kind)
    assert caught.value.kind == "encrypted"


def test_a_password_of_a_pdf_is_told(documents: DocumentReader, tmp_path: Path) -> None:
    """A PDF that opens with a password only is encrypted; one whose owner only forbids things is read."""
    words = postscript("locked")
    locked = pdf(words, tmp_path, "-sOwnerPassword=o", "-sUserPassword=u", "-dEncryptionR=3", "-dKeyLength=128")
    with pytest.raises(DocumentError) as caught:
        documents.extract_text(locked, DocumentKind.PDF)
    assert caught.value.kind == "encrypted"
    owned = pdf(words, tmp_path, "-sOwnerPassword=o", "-dEncryptionR=3", "-dKeyLength=128")
    assert documents.extract_text(owned, DocumentKind.PDF).text == "locked"


def test_passwords_of_older_files_are_told(documents: DocumentReader) -> None:
    """The flags that say so are looked at: in a doc's head, a ppt's user, an xls's first records, an odt's manifest."""
    doc = bytearray(sample(DocumentKind.DOC))
    doc[doc.index(b"\xec\xa5") + 0x0B] |= 1
    ppt = sample(DocumentKind.PPT).replace(bytes.fromhex("5fc091e3"), bytes.fromhex("dfc4d1f3"))
    xls = sample(DocumentKind.XLS).replace(bytes.fromhex("e1000200b004c1000200"), bytes.fromhex("2f000200b004c1000200"))
    manifest = b"<manifest><file-entry><encryption-data/></file-entry></manifest>"
    odt = zipped({"META-INF/manifest.xml": manifest, "content.xml": b"\x99\x17\x80"})
    kinds = []
    for kind, body in {"doc": bytes(doc), "ppt": ppt, "xls": xls, "odt": odt, "ods": odt}.items():
        with pytest.raises(DocumentError) as caught:
            documents.extract_text(body, DocumentKind(kind))
        kinds.append((kind, caught.value.kind))
    assert kinds == [(kind, "encrypted") for kind in ("doc", "ppt", "xls", "odt", "ods")]


@pytest.mark.browser
def test_a_pdf_of_chromium_has_the_words_of_its_page(documents: DocumentReader) -> None:
    """What a browser prints comes back whole: ligatures, words parted at the end of a line, other scripts."""
    from tests.neighbours import chromium

    page = (
        "<p>Bringing a website back: efficient office flow.</p><p>Grüße aus Köln, Привет, мир, Ελληνικά.</p>"
        "<p lang=en style='width:6em'>an extra&shy;ordi&shy;narily long word</p><table><tr><td>north<td>south</table>"
    )
    with chromium.browser() as browser:
        tab = browser.new_page()
        tab.set_content(page)
        body = tab.pdf()
    assert documents.extract_text(body, DocumentKind.PDF) == ExtractedText(
        "Bringing a website back: efficient office flow. Grüße aus Köln, Привет, мир, Ελληνικά. "
        "an extraordinarily long word north south",
        cut=False,
    )


def test_text_is_cut_where_it_is_too_long() -> None:
    """Beyond the limit nothing is read, and that is said."""
    from unlost.documents import DocumentLimits

    with DocumentReader(limits=DocumentLimits(text=30)) as opened:
        for kind, words in WORDS.items():
            text = opened.extract_text(sample(kind), kind)
            assert text.cut
            assert words.startswith(text.text[:5])
            assert len(text.text) <= 30
        whole = opened.extract_text(rb"{\rtf1 " + b"w" * 30 + b"}", DocumentKind.RTF)
        assert whole == ExtractedText("w" * 30, cut=False)
    assert len(TEXT_WORDS) > 30
