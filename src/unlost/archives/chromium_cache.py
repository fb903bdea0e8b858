"""Chromium's cache in its three formats: Simple (one file for each entry), Blockfile (Windows), and SQL.

All formats store entries with a key, a response head and a body. `ChromiumCacheClient` serves them as an archive.

docs/browser-caches.md describes the formats, what is read, and the kinds of problems. Constants are those of Chromium's
`net/disk_cache` and `net/http`.
"""

import hashlib
import re
import sqlite3
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from os import SEEK_END, scandir
from pathlib import Path
from typing import BinaryIO, NamedTuple

from unlost.archives.browser_cache import (
    CHUNK_BYTES,
    MAX_HEAD_BYTES,
    MAX_KEY_BYTES,
    CachedContent,
    CachedHeaders,
    CachedResponse,
    CachedResponseClient,
    Chunks,
    TruncatedEntryError,
    content_encoding_of,
    entry_problem,
    get_header,
    is_partial,
    open_regular_file,
    parse_mime,
    parse_response_head,
    parse_web_url,
    redirect_location,
)
from unlost.dates import from_datetime
from unlost.errors import ArchiveFileError
from unlost.problems import Problem, Problems
from unlost.registry.models import Archive

_UINT32_MASK = 0xFFFFFFFF


def super_fast_hash(data: bytes) -> int:
    """Return Chromium's hash of keys and records, which detects torn writes but is not cryptographic.

    Slow for more than some hundred bytes; keys and records are shorter.
    """
    if not data:
        return 0
    value = len(data)
    aligned = len(data) // 4 * 4
    for position in range(0, aligned, 4):
        value = (value + int.from_bytes(data[position : position + 2], "little")) & _UINT32_MASK
        other = int.from_bytes(data[position + 2 : position + 4], "little") << 11 ^ value
        value = (value << 16 ^ other) & _UINT32_MASK
        value = (value + (value >> 11)) & _UINT32_MASK
    value = _mix_tail(value, data[aligned:])
    for left, right in ((3, 5), (4, 17), (25, 6)):
        value ^= value << left & _UINT32_MASK
        value = (value + (value >> right)) & _UINT32_MASK
    return value


def _mix_tail(value: int, tail: bytes) -> int:
    """Mix in the last one to three bytes. The last byte of an odd number of bytes is signed."""
    if not tail:
        return value
    odd = int.from_bytes(tail[-1:], "little", signed=True)
    if len(tail) == 1:
        left, right = 10, 1
        value = (value + odd) & _UINT32_MASK
    else:
        left, right = (16, 11) if len(tail) == 3 else (11, 17)
        value = (value + int.from_bytes(tail[:2], "little")) & _UINT32_MASK
    value = (value ^ value << left) & _UINT32_MASK
    if len(tail) == 3:
        value = (value ^ odd << 18) & _UINT32_MASK
    return (value + (value >> right)) & _UINT32_MASK


_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)  # of Chromium's timestamps, in microseconds
_HEAD_VERSIONS = (1, 2, 3)  # versions of the stored metadata, which begin alike
_TRUNCATED = 1 << 12
_HAS_EXTRA = 1 << 31
_EXTRA_DICTIONARY = 1
_EXTRA_ORIGINAL_TIME = 1 << 2
# [credentials/]upload/, then, for a partitioned cache, the sites of the partition, which contain no space.
_CACHE_KEY = re.compile(r"(?:(?:[01]/)?(?P<upload>-?[0-9]{1,20})/)?(?P<divided>_dk_(?:[^ ]* )+)?(?P<address>[^ ]*)")


@dataclass(frozen=True, slots=True)
class ChromiumResponseInfo:
    """The metadata that Chromium stores for a response.

    Attributes:
        status: Its status.
        headers: Its header fields.
        microseconds: When it was received, since 1601.
        is_truncated: Whether the browser did not receive the whole body.
        has_dictionary: Whether the body was compressed with a dictionary, which is stored elsewhere.
    """

    status: int
    headers: CachedHeaders
    microseconds: int
    is_truncated: bool
    has_dictionary: bool


@dataclass(frozen=True, slots=True)
class ChromiumEntry:
    """An entry of the cache.

    Attributes:
        key: Its key.
        info: The metadata of its response.
        length: Size of the stored body in bytes.
        is_sparse: Whether only ranges of the body are stored.
        filename: Its file, with an identifier after `#` if the file has several entries.
        offset: Where it begins in the file, in bytes.
        chunks: Returns the body.
    """

    key: str
    info: ChromiumResponseInfo
    length: int
    is_sparse: bool
    filename: str
    offset: int
    chunks: Callable[[], Chunks]

    @property
    def coding(self) -> str:
        """Value of Content-Encoding for the stored body. Compression with a dictionary counts as an unknown coding."""
        coding = content_encoding_of(self.info.headers)
        return f"{coding} with a dictionary" if self.info.has_dictionary and coding else coding

    def exclusion_reason(self) -> str | None:
        """Return why this is not a complete GET response: `other-method`, `part`, `foreign-scheme`; None if it is."""
        upload, url = parse_chromium_key(self.key)
        if upload:
            return "other-method"
        if url is None:
            return "foreign-scheme"
        info = self.info
        if self.is_sparse or info.is_truncated or is_partial(info.status, info.headers, self.length):
            return "part"
        return None

    def to_response(self) -> CachedResponse | None:
        """Return the response without its body; None if its time is invalid."""
        try:
            moment = from_datetime(_EPOCH + timedelta(microseconds=self.info.microseconds))
        except OverflowError:
            return None
        if self.info.microseconds <= 0:
            return None
        status, headers = self.info.status, self.info.headers
        url = parse_chromium_key(self.key)[1] or ""
        mime, redirect = parse_mime(get_header(headers, "content-type")), redirect_location(status, headers)
        return CachedResponse(url, moment, status, mime, redirect, self.length, self.filename, self.offset)


def parse_chromium_key(key: str) -> tuple[bool, str | None]:
    """Return whether the request of a key had a body, and its URL, None unless http or https.

    >>> parse_chromium_key("1/0/_dk_https://a.com https://b.org https://b.org/x?y")
    (False, 'https://b.org/x?y')
    >>> [parse_chromium_key(each) for each in ("1/1700000000000/https://a.com/form", "chrome-extension://x/")]
    [(True, 'https://a.com/form'), (False, None)]
    """
    match = _CACHE_KEY.fullmatch(key)
    if match is None:
        return False, None
    return int(match["upload"] or 0) != 0, parse_web_url(match["address"])


def parse_response_info(data: bytes) -> ChromiumResponseInfo:
    """Parse the stored metadata of a response. Raises ArchiveFileError."""
    try:
        size, flags = struct.unpack_from("<II", data)
        position, extra = 8, 0
        if flags & _HAS_EXTRA:
            (extra,) = struct.unpack_from("<I", data, position)
            position += 4
        _, response_time = struct.unpack_from("<qq", data, position)
        position += 24 if extra & _EXTRA_ORIGINAL_TIME else 16
        (length,) = struct.unpack_from("<I", data, position)
    except struct.error:
        raise ArchiveFileError("expected the head of a response, found fewer bytes than it begins with") from None
    position += 4
    if flags & 0xFF not in _HEAD_VERSIONS or size + 4 > len(data) or position + length > len(data):
        raise ArchiveFileError("expected the head of a response, found something else")
    head = parse_response_head(data[position : position + length].rstrip(b"\0").split(b"\0"))
    if head is None:
        raise ArchiveFileError("expected a status and fields, found something else")
    return ChromiumResponseInfo(*head, response_time, bool(flags & _TRUNCATED), bool(extra & _EXTRA_DICTIONARY))


SIMPLE_FILE_NAME = re.compile(r"[0-9a-f]{16}_0")
"""The file of an entry, with metadata and body. Files named `_1` have data derived from the body, `_s` ranges of it."""
_SIMPLE_HEADER = struct.Struct("<QIII4x")  # magic, version, length of the key, its hash
_SIMPLE_HEADER_MAGIC = 0xFCFB6D1BA7725C30
_STREAM_END = struct.Struct("<QIII4x")  # magic, flags, CRC-32 of the stream, its length
_STREAM_END_MAGIC = 0xF4FA6F45970D41D8
_HAS_CRC = 1
_HAS_KEY_DIGEST = 2
_KEY_DIGEST_BYTES = 32
_MAX_KEY_BYTES = MAX_KEY_BYTES * 2  # a URL, and the sites of the cache partition


def read_simple_entries(folder: Path, problems: Problems) -> Iterator[ChromiumEntry]:
    """Yield the entries of a directory. Problems: `truncated`, `damaged`, `unreadable` entries."""
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
    """Return the entry of a file; None if it was deleted. Raises ArchiveFileError, OSError."""
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
    """Return the key, and the position of the body."""
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
    """Return the metadata, the end of the body, and the CRC-32 of the body if it has one."""
    size = file.seek(0, SEEK_END)
    flags, crc, length = _read_stream_end(file, start, size)
    position = size - _STREAM_END.size
    if flags & _HAS_KEY_DIGEST:
        position -= _KEY_DIGEST_BYTES
        file.seek(max(0, position))
        if file.read(_KEY_DIGEST_BYTES) != hashlib.sha256(key).digest():
            raise ArchiveFileError("expected the digest of the key, found another")
    if length > MAX_HEAD_BYTES:
        raise ArchiveFileError(f"expected a head of at most {MAX_HEAD_BYTES} bytes, found {length}")
    position -= length
    body_flags, body_crc, _ = _read_stream_end(file, start, position)
    file.seek(position)
    head = file.read(length)
    if flags & _HAS_CRC and zlib.crc32(head) != crc:
        raise ArchiveFileError("expected the head that was stored, found another: its checksum is wrong")
    return parse_response_info(head), position - _STREAM_END.size, body_crc if body_flags & _HAS_CRC else None


def _read_stream_end(file: BinaryIO, start: int, end: int) -> tuple[int, int, int]:
    """Return flags, checksum and length from the record that ends at a position, after a stream."""
    if end - _STREAM_END.size < start:
        raise TruncatedEntryError("expected the end of a stream, found the beginning of the file")
    file.seek(end - _STREAM_END.size)
    magic, flags, crc, length = _STREAM_END.unpack(file.read(_STREAM_END.size))
    if magic != _STREAM_END_MAGIC:
        raise TruncatedEntryError("expected the end of a stream, found something else")
    return flags, crc, length


def _read_simple_body(path: Path, start: int, end: int, crc: int | None) -> Chunks:
    with open_regular_file(path) as file:
        file.seek(start)
        actual_crc = 0
        while (remaining := end - file.tell()) > 0:
            chunk = file.read(min(CHUNK_BYTES, remaining))
            if not chunk:
                raise ArchiveFileError("expected a body, found the end of the file")
            actual_crc = zlib.crc32(chunk, actual_crc)
            yield chunk
    if crc is not None and actual_crc != crc:
        raise ArchiveFileError("expected the body that was stored, found another: its checksum is wrong")


BLOCK_FILE_NAME = re.compile(r"data_[0-9]{1,3}")
"""A file with blocks of several entries."""
_INDEX = struct.Struct("<II20xi")  # magic, version, …, number of buckets
_INDEX_MAGIC = 0xC103CAC3
_INDEX_HEADER_BYTES = 368
_INDEX_VERSIONS = range(0x20000, 0x40000)
_BUCKETS = 0x10000
_MAX_BUCKETS = 1 << 24  # 64 MiB, 256 times as many as the largest cache has
_BLOCK_HEADER_BYTES = 8192
_BLOCK_HEADER = struct.Struct("<II4xi")  # magic, version, …, size of a block in bytes
_BLOCK_MAGIC = 0xC104CAC3
_BLOCK_BYTES = {2: 256, 3: 1024, 4: 4096}  # by kind of address; kind 1 has the order of use, which is not needed
# Hash of the key, next entry, ranking, 2 counts, state, creation time, length and address of the key, lengths and
# addresses of the streams, flags. The hash of all these follows.
_BLOCKFILE_ENTRY = struct.Struct("<I I I 8x i Q i I 4i 4I I".replace(" ", ""))
_SELF_HASH_OFFSET = 92
_ENTRY_ADDRESS = 0b1010  # initialized, kind 2: blocks of 256 bytes
_KEY_OFFSET = 96
_STATE_NORMAL = 0
_SPARSE_FLAGS = 3  # has children, or is a child


class _CacheAddress(NamedTuple):
    """Where data is stored: in a separate file (kind 0), or in blocks of a file."""

    kind: int
    file: int
    block: int
    blocks: int

    @classmethod
    def decode(cls, number: int) -> "_CacheAddress | None":
        """Decode a stored address; None if it is not set."""
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
        """Maximum size of the data in bytes; None for a separate file."""
        return self.blocks * _BLOCK_BYTES[self.kind] if self.kind else None


def read_blockfile_entries(folder: Path, problems: Problems) -> Iterator[ChromiumEntry]:
    """Yield the entries of a directory. Problems: `foreign` index, `damaged` and `unreadable` entries, `loop`."""
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
    """Return an entry by its `CachedResponse.filename`; None if it was deleted. Raises ArchiveFileError, OSError."""
    try:
        return _read_blockfile_entry(folder, int(filename.partition("#")[2], 16))[0]
    except FileNotFoundError:
        return None


class _BlockfileEntryError(ArchiveFileError):
    """A damaged entry. The chain may continue with `next_entry`."""

    def __init__(self, message: str, filename: str, offset: int, next_entry: int) -> None:
        super().__init__(message)
        self.filename, self.offset, self.next_entry = filename, offset, next_entry


def _read_buckets(folder: Path, problems: Problems) -> Iterator[int]:
    """Yield the addresses of entries in the index."""
    try:
        with open_regular_file(folder / "index") as file:
            header = file.read(_INDEX_HEADER_BYTES)
            if len(header) < _INDEX_HEADER_BYTES or not header.startswith(struct.pack("<I", _INDEX_MAGIC)):
                return  # the other formats have a file of that name, too
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
    """Return the entry at an address, if it is in use, and the address of the next one of the chain."""
    next_entry = 0
    if number >> 28 != _ENTRY_ADDRESS:
        raise _BlockfileEntryError("expected the address of an entry, found another", "index", 0, 0)
    address = _CacheAddress(2, number >> 16 & 0xFF, number & 0xFFFF, (number >> 24 & 3) + 1)
    try:
        stored = _read_blocks(folder, address, address.capacity or 0)
        key_hash, next_entry, _, state, _, key_length, key_address, *streams, flags = _BLOCKFILE_ENTRY.unpack_from(
            stored
        )
        sizes, addresses = streams[:4], streams[4:]
        (self_hash,) = struct.unpack_from("<I", stored, _SELF_HASH_OFFSET)
        if self_hash not in (0, super_fast_hash(stored[:_SELF_HASH_OFFSET])):
            raise ArchiveFileError("expected the entry that was stored, found another: its hash is wrong")  # noqa: TRY301
        if state != _STATE_NORMAL:
            return None, next_entry
        key = _read_blockfile_key(folder, stored, key_length, key_address)
        if super_fast_hash(key) != key_hash:
            raise ArchiveFileError("expected the key that was stored, found another: its hash is wrong")  # noqa: TRY301
        if sizes[0] == 0:
            return None, next_entry  # no response was received
        info, length = _read_blockfile_info(folder, sizes[0], addresses[0]), sizes[1]
        body = _CacheAddress.decode(addresses[1]) if length else None
        if length < 0 or (length and body is None):
            raise ArchiveFileError("expected the address of a body, found none")  # noqa: TRY301  the offset is added below
    except ArchiveFileError as error:
        raise _BlockfileEntryError(str(error), address.name, address.offset, next_entry) from None
    filename = f"{address.name}#{number:08x}"
    chunks = partial(_iter_blocks, folder, body, length)
    is_sparse = bool(flags & _SPARSE_FLAGS)
    return ChromiumEntry(
        key.decode("utf-8", "replace"), info, length, is_sparse, filename, address.offset, chunks
    ), next_entry


def _read_blockfile_key(folder: Path, stored: bytes, length: int, number: int) -> bytes:
    if not 0 < length <= _MAX_KEY_BYTES:
        raise ArchiveFileError(f"expected a key of 1 to {_MAX_KEY_BYTES} bytes, found {length}")
    address = _CacheAddress.decode(number)
    key = stored[_KEY_OFFSET : _KEY_OFFSET + length] if address is None else _read_blocks(folder, address, length)
    if len(key) < length:
        raise ArchiveFileError("expected a key, found less of it than it is long")
    return key


def _read_blockfile_info(folder: Path, size: int, number: int) -> ChromiumResponseInfo:
    address = _CacheAddress.decode(number)
    if address is None or not 0 < size <= MAX_HEAD_BYTES:
        raise ArchiveFileError(f"expected a head of at most {MAX_HEAD_BYTES} bytes, found {size}")
    return parse_response_info(_read_blocks(folder, address, size))


def _read_blocks(folder: Path, address: _CacheAddress, size: int) -> bytes:
    return b"".join(_iter_blocks(folder, address, size))


def _iter_blocks(folder: Path, address: _CacheAddress | None, size: int) -> Chunks:
    """Yield `size` bytes from an address."""
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


SQL_FILE_NAME = re.compile(r"sqldb[0-9]{1,3}")
"""A database with entries."""
_MAX_VALUE_BYTES = 1 << 26  # of one piece of a body; Chromium writes far smaller ones
_PROGRESS_STEPS = 1_000_000  # virtual machine instructions between calls of the progress handler
_MAX_PROGRESS_CALLS = 200  # about ten seconds, which only a crafted file needs; a million entries take a fraction
_LOCK_WAIT_SECONDS = 1.0  # for a browser that has locked the file
# Damage can also cause invalid text, in error messages, too, and values of other types.
_SQL_ERRORS = (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError, TypeError, OverflowError)
_SELECT_ENTRIES = f"""
    SELECT res_id, cache_key, body_end, head FROM resources
    WHERE doomed = 0 AND length(head) BETWEEN 1 AND {MAX_HEAD_BYTES} AND length(cache_key) <= {_MAX_KEY_BYTES}
"""  # noqa: S608  constants of this module
_SELECT_RANGES = "SELECT start, end FROM blobs WHERE res_id = ? ORDER BY start"
_SELECT_BODY = "SELECT start, end, blob FROM blobs WHERE res_id = ? ORDER BY start"


def read_sql_entries(folder: Path, problems: Problems) -> Iterator[ChromiumEntry]:
    """Yield the entries of a directory. Problems: `damaged` entries, `unreadable` files (locked by a browser)."""
    for path in sorted(folder.iterdir()):
        if not SQL_FILE_NAME.fullmatch(path.name) or not path.is_file():
            continue
        try:
            with closing(_connect(path)) as database:
                for row in database.execute(_SELECT_ENTRIES):
                    try:
                        yield _build_sql_entry(database, path, *row)
                    except (ArchiveFileError, TypeError) as error:
                        problems.add(Problem("damaged", path.name, None, 0, f"entry {row[0]}: {error}"))
        except _SQL_ERRORS as error:
            message = f"{error}: close the browser that uses it, or copy the folder and read the copy"
            problems.add(Problem("unreadable", path.name, None, 0, message))


def read_sql_entry(folder: Path, filename: str) -> ChromiumEntry | None:
    """Return an entry by its `CachedResponse.filename`; None if it was deleted. Raises ArchiveFileError."""
    name, _, number = filename.partition("#")
    path = folder / name
    if not path.is_file():
        return None
    try:
        with closing(_connect(path)) as database:
            row = database.execute(f"{_SELECT_ENTRIES} AND res_id = ?", (int(number),)).fetchone()
            return None if row is None else _build_sql_entry(database, path, *row)
    except _SQL_ERRORS as error:
        raise ArchiveFileError(f"expected an entry of a cache: {error}") from None


def _connect(path: Path) -> sqlite3.Connection:
    """Open a database read-only, with limits for untrusted content."""
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_LOCK_WAIT_SECONDS)
    calls = 0

    def interrupt() -> int:
        nonlocal calls
        calls += 1
        return int(calls > _MAX_PROGRESS_CALLS)

    try:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
        database.set_progress_handler(interrupt, _PROGRESS_STEPS)
        database.text_factory = lambda text: text.decode("utf-8", "replace")
        database.execute("PRAGMA trusted_schema = OFF")
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE %'"
        tables = {name for (name,) in database.execute(query)}
        if not {"resources", "blobs"} <= tables:
            raise sqlite3.DatabaseError("expected the tables of a cache, found others")  # noqa: TRY301  closed below
    except BaseException:
        database.close()
        raise
    return database


def _build_sql_entry(
    database: sqlite3.Connection, path: Path, number: int, key: str, length: int, head: bytes
) -> ChromiumEntry:
    if not (isinstance(key, str) and isinstance(length, int) and isinstance(head, bytes)) or length < 0:
        raise ArchiveFileError("expected a key, a length and a head, found something else")
    info = parse_response_info(head)
    end = 0
    for start, stop in database.execute(_SELECT_RANGES, (number,)):
        if start != end:
            break
        end = stop
    filename = f"{path.name}#{number}"
    return ChromiumEntry(key, info, length, end != length, filename, 0, lambda: _read_sql_body(path, number, length))


def _read_sql_body(path: Path, number: int, length: int) -> Chunks:
    end = 0
    try:
        with closing(_connect(path)) as database:
            for start, stop, piece in database.execute(_SELECT_BODY, (number,)):
                if start != end or stop - start != len(piece):
                    break
                end = stop
                for offset in range(0, len(piece), CHUNK_BYTES):
                    yield piece[offset : offset + CHUNK_BYTES]
    except _SQL_ERRORS as error:
        raise ArchiveFileError(f"expected a body: {error}") from None
    if end != length:
        raise ArchiveFileError(f"expected a body of {length} bytes, found {end}")


_CACHE_FORMATS: tuple[tuple[re.Pattern[str], Callable[[Path, str], ChromiumEntry | None]], ...] = (
    (SIMPLE_FILE_NAME, read_simple_entry),
    (BLOCK_FILE_NAME, read_blockfile_entry),
    (SQL_FILE_NAME, read_sql_entry),
)


def chromium_data_folder(folder: Path) -> Path:
    """Return the directory of the entries, given it, a `Cache` directory, a profile, or a directory of profiles."""
    for subfolder in ("Cache_Data", "Cache/Cache_Data", "Default/Cache/Cache_Data"):
        if (folder / subfolder).is_dir():
            return folder / subfolder
    return folder


def read_chromium_responses(
    folder: Path, problems: Problems, excluded_counts: Counter[str]
) -> Generator[CachedResponse, None, None]:
    """Yield every complete response to a GET request, in no particular order.

    Only the metadata of one entry is in memory. An entry that is deleted meanwhile is skipped.

    Args:
        folder: The directory of the entries.
        problems: Counts entries that cannot be read.
        excluded_counts: Counts entries that are not served: `other-method`, `part` (ranges and truncated bodies),
            `foreign-scheme` (such as extensions).

    Raises:
        OSError: The directory cannot be read.
    """
    for read in (
        read_simple_entries,
        read_blockfile_entries,
        read_sql_entries,
    ):
        for entry in read(folder, problems):
            response = _accept_entry(entry, problems, excluded_counts)
            if response is not None:
                yield response


def open_chromium_content(folder: Path, response: CachedResponse) -> CachedContent | None:
    """Return the current content of a response; None if it was deleted or is incomplete now.

    Raises:
        ArchiveFileError: The entry is damaged.
        OSError: It cannot be read.
    """
    for name, read in _CACHE_FORMATS:
        if name.fullmatch(response.filename.partition("#")[0]):
            entry = read(folder, response.filename)
            if entry is None:
                return None
            current = _accept_entry(entry, Problems(), Counter())
            if current is None or current.uri != response.uri:
                return None
            return CachedContent(current, entry.info.headers, entry.coding, entry.chunks())
    return None


def _accept_entry(entry: ChromiumEntry, problems: Problems, excluded_counts: Counter[str]) -> CachedResponse | None:
    reason = entry.exclusion_reason()
    if reason is not None:
        excluded_counts[reason] += 1
        return None
    response = entry.to_response()
    if response is None:
        message = "expected the time of a response, found none that a calendar has"
        problems.add(Problem("bad-date", entry.filename, None, 0, message))
    return response


class ChromiumCacheClient(CachedResponseClient):
    """Archive client for Chromium's cache in any format: its directory, a profile, or a directory of profiles.

    Raises:
        UsageError: The archive's entry names no folder.
    """

    def __init__(self, archive: Archive) -> None:
        super().__init__(
            archive,
            chromium_data_folder,
            read_chromium_responses,
            open_chromium_content,
            "entries of Chromium's cache",
        )
