"""Which kind of document a body is."""

from enum import StrEnum
from urllib.parse import unquote, urlsplit

from unlost.pages.documents.ole_names import list_ole_names
from unlost.pages.documents.zip_names import open_document_type, list_zip_names


class DocumentKind(StrEnum):
    """A kind of document whose text can be had. Templates, shows and files with macros count as what they are of."""

    PDF = "pdf"
    POSTSCRIPT = "postscript"
    DOC = "doc"
    XLS = "xls"
    PPT = "ppt"
    DOCX = "docx"
    XLSX = "xlsx"
    PPTX = "pptx"
    ODT = "odt"
    ODS = "ods"
    ODP = "odp"
    RTF = "rtf"


_OLE_KINDS = {DocumentKind.DOC, DocumentKind.XLS, DocumentKind.PPT}
_OPEN_XML_KINDS = {DocumentKind.DOCX, DocumentKind.XLSX, DocumentKind.PPTX}
_OPEN_DOCUMENT_KINDS = {DocumentKind.ODT, DocumentKind.ODS, DocumentKind.ODP}

_OPEN_XML_TYPE_PREFIX = "application/vnd.openxmlformats-officedocument."
_OPEN_DOCUMENT_TYPE_PREFIX = "application/vnd.oasis.opendocument."

# The beginning of a told type, in lower case: `…wordprocessingml.document`, `….template` and so on are one kind.
_TYPES = {
    "application/pdf": DocumentKind.PDF,
    "application/x-pdf": DocumentKind.PDF,
    "application/postscript": DocumentKind.POSTSCRIPT,
    "application/x-postscript": DocumentKind.POSTSCRIPT,
    "application/eps": DocumentKind.POSTSCRIPT,
    "application/msword": DocumentKind.DOC,
    "application/x-msword": DocumentKind.DOC,
    "application/vnd.ms-word": DocumentKind.DOCX,  # `….document.macroenabled.12`
    "application/vnd.ms-excel.": DocumentKind.XLSX,  # `….sheet.macroenabled.12`, `….sheet.binary.macroenabled.12`
    "application/vnd.ms-excel": DocumentKind.XLS,
    "application/x-msexcel": DocumentKind.XLS,
    "application/excel": DocumentKind.XLS,
    "application/vnd.ms-powerpoint.": DocumentKind.PPTX,
    "application/vnd.ms-powerpoint": DocumentKind.PPT,
    "application/mspowerpoint": DocumentKind.PPT,
    "application/powerpoint": DocumentKind.PPT,
    _OPEN_XML_TYPE_PREFIX + "wordprocessingml": DocumentKind.DOCX,
    _OPEN_XML_TYPE_PREFIX + "spreadsheetml": DocumentKind.XLSX,
    _OPEN_XML_TYPE_PREFIX + "presentationml": DocumentKind.PPTX,
    _OPEN_DOCUMENT_TYPE_PREFIX + "text": DocumentKind.ODT,
    _OPEN_DOCUMENT_TYPE_PREFIX + "spreadsheet": DocumentKind.ODS,
    _OPEN_DOCUMENT_TYPE_PREFIX + "presentation": DocumentKind.ODP,
    "application/rtf": DocumentKind.RTF,
    "application/x-rtf": DocumentKind.RTF,
    "text/rtf": DocumentKind.RTF,
    "text/richtext": DocumentKind.RTF,
}

_EXTENSIONS = {
    "pdf": DocumentKind.PDF,
    **dict.fromkeys(("ps", "eps", "ai"), DocumentKind.POSTSCRIPT),
    **dict.fromkeys(("doc", "dot"), DocumentKind.DOC),
    **dict.fromkeys(("xls", "xlt"), DocumentKind.XLS),
    **dict.fromkeys(("ppt", "pps", "pot"), DocumentKind.PPT),
    **dict.fromkeys(("docx", "docm", "dotx", "dotm"), DocumentKind.DOCX),
    **dict.fromkeys(("xlsx", "xlsm", "xlsb", "xltx", "xltm"), DocumentKind.XLSX),
    **dict.fromkeys(("pptx", "pptm", "ppsx", "ppsm", "potx", "potm"), DocumentKind.PPTX),
    **dict.fromkeys(("odt", "ott"), DocumentKind.ODT),
    **dict.fromkeys(("ods", "ots"), DocumentKind.ODS),
    **dict.fromkeys(("odp", "otp"), DocumentKind.ODP),
    "rtf": DocumentKind.RTF,
}

# Readers of PDF look for its mark in the first 1024 bytes: servers have put headers and blank lines before it.
_PDF_MARK_WITHIN = 1024

# A printer's file may begin with a word for the printer, or with its Ctrl-D; a PC's EPS with where its parts are.
_SIGNATURES = {
    b"%!": DocumentKind.POSTSCRIPT,
    b"\x04%!": DocumentKind.POSTSCRIPT,
    b"\xc5\xd0\xd3\xc6": DocumentKind.POSTSCRIPT,
    b"\x1b%-12345X": DocumentKind.POSTSCRIPT,
    b"{\\rtf": DocumentKind.RTF,
}

# What certainly is something else, whatever it was called: pages in the place of documents that are gone, pictures …
_OTHER_SIGNATURES = (
    b"<!doctype",
    b"<html",
    b"<head",
    b"<?xml",
    b"\x89png",
    b"gif8",
    b"\xff\xd8\xff",
    b"\x1f\x8b",
    b"bzh",
    b"rar!",
)


def detect_document_kind(body: bytes, mime: str | None, uri: str) -> DocumentKind | None:
    """Return which kind of document a body is; None if it is none.

    mime: its type as it was told, with or without parameters. uri: its address, for its ending.

    The first bytes decide, then the told type, then the ending: an Office file is told by what is in it, a page that
    was sent in the place of a document is none. Bytes that only begin like a document still are one, a damaged one.

    >>> document_kind(b"%PDF-1.4 ...", "text/html", "http://a.example/")
    <DocumentKind.PDF: 'pdf'>
    >>> document_kind(b"<html>Not found", "application/pdf", "http://a.example/a.pdf") is None
    True
    """
    start = body[:_PDF_MARK_WITHIN]
    if b"%PDF-" in start:
        return DocumentKind.PDF
    for beginning, kind in _SIGNATURES.items():
        if start.startswith(beginning):
            return kind
    if not body or start.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(_OTHER_SIGNATURES):
        return None
    told = _declared_kind(mime, uri)
    if start.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return _ole_kind(body, told)
    return _zip_kind(body, told) if start.startswith(b"PK\x03\x04") else told


def _declared_kind(mime: str | None, uri: str) -> DocumentKind | None:
    """Return what a document was said to be, by its type, else by its ending."""
    told = (mime or "").partition(";")[0].strip().lower()
    for beginning, kind in _TYPES.items():
        if told.startswith(beginning):
            return kind
    try:
        path = urlsplit(uri).path
    except ValueError:
        return None
    name = unquote(path).rpartition("/")[2]
    return _EXTENSIONS.get(name.rpartition(".")[2].lower()) if "." in name and not _is_other_type(told) else None


def _is_other_type(told: str) -> bool:
    """Return whether a told type says that this is no document, so that its ending does not count."""
    return told.startswith(("text/html", "image/", "audio/", "video/", "application/xhtml"))


def _ole_kind(body: bytes, told: DocumentKind | None) -> DocumentKind | None:
    names = list_ole_names(body)
    if "EncryptedPackage" in names:  # a zip file with a password is packed into one of these
        return told if told in _OPEN_XML_KINDS else DocumentKind.DOCX
    if "WordDocument" in names:
        return DocumentKind.DOC
    if "Workbook" in names or "Book" in names:
        return DocumentKind.XLS
    if "PowerPoint Document" in names:
        return DocumentKind.PPT
    return told if told in _OLE_KINDS else None


def _zip_kind(body: bytes, told: DocumentKind | None) -> DocumentKind | None:
    kind = next(
        (
            kind
            for kind in _OPEN_DOCUMENT_KINDS
            if (open_document_type(body) or "").startswith(_OPEN_DOCUMENT_TYPES[kind])
        ),
        None,
    )
    if kind is not None:
        return kind
    names = list_zip_names(body)
    if names is None:  # cut or damaged, but a zip file it was
        return told if told in _OPEN_XML_KINDS | _OPEN_DOCUMENT_KINDS else None
    for name in names:
        for folder, kind in (("word/", DocumentKind.DOCX), ("xl/", DocumentKind.XLSX), ("ppt/", DocumentKind.PPTX)):
            if name.startswith(folder):
                return kind
    return told if told in _OPEN_DOCUMENT_KINDS and "content.xml" in names else None


_OPEN_DOCUMENT_TYPES = {
    kind: next(told for told, known in _TYPES.items() if known is kind) for kind in _OPEN_DOCUMENT_KINDS
}
