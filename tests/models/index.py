"""Python model of the readers of index files: everything in memory, independent of `unlost._core`.

It decodes plain files, gzip members and zstd frames with damage, splits text into lines, and counts the key column. Of
zstd it supports only raw and run-length blocks; tests by example cover compressed blocks.
"""

import zlib
from typing import NamedTuple

from tests.models.warc import gzip_header, inflate

_FRAME = b"\x28\xb5\x2f\xfd"
_BOM = b"\xef\xbb\xbf"
_WINDOW = 1 << 10  # bytes; the maximum block size


class Line(NamedTuple):
    """A line as returned by the core."""

    number: int
    offset: int
    text: bytes
    too_long: bool
    is_cut: bool


class KeyColumn(NamedTuple):
    """Statistics of the key column."""

    rows: int
    left_out: int
    keys: int
    first_unsorted: int | None


def text_of(data: bytes) -> tuple[bytes, str | None]:
    """Return the text of a file as far as it can be decoded, and the kind of its damage."""
    if data.startswith(b"\x1f\x8b"):
        return _gzip_text(data)
    if data.startswith(_FRAME) or _is_skippable(data):
        return _zstd_text(data)
    return data, None


def _gzip_text(data: bytes) -> tuple[bytes, str | None]:
    text, at = b"", 0
    while at < len(data):
        header = gzip_header(data[at:])
        if header is None:
            return text, "corrupt" if at == 0 else "trailing-garbage"
        if header == 0:
            return text, "truncated"
        member = inflate(data, at, header)
        text += member.text
        if member.damage:
            return text, "truncated" if member.damage == "truncated-gzip" else "corrupt"
        assert member.end is not None
        at = _after_padding(data, member.end)
    return text, None


def _after_padding(data: bytes, at: int) -> int:
    return len(data) - len(data[at:].lstrip(b"\0"))


def _is_skippable(data: bytes) -> bool:
    return len(data) >= 4 and 0x50 <= data[0] <= 0x5F and data[1:4] == b"\x2a\x4d\x18"


def _zstd_text(data: bytes) -> tuple[bytes, str | None]:
    text, at = b"", 0
    while at < len(data):
        while len(data) - at >= 8 and _is_skippable(data[at:]):
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
        if at > len(data):
            return text, "truncated"
        if at == len(data):
            break
        if not _FRAME.startswith(data[at : at + 4]):
            return text, "corrupt" if at == 0 else "trailing-garbage"
        found, end, damage = _frame(data[at + 4 :])
        text += found
        if damage:
            return text, damage
        at = _after_padding(data, at + 4 + end)
    return text, None


def _frame(data: bytes) -> tuple[bytes, int, str | None]:
    """Return the text of a frame as `zstd_frame` writes it, where it ends, and its damage."""
    text, at = b"", 2
    while True:
        if len(data) < at + 3:
            return text, at, "truncated"
        header = int.from_bytes(data[at : at + 3], "little")
        is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
        assert kind != 2, "compressed blocks are not for the model"
        if kind == 3 or size > _WINDOW:
            return text, at, "corrupt"
        at += 3
        is_run = kind == 1
        stored = data[at : at + (1 if is_run else size)]
        if len(stored) < (1 if is_run else size):
            # An incomplete raw block is still text.
            return (text if is_run else text + stored), at, "truncated"
        text += stored * size if is_run else stored
        at += len(stored)
        if is_last:
            return text, at, None


def zstd_frame(texts: list[bytes]) -> bytes:
    """Return a frame with one block per text: run-length if all bytes are equal, otherwise raw."""
    frame = _FRAME + b"\0\0"  # no size, no checksum; the smallest window
    for place, text in enumerate(texts):
        is_run = len(text) > 1 and len(set(text)) == 1
        is_last = place == len(texts) - 1
        frame += (is_last | is_run << 1 | len(text) << 3).to_bytes(3, "little") + (text[:1] if is_run else text)
    return frame


def gzip_member(text: bytes, level: int) -> bytes:
    """Return a gzip member; at level 0 the text is stored uncompressed."""
    compressor = zlib.compressobj(level, zlib.DEFLATED, 31)
    return compressor.compress(text) + compressor.flush()


def lines_of(text: bytes, limit: int, damage: str | None = None) -> list[Line]:
    """Split a text at LF; a CR before LF or at the end of the text is removed.

    damage: the kind of damage at the end of the text. An unterminated last line is then incomplete, except before
    garbage.
    """
    pieces = text.split(b"\n")
    ends = len(pieces) - 1
    if not pieces[-1]:
        pieces.pop()
    lines, offset = [], 0
    is_cut = damage not in (None, "trailing-garbage")
    for number, piece in enumerate(pieces, 1):
        line = piece.removesuffix(b"\r")
        lines.append(Line(number, offset, line[:limit], len(line) > limit, number > ends and is_cut))
        offset += len(piece) + 1
    return lines


def key_column(lines: list[Line]) -> KeyColumn:
    """Count the rows of an index and the runs of equal keys, and find the first unsorted row."""
    readable = [line for line in lines if not line.too_long and not line.is_cut]
    left_out = len(lines) - len(readable)
    # The first line may begin with a byte order mark.
    lines = [line._replace(text=line.text.removeprefix(_BOM)) if line.number == 1 else line for line in readable]
    rows = [line for line in lines if line.text.strip(b" \t\n\r\f") and not _is_header(line.text)]
    keys = [row.text.split(b" ")[0] for row in rows]
    runs = [key for place, key in enumerate(keys) if place == 0 or key != keys[place - 1]]
    unsorted = [rows[place].number for place in range(1, len(keys)) if keys[place] < keys[place - 1]]
    return KeyColumn(len(rows), left_out, len(runs), unsorted[0] if unsorted else None)


def _is_header(text: bytes) -> bool:
    return text[:1] in (b"!", b"@", b"#") or (text[1:4] == b"CDX" and not text[:1].isalnum())
