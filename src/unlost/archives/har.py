"""HAR files (HTTP Archive 1.1 and 1.2) as exported by browsers: responses, and bodies where they are included.

A HAR file is one JSON document of any size. Its entries are located by their brackets, without loading the document,
and each is parsed separately: memory is bounded by the largest entry, and an invalid entry does not affect others.

`HarClient` serves the responses as an archive. docs/browser-caches.md describes what is read and the kinds of problems.
"""

import base64
import binascii
import gzip
import json
import os
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from unlost.archives.browser_cache import (
    CachedContent,
    CachedHeaders,
    CachedResponse,
    CachedResponseClient,
    Chunks,
    TruncatedEntryError,
    entry_problem,
    get_header,
    open_regular_file,
    parse_mime,
    parse_web_url,
)
from unlost.dates import from_iso
from unlost.errors import ArchiveFileError, DateError
from unlost.problems import Problem, Problems
from unlost.registry.models import Archive

ReadBytes = Callable[[int], bytes]
"""Returns at most the given number of bytes; none at the end."""
HAR_SUFFIXES = (".har", ".har.gz")
"""Extensions of HAR files in a directory."""
MAX_ENTRY_BYTES = 1 << 27
"""Largest entry, which has a body of about 96 MB in base64. An entry is in memory more than once."""
MAX_DECOMPRESSED_BYTES = 1 << 32
"""Largest decompressed HAR, which is written to a temporary file."""
_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 1 << 20
# Possessive quantifiers prevent backtracking.
_OUTSIDE_STRING = re.compile(rb'[^"{}\[\]]*+')
_INSIDE_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_BACKSLASH, _QUOTE, _BRACE, _BRACKET = b'\\"{['
_MAX_NAME_BYTES = 16  # of a string that are retained; the names to compare with are shorter
# Nesting depths in the document: {"log": {"entries": [{…}, …]}}
_LOG_DEPTH, _ENTRIES_DEPTH, _ENTRY_DEPTH = 1, 2, 3

# Codecs of browsers for charset labels (the WHATWG Encoding Standard) where Python's differ. All others are UTF-8: some
# of Python's codecs take quadratic time.
_CODECS = {
    **dict.fromkeys(("iso-8859-1", "latin1", "us-ascii", "ascii", "windows-1252", "cp1252"), "cp1252"),
    **dict.fromkeys(("iso-8859-9", "latin5", "windows-1254"), "cp1254"),
    **dict.fromkeys(("gb2312", "gbk", "gb18030", "x-gbk"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "windows-31j"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987", "windows-949"), "cp949"),
    **dict.fromkeys(("utf-16", "utf-16le"), "utf-16"),
    **dict.fromkeys(("windows-874", "tis-620", "iso-8859-11"), "cp874"),
    **{f"iso-8859-{part}": f"iso-8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **{f"windows-125{part}": f"cp125{part}" for part in (0, 1, 3, 5, 6, 7, 8)},
    **{name: name for name in ("big5", "euc-jp", "iso-2022-jp", "koi8-r", "koi8-u")},
}


def find_entry_spans(read: ReadBytes) -> Iterator[tuple[int, int]]:
    """Yield the beginning and end of each object in the list `log.entries`, as byte offsets.

    One chunk of the text is in memory. Takes linear time for any text: objects are found by their brackets and need not
    be valid JSON.

    Raises:
        TruncatedEntryError: The document has no end. Raised after all objects that were found.
        ArchiveFileError: There is no such list. Raised at the end.

    >>> text = iter([b'{"log": {"entries": [{"a": "}"}, {}]}}', b""])
    >>> list(find_entry_spans(lambda count: next(text)))
    [(21, 31), (33, 35)]
    """
    depth, start = 0, None
    in_log = in_list = has_list = False
    for offset, bracket, name in _brackets(read):
        if bracket in (_BRACE, _BRACKET):
            if depth == _LOG_DEPTH:
                in_log = bracket == _BRACE and name == b"log"
            elif depth == _ENTRIES_DEPTH:
                in_list = in_log and bracket == _BRACKET and name == b"entries"
                has_list |= in_list
            elif depth == _ENTRY_DEPTH and in_list and bracket == _BRACE:
                start = offset
            depth += 1
            continue
        depth -= 1
        if depth == _ENTRY_DEPTH and start is not None:
            yield start, offset + 1
            start = None
        if depth <= 0:
            break
    else:
        raise TruncatedEntryError("expected the end of a JSON document, found the end of the file")
    if not has_list:
        raise ArchiveFileError("expected a list `log.entries`, found none")


def find_object_end(read: ReadBytes, limit: int) -> int | None:
    """Return the length of the object with which a text begins; None if it does not end within `limit` bytes."""
    depth = 0
    for offset, bracket, _ in _brackets(read):
        depth += 1 if bracket in (_BRACE, _BRACKET) else -1
        if offset >= limit:
            return None
        if depth <= 0:
            return offset + 1
    return None


def _brackets(read: ReadBytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield each bracket outside of strings: its offset, the bracket, and the beginning of the string before it."""
    base, data = 0, b""
    in_string, name = False, b""
    while chunk := read(_CHUNK_BYTES):
        data += chunk
        position = 0
        while position < len(data):
            match = (_INSIDE_STRING if in_string else _OUTSIDE_STRING).match(data, position)
            end = match.end() if match else position
            if in_string and len(name) < _MAX_NAME_BYTES:
                name += data[position : min(end, position + _MAX_NAME_BYTES)]
            position = end
            if end == len(data) or data[end] == _BACKSLASH:
                break  # the character after a backslash is in the next chunk
            sign, position = data[end], end + 1
            if sign == _QUOTE:
                in_string = not in_string
                name = b"" if in_string else name
            else:
                yield base + end, sign, name
        base, data = base + position, data[position:]


def list_har_files(place: Path) -> Iterator[Path]:
    """Yield a HAR file itself, or all below a directory, sorted by name. Symbolic links are not followed."""
    if not place.is_dir():
        yield place
        return
    for folder, folders, names in os.walk(place):
        folders.sort()
        yield from (Path(folder, name) for name in sorted(names) if name.lower().endswith(HAR_SUFFIXES))


def read_har_responses(
    place: Path, problems: Problems, excluded_counts: Counter[str]
) -> Generator[CachedResponse, None, None]:
    """Yield every response to a GET request in a HAR file, or in all of a directory, in order.

    One entry is in memory.

    Args:
        place: The file or directory.
        problems: Counts what cannot be read: files that are `truncated`, `foreign`, `unreadable` or `too-large`,
            entries that are `too-large` or have a `bad-date`, and each `bad-entry`.
        excluded_counts: Counts entries that are not served: `other-method`, `foreign-scheme` (such as `data:`),
            `no-response` (failed, blocked or aborted), `part` (ranges).

    Raises:
        OSError: The file or directory does not exist.
    """
    place.stat()
    for path in list_har_files(place):
        name = path.name if path == place else path.relative_to(place).as_posix()
        try:
            with _open_seekable(path) as file:
                for start, end in find_entry_spans(file.read):
                    after = file.tell()
                    yield from _accept_entry(file, name, start, end, problems, excluded_counts)
                    file.seek(after)
        except (OSError, TruncatedEntryError) as error:
            problems.add(entry_problem(error, name))
        except _HarTooLargeError as error:
            problems.add(Problem("too-large", name, None, 0, str(error)))
        except ArchiveFileError as error:
            problems.add(Problem("foreign", name, None, 0, str(error)))
        except (EOFError, zlib.error) as error:
            problems.add(Problem("unreadable", name, None, 0, f"expected gzip: {error}"))


def open_har_content(place: Path, response: CachedResponse) -> CachedContent | None:
    """Return a response with its body; None if the body is not in the file, or the file was deleted.

    Of a compressed file, everything before the entry is decompressed.

    Raises:
        ArchiveFileError: The entry cannot be read any more.
        OSError: The file cannot be read.
    """
    path = place / response.filename if place.is_dir() else place
    try:
        with open_regular_file(path) as file, _decompressing(file) as text:
            text.seek(response.offset)
            length = find_object_end(text.read, MAX_ENTRY_BYTES)
            text.seek(response.offset)
            data = text.read(length or 0)
    except FileNotFoundError:
        return None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ArchiveFileError(f"expected an entry of a HAR file: {error}") from None
    if not data.startswith(b"{"):
        return None
    try:
        result = _parse_entry(data, response.filename, response.offset)
    except (_HarEntryError, DateError):
        return None
    if isinstance(result, str) or result[0].uri != response.uri or result[2] is None:
        return None
    # Bodies in HAR files were decoded by the browser.
    return CachedContent(result[0], result[1], "", _body_chunks(result[2]))


def _body_chunks(body: bytes) -> Chunks:
    yield body


class _HarTooLargeError(ArchiveFileError):
    """A compressed file is larger than `MAX_DECOMPRESSED_BYTES`."""


class _HarEntryError(ArchiveFileError):
    """An entry is invalid."""


@contextmanager
def _decompressing(file: BinaryIO) -> Iterator[BinaryIO]:
    """Return the decompressed content of a file."""
    is_gzip = file.read(2) == _GZIP_MAGIC
    file.seek(0)
    if not is_gzip:
        yield file
        return
    with gzip.GzipFile(fileobj=file) as text:
        yield cast("BinaryIO", text)


@contextmanager
def _open_seekable(path: Path) -> Iterator[BinaryIO]:
    """Return the decompressed content of a file, in a temporary file if it was compressed and seeking would be slow."""
    with open_regular_file(path) as file, _decompressing(file) as text:
        if text is file:
            yield file
            return
        with tempfile.TemporaryFile() as decompressed:
            while chunk := text.read(_CHUNK_BYTES):
                if decompressed.tell() + len(chunk) > MAX_DECOMPRESSED_BYTES:
                    raise _HarTooLargeError(
                        f"expected at most {MAX_DECOMPRESSED_BYTES} bytes, found more once unpacked"
                    )
                decompressed.write(chunk)
            decompressed.seek(0)
            yield cast("BinaryIO", decompressed)


def _accept_entry(
    file: BinaryIO, name: str, start: int, end: int, problems: Problems, excluded_counts: Counter[str]
) -> Iterator[CachedResponse]:
    """Yield the response of an entry, if it is served."""
    if end - start > MAX_ENTRY_BYTES:
        message = f"expected an entry of at most {MAX_ENTRY_BYTES} bytes, found {end - start}"
        problems.add(Problem("too-large", name, None, start, message))
        return
    file.seek(start)
    try:
        result = _parse_entry(file.read(end - start), name, start)
    except DateError as error:
        problems.add(Problem("bad-date", name, None, start, str(error)))
    except _HarEntryError as error:
        problems.add(Problem("bad-entry", name, None, start, str(error)))
    else:
        if isinstance(result, str):
            excluded_counts[result] += 1
        else:
            yield result[0]


def _parse_entry(data: bytes, name: str, offset: int) -> tuple[CachedResponse, CachedHeaders, bytes | None] | str:
    """Return an entry's response, headers and body, or why it is not served. Raises _HarEntryError, DateError."""
    try:
        entry = json.loads(data)
    except (ValueError, RecursionError):
        raise _HarEntryError("expected an entry in JSON, found something else") from None
    request, response = _require_object(entry, "request"), _require_object(entry, "response")
    if _get_text(request, "method").upper() != "GET":
        return "other-method"
    url = parse_web_url(_get_text(request, "url"))
    if url is None:
        return "foreign-scheme"
    status = response.get("status")
    if not isinstance(status, int) or not 100 <= status < 600:
        return "no-response"
    if status == 206:
        return "part"
    moment = from_iso(_get_text(entry, "startedDateTime"))
    headers, content = _parse_headers(response), _require_object(response, "content")
    content_type = get_header(headers, "content-type") or _get_text(content, "mimeType")
    body = _decode_body(content, content_type)
    if body is None and (status == 204 or 300 <= status < 400 or get_header(headers, "content-length") == "0"):
        body = None if status == 304 else b""
    redirect = (get_header(headers, "location") or _get_text(response, "redirectURL")) if 300 <= status < 400 else None
    length = None if body is None else len(body)
    mime = parse_mime(content_type)
    return CachedResponse(url, moment, status, mime, redirect or None, length, name, offset), headers, body


def _require_object(entry: object, name: str) -> dict[str, object]:
    value = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(value, dict):
        raise _HarEntryError(f"expected an object `{name}`, found none")
    return value


def _get_text(entry: object, name: str) -> str:
    value = entry.get(name) if isinstance(entry, dict) else None
    return value if isinstance(value, str) else ""


def _parse_headers(response: dict[str, object]) -> CachedHeaders:
    fields = response.get("headers")
    pairs = (
        [(_get_text(field, "name"), _get_text(field, "value")) for field in fields] if isinstance(fields, list) else []
    )
    # HTTP/2 has pseudo-header fields such as `:status`; browsers may join several fields of a name by line breaks.
    return tuple((name, each.strip()) for name, value in pairs if name and name[0] != ":" for each in value.split("\n"))


def _decode_body(content: dict[str, object], content_type: str) -> bytes | None:
    """Return the bytes of a body; None if they are not in the file.

    Text was decoded by the browser: it is encoded again with the charset of its type, or else as UTF-8.
    """
    text = content.get("text")
    if not isinstance(text, str):
        return b"" if content.get("size") == 0 else None
    if _get_text(content, "encoding").lower() == "base64":
        try:
            return base64.b64decode(text, validate=True)
        except (ValueError, binascii.Error):
            raise _HarEntryError("expected a body in base64, found something else") from None
    try:
        return text.encode(_codec_for(content_type))
    except UnicodeError:
        return text.encode("utf-8", "replace")


def _codec_for(content_type: str) -> str:
    """Return the codec for the charset of a Content-Type.

    >>> [_codec_for(each) for each in ('text/html; Charset="ISO-8859-1"', "text/css", "text/css; charset=punycode")]
    ['cp1252', 'utf-8', 'utf-8']
    """
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return _CODECS.get(value.strip().strip("\"'").lower(), "utf-8")
    return "utf-8"


class HarClient(CachedResponseClient):
    """Archive client for a HAR file, or all in a directory, compressed (`.har.gz`) or not.

    Raises:
        UsageError: The archive's entry names no folder.
    """

    def __init__(self, archive: Archive) -> None:
        super().__init__(archive, lambda place: place, read_har_responses, open_har_content, "responses in HAR files")
