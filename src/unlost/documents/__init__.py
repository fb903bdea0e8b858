r"""Text of documents other than web pages: PDF, PostScript and Office files. docs/pages.md has the limits.

Modules, in reading order:
- `kind`: recognizes the kind of a document.
- `limits`: limits for one document, and the collector of its text.
- `sandbox`: the reader processes, and the messages to them.
- `worker`: the program that a reader process runs.
- `pdf`, `postscript`, `office_binary`, `office_xml`, `spreadsheets`, `rtf`: the parsers, which `worker` imports on
  demand together with their libraries.

Must not import anything of unlost but html and errors.

>>> kind = detect_document_kind(rb"{\rtf1 Hello}", "application/rtf", "http://a.example/hello.rtf")
>>> kind
<DocumentKind.RTF: 'rtf'>
>>> with DocumentReader() as reader:
...     reader.extract_text(rb"{\rtf1 Hello}", kind)
ExtractedText(text='Hello', cut=False)
"""

from unlost.documents.kind import DocumentKind, detect_document_kind
from unlost.documents.limits import DocumentLimits
from unlost.documents.sandbox import DocumentReader

__all__ = ["DocumentKind", "DocumentLimits", "DocumentReader", "detect_document_kind"]
