"""What a media type says about a resource: its group, whether it is text, and which format it is in."""

from unlost.measure.resource import Resource

UNKNOWN = "unknown"
"""Stands for the type of what nobody told one of."""

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_PDF = frozenset({"application/pdf", "application/x-pdf", "text/pdf", "application/acrobat"})
_POSTSCRIPT = frozenset(
    {"application/postscript", "application/x-postscript", "application/ps", "application/eps", "image/x-eps"}
)
_WORD = frozenset({"application/msword", "application/vnd.ms-word", "application/x-msword", "application/doc"})
_EXCEL = frozenset({"application/msexcel", "application/vnd.ms-excel", "application/x-msexcel", "application/excel"})
_SLIDES = frozenset({"application/mspowerpoint", "application/vnd.ms-powerpoint", "application/powerpoint"})
_OFFICE_BEGINS = (
    "application/vnd.ms-word.",
    "application/vnd.ms-excel.",
    "application/vnd.ms-powerpoint.",
    "application/vnd.openxmlformats-officedocument.",
    "application/vnd.oasis.opendocument.",
)
_RTF = frozenset({"application/rtf", "text/rtf", "application/x-rtf"})

# Other spellings of one format; what is in no row is a format of its own.
_FORMATS = (
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
_FORMAT_OF = {mime: name for name, mimes in _FORMATS for mime in mimes}

# Servers say these of what they do not know; then the end of the address tells, for documents.
_SAYS_NOTHING = frozenset({UNKNOWN, "application/octet-stream", "binary/octet-stream", "application/download"})
_ENDS = {
    "htm": "text/html",
    "html": "text/html",
    "txt": "text/plain",
    "pdf": "application/pdf",
    "ps": "application/postscript",
    "eps": "application/postscript",
    "rtf": "application/rtf",
    "doc": "application/msword",
    "xls": "application/vnd.ms-excel",
    "ppt": "application/vnd.ms-powerpoint",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
}


def type_of(resource: Resource) -> str:
    """Return the media type as it was told; `unknown` if nobody did."""
    return resource.mime or UNKNOWN


def likely_type(resource: Resource) -> str:
    """Return the media type; where it says nothing, what the end of the address makes likely, for text and documents.

    >>> likely_type(Resource("a/b.pdf", "http://a/b.PDF?x", None, None, "application/octet-stream", b"", 0, None, 0))
    'application/pdf'
    """
    told = type_of(resource)
    if told not in _SAYS_NOTHING:
        return told
    path = resource.uri.partition("#")[0].partition("?")[0]
    return _ENDS.get(path.rpartition("/")[2].rpartition(".")[2].lower(), told)


def group_of(mime: str) -> str:
    """Return `HTML`, `images` or `other`.

    >>> group_of("text/html"), group_of("image/gif"), group_of("text/css")
    ('HTML', 'images', 'other')
    """
    if mime in _HTML:
        return "HTML"
    return "images" if mime.startswith("image/") else "other"


def is_textual(mime: str) -> bool:
    """Return whether such a resource is text: `text/*`, PDF, PostScript or an Office document.

    XHTML is, as the HTML that it is; scripts and data under `application/` are not, which is how the measure was
    defined.

    >>> is_textual("text/css"), is_textual("application/pdf"), is_textual("application/json"), is_textual("image/png")
    (True, True, False, False)
    """
    if mime.startswith(("text/", *_OFFICE_BEGINS)):
        return True
    return any(mime in kind for kind in (_HTML, _PDF, _POSTSCRIPT, _WORD, _EXCEL, _SLIDES, _RTF))


def is_other_format(original: Resource, recovered: Resource) -> bool | None:
    """Return whether a copy is in another format than its original, by their types; None if one is not known.

    >>> pdf = Resource("a/b", "http://a/b", None, None, "application/pdf", b"", 0, None, 0)
    >>> html = Resource("a/b", "http://a/b", None, None, "text/html", b"", 0, None, 0)
    >>> is_other_format(pdf, html), is_other_format(pdf, pdf)
    (True, False)
    """
    first, second = likely_type(original), likely_type(recovered)
    if first in _SAYS_NOTHING or second in _SAYS_NOTHING:
        return None
    return _FORMAT_OF.get(first, first) != _FORMAT_OF.get(second, second)
