"""Chromium's cache, in each of its three formats: Simple (a file for each entry), Blockfile (Windows), and SQL.

All three give entries with a key, the head of the response and a body; `ChromiumCache` serves them as an archive.

docs/browser-caches.md says what is read and lists the kinds of problems.
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
    CachedResponseArchive,
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
    redirect_target,
)
from unlost.dates import from_datetime
from unlost.errors import ArchiveFileError
from unlost.problems import Problem, Problems
from unlost.registry.models import Archive

_UINT32_MASK = 0xFFFFFFFF


def super_fast_hash(data: bytes) -> int:
    """Return the hash of some bytes. It guards against torn writes, not against anybody.

    Slow for more than some hundred bytes, which is what keys and records have.
    """
    if not data:
        return 0
    value = len(data)
    whole = len(data) // 4 * 4
    for place in range(0, whole, 4):
        value = (value + int.from_bytes(data[place : place + 2], "little")) & _UINT32_MASK
        other = int.from_bytes(data[place + 2 : place + 4], "little") << 11 ^ value
        value = (value << 16 ^ other) & _UINT32_MASK
        value = (value + (value >> 11)) & _UINT32_MASK
    value = _mix_tail(value, data[whole:])
    for left, right in ((3, 5), (4, 17), (25, 6)):
        value ^= value << left & _UINT32_MASK
        value = (value + (value >> right)) & _UINT32_MASK
    return value


def _mix_tail(value: int, rest: bytes) -> int:
    """Mix in the last one to three bytes, of which an odd one has a sign."""
    if not rest:
        return value
    odd = int.from_bytes(rest[-1:], "little", signed=True)
    if len(rest) == 1:
        left, right = 10, 1
        value = (value + odd) & _UINT32_MASK
    else:
        left, right = (16, 11) if len(rest) == 3 else (11, 17)
        value = (value + int.from_bytes(rest[:2], "little")) & _UINT32_MASK
    value = (value ^ value << left) & _UINT32_MASK
    if len(rest) == 3:
        value = (value ^ odd << 18) & _UINT32_MASK
    return (value + (value >> right)) & _UINT32_MASK


_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)  # from which Chromium counts microseconds
_HEAD_VERSIONS = (1, 2, 3)  # of the stored head: in all of them it begins the same way
_TRUNCATED = 1 << 12
_HAS_EXTRA = 1 << 31
_EXTRA_DICTIONARY = 1
_EXTRA_ORIGINAL_TIME = 1 << 2
# [credentials/]upload/, then for a divided cache the sites for which it is kept, none of which has a space in it.
_CACHE_KEY = re.compile(r"(?:(?:[01]/)?(?P<upload>-?[0-9]{1,20})/)?(?P<divided>_dk_(?:[^ ]* )+)?(?P<address>[^ ]*)")


@dataclass(frozen=True, slots=True)
class ChromiumResponseInfo:
    """What Chromium stores about a response.

    microseconds: when it came, since 1601.
    is_cut: whether the browser did not get the body to its end.
    has_dictionary: whether the body was packed with a dictionary that is stored elsewhere.
    """

    status: int
    headers: CachedHeaders
    microseconds: int
    is_truncated: bool
    has_dictionary: bool


@dataclass(frozen=True, slots=True)
class ChromiumEntry:
    """An entry.

    length: bytes of the body, as it is stored.
    is_sparse: whether only ranges of the body are there.
    chunks: gives the body.
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
        """What the body is packed in; a dictionary of its own counts as a coding that nobody else can undo."""
        coding = content_encoding_of(self.info.headers)
        return f"{coding} with a dictionary" if self.info.has_dictionary and coding else coding

    def exclusion_reason(self) -> str | None:
        """Return why it is no whole response to a GET: `other-method`, `part`, `foreign-scheme`; None if it is one."""
        upload, address = parse_chromium_key(self.key)
        if upload:
            return "other-method"
        if address is None:
            return "foreign-scheme"
        info = self.info
        if self.is_sparse or info.is_truncated or is_partial(info.status, info.headers, self.length):
            return "part"
        return None

    def to_response(self) -> CachedResponse | None:
        """Return it as a record; None if its time is none."""
        try:
            moment = from_datetime(_EPOCH + timedelta(microseconds=self.info.microseconds))
        except OverflowError:
            return None
        if self.info.microseconds <= 0:
            return None
        status, headers = self.info.status, self.info.headers
        address = parse_chromium_key(self.key)[1] or ""
        mime, redirect = parse_mime(get_header(headers, "content-type")), redirect_target(status, headers)
        return CachedResponse(address, moment, status, mime, redirect, self.length, self.filename, self.offset)


def parse_chromium_key(key: str) -> tuple[bool, str | None]:
    """Return whether something was sent up for an entry, and its address; None if that is no address of the web.

    >>> parse_chromium_key("1/0/_dk_https://a.com https://b.org https://b.org/x?y")
    (False, 'https://b.org/x?y')
    >>> parse_chromium_key("1/1700000000000/https://a.com/form"), parse_chromium_key("https://a.com/"), parse_chromium_key("chrome-extension://x/")
    ((True, 'https://a.com/form'), (False, 'https://a.com/'), (False, None))
    """
    found = _CACHE_KEY.fullmatch(key)
    if found is None:
        return False, None
    return int(found["upload"] or 0) != 0, parse_web_url(found["address"])


def parse_response_info(data: bytes) -> ChromiumResponseInfo:
    """Return the head of a response from its stored form. Raises ArchiveFileError."""
    try:
        size, flags = struct.unpack_from("<II", data)
        place, extra = 8, 0
        if flags & _HAS_EXTRA:
            (extra,) = struct.unpack_from("<I", data, place)
            place += 4
        _, response_time = struct.unpack_from("<qq", data, place)
        place += 24 if extra & _EXTRA_ORIGINAL_TIME else 16
        (length,) = struct.unpack_from("<I", data, place)
    except struct.error:
        raise ArchiveFileError("expected the head of a response, found fewer bytes than it begins with") from None
    place += 4
    if flags & 0xFF not in _HEAD_VERSIONS or size + 4 > len(data) or place + length > len(data):
        raise ArchiveFileError("expected the head of a response, found something else")
    head = parse_response_head(data[place : place + length].rstrip(b"\0").split(b"\0"))
    if head is None:
        raise ArchiveFileError("expected a status and fields, found something else")
    return ChromiumResponseInfo(*head, response_time, bool(flags & _TRUNCATED), bool(extra & _EXTRA_DICTIONARY))


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


SQL_FILE_NAME = re.compile(r"sqldb[0-9]{1,3}")
"""A file with entries."""
_MAX_VALUE_BYTES = 1 << 26  # of one piece of a body; Chromium writes far smaller ones
_PROGRESS_STEPS = 1_000_000  # of SQLite's machine between two looks at the clock of a file made to keep it busy
_MAX_PROGRESS_CALLS = 200  # some ten seconds: a million entries take a fraction of them
_LOCK_WAIT_SECONDS = 1.0  # for a browser that holds the file
# Damage also shows in texts, those of error messages among them, and in types.
_SQL_ERRORS = (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError, TypeError, OverflowError)
_SELECT_ENTRIES = f"""
    SELECT res_id, cache_key, body_end, head FROM resources
    WHERE doomed = 0 AND length(head) BETWEEN 1 AND {MAX_HEAD_BYTES} AND length(cache_key) <= {_MAX_KEY_BYTES}
"""  # noqa: S608  numbers of ours
_SELECT_RANGES = "SELECT start, end FROM blobs WHERE res_id = ? ORDER BY start"
_SELECT_BODY = "SELECT start, end, blob FROM blobs WHERE res_id = ? ORDER BY start"


def read_sql_entries(folder: Path, problems: Problems) -> Iterator[ChromiumEntry]:
    """Yield the entries of a folder. Problems: `damaged` entries, and `unreadable` files: a browser may hold them."""
    for path in sorted(folder.iterdir()):
        if not SQL_FILE_NAME.fullmatch(path.name) or not path.is_file():
            continue
        try:
            with closing(_connect(path)) as file:
                for row in file.execute(_SELECT_ENTRIES):
                    try:
                        yield _build_sql_entry(file, path, *row)
                    except (ArchiveFileError, TypeError) as error:
                        problems.add(Problem("damaged", path.name, None, 0, f"entry {row[0]}: {error}"))
        except _SQL_ERRORS as error:
            message = f"{error}: close the browser that uses it, or copy the folder and read the copy"
            problems.add(Problem("unreadable", path.name, None, 0, message))


def read_sql_entry(folder: Path, filename: str) -> ChromiumEntry | None:
    """Return an entry by the name that it has in records; None if it is gone. Raises ArchiveFileError."""
    name, _, number = filename.partition("#")
    path = folder / name
    if not path.is_file():
        return None
    try:
        with closing(_connect(path)) as file:
            row = file.execute(f"{_SELECT_ENTRIES} AND res_id = ?", (int(number),)).fetchone()
            return None if row is None else _build_sql_entry(file, path, *row)
    except _SQL_ERRORS as error:
        raise ArchiveFileError(f"expected an entry of a cache: {error}") from None


def _connect(path: Path) -> sqlite3.Connection:
    """Open a file for reading only, without trust in what is in it."""
    file = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_LOCK_WAIT_SECONDS)
    rounds = 0

    def tick() -> int:
        nonlocal rounds
        rounds += 1
        return int(rounds > _MAX_PROGRESS_CALLS)

    try:
        file.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
        file.set_progress_handler(tick, _PROGRESS_STEPS)
        file.text_factory = lambda text: text.decode("utf-8", "replace")
        file.execute("PRAGMA trusted_schema = OFF")
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE %'"
        tables = {name for (name,) in file.execute(query)}
        if not {"resources", "blobs"} <= tables:
            raise sqlite3.DatabaseError("expected the tables of a cache, found others")  # noqa: TRY301  closed below
    except BaseException:
        file.close()
        raise
    return file


def _build_sql_entry(
    file: sqlite3.Connection, path: Path, number: int, key: str, length: int, head: bytes
) -> ChromiumEntry:
    if not (isinstance(key, str) and isinstance(length, int) and isinstance(head, bytes)) or length < 0:
        raise ArchiveFileError("expected a key, a length and a head, found something else")
    info = parse_response_info(head)
    end = 0
    for start, stop in file.execute(_SELECT_RANGES, (number,)):
        if start != end:
            break
        end = stop
    filename = f"{path.name}#{number}"
    return ChromiumEntry(key, info, length, end != length, filename, 0, lambda: _read_sql_body(path, number, length))


def _read_sql_body(path: Path, number: int, length: int) -> Chunks:
    end = 0
    try:
        with closing(_connect(path)) as file:
            for start, stop, piece in file.execute(_SELECT_BODY, (number,)):
                if start != end or stop - start != len(piece):
                    break
                end = stop
                for place in range(0, len(piece), CHUNK_BYTES):
                    yield piece[place : place + CHUNK_BYTES]
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
    """Return the folder of the entries: itself, or the one in a `Cache`, a profile, or a folder of profiles."""
    for below in ("Cache_Data", "Cache/Cache_Data", "Default/Cache/Cache_Data"):
        if (folder / below).is_dir():
            return folder / below
    return folder


def read_chromium_responses(
    folder: Path, problems: Problems, left_out: Counter[str]
) -> Generator[CachedResponse, None, None]:
    """Yield every whole response to a GET in a folder of entries, in no order.

    problems: gets every entry that cannot be read. left_out: gets how many entries were not wanted: `other-method`,
    `part` (ranges, and bodies that the browser did not get to the end of), `foreign-scheme` (extensions and the like).
    Nothing is held in memory but one entry's head. An entry that vanishes meanwhile is passed over. Raises OSError if
    the folder cannot be read.
    """
    for read in (
        read_simple_entries,
        read_blockfile_entries,
        read_sql_entries,
    ):
        for entry in read(folder, problems):
            response = _accept_entry(entry, problems, left_out)
            if response is not None:
                yield response


def open_chromium_content(folder: Path, response: CachedResponse) -> CachedContent | None:
    """Return what is stored now for a response of `read_responses`; None if it is gone, or became a part.

    Raises ArchiveFileError if the entry is damaged, OSError if it cannot be read.
    """
    for name, read in _CACHE_FORMATS:
        if name.fullmatch(response.filename.partition("#")[0]):
            entry = read(folder, response.filename)
            if entry is None:
                return None
            now = _accept_entry(entry, Problems(), Counter())
            if now is None or now.uri != response.uri:
                return None
            return CachedContent(now, entry.info.headers, entry.coding, entry.chunks())
    return None


def _accept_entry(entry: ChromiumEntry, problems: Problems, left_out: Counter[str]) -> CachedResponse | None:
    reason = entry.exclusion_reason()
    if reason is not None:
        left_out[reason] += 1
        return None
    response = entry.to_response()
    if response is None:
        message = "expected the time of a response, found none that a calendar has"
        problems.add(Problem("bad-date", entry.filename, None, 0, message))
    return response


class ChromiumCache(CachedResponseArchive):
    """What is in Chromium's cache, in whichever form: its folder, a profile, or a folder of profiles. A `Repository`.

    Raises UsageError if the archive's entry names no folder.
    """

    def __init__(self, archive: Archive) -> None:
        super().__init__(
            archive,
            chromium_data_folder,
            read_chromium_responses,
            open_chromium_content,
            "entries of Chromium's cache",
        )
