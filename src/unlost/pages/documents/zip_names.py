"""The names in a zip file, read with little memory whatever is in it."""

import struct

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
