"""Text of PDF files, read with PDFium."""

import re

import pypdfium2

from unlost.documents.limits import DocumentLimits, TextCollector
from unlost.errors import DocumentError

_ENCRYPTED = {4, 5}  # FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY

# Hyphenation at the end of a line: the characters that PDFium returns for it, and U+2010, which browsers print. Other
# hyphens are ambiguous and stay.
_LINE_END_HYPHEN = re.compile("[\x02\ufffe](?:\r\n)?|\u2010\r\n")


def read_pdf(body: bytes, collector: TextCollector, _limits: DocumentLimits) -> None:
    """Collect the text of all pages. Unreadable pages are omitted, and the text counts as truncated."""
    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) in _ENCRYPTED:
            raise DocumentError("it can be read with a password only", "encrypted") from error
        raise DocumentError(f"PDFium cannot read it: {error}", "damaged") from error
    read_pages = 0
    for number in range(len(document)):
        try:
            text = _page_text(document, number)
        except pypdfium2.PdfiumError:
            collector.is_truncated = True
            continue
        read_pages += 1
        collector.add(text + "\n")
    if not read_pages:
        raise DocumentError("it has no page that can be read", "damaged")


def _page_text(document: pypdfium2.PdfDocument, number: int) -> str:
    page = document[number]
    try:
        text_page = page.get_textpage()
        try:
            text = str(text_page.get_text_range())
        finally:
            text_page.close()
    finally:
        page.close()
    return _LINE_END_HYPHEN.sub("", text)
