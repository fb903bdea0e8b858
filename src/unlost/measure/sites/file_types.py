"""The media type of a file, by its ending and its first bytes."""

import mimetypes
import re

SNIFF_BYTES = 512
"""How many first bytes are looked at."""

# Without the files of this machine: the same everywhere.
_MEDIA_TYPES = mimetypes.MimeTypes()
_MAX_EXTENSION_LENGTH = 16

_SIGNATURES = (
    (b"%PDF-", "application/pdf"),
    (b"%!PS", "application/postscript"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\xff\xd8\xff", "image/jpeg"),
)
_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:\s|<!--[^>]*-->|<\?xml[^>]*>)*<(?:!doctype\s+html|html|head|body|title)\b", re.IGNORECASE
)


def guess_media_type(name: str, head: bytes) -> str | None:
    r"""Return the media type of a file, of whose name only the path counts, by its ending; first bytes know better.

    None if neither tells.

    >>> type_of("a/logo.gif", b"\x89PNG\r\n\x1a\n"), type_of("a.php?x=1.css", b"<html>"), type_of("a", b"?")
    ('image/png', 'text/html', None)
    """
    for signature, told in _SIGNATURES:
        if head.startswith(signature):
            return told
    last = name.partition("?")[0].rpartition("/")[2]
    ending = f".{last.rpartition('.')[2]}".lower() if "." in last else ""
    mime = _MEDIA_TYPES.types_map[True].get(ending) if len(ending) <= _MAX_EXTENSION_LENGTH else None
    if mime is None or (mime.startswith("image/") and mime != "image/svg+xml"):
        return "text/html" if _HTML.match(head) else mime
    return mime
