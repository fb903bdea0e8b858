"""Media types and statuses as indexes have them: groups for people, and which of them are malformed."""

import re

MEDIA_GROUPS = (
    "HTML", "Image", "CSS", "JavaScript", "JSON", "XML", "Text", "PDF", "Font", "Audio", "Video", "Revisit", "Other",
)  # fmt: skip
"""Groups of media types, in the order of tables."""

STATUS_CLASSES = ("2XX", "3XX", "4XX", "5XX", "Other")
"""Classes of statuses."""

_TYPE = re.compile(r"[a-z0-9!#$&^_.+*-]{1,127}/[a-z0-9!#$&^_.+*-]{1,127}(\s*;.*)?", re.IGNORECASE | re.DOTALL)
_STATUS = re.compile(r"[1-5]\d\d", re.ASCII)
_ABSENT_VALUES = ("", "-")
# The first pattern that is found decides.
_GROUP_PATTERNS = (
    ("Revisit", re.compile(r"warc/revisit")),
    ("HTML", re.compile(r"html")),
    ("CSS", re.compile(r"text/css")),
    ("JavaScript", re.compile(r"javascript|ecmascript")),
    ("JSON", re.compile(r"json")),
    ("Image", re.compile(r"image/")),
    ("PDF", re.compile(r"application/pdf")),
    ("Font", re.compile(r"font")),
    ("Audio", re.compile(r"audio/")),
    ("Video", re.compile(r"video/")),
    ("XML", re.compile(r"xml")),
    ("Text", re.compile(r"text/")),
)


def media_group(mime: str) -> str:
    """Return the group of a media type.

    >>> group_of("text/html; charset=utf-8"), group_of("image/svg+xml"), group_of("unk"), group_of("warc/revisit")
    ('HTML', 'Image', 'Other', 'Revisit')
    """
    lower = mime.lower()
    return next((group for group, pattern in _GROUP_PATTERNS if pattern.search(lower)), "Other")


def status_class(status: str) -> str:
    """Return the class of a status.

    >>> class_of("204"), class_of("-"), class_of("99"), class_of("101")
    ('2XX', 'Other', 'Other', 'Other')
    """
    found = f"{status[0]}XX" if _STATUS.fullmatch(status) else "Other"
    return found if found in STATUS_CLASSES else "Other"


def is_media_type(mime: str) -> bool:
    """Return whether it has the form of a media type, or says that there is none.

    >>> is_type("text/html;charset=x"), is_type(""), is_type("text"), is_type("text/html,text/html")
    (True, True, False, False)
    """
    return mime in _ABSENT_VALUES or bool(_TYPE.fullmatch(mime))


def is_status(status: str) -> bool:
    """Return whether it is a status, or says that there is none.

    >>> is_status("200"), is_status("-"), is_status("0"), is_status("2000"), is_status("OK")
    (True, True, False, False, False)
    """
    return status in _ABSENT_VALUES or bool(_STATUS.fullmatch(status))
