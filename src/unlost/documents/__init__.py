r"""Text of documents other than web pages: PDF, PostScript and Office files. docs/pages.md has the limits.

Documents are untrusted, and some take all time or memory. So they are read in child processes with limits.

Modules in reading order:

- `kind`: Recognizes the kind of a document.
- `limits`: Limits for one document, and the collector of its text.
- `sandbox`: The reader processes, and the messages to them.
- `worker`: The program that a reader process runs.
- `pdf`, `postscript`, `office_binary`, `office_xml`, `spreadsheets`, `rtf`: The parsers, which `worker` imports on
  demand together with their libraries.

Imports only `html` and `unlost.errors`.

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
