"""Recognises the kind of a document by its first bytes, its members and its declared type.

The directories of OLE and ZIP files are read with bounded memory, whatever is in them.
"""

import struct
from enum import StrEnum
from urllib.parse import unquote, urlsplit

_OLE_HEADER_BYTES = 512
_SECTOR_SHIFTS = {9, 12}
_END_OF_CHAIN = 0xFFFFFFFA  # and above: no sector
_OLE_ENTRY_BYTES = 128
_NO_SECTOR = 0xFFFFFFFF
_MAX_OLE_ENTRIES = 4_096


def list_ole_names(body: bytes) -> set[str]:
    """Return the names of the streams and storages at the top of an OLE file; fewer if it is damaged.

    Only the first 4,096 entries of its directory are looked at, and each once: chains and trees may be cyclic.
    """
    directory = _read_ole_directory(body)
    if len(directory) < _OLE_ENTRY_BYTES:
        return set()
    names: set[str] = set()
    seen: set[int] = set()
    waiting = [_read_uint32(directory, 0x4C)]  # the root's child; its siblings hang below it as a tree
    while waiting:
        entry = waiting.pop()
        at = entry * _OLE_ENTRY_BYTES
        if entry in seen or at + _OLE_ENTRY_BYTES > len(directory):
            continue
        seen.add(entry)
        length = int.from_bytes(directory[at + 64 : at + 66], "little")
        names.add(directory[at : at + max(0, min(length, 64) - 2)].decode("utf-16-le", "replace"))
        waiting += [_read_uint32(directory, at + 0x44), _read_uint32(directory, at + 0x48)]
    return names


def _read_ole_directory(body: bytes) -> bytes:
    """Return the directory, as far as its chain of sectors leads."""
    if len(body) < _OLE_HEADER_BYTES or int.from_bytes(body[0x1E:0x20], "little") not in _SECTOR_SHIFTS:
        return b""
    size = 1 << int.from_bytes(body[0x1E:0x20], "little")
    sector = _read_uint32(body, 0x30)
    found: list[bytes] = []
    seen: set[int] = set()
    while sector < _END_OF_CHAIN and sector not in seen and len(found) * size < _MAX_OLE_ENTRIES * _OLE_ENTRY_BYTES:
        seen.add(sector)
        found.append(body[(sector + 1) * size : (sector + 2) * size])
        sector = _next_sector(body, size, sector)
    return b"".join(found)


def _next_sector(body: bytes, size: int, sector: int) -> int:
    """Return which sector follows in a chain, by the part of the table that the header itself leads to."""
    page, place = divmod(sector, size // 4)
    if page >= 109:  # a directory that far behind in a large file: what was read of it must do
        return _NO_SECTOR
    at = (_read_uint32(body, 0x4C + 4 * page) + 1) * size + 4 * place
    return _read_uint32(body, at) if at + 4 <= len(body) else _NO_SECTOR


def _read_uint32(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<L", data, at)[0])


# The end of the directory: mark, two disks, entries on this one and of all, its length, its offset, a comment's length.
_ZIP_END = struct.Struct("<4s4H2LH")
_ZIP_ENTRY = struct.Struct("<4s6H3L5H2L")
_ZIP_LOCAL_HEADER = struct.Struct("<4s5H3L2H")
_MAX_ZIP_COMMENT = 0xFFFF
_MAX_ZIP_NAMES = 2_000  # a presentation has some hundreds


def list_zip_names(body: bytes) -> list[str] | None:
    """Return the names of the first members of a zip file; None if its directory is not there.

    At most 2,000 of them. It serves to look at files of any origin: `zipfile` keeps half a kilobyte for each member.
    """
    at = body.rfind(b"PK\x05\x06", max(0, len(body) - _ZIP_END.size - _MAX_ZIP_COMMENT))
    if at < 0 or at + _ZIP_END.size > len(body):
        return None
    length = _ZIP_END.unpack_from(body, at)[5]
    place = at - length  # and not what it says itself, which is wrong where something stands before the file
    names: list[str] = []
    while 0 <= place <= at - _ZIP_ENTRY.size and len(names) < _MAX_ZIP_NAMES:
        entry = _ZIP_ENTRY.unpack_from(body, place)
        if entry[0] != b"PK\x01\x02":
            break
        name_length, extra_length, comment_length = entry[10:13]
        start = place + _ZIP_ENTRY.size
        names.append(body[start : start + name_length].decode("utf-8", "replace"))
        place = start + name_length + extra_length + comment_length
    return names or None


def open_document_type(body: bytes) -> str | None:
    """Return the type that an OpenDocument file says first of all, unpacked; None if it says none."""
    if len(body) < _ZIP_LOCAL_HEADER.size:
        return None
    head = _ZIP_LOCAL_HEADER.unpack_from(body)
    method, size, name_length, extra_length = head[3], head[7], head[9], head[10]
    start = _ZIP_LOCAL_HEADER.size + name_length
    if body[_ZIP_LOCAL_HEADER.size : start] != b"mimetype" or method != 0:
        return None
    start += extra_length
    return body[start : start + min(size or 100, 100)].decode("ascii", "replace")


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

    >>> detect_document_kind(b"%PDF-1.4 ...", "text/html", "http://a.example/")
    <DocumentKind.PDF: 'pdf'>
    >>> detect_document_kind(b"<html>Not found", "application/pdf", "http://a.example/a.pdf") is None
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
