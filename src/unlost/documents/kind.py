"""Recognizes the kind of a document by its signature, its members and its declared type.

The directories of OLE and ZIP files are parsed here, in bounded memory: the parent process must not load a library for
untrusted files.
"""

import struct
from enum import StrEnum
from urllib.parse import unquote, urlsplit

# The OLE file format, [MS-CFB].
_OLE_HEADER_BYTES = 512
_SECTOR_SHIFTS = {9, 12}  # sectors of 512 bytes (version 3) or 4096 bytes (version 4)
_END_OF_CHAIN = 0xFFFFFFFA  # this and higher numbers are not those of sectors ([MS-CFB] 2.1)
_OLE_ENTRY_BYTES = 128
_NO_SECTOR = 0xFFFFFFFF
_MAX_OLE_ENTRIES = 4_096


def list_ole_names(body: bytes) -> set[str]:
    """Return the names of the streams and storages in the root of an OLE file; fewer if it is damaged.

    At most 4,096 directory entries are read, each once, since chains and trees of a damaged file may be cyclic.
    """
    directory = _read_ole_directory(body)
    if len(directory) < _OLE_ENTRY_BYTES:
        return set()
    names: set[str] = set()
    seen: set[int] = set()
    pending = [_read_uint32(directory, 0x4C)]  # the root's child, which is the root of the tree of siblings
    while pending:
        entry = pending.pop()
        start = entry * _OLE_ENTRY_BYTES
        if entry in seen or start + _OLE_ENTRY_BYTES > len(directory):
            continue
        seen.add(entry)
        length = int.from_bytes(directory[start + 64 : start + 66], "little")
        names.add(directory[start : start + max(0, min(length, 64) - 2)].decode("utf-16-le", "replace"))
        pending += [_read_uint32(directory, start + 0x44), _read_uint32(directory, start + 0x48)]
    return names


def _read_ole_directory(body: bytes) -> bytes:
    """Return the directory stream up to the end or the first invalid link of its chain of sectors."""
    if len(body) < _OLE_HEADER_BYTES or int.from_bytes(body[0x1E:0x20], "little") not in _SECTOR_SHIFTS:
        return b""
    size = 1 << int.from_bytes(body[0x1E:0x20], "little")
    sector = _read_uint32(body, 0x30)
    sectors: list[bytes] = []
    seen: set[int] = set()
    while sector < _END_OF_CHAIN and sector not in seen and len(sectors) * size < _MAX_OLE_ENTRIES * _OLE_ENTRY_BYTES:
        seen.add(sector)
        sectors.append(body[(sector + 1) * size : (sector + 2) * size])
        sector = _next_sector(body, size, sector)
    return b"".join(sectors)


def _next_sector(body: bytes, size: int, sector: int) -> int:
    """Return the next sector of a chain, using the part of the FAT that the header lists."""
    fat_sector, index = divmod(sector, size // 4)
    if fat_sector >= 109:  # the header lists the first 109 FAT sectors; the rest of the directory is ignored
        return _NO_SECTOR
    position = (_read_uint32(body, 0x4C + 4 * fat_sector) + 1) * size + 4 * index
    return _read_uint32(body, position) if position + 4 <= len(body) else _NO_SECTOR


def _read_uint32(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<L", data, at)[0])


# The ZIP format, APPNOTE.TXT.
_ZIP_END = struct.Struct("<4s4H2LH")  # signature, two disk numbers, two entry counts, size, offset, comment length
_ZIP_ENTRY = struct.Struct("<4s6H3L5H2L")  # central directory header
_ZIP_LOCAL_HEADER = struct.Struct("<4s5H3L2H")
_MAX_ZIP_COMMENT = 0xFFFF
_MAX_ZIP_NAMES = 2_000  # presentations have some hundred members


def list_zip_names(body: bytes) -> list[str] | None:
    """Return the names of the first 2,000 members of a ZIP file; None if it has no central directory.

    `zipfile` would allocate half a kilobyte for each member of an untrusted file.
    """
    end = body.rfind(b"PK\x05\x06", max(0, len(body) - _ZIP_END.size - _MAX_ZIP_COMMENT))
    if end < 0 or end + _ZIP_END.size > len(body):
        return None
    length = _ZIP_END.unpack_from(body, end)[5]
    position = end - length  # the recorded offset is wrong if data precedes the ZIP file
    names: list[str] = []
    while 0 <= position <= end - _ZIP_ENTRY.size and len(names) < _MAX_ZIP_NAMES:
        entry = _ZIP_ENTRY.unpack_from(body, position)
        if entry[0] != b"PK\x01\x02":
            break
        name_length, extra_length, comment_length = entry[10:13]
        start = position + _ZIP_ENTRY.size
        names.append(body[start : start + name_length].decode("utf-8", "replace"))
        position = start + name_length + extra_length + comment_length
    return names or None


def open_document_type(body: bytes) -> str | None:
    """Return the media type that an OpenDocument file declares; None for other files.

    OpenDocument requires that the first member is `mimetype`, and that it is stored without compression.
    """
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
    """A supported kind of document.

    Templates, slide shows and files with macros count as the kind they are based on.
    """

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
# Prefixes of declared types in lower case: `…wordprocessingml.document`, `….template` and so on are one kind.
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
# PDF readers accept the signature within the first 1024 bytes: some servers prepend headers and blank lines.
_PDF_MARK_WITHIN = 1024
# A PostScript file may begin with a PJL command or Ctrl-D for the printer; a DOS EPS file with a binary header.
_SIGNATURES = {
    b"%!": DocumentKind.POSTSCRIPT,
    b"\x04%!": DocumentKind.POSTSCRIPT,
    b"\xc5\xd0\xd3\xc6": DocumentKind.POSTSCRIPT,
    b"\x1b%-12345X": DocumentKind.POSTSCRIPT,
    b"{\\rtf": DocumentKind.RTF,
}
# Signatures of other types, which override the declared type: error pages in place of documents, images, archives.
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
    """Return the kind of a document; None if the body is not a document.

    The signature decides, then the declared type, then the file extension. OLE and ZIP files are recognized by their
    members. A web page that is declared as a document is not one. A damaged document still has its kind.

    Args:
        body: The body.
        mime: Declared media type, with or without parameters.
        uri: URL, for its file extension.

    >>> detect_document_kind(b"%PDF-1.4 ...", "text/html", "http://a.example/")
    <DocumentKind.PDF: 'pdf'>
    >>> detect_document_kind(b"<html>Not found", "application/pdf", "http://a.example/a.pdf") is None
    True
    """
    start = body[:_PDF_MARK_WITHIN]
    if b"%PDF-" in start:
        return DocumentKind.PDF
    for signature, kind in _SIGNATURES.items():
        if start.startswith(signature):
            return kind
    if not body or start.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(_OTHER_SIGNATURES):
        return None
    declared = _declared_kind(mime, uri)
    if start.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return _ole_kind(body, declared)
    return _zip_kind(body, declared) if start.startswith(b"PK\x03\x04") else declared


def _declared_kind(mime: str | None, uri: str) -> DocumentKind | None:
    """Return the kind by the declared type, otherwise by the file extension."""
    declared_type = (mime or "").partition(";")[0].strip().lower()
    for prefix, kind in _TYPES.items():
        if declared_type.startswith(prefix):
            return kind
    try:
        path = urlsplit(uri).path
    except ValueError:
        return None
    name = unquote(path).rpartition("/")[2]
    return (
        _EXTENSIONS.get(name.rpartition(".")[2].lower()) if "." in name and not _is_other_type(declared_type) else None
    )


def _is_other_type(declared_type: str) -> bool:
    """Return whether a declared type excludes a document, so that the file extension does not count."""
    return declared_type.startswith(("text/html", "image/", "audio/", "video/", "application/xhtml"))


def _ole_kind(body: bytes, declared: DocumentKind | None) -> DocumentKind | None:
    names = list_ole_names(body)
    if "EncryptedPackage" in names:  # an encrypted Office Open XML file is wrapped in OLE
        return declared if declared in _OPEN_XML_KINDS else DocumentKind.DOCX
    if "WordDocument" in names:
        return DocumentKind.DOC
    if "Workbook" in names or "Book" in names:
        return DocumentKind.XLS
    if "PowerPoint Document" in names:
        return DocumentKind.PPT
    return declared if declared in _OLE_KINDS else None


def _zip_kind(body: bytes, declared: DocumentKind | None) -> DocumentKind | None:
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
    if names is None:  # a truncated or damaged ZIP file
        return declared if declared in _OPEN_XML_KINDS | _OPEN_DOCUMENT_KINDS else None
    for name in names:
        for folder, kind in (("word/", DocumentKind.DOCX), ("xl/", DocumentKind.XLSX), ("ppt/", DocumentKind.PPTX)):
            if name.startswith(folder):
                return kind
    return declared if declared in _OPEN_DOCUMENT_KINDS and "content.xml" in names else None


_OPEN_DOCUMENT_TYPES = {
    kind: next(mime for mime, known in _TYPES.items() if known is kind) for kind in _OPEN_DOCUMENT_KINDS
}
