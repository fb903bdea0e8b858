"""Text of documents written by other programs."""

from pathlib import Path

import pytest

from tests.documents.samples import FILES, TEXT_WORDS, WORDS, make_pdf, make_postscript, make_zip, sample
from unlost.documents import DocumentKind, DocumentReader
from unlost.errors import DocumentError
from unlost.html import ExtractedText


@pytest.mark.parametrize("kind", WORDS)
def test_text_is_equal_in_all_formats(documents: DocumentReader, kind: DocumentKind) -> None:
    """Text, tables, notes and headers yield the same words in the same order."""
    assert documents.extract_text(sample(kind), kind) == ExtractedText(WORDS[kind], cut=False)


@pytest.mark.parametrize("kind", [DocumentKind.PDF, DocumentKind.POSTSCRIPT])
def test_text_of_postscript_and_pdf_is_extracted_by_line(
    documents: DocumentReader, kind: DocumentKind, tmp_path: Path
) -> None:
    """PostScript and the PDF converted from it have the same words."""
    body = make_postscript("Bringing a website back", "Grüße aus Köln: naïve café")
    if kind is DocumentKind.PDF:
        body = make_pdf(body, tmp_path)
    text = documents.extract_text(body, kind)
    assert text == ExtractedText("Bringing a website back Grüße aus Köln: naïve café", cut=False)


def test_eps_with_binary_preview_is_read(documents: DocumentReader) -> None:
    """Header and preview are not parsed as PostScript."""
    program = make_postscript("inside")
    head = b"\xc5\xd0\xd3\xc6" + (30).to_bytes(4, "little") + len(program).to_bytes(4, "little")
    body = head.ljust(30, b"\xff") + program + b"\x89 a picture"
    assert documents.extract_text(body, DocumentKind.POSTSCRIPT).text == "inside"


def test_output_of_postscript_program_is_not_text(documents: DocumentReader) -> None:
    """Messages of a program are not part of the text."""
    body = make_postscript("drawn", then="(printed) print (printed) == flush")
    assert documents.extract_text(body, DocumentKind.POSTSCRIPT).text == "drawn"


@pytest.mark.parametrize("kind", [DocumentKind.DOCX, DocumentKind.XLSX, DocumentKind.PPTX])
def test_encrypted_office_file_raises_encrypted_error(documents: DocumentReader, kind: DocumentKind) -> None:
    """The declared kind does not matter."""
    with pytest.raises(DocumentError) as caught:
        documents.extract_text((FILES / "locked.docx").read_bytes(), kind)
    assert caught.value.kind == "encrypted"


def test_encrypted_pdf_raises_encrypted_error(documents: DocumentReader, tmp_path: Path) -> None:
    """A PDF with only an owner password is read."""
    words = make_postscript("locked")
    locked = make_pdf(words, tmp_path, "-sOwnerPassword=o", "-sUserPassword=u", "-dEncryptionR=3", "-dKeyLength=128")
    with pytest.raises(DocumentError) as caught:
        documents.extract_text(locked, DocumentKind.PDF)
    assert caught.value.kind == "encrypted"
    owned = make_pdf(words, tmp_path, "-sOwnerPassword=o", "-dEncryptionR=3", "-dKeyLength=128")
    assert documents.extract_text(owned, DocumentKind.PDF).text == "locked"


def test_encryption_flag_of_older_formats_raises_encrypted_error(documents: DocumentReader) -> None:
    """The flags are in a doc's header, a ppt's user record, an xls's first records, an odt's manifest."""
    doc = bytearray(sample(DocumentKind.DOC))
    doc[doc.index(b"\xec\xa5") + 0x0B] |= 1
    ppt = sample(DocumentKind.PPT).replace(bytes.fromhex("5fc091e3"), bytes.fromhex("dfc4d1f3"))
    xls = sample(DocumentKind.XLS).replace(bytes.fromhex("e1000200b004c1000200"), bytes.fromhex("2f000200b004c1000200"))
    manifest = b"<manifest><file-entry><encryption-data/></file-entry></manifest>"
    odt = make_zip({"META-INF/manifest.xml": manifest, "content.xml": b"\x99\x17\x80"})
    kinds = []
    for kind, body in {"doc": bytes(doc), "ppt": ppt, "xls": xls, "odt": odt, "ods": odt}.items():
        with pytest.raises(DocumentError) as caught:
            documents.extract_text(body, DocumentKind(kind))
        kinds.append((kind, caught.value.kind))
    assert kinds == [(kind, "encrypted") for kind in ("doc", "ppt", "xls", "odt", "ods")]


@pytest.mark.browser
def test_pdf_printed_by_chromium_has_text_of_page(documents: DocumentReader) -> None:
    """Ligatures, hyphenated words and non-Latin scripts are extracted."""
    from tests.external import chromium

    page = (
        "<p>Bringing a website back: efficient office flow.</p><p>Grüße aus Köln, Привет, мир, Ελληνικά.</p>"
        "<p lang=en style='width:6em'>an extra&shy;ordi&shy;narily long word</p><table><tr><td>north<td>south</table>"
    )
    with chromium.run_browser() as browser:
        tab = browser.new_page()
        tab.set_content(page)
        body = tab.pdf()
    assert documents.extract_text(body, DocumentKind.PDF) == ExtractedText(
        "Bringing a website back: efficient office flow. Grüße aus Köln, Привет, мир, Ελληνικά. "
        "an extraordinarily long word north south",
        cut=False,
    )


def test_text_beyond_limit_is_cut() -> None:
    """The result is marked as cut."""
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
