r"""The text of documents that are no pages: PDF, PostScript and Office files; docs/pages.md has the limits.

>>> kind = document_kind(rb"{\rtf1 Hello}", "application/rtf", "http://a.example/hello.rtf")
>>> kind
<DocumentKind.RTF: 'rtf'>
>>> with Documents() as documents:
...     documents.text_of(rb"{\rtf1 Hello}", kind)
Text(text='Hello', cut=False)
"""

from unlost.documents.kind import DocumentKind, detect_document_kind
from unlost.documents.limits import DocumentLimits
from unlost.documents.sandbox import DocumentReader

__all__ = ["DocumentKind", "DocumentLimits", "DocumentReader", "detect_document_kind"]
