"""The text of a document by its kind."""

from contextlib import suppress
from importlib import import_module

from unlost.pages.documents.limits import DocumentLimits
from unlost.pages.documents.readers.gathered import TextLimitError, TextCollector
from unlost.pages.text import ExtractedText

# Which module reads a kind, and by which function: each is imported, with its libraries, when first needed.
_READERS = {
    "pdf": ("pdf", "read_pdf"),
    "postscript": ("postscript", "read_postscript"),
    "doc": ("word", "read_doc"),
    "xls": ("sheets", "read_sheets"),
    "ppt": ("powerpoint", "read_ppt"),
    "docx": ("open_xml", "read_docx"),
    "xlsx": ("sheets", "read_sheets"),
    "pptx": ("open_xml", "read_pptx"),
    "odt": ("open_document", "read_odt"),
    "ods": ("sheets", "read_sheets"),
    "odp": ("open_document", "read_odp"),
    "rtf": ("rtf", "read_rtf"),
}


def read_document(kind: str, body: bytes, limits: DocumentLimits) -> ExtractedText:
    """Return the text of a document. Raises DocumentError, MemoryError and whatever libraries raise."""
    module, function = _READERS[kind]
    reader = getattr(import_module(f"unlost.pages.documents.readers.{module}"), function)
    gathered = TextCollector(limits.text)
    with suppress(TextLimitError):
        reader(body, gathered, limits)
    return gathered.text()
