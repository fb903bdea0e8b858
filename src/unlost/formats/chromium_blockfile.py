"""Chromium's Blockfile Cache: all entries in a few files with blocks of one size each, as on Windows."""

import re
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from unlost.errors import ArchiveFileError
from unlost.formats.chromium_entry import ChromiumEntry, ChromiumResponseInfo, parse_response_info
from unlost.formats.kept import CHUNK_BYTES, MAX_HEAD_BYTES, MAX_KEY_BYTES, Chunks, open_regular_file, entry_problem
from unlost.formats.problems import Problem, Problems
from unlost.formats.superfast import super_fast_hash

BLOCK_FILE_NAME = re.compile(r"data_[0-9]{1,3}")
"""A file with entries."""

_INDEX = struct.Struct("<II20xi")  # magic, version, …, how many buckets
_INDEX_MAGIC = 0xC103CAC3
_INDEX_HEADER_BYTES = 368
_INDEX_VERSIONS = range(0x20000, 0x40000)
_BUCKETS = 0x10000
_MAX_BUCKETS = 1 << 24  # 64 MiB of them: 256 times as many as a cache of the largest size has

_BLOCK_HEADER_BYTES = 8192
_BLOCK_HEADER = struct.Struct("<II4xi")  # magic, version, …, bytes of a block
_BLOCK_MAGIC = 0xC104CAC3
_BLOCK_BYTES = {2: 256, 3: 1024, 4: 4096}  # by kind; 1 is for the order of use, which is of no interest here

# Hash of the key, next, ranking, 2 counts, state, created, key's length and address, lengths and addresses of streams,
# flags; behind them the hash of all that.
_BLOCKFILE_ENTRY = struct.Struct("<I I I 8x i Q i I 4i 4I I".replace(" ", ""))
_SELF_HASH_OFFSET = 92
_ENTRY_ADDRESS = 0b1010  # in use, and in blocks of 256 bytes
_KEY_OFFSET = 96
_STATE_NORMAL = 0
_SPARSE_FLAGS = 3  # has children, or is one
_MAX_KEY_BYTES = MAX_KEY_BYTES * 2


class _CacheAddress(NamedTuple):
    """Where something is stored: a file of its own (kind 0), or blocks of a file."""

    kind: int
    file: int
    block: int
    blocks: int

    @classmethod
    def decode(cls, number: int) -> "_CacheAddress | None":
        """Return what a number stands for; None if it stands for nothing."""
        if not number & 0x80000000:
            return None
        kind = number >> 28 & 7
        if kind == 0:
            return cls(0, number & 0x0FFFFFFF, 0, 0)
        if kind not in _BLOCK_BYTES:
            raise ArchiveFileError(f"expected an address of data, found one of kind {kind}")
        return cls(kind, number >> 16 & 0xFF, number & 0xFFFF, (number >> 24 & 3) + 1)

    @property
    def name(self) -> str:
        return f"data_{self.file}" if self.kind else f"f_{self.file:06x}"

    @property
    def offset(self) -> int:
        return _BLOCK_HEADER_BYTES + self.block * _BLOCK_BYTES[self.kind] if self.kind else 0

    @property
    def capacity(self) -> int | None:
        """How many bytes there are at most; None if as many as the file has."""
        return self.blocks * _BLOCK_BYTES[self.kind] if self.kind else None


def read_blockfile_entries(folder: Path, problems: Problems) -> Iterator[ChromiumEntry]:
    """Yield the entries of a folder. Problems: `foreign` index, `damaged` and `unreadable` entries, `loop`."""
    seen = set[int]()
    for bucket in _read_buckets(folder, problems):
        number = bucket
        while number & 0x80000000:
            if number in seen:
                problems.add(Problem("loop", "index", None, 0, "expected the end of a chain, found an entry again"))
                break
            seen.add(number)
            try:
                entry, number = _read_blockfile_entry(folder, number)
            except FileNotFoundError:
                break
            except OSError as error:
                problems.add(entry_problem(error, "index"))
                break
            except _BlockfileEntryError as error:
                problems.add(Problem("damaged", error.filename, None, error.offset, str(error)))
                number = error.next_entry
            else:
                if entry is not None:
                    yield entry


def read_blockfile_entry(folder: Path, filename: str) -> ChromiumEntry | None:
    """Return an entry by the name that it has in records; None if it is gone. Raises ArchiveFileError, OSError."""
    try:
        return _read_blockfile_entry(folder, int(filename.partition("#")[2], 16))[0]
    except FileNotFoundError:
        return None


class _BlockfileEntryError(ArchiveFileError):
    """A damaged entry; the chain may go on behind it."""

    def __init__(self, message: str, filename: str, offset: int, following: int) -> None:
        super().__init__(message)
        self.filename, self.offset, self.next_entry = filename, offset, following


def _read_buckets(folder: Path, problems: Problems) -> Iterator[int]:
    """Yield the numbers in the index that stand for entries."""
    try:
        with open_regular_file(folder / "index") as file:
            header = file.read(_INDEX_HEADER_BYTES)
            if len(header) < _INDEX_HEADER_BYTES or not header.startswith(struct.pack("<I", _INDEX_MAGIC)):
                return  # the other forms have a file of that name, too
            _, version, count = _INDEX.unpack_from(header)
            count = count or _BUCKETS
            if version not in _INDEX_VERSIONS or not 0 < count <= _MAX_BUCKETS:
                message = f"expected an index of version 2 or 3, found version {version:#x} with {count} buckets"
                problems.add(Problem("foreign", "index", None, 0, message))
                return
            while count > 0 and (table := file.read(min(count * 4, CHUNK_BYTES))):
                count -= len(table) // 4
                for (number,) in struct.iter_unpack("<I", table[: len(table) // 4 * 4]):
                    if number & 0x80000000:
                        yield number
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        problems.add(entry_problem(error, "index"))


def _read_blockfile_entry(folder: Path, number: int) -> tuple[ChromiumEntry | None, int]:
    """Return the entry at an address, if it is in use, and the number of the next one of the chain."""
    following = 0
    if number >> 28 != _ENTRY_ADDRESS:
        raise _BlockfileEntryError("expected the address of an entry, found another", "index", 0, 0)
    address = _CacheAddress(2, number >> 16 & 0xFF, number & 0xFFFF, (number >> 24 & 3) + 1)
    try:
        stored = _read_blocks(folder, address, address.capacity or 0)
        key_hash, following, _, state, _, key_length, key_at, *streams, flags = _BLOCKFILE_ENTRY.unpack_from(stored)
        sizes, places = streams[:4], streams[4:]
        (self_hash,) = struct.unpack_from("<I", stored, _SELF_HASH_OFFSET)
        if self_hash not in (0, super_fast_hash(stored[:_SELF_HASH_OFFSET])):
            raise ArchiveFileError("expected the entry that was stored, found another: its hash is wrong")  # noqa: TRY301
        if state != _STATE_NORMAL:
            return None, following
        key = _read_blockfile_key(folder, stored, key_length, key_at)
        if super_fast_hash(key) != key_hash:
            raise ArchiveFileError("expected the key that was stored, found another: its hash is wrong")  # noqa: TRY301
        if sizes[0] == 0:
            return None, following  # no response came
        info, length = _read_blockfile_info(folder, sizes[0], places[0]), sizes[1]
        body = _CacheAddress.decode(places[1]) if length else None
        if length < 0 or (length and body is None):
            raise ArchiveFileError("expected the address of a body, found none")  # noqa: TRY301  told below, with its place
    except ArchiveFileError as error:
        raise _BlockfileEntryError(str(error), address.name, address.offset, following) from None
    filename = f"{address.name}#{number:08x}"
    chunks = partial(_iter_blocks, folder, body, length)
    is_sparse = bool(flags & _SPARSE_FLAGS)
    return ChromiumEntry(
        key.decode("utf-8", "replace"), info, length, is_sparse, filename, address.offset, chunks
    ), following


def _read_blockfile_key(folder: Path, stored: bytes, length: int, place: int) -> bytes:
    if not 0 < length <= _MAX_KEY_BYTES:
        raise ArchiveFileError(f"expected a key of 1 to {_MAX_KEY_BYTES} bytes, found {length}")
    address = _CacheAddress.decode(place)
    key = stored[_KEY_OFFSET : _KEY_OFFSET + length] if address is None else _read_blocks(folder, address, length)
    if len(key) < length:
        raise ArchiveFileError("expected a key, found less of it than it is long")
    return key


def _read_blockfile_info(folder: Path, size: int, place: int) -> ChromiumResponseInfo:
    address = _CacheAddress.decode(place)
    if address is None or not 0 < size <= MAX_HEAD_BYTES:
        raise ArchiveFileError(f"expected a head of at most {MAX_HEAD_BYTES} bytes, found {size}")
    return parse_response_info(_read_blocks(folder, address, size))


def _read_blocks(folder: Path, address: _CacheAddress, size: int) -> bytes:
    return b"".join(_iter_blocks(folder, address, size))


def _iter_blocks(folder: Path, address: _CacheAddress | None, size: int) -> Chunks:
    """Yield so many bytes from an address."""
    if address is None:
        return
    if address.capacity is not None and size > address.capacity:
        raise ArchiveFileError(f"expected {size} bytes, found blocks for {address.capacity}")
    with open_regular_file(folder / address.name) as file:
        if address.kind:
            header = file.read(_BLOCK_HEADER.size)
            if len(header) < _BLOCK_HEADER.size:
                raise ArchiveFileError("expected a file of blocks, found a shorter one")
            magic, _, block_bytes = _BLOCK_HEADER.unpack(header)
            if magic != _BLOCK_MAGIC or block_bytes != _BLOCK_BYTES[address.kind]:
                raise ArchiveFileError("expected a file of blocks of another size, or of blocks at all")
        file.seek(address.offset)
        while size > 0:
            chunk = file.read(min(CHUNK_BYTES, size))
            if not chunk:
                raise ArchiveFileError("expected more bytes, found the end of the file")
            size -= len(chunk)
            yield chunk
