"""Chromium's Simple Cache: a file for each entry, as on Linux, Android and macOS."""

import hashlib
import re
import struct
import zlib
from collections.abc import Iterator
from os import SEEK_END, scandir
from pathlib import Path
from typing import BinaryIO

from unlost.errors import ArchiveFileError
from unlost.formats.chromium_entry import ChromiumEntry, ChromiumResponseInfo, parse_response_info
from unlost.formats.kept import (
    CHUNK_BYTES,
    MAX_HEAD_BYTES,
    MAX_KEY_BYTES,
    Chunks,
    TruncatedEntryError,
    open_regular_file,
    entry_problem,
)
from unlost.formats.problems import Problems

SIMPLE_FILE_NAME = re.compile(r"[0-9a-f]{16}_0")
"""The file of an entry: head and body are in it. `_1` holds what the browser made of the body, `_s` ranges."""

_SIMPLE_HEADER = struct.Struct("<QIII4x")  # magic, version, length of the key, its hash
_SIMPLE_HEADER_MAGIC = 0xFCFB6D1BA7725C30
_STREAM_END = struct.Struct("<QIII4x")  # magic, flags, CRC-32 of the stream, its length
_STREAM_END_MAGIC = 0xF4FA6F45970D41D8
_HAS_CRC = 1
_HAS_KEY_DIGEST = 2
_KEY_DIGEST_BYTES = 32
_MAX_KEY_BYTES = MAX_KEY_BYTES * 2  # an address, and the sites that it is kept for


def read_simple_entries(folder: Path, problems: Problems) -> Iterator[ChromiumEntry]:
    """Yield the entries of a folder. Problems: `truncated`, `damaged`, `unreadable` entries."""
    with scandir(folder) as files:
        for file in files:
            if not SIMPLE_FILE_NAME.fullmatch(file.name):
                continue
            try:
                entry = read_simple_entry(folder, file.name)
            except (OSError, ArchiveFileError) as error:
                problems.add(entry_problem(error, file.name))
            else:
                if entry is not None:
                    yield entry


def read_simple_entry(folder: Path, filename: str) -> ChromiumEntry | None:
    """Return the entry of a file; None if it is gone. Raises ArchiveFileError, OSError."""
    path = folder / filename
    try:
        with open_regular_file(path) as file:
            key, start = _read_simple_key(file)
            info, end, crc = _read_simple_info(file, key, start)
    except FileNotFoundError:
        return None
    sparse = path.with_name(filename[:-1] + "s").exists()
    return ChromiumEntry(
        key.decode("utf-8", "replace"),
        info,
        end - start,
        sparse,
        filename,
        0,
        lambda: _read_simple_body(path, start, end, crc),
    )


def _read_simple_key(file: BinaryIO) -> tuple[bytes, int]:
    """Return the key, and where the body begins."""
    begin = file.read(_SIMPLE_HEADER.size)
    if len(begin) < _SIMPLE_HEADER.size:
        raise TruncatedEntryError("expected an entry, found fewer bytes than its beginning has")
    magic, _, length, _ = _SIMPLE_HEADER.unpack(begin)
    if magic != _SIMPLE_HEADER_MAGIC:
        raise ArchiveFileError("expected an entry, found another kind of file")
    if length > _MAX_KEY_BYTES:
        raise ArchiveFileError(f"expected a key of at most {_MAX_KEY_BYTES} bytes, found {length}")
    key = file.read(length)
    if len(key) < length:
        raise TruncatedEntryError("expected a key, found the end of the file")
    return key, _SIMPLE_HEADER.size + length


def _read_simple_info(file: BinaryIO, key: bytes, start: int) -> tuple[ChromiumResponseInfo, int, int | None]:
    """Return the head, where the body ends, and the body's CRC-32, if there is one."""
    size = file.seek(0, SEEK_END)
    flags, crc, length = _read_stream_end(file, start, size)
    place = size - _STREAM_END.size
    if flags & _HAS_KEY_DIGEST:
        place -= _KEY_DIGEST_BYTES
        file.seek(max(0, place))
        if file.read(_KEY_DIGEST_BYTES) != hashlib.sha256(key).digest():
            raise ArchiveFileError("expected the digest of the key, found another")
    if length > MAX_HEAD_BYTES:
        raise ArchiveFileError(f"expected a head of at most {MAX_HEAD_BYTES} bytes, found {length}")
    place -= length
    body_flags, body_crc, _ = _read_stream_end(file, start, place)
    file.seek(place)
    head = file.read(length)
    if flags & _HAS_CRC and zlib.crc32(head) != crc:
        raise ArchiveFileError("expected the head that was stored, found another: its checksum is wrong")
    return parse_response_info(head), place - _STREAM_END.size, body_crc if body_flags & _HAS_CRC else None


def _read_stream_end(file: BinaryIO, start: int, place: int) -> tuple[int, int, int]:
    """Return flags, checksum and length from the record that ends a stream before a place."""
    if place - _STREAM_END.size < start:
        raise TruncatedEntryError("expected the end of a stream, found the beginning of the file")
    file.seek(place - _STREAM_END.size)
    magic, flags, crc, length = _STREAM_END.unpack(file.read(_STREAM_END.size))
    if magic != _STREAM_END_MAGIC:
        raise TruncatedEntryError("expected the end of a stream, found something else")
    return flags, crc, length


def _read_simple_body(path: Path, start: int, end: int, crc: int | None) -> Chunks:
    with open_regular_file(path) as file:
        file.seek(start)
        found = 0
        while (left := end - file.tell()) > 0:
            chunk = file.read(min(CHUNK_BYTES, left))
            if not chunk:
                raise ArchiveFileError("expected a body, found the end of the file")
            found = zlib.crc32(chunk, found)
            yield chunk
    if crc is not None and found != crc:
        raise ArchiveFileError("expected the body that was stored, found another: its checksum is wrong")
