"""Firefox's cache (`cache2`): a file for each entry, with the body first and its metadata after it.

`FirefoxCacheClient` serves it as an archive. docs/browser-caches.md describes what is read and the kinds of problems.
Constants are those of Firefox's `netwerk/cache2`.
"""

import re
import struct
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from os import SEEK_END, scandir
from pathlib import Path
from typing import BinaryIO

from unlost._core import jenkins
from unlost.archives.browser_cache import (
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
from unlost.dates import from_epoch
from unlost.errors import ArchiveFileError, DateError
from unlost.problems import Problems
from unlost.registry.models import Archive

_ENTRY_FILE_NAME = re.compile(r"[0-9A-F]{40}")
_CHUNK_BYTES = 1 << 18  # of a body; each chunk has a hash of 16 bits
_UINT32 = struct.Struct(">I")
_HEADER = struct.Struct(">7I")  # version, fetches, last fetched, last modified, frecency, expires, length of the key
_FLAGS_BYTES = 4  # after the header, since version 2
_VERSIONS = (1, 2, 3, 4)
_TRAILING_VERSION = 4  # the version that is also stored before the last number of a file
_ENCRYPTED = 1 << 31  # flag in the last number, in that version
_MAX_METADATA_BYTES = MAX_HEAD_BYTES  # without the hashes; Firefox stores less
_ALTERNATIVE_DATA = re.compile(r"[0-9]+;([0-9]{1,18}),")  # data derived from the body, stored after it


@dataclass(frozen=True, slots=True)
class _Entry:
    """The metadata of an entry.

    Attributes:
        key: Its key.
        elements: Named values, among them the response head.
        date: When it was last modified, or else last fetched, in seconds since 1970.
        size: Size of the body and of data derived from it, in bytes.
        length: Size of the body in bytes.
        hashes: The hash of each chunk of the body.
    """

    key: str
    elements: dict[str, bytes]
    date: int
    size: int
    length: int
    hashes: tuple[int, ...]


def firefox_data_folder(folder: Path) -> Path:
    """Return the directory of the entries, given that directory, a `cache2`, or a profile."""
    for subfolder in ("entries", "cache2/entries"):
        if (folder / subfolder).is_dir():
            return folder / subfolder
    return folder


def read_firefox_responses(
    folder: Path, problems: Problems, excluded_counts: Counter[str]
) -> Generator[CachedResponse, None, None]:
    """Yield every complete response to a GET request, in no particular order.

    Only the metadata of one entry is in memory. An entry that is deleted meanwhile is skipped.

    Args:
        folder: The directory of the entries.
        problems: Counts entries that cannot be read: `truncated`, `damaged`, `unreadable`, `bad-date`.
        excluded_counts: Counts entries that are not served: `other-method`, `part`, `foreign-scheme`, `no-response`
            (notes of the browser), `encrypted` (readable only by the browser itself).

    Raises:
        OSError: The directory cannot be read.
    """
    with scandir(folder) as files:
        for file in files:
            if not _ENTRY_FILE_NAME.fullmatch(file.name):
                continue
            try:
                with open_regular_file(folder / file.name) as opened:
                    result = _parse_response(_read_entry(opened), file.name)
            except FileNotFoundError:
                continue
            except _EncryptedError:
                excluded_counts["encrypted"] += 1
            except (OSError, DateError, ArchiveFileError) as error:
                problems.add(entry_problem(error, file.name))
            else:
                if isinstance(result, str):
                    excluded_counts[result] += 1
                else:
                    yield result[0]


def open_firefox_content(folder: Path, response: CachedResponse) -> CachedContent | None:
    """Return the current content of a response; None if it was deleted.

    Raises:
        ArchiveFileError: The entry is damaged.
        OSError: It cannot be read.
    """
    path = folder / response.filename
    try:
        with open_regular_file(path) as file:
            entry = _read_entry(file)
    except FileNotFoundError:
        return None
    try:
        result = _parse_response(entry, response.filename)
    except DateError:
        return None
    if isinstance(result, str) or result[0].uri != response.uri:
        return None
    return CachedContent(*result, content_encoding_of(result[1]), _read_body(path, entry))


class _EncryptedError(ArchiveFileError):
    """An entry that only the browser that wrote it can read, while it is running."""


def _read_entry(file: BinaryIO) -> _Entry:
    """Read the metadata after the body. Raises ArchiveFileError."""
    end = file.seek(0, SEEK_END)
    if end < 2 * _UINT32.size + _HEADER.size:
        raise TruncatedEntryError("expected an entry, found fewer bytes than the smallest has")
    file.seek(end - 2 * _UINT32.size)
    version, size = struct.unpack(">2I", file.read(2 * _UINT32.size))
    end -= _UINT32.size
    # Older files have the end of a text and its NUL in this place, which is never a small number.
    if version == _TRAILING_VERSION:
        end -= _UINT32.size
        if size & _ENCRYPTED:
            raise _EncryptedError("expected an entry, found an encrypted one")
    hash_bytes = 2 * -(-size // _CHUNK_BYTES)
    metadata_bytes = end - size - _UINT32.size - hash_bytes
    if metadata_bytes < _HEADER.size:
        raise TruncatedEntryError("expected the place of the metadata at the end, found none in the file")
    if metadata_bytes > _MAX_METADATA_BYTES:
        raise ArchiveFileError(f"expected metadata of at most {_MAX_METADATA_BYTES} bytes, found {metadata_bytes}")
    file.seek(size)
    stored = file.read(_UINT32.size + hash_bytes + metadata_bytes)
    if jenkins(stored[_UINT32.size :]) != _UINT32.unpack_from(stored)[0]:
        raise ArchiveFileError("expected the metadata that was stored, found others: their hash is wrong")
    hashes = struct.unpack_from(f">{hash_bytes // 2}H", stored, _UINT32.size)
    metadata = stored[_UINT32.size + hash_bytes :]
    version, _, fetched, modified, _, _, key_length = _HEADER.unpack_from(metadata)
    position = _HEADER.size + (_FLAGS_BYTES if version > 1 else 0)
    if version not in _VERSIONS or key_length > MAX_KEY_BYTES * 2 or position + key_length >= len(metadata):
        raise ArchiveFileError("expected metadata of version 1 to 4, found something else")
    key = metadata[position : position + key_length].decode("utf-8", "replace")
    parts = metadata[position + key_length + 1 :].split(b"\0")
    names = (name.decode("latin-1") for name in parts[::2])
    elements = dict(zip(names, parts[1::2], strict=False))
    alternative = _ALTERNATIVE_DATA.match(elements.get("alt-data", b"").decode("latin-1"))
    length = min(size, int(alternative[1])) if alternative else size
    return _Entry(key, elements, modified or fetched, size, length, hashes)


def _parse_response(entry: _Entry, filename: str) -> tuple[CachedResponse, CachedHeaders] | str:
    """Return a response and its headers, or why it is not served. Raises ArchiveFileError, DateError."""
    stored = entry.elements.get("response-head")
    if stored is None:
        return "no-response"
    if entry.elements.get("request-method", b"GET") != b"GET":
        return "other-method"
    url = parse_firefox_key(entry.key)
    if url is None:
        return "foreign-scheme"
    head = parse_response_head(stored.split(b"\r\n"))
    if head is None:
        raise ArchiveFileError("expected a status and fields, found something else")
    status, headers = head
    if is_partial(status, headers, entry.length):
        return "part"
    mime, redirect = parse_mime(get_header(headers, "content-type")), redirect_location(status, headers)
    if entry.date == 0:
        raise DateError("expected when the entry was written, found nothing")
    moment = from_epoch(str(entry.date))
    return CachedResponse(url, moment, status, mime, redirect, entry.length, filename), headers


def parse_firefox_key(key: str) -> str | None:
    """Return the URL in a key, after its tags; None unless it is http or https.

    A tag is a character, its value, and a comma. A comma in the value is doubled.

    >>> parse_firefox_key("O^partitionKey=%28https%2Ca.com%29,a,~1,,2,:https://a.com/x,y:z")
    'https://a.com/x,y:z'
    >>> [parse_firefox_key(each) for each in ("~predictor-origin,:https://a.com/", "https://a.com/", ":data:,")]
    ['https://a.com/', None, None]
    """
    match = re.fullmatch(r"(?:[^:,](?:[^,]|,,)*+,)*+:(.*)", key, re.DOTALL)
    return parse_web_url(match[1]) if match else None


def _read_body(path: Path, entry: _Entry) -> Chunks:
    """Yield the body in chunks, each after its hash was verified."""
    with open_regular_file(path) as file:
        for number, expected in enumerate(entry.hashes):
            begin = number * _CHUNK_BYTES
            chunk = file.read(min(_CHUNK_BYTES, entry.size - begin))
            if jenkins(chunk) & 0xFFFF != expected:
                raise ArchiveFileError(
                    f"expected the body that was stored, found another: the hash of its part at byte {begin} is wrong"
                )
            if begin >= entry.length:
                return
            yield chunk[: entry.length - begin]


class FirefoxCacheClient(CachedResponseClient):
    """Archive client for Firefox's cache: its directory, or a profile.

    Raises:
        UsageError: The archive's entry names no folder.
    """

    def __init__(self, archive: Archive) -> None:
        super().__init__(
            archive,
            firefox_data_folder,
            read_firefox_responses,
            open_firefox_content,
            "entries of Firefox's cache",
        )
