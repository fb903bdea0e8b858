"""Where the entries of a HAR file are, which is one JSON document of any size, found without reading it at once."""

import re
from collections.abc import Callable, Iterator

from unlost.errors import ArchiveFileError
from unlost.formats.kept import TruncatedEntryError

ReadBytes = Callable[[int], bytes]
"""Gives the next bytes, at most as many as it is told; none at the end."""

_CHUNK = 1 << 20
_OUTSIDE_STRING = re.compile(rb'[^"{}\[\]]*+')
_INSIDE_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_BACKSLASH, _QUOTE, _BRACE, _BRACKET = b'\\"{['
_MAX_NAME_BYTES = 16  # bytes kept of a text: the names that are looked for are shorter

# How deep in the document things stand: {"log": {"entries": [{…}, …]}}
_LOG_DEPTH, _ENTRIES_DEPTH, _ENTRY_DEPTH = 1, 2, 3


def find_entry_spans(read: ReadBytes) -> Iterator[tuple[int, int]]:
    """Yield where each object of the list `log.entries` begins and ends, in bytes from the beginning of the text.

    One piece of the text is in memory at a time, and time is linear in the text, whatever is in it; an object is found
    by its brackets and need not be JSON. Raises CutEntryError if the document has no end, ArchiveFileError if it has
    no such list, in both cases behind everything that was found.

    >>> text = iter([b'{"log": {"entries": [{"a": "}"}, {}]}}', b""])
    >>> list(entry_spans(lambda count: next(text)))
    [(21, 31), (33, 35)]
    """
    depth, start = 0, None
    in_log = in_list = has_list = False
    for place, sign, name in _brackets(read):
        if sign in (_BRACE, _BRACKET):
            if depth == _LOG_DEPTH:
                in_log = sign == _BRACE and name == b"log"
            elif depth == _ENTRIES_DEPTH:
                in_list = in_log and sign == _BRACKET and name == b"entries"
                has_list |= in_list
            elif depth == _ENTRY_DEPTH and in_list and sign == _BRACE:
                start = place
            depth += 1
            continue
        depth -= 1
        if depth == _ENTRY_DEPTH and start is not None:
            yield start, place + 1
            start = None
        if depth <= 0:
            break
    else:
        raise TruncatedEntryError("expected the end of a JSON document, found the end of the file")
    if not has_list:
        raise ArchiveFileError("expected a list `log.entries`, found none")


def find_object_end(read: ReadBytes, limit: int) -> int | None:
    """Return how long the object is that a text begins with; None if it has no end within so many bytes."""
    depth = 0
    for place, sign, _ in _brackets(read):
        depth += 1 if sign in (_BRACE, _BRACKET) else -1
        if place >= limit:
            return None
        if depth <= 0:
            return place + 1
    return None


def _brackets(read: ReadBytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield each bracket that is in no text, with its place before it and the beginning of the last text behind."""
    base, data = 0, b""
    in_text, name = False, b""
    while chunk := read(_CHUNK):
        data += chunk
        place = 0
        while place < len(data):
            found = (_INSIDE_STRING if in_text else _OUTSIDE_STRING).match(data, place)
            end = found.end() if found else place
            if in_text and len(name) < _MAX_NAME_BYTES:
                name += data[place : min(end, place + _MAX_NAME_BYTES)]
            place = end
            if end == len(data) or data[end] == _BACKSLASH:
                break  # a backslash waits for what it is about
            sign, place = data[end], end + 1
            if sign == _QUOTE:
                in_text = not in_text
                name = b"" if in_text else name
            else:
                yield base + end, sign, name
        base, data = base + place, data[place:]
