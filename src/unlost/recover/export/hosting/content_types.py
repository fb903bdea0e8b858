"""What servers say a file is: by its ending, and which files are something else."""

import mimetypes
import re
from collections import Counter
from collections.abc import Iterable, Mapping

# Without the files of this machine: the same everywhere.
_BY_EXTENSION = mimetypes.MimeTypes().types_map[True]

# Stricter than the standard: whatever is in these can be written into any server's settings as it is.
_MIME = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+-]{0,60}", re.IGNORECASE)
_CHARSET = re.compile(r"[a-z0-9][a-z0-9._:-]{0,40}", re.IGNORECASE)
_TEXT = re.compile(r"text/.*|.*[/+]xml|application/(?:x-)?(?:java|ecma)script", re.IGNORECASE)
_EXTENSION = re.compile(r"[^/.][^/]*\.([A-Za-z0-9_-]{1,16})")


def content_type(mime: str | None, charset: str | None) -> str | None:
    """Return the value of a Content-Type header; None where the type is not known, or none that could be sent.

    >>> content_type("text/html", "windows-1252"), content_type("image/gif", "utf-8"), content_type('a"b', None)
    ('text/html; charset=windows-1252', 'image/gif', None)
    """
    if mime is None or not _MIME.fullmatch(mime):
        return None
    if charset is None or not _CHARSET.fullmatch(charset) or not _TEXT.fullmatch(mime):
        return mime.lower()
    return f"{mime.lower()}; charset={charset}"


def lower_extension(path: str) -> str:
    """Return what stands behind the last dot of a file's name, in lower case; empty if that is no ending.

    >>> ending("a.b/c.HTML"), ending("a.b/c"), ending("a/.html")
    ('html', '', '')
    """
    found = _EXTENSION.fullmatch(path.rpartition("/")[2])
    return found[1].lower() if found else ""


def types_by_extension(paths: Iterable[str], types: Mapping[str, str]) -> dict[str, str]:
    """Return the type that most files with an ending have, for each ending; the usual one where none is known.

    types: by path, as far as they are known.
    """
    counts: dict[str, Counter[str]] = {}
    for path in paths:
        end = lower_extension(path)
        told = types.get(path) or _BY_EXTENSION.get(f".{end}")
        if end and told is not None:
            counts.setdefault(end, Counter())[told] += path in types
    return {end: min(count.items(), key=lambda pair: (-pair[1], pair[0]))[0] for end, count in sorted(counts.items())}


def untypical_files(types: Mapping[str, str], by_ending: Mapping[str, str]) -> dict[str, str]:
    """Return the files, in order, whose type is not that of their ending."""
    return {path: told for path, told in sorted(types.items()) if by_ending.get(lower_extension(path)) != told}
