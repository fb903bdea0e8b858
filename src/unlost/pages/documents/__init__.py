r"""The text of documents that are no pages: PDF, PostScript and Office files; docs/pages.md has the limits.

>>> kind = document_kind(rb"{\rtf1 Hello}", "application/rtf", "http://a.example/hello.rtf")
>>> kind
<DocumentKind.RTF: 'rtf'>
>>> with Documents() as documents:
...     documents.text_of(rb"{\rtf1 Hello}", kind)
Text(text='Hello', cut=False)
"""

from unlost.pages.documents.documents import DocumentReader
from unlost.pages.documents.kind import DocumentKind, detect_document_kind
from unlost.pages.documents.limits import DocumentLimits

__all__ = ["DocumentKind", "DocumentReader", "DocumentLimits", "detect_document_kind"]
