"""What a copy is, in a word that everybody knows."""

from unlost.formats.media_types import UNKNOWN_TYPE, format_of, group_of, is_document

REDIRECTS = "redirects"
RESOURCE_KINDS = (
    "pages",
    "images",
    "style sheets",
    "scripts",
    "documents",
    "fonts",
    "sound and video",
    "feeds and data",
    "plain text",
    REDIRECTS,
    "other",
)
"""All kinds, in the order in which they are shown."""

_FONTS = frozenset({"application/vnd.ms-fontobject", "application/x-font-ttf", "application/x-font-woff"})
_BY_FORMAT = {"javascript": "scripts", "text/css": "style sheets", "text/plain": "plain text"}
_DATA_FORMATS = frozenset({"xml", "json", "feed", "text/csv"})


def resource_kind(mime: str | None, status: int | None) -> str:
    """Return the kind of a copy by its media type and its status.

    >>> kind_of("text/html", 200), kind_of("text/html", 301), kind_of("application/pdf", 200), kind_of(None, None)
    ('pages', 'redirects', 'documents', 'other')
    """
    if status is not None and 300 <= status < 400:
        return REDIRECTS
    told = mime or UNKNOWN_TYPE
    group = group_of(told)
    if group != "other":
        return "pages" if group == "HTML" else group
    if is_document(told):
        return "documents"
    if told.startswith(("font/", "application/font-")) or told in _FONTS:
        return "fonts"
    if told.startswith(("audio/", "video/")):
        return "sound and video"
    spelled = format_of(told)
    return "feeds and data" if spelled in _DATA_FORMATS else _BY_FORMAT.get(spelled, "other")
