"""Which type a resource has, and whether a copy of it is in another format."""

from unlost.formats.media_types import UNKNOWN_TYPE, format_of
from unlost.measure.resource import SiteResource

# Servers say these of what they do not know; then the end of the address tells, for documents.
_UNSPECIFIC_TYPES = frozenset({UNKNOWN_TYPE, "application/octet-stream", "binary/octet-stream", "application/download"})
_TYPES_BY_EXTENSION = {
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


def declared_type(resource: SiteResource) -> str:
    """Return the media type as it was told; `unknown` if nobody did."""
    return resource.mime or UNKNOWN_TYPE


def likely_type(resource: SiteResource) -> str:
    """Return the media type; where it says nothing, what the end of the address makes likely, for text and documents.

    >>> likely_type(Resource("a/b.pdf", "http://a/b.PDF?x", None, None, "application/octet-stream", b"", 0, None, 0))
    'application/pdf'
    """
    told = declared_type(resource)
    if told not in _UNSPECIFIC_TYPES:
        return told
    path = resource.uri.partition("#")[0].partition("?")[0]
    return _TYPES_BY_EXTENSION.get(path.rpartition("/")[2].rpartition(".")[2].lower(), told)


def is_other_format(original: SiteResource, recovered: SiteResource) -> bool | None:
    """Return whether a copy is in another format than its original, by their types; None if one is not known.

    >>> pdf = Resource("a/b", "http://a/b", None, None, "application/pdf", b"", 0, None, 0)
    >>> html = Resource("a/b", "http://a/b", None, None, "text/html", b"", 0, None, 0)
    >>> is_other_format(pdf, html), is_other_format(pdf, pdf)
    (True, False)
    """
    first, second = likely_type(original), likely_type(recovered)
    if first in _UNSPECIFIC_TYPES or second in _UNSPECIFIC_TYPES:
        return None
    return format_of(first) != format_of(second)
