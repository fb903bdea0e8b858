"""Text of PDF files, read with PDFium."""

import re

import pypdfium2

from unlost.documents.limits import DocumentLimits, TextCollector
from unlost.errors import DocumentError

# What PDFium says of a file with a password, and of one with a protection that it does not know.
_ENCRYPTED = {4, 5}

# Where a word was parted at the end of a line: what PDFium puts there, and the hyphen of browsers. Of other hyphens
# nobody can tell whether they part or join.
_LINE_END_HYPHEN = re.compile("[\x02\ufffe](?:\r\n)?|\u2010\r\n")


def read_pdf(body: bytes, gathered: TextCollector, _limits: DocumentLimits) -> None:
    """Gather the text of all pages. A page that cannot be read is left out, and the text counts as cut."""
    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) in _ENCRYPTED:
            raise DocumentError("it can be read with a password only", "encrypted") from error
        raise DocumentError(f"PDFium cannot read it: {error}", "damaged") from error
    read = 0
    for number in range(len(document)):
        try:
            text = _page_text(document, number)
        except pypdfium2.PdfiumError:
            gathered.is_truncated = True
            continue
        read += 1
        gathered.add(text + "\n")
    if not read:
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
