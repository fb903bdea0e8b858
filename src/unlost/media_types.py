"""Media types: their group (HTML, images, other), whether they are text, and a common name for each format."""

from functools import lru_cache

UNKNOWN_TYPE = "unknown"
"""Type of a resource without a declared media type."""

_CACHED_TYPES = 1 << 10  # a site may have millions of resources, but few media types

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_PDF = frozenset({"application/pdf", "application/x-pdf", "text/pdf", "application/acrobat"})
_POSTSCRIPT = frozenset(
    {"application/postscript", "application/x-postscript", "application/ps", "application/eps", "image/x-eps"}
)
_WORD = frozenset({"application/msword", "application/vnd.ms-word", "application/x-msword", "application/doc"})
_EXCEL = frozenset({"application/msexcel", "application/vnd.ms-excel", "application/x-msexcel", "application/excel"})
_SLIDES = frozenset({"application/mspowerpoint", "application/vnd.ms-powerpoint", "application/powerpoint"})
_OFFICE_PREFIXES = (
    "application/vnd.ms-word.",
    "application/vnd.ms-excel.",
    "application/vnd.ms-powerpoint.",
    "application/vnd.openxmlformats-officedocument.",
    "application/vnd.oasis.opendocument.",
)
_RTF = frozenset({"application/rtf", "text/rtf", "application/x-rtf"})

# Registered, obsolete and unregistered media types of the same format, as servers send them. Any other type is a format
# of its own.
_FORMAT_SPELLINGS = (
    ("html", _HTML),
    ("pdf", _PDF),
    ("postscript", _POSTSCRIPT),
    ("word", _WORD),
    ("excel", _EXCEL),
    ("slides", _SLIDES),
    ("rtf", _RTF),
    ("jpeg", {"image/jpeg", "image/jpg", "image/pjpeg"}),
    ("png", {"image/png", "image/x-png"}),
    ("icon", {"image/x-icon", "image/vnd.microsoft.icon", "image/ico"}),
    ("bmp", {"image/bmp", "image/x-ms-bmp", "image/x-bmp"}),
    ("javascript", {"text/javascript", "application/javascript", "application/x-javascript", "text/ecmascript"}),
    ("xml", {"text/xml", "application/xml"}),
    ("json", {"application/json", "text/json"}),
    ("feed", {"application/rss+xml", "application/atom+xml"}),
)
_FORMAT_BY_TYPE = {mime: name for name, mimes in _FORMAT_SPELLINGS for mime in mimes}
_DOCUMENTS = frozenset({"pdf", "postscript", "word", "excel", "slides", "rtf"})


def format_of(mime: str) -> str:
    """Return the name of the format of a media type, if the format has several; otherwise the type itself.

    >>> format_of("image/pjpeg"), format_of("image/gif")
    ('jpeg', 'image/gif')
    """
    return _FORMAT_BY_TYPE.get(mime, mime)


def is_document(mime: str) -> bool:
    """Return whether the type is that of a PDF, PostScript or Office document.

    >>> is_document("application/x-pdf"), is_document("text/plain")
    (True, False)
    """
    return format_of(mime) in _DOCUMENTS or mime.startswith(_OFFICE_PREFIXES)


@lru_cache(maxsize=_CACHED_TYPES)
def group_of(mime: str) -> str:
    """Return the group of a type: `HTML`, `images` or `other`.

    >>> group_of("text/html"), group_of("image/gif"), group_of("text/css")
    ('HTML', 'images', 'other')
    """
    if mime in _HTML:
        return "HTML"
    return "images" if mime.startswith("image/") else "other"


@lru_cache(maxsize=_CACHED_TYPES)
def is_textual(mime: str) -> bool:
    """Return whether a type is textual: `text/*`, XHTML, PDF, PostScript or an Office document.

    Scripts and data under `application/` are not: the comparison of sites measures text that users read.

    >>> is_textual("text/css"), is_textual("application/pdf"), is_textual("application/json"), is_textual("image/png")
    (True, True, False, False)
    """
    return mime.startswith("text/") or mime in _HTML or is_document(mime)
