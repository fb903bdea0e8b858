"""Firefox's cache (`cache2`): a file for each entry, with the body first and its metadata after it.

`FirefoxCache` serves it as an archive. docs/browser-caches.md says what is read and lists the kinds of problems.
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
from unlost.dates import from_epoch
from unlost.errors import ArchiveFileError, DateError
from unlost.problems import Problems
from unlost.registry.models import Archive

_ENTRY_FILE_NAME = re.compile(r"[0-9A-F]{40}")
_CHUNK_BYTES = 1 << 18  # of a body, each with a hash of 16 bits
_UINT32 = struct.Struct(">I")
_HEADER = struct.Struct(">7I")  # version, fetches, last fetched, last modified, frecency, expires, length of the key
_FLAGS_BYTES = 4  # behind the header, from version 2 on
_VERSIONS = (1, 2, 3, 4)
_TRAILING_VERSION_SINCE = 4  # from this version on, the version stands before the last number of a file, too
_ENCRYPTED = 1 << 31  # in the last number, of that version
_MAX_METADATA_BYTES = MAX_HEAD_BYTES  # without the hashes; Firefox itself keeps less
_ALTERNATIVE_DATA = re.compile(r"[0-9]+;([0-9]{1,18}),")  # what the browser made of the body, behind it


@dataclass(frozen=True, slots=True)
class _Entry:
    """What a file tells behind the body.

    size: bytes before the metadata: the body, and what the browser made of it.
    length: bytes of the body alone.
    date: when it was last written, or else last fetched, in seconds since 1970.
    """

    key: str
    elements: dict[str, bytes]
    date: int
    size: int
    length: int
    hashes: tuple[int, ...]


def firefox_data_folder(folder: Path) -> Path:
    """Return the folder of the entries: itself, or the one in a `cache2` or in a profile."""
    for below in ("entries", "cache2/entries"):
        if (folder / below).is_dir():
            return folder / below
    return folder


def read_firefox_responses(
    folder: Path, problems: Problems, left_out: Counter[str]
) -> Generator[CachedResponse, None, None]:
    """Yield every whole response to a GET in a folder of entries, in no order.

    problems: gets every entry that cannot be read: `truncated`, `damaged`, `unreadable`, `bad-date`. left_out: gets how
    many entries were not wanted: `other-method`, `part`, `foreign-scheme`, `no-response` (notes of the browser),
    `encrypted` (which only the browser itself can read).
    Nothing is held in memory but one entry's metadata. An entry that vanishes meanwhile is passed over. Raises OSError
    if the folder cannot be read.
    """
    with scandir(folder) as files:
        for file in files:
            if not _ENTRY_FILE_NAME.fullmatch(file.name):
                continue
            try:
                with open_regular_file(folder / file.name) as opened:
                    found = _parse_response(_read_entry(opened), file.name)
            except FileNotFoundError:
                continue
            except _EncryptedError:
                left_out["encrypted"] += 1
            except (OSError, DateError, ArchiveFileError) as error:
                problems.add(entry_problem(error, file.name))
            else:
                if isinstance(found, str):
                    left_out[found] += 1
                else:
                    yield found[0]


def open_firefox_content(folder: Path, response: CachedResponse) -> CachedContent | None:
    """Return what is stored now for a response of `read_responses`; None if it is gone.

    Raises ArchiveFileError if the entry is damaged, OSError if it cannot be read.
    """
    path = folder / response.filename
    try:
        with open_regular_file(path) as file:
            entry = _read_entry(file)
    except FileNotFoundError:
        return None
    try:
        found = _parse_response(entry, response.filename)
    except DateError:
        return None
    if isinstance(found, str) or found[0].uri != response.uri:
        return None
    return CachedContent(*found, content_encoding_of(found[1]), _read_body(path, entry))


class _EncryptedError(ArchiveFileError):
    """An entry that only the browser that wrote it can read, for as long as it runs."""


def _read_entry(file: BinaryIO) -> _Entry:
    """Return what is behind the body. Raises ArchiveFileError."""
    end = file.seek(0, SEEK_END)
    if end < 2 * _UINT32.size + _HEADER.size:
        raise TruncatedEntryError("expected an entry, found fewer bytes than the smallest has")
    file.seek(end - 2 * _UINT32.size)
    version, size = struct.unpack(">2I", file.read(2 * _UINT32.size))
    end -= _UINT32.size
    # In older files there are the last letters of a text and the NUL that ends it in that place, never a small number.
    if version == _TRAILING_VERSION_SINCE:
        end -= _UINT32.size
        if size & _ENCRYPTED:
            raise _EncryptedError("expected an entry, found an encrypted one")
    hash_bytes = 2 * -(-size // _CHUNK_BYTES)
    rest = end - size - _UINT32.size - hash_bytes
    if rest < _HEADER.size:
        raise TruncatedEntryError("expected the place of the metadata at the end, found none in the file")
    if rest > _MAX_METADATA_BYTES:
        raise ArchiveFileError(f"expected metadata of at most {_MAX_METADATA_BYTES} bytes, found {rest}")
    file.seek(size)
    stored = file.read(_UINT32.size + hash_bytes + rest)
    if jenkins(stored[_UINT32.size :]) != _UINT32.unpack_from(stored)[0]:
        raise ArchiveFileError("expected the metadata that was stored, found others: their hash is wrong")
    hashes = struct.unpack_from(f">{hash_bytes // 2}H", stored, _UINT32.size)
    metadata = stored[_UINT32.size + hash_bytes :]
    version, _, fetched, modified, _, _, key_length = _HEADER.unpack_from(metadata)
    place = _HEADER.size + (_FLAGS_BYTES if version > 1 else 0)
    if version not in _VERSIONS or key_length > MAX_KEY_BYTES * 2 or place + key_length >= len(metadata):
        raise ArchiveFileError("expected metadata of version 1 to 4, found something else")
    key = metadata[place : place + key_length].decode("utf-8", "replace")
    parts = metadata[place + key_length + 1 :].split(b"\0")
    names = (name.decode("latin-1") for name in parts[::2])
    elements = dict(zip(names, parts[1::2], strict=False))
    alternative = _ALTERNATIVE_DATA.match(elements.get("alt-data", b"").decode("latin-1"))
    length = min(size, int(alternative[1])) if alternative else size
    return _Entry(key, elements, modified or fetched, size, length, hashes)


def _parse_response(entry: _Entry, filename: str) -> tuple[CachedResponse, CachedHeaders] | str:
    """Return it as a record, with its fields; or why it is not wanted. Raises ArchiveFileError, DateError."""
    stored = entry.elements.get("response-head")
    if stored is None:
        return "no-response"
    if entry.elements.get("request-method", b"GET") != b"GET":
        return "other-method"
    address = parse_firefox_key(entry.key)
    if address is None:
        return "foreign-scheme"
    head = parse_response_head(stored.split(b"\r\n"))
    if head is None:
        raise ArchiveFileError("expected a status and fields, found something else")
    status, headers = head
    if is_partial(status, headers, entry.length):
        return "part"
    mime, redirect = parse_mime(get_header(headers, "content-type")), redirect_target(status, headers)
    if entry.date == 0:
        raise DateError("expected when the entry was written, found nothing")
    moment = from_epoch(str(entry.date))
    return CachedResponse(address, moment, status, mime, redirect, entry.length, filename), headers


def parse_firefox_key(key: str) -> str | None:
    """Return the address in a key, behind its tags; None if there is none of the web.

    A tag is a letter or sign, what it says, and a comma; a comma that it says itself is doubled.

    >>> parse_firefox_key("O^partitionKey=%28https%2Ca.com%29,a,~1,,2,:https://a.com/x,y:z")
    'https://a.com/x,y:z'
    >>> parse_firefox_key("~predictor-origin,:https://a.com/"), parse_firefox_key("https://a.com/"), parse_firefox_key(":moz-extension://x/")
    ('https://a.com/', None, None)
    """
    found = re.fullmatch(r"(?:[^:,](?:[^,]|,,)*+,)*+:(.*)", key, re.DOTALL)
    return parse_web_url(found[1]) if found else None


def _read_body(path: Path, entry: _Entry) -> Chunks:
    """Yield the body, each part only once its hash was found right."""
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


class FirefoxCache(CachedResponseArchive):
    """What is in Firefox's cache: its folder, or a profile. A `Repository`.

    Raises UsageError if the archive's entry names no folder.
    """

    def __init__(self, archive: Archive) -> None:
        super().__init__(
            archive,
            firefox_data_folder,
            read_firefox_responses,
            open_firefox_content,
            "entries of Firefox's cache",
        )
