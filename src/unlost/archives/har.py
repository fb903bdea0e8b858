"""HAR files (HTTP Archive 1.1 and 1.2), as browsers export them: responses, and bodies where they are included.

A HAR file is one JSON document of any size; its entries are located without loading it. `HarFiles` serves them as an
archive. docs/browser-caches.md says what is read and lists the kinds of problems.
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
    CachedResponseArchive,
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
    >>> list(find_entry_spans(lambda count: next(text)))
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


HAR_SUFFIXES = (".har", ".har.gz")
"""Names of the files that are looked for in a folder."""
MAX_ENTRY_BYTES = 1 << 27
"""The longest entry: a body of some 96 MB in base64. It is held in memory, more than once."""
MAX_DECOMPRESSED_BYTES = 1 << 32
"""The longest text of a packed HAR, which is unpacked to a temporary file."""
_GZIP_MAGIC = b"\x1f\x8b"


def list_har_files(place: Path) -> Iterator[Path]:
    """Yield a HAR file itself, or all in a folder and below, in the order of their names; links are not followed."""
    if not place.is_dir():
        yield place
        return
    for folder, folders, names in os.walk(place):
        folders.sort()
        yield from (Path(folder, name) for name in sorted(names) if name.lower().endswith(HAR_SUFFIXES))


def read_har_responses(
    place: Path, problems: Problems, left_out: Counter[str]
) -> Generator[CachedResponse, None, None]:
    """Yield every response to a GET in a HAR file, or in all of a folder, in their order.

    problems: gets what cannot be read: files that are `truncated`, `foreign`, `unreadable` or `too-large`, entries that
    are `too-large` or have a `bad-date`, and each `bad-entry`. left_out: gets how many entries were not wanted:
    `other-method`, `foreign-scheme` (`data:` and the like), `no-response` (failed, blocked or broken off), `part`
    (ranges). No more than one entry is in memory. Raises OSError if there is no such file or folder.
    """
    place.stat()
    for path in list_har_files(place):
        name = path.name if path == place else path.relative_to(place).as_posix()
        try:
            with _open_seekable(path) as file:
                for start, end in find_entry_spans(file.read):
                    after = file.tell()
                    yield from _accept_entry(file, name, start, end, problems, left_out)
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
    """Return a response of `read_responses` with its body; None if that is not in the file, or the file is gone.

    In a packed file everything before the entry is unpacked for it. Raises ArchiveFileError if the entry cannot be
    read any more, OSError if the file cannot be.
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
        found = _parse_entry(data, response.filename, response.offset)
    except (_HarEntryError, DateError):
        return None
    if isinstance(found, str) or found[0].uri != response.uri or found[2] is None:
        return None
    # Bodies in HAR files are as the page saw them: nothing is left to unpack.
    return CachedContent(found[0], found[1], "", _body_chunks(found[2]))


def _body_chunks(body: bytes) -> Chunks:
    yield body


class _HarTooLargeError(ArchiveFileError):
    """A packed file that is larger than is unpacked."""


class _HarEntryError(ArchiveFileError):
    """An entry that cannot be read."""


@contextmanager
def _decompressing(file: BinaryIO) -> Iterator[BinaryIO]:
    """Give the text of a file as it is unpacked."""
    is_packed = file.read(2) == _GZIP_MAGIC
    file.seek(0)
    if not is_packed:
        yield file
        return
    with gzip.GzipFile(fileobj=file) as text:
        yield cast("BinaryIO", text)


@contextmanager
def _open_seekable(path: Path) -> Iterator[BinaryIO]:
    """Give the text of a file, in which one can go back and forth at no cost."""
    with open_regular_file(path) as file, _decompressing(file) as text:
        if text is file:
            yield file
            return
        with tempfile.TemporaryFile() as copy:
            while chunk := text.read(_CHUNK):
                if copy.tell() + len(chunk) > MAX_DECOMPRESSED_BYTES:
                    raise _HarTooLargeError(
                        f"expected at most {MAX_DECOMPRESSED_BYTES} bytes, found more once unpacked"
                    )
                copy.write(chunk)
            copy.seek(0)
            yield cast("BinaryIO", copy)


def _accept_entry(
    file: BinaryIO, name: str, start: int, end: int, problems: Problems, left_out: Counter[str]
) -> Iterator[CachedResponse]:
    """Yield the response of an entry, if it has one that is wanted."""
    if end - start > MAX_ENTRY_BYTES:
        message = f"expected an entry of at most {MAX_ENTRY_BYTES} bytes, found {end - start}"
        problems.add(Problem("too-large", name, None, start, message))
        return
    file.seek(start)
    try:
        found = _parse_entry(file.read(end - start), name, start)
    except DateError as error:
        problems.add(Problem("bad-date", name, None, start, str(error)))
    except _HarEntryError as error:
        problems.add(Problem("bad-entry", name, None, start, str(error)))
    else:
        if isinstance(found, str):
            left_out[found] += 1
        else:
            yield found[0]


def _parse_entry(data: bytes, name: str, place: int) -> tuple[CachedResponse, CachedHeaders, bytes | None] | str:
    """Return an entry as a record, with its fields and its body; or why it is not wanted.

    Raises _EntryError, DateError.
    """
    try:
        entry = json.loads(data)
    except (ValueError, RecursionError):
        raise _HarEntryError("expected an entry in JSON, found something else") from None
    request, response = _require_object(entry, "request"), _require_object(entry, "response")
    if _get_text(request, "method").upper() != "GET":
        return "other-method"
    address = parse_web_url(_get_text(request, "url"))
    if address is None:
        return "foreign-scheme"
    status = response.get("status")
    if not isinstance(status, int) or not 100 <= status < 600:
        return "no-response"
    if status == 206:
        return "part"
    moment = from_iso(_get_text(entry, "startedDateTime"))
    headers, content = _parse_headers(response), _require_object(response, "content")
    kind = get_header(headers, "content-type") or _get_text(content, "mimeType")
    body = _decode_body(content, kind)
    if body is None and (status == 204 or 300 <= status < 400 or get_header(headers, "content-length") == "0"):
        body = None if status == 304 else b""
    redirect = (get_header(headers, "location") or _get_text(response, "redirectURL")) if 300 <= status < 400 else None
    length = None if body is None else len(body)
    kept = CachedResponse(address, moment, status, parse_mime(kind), redirect or None, length, name, place)
    return kept, headers, body


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
    # HTTP/2 has fields of its own for the status; a browser that saw several of a name may join them by line ends.
    return tuple((name, each.strip()) for name, value in pairs if name and name[0] != ":" for each in value.split("\n"))


def _decode_body(content: dict[str, object], kind: str) -> bytes | None:
    """Return the bytes of a body; None if they are not in the file.

    A text was decoded by the browser: it is encoded as its type says, or else in UTF-8.
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
        return text.encode(_codec_for(kind))
    except UnicodeError:
        return text.encode("utf-8", "replace")


# What browsers read by the names that pages give, where that is not what Python reads by them. Whatever is not here is
# UTF-8: some of Python's codecs take the square of a text's length in time.
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


def _codec_for(kind: str) -> str:
    """Return how a text is written whose Content-Type names a charset.

    >>> _codec_for('text/html; Charset="ISO-8859-1"'), _codec_for("text/css"), _codec_for("text/css; charset=punycode")
    ('cp1252', 'utf-8', 'utf-8')
    """
    for parameter in kind.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return _CODECS.get(value.strip().strip("\"'").lower(), "utf-8")
    return "utf-8"


class HarFiles(CachedResponseArchive):
    """The responses in a HAR file, or in all of a folder, packed (`.har.gz`) or not: a `Repository`.

    Raises UsageError if the archive's entry names no place.
    """

    def __init__(self, archive: Archive) -> None:
        super().__init__(archive, lambda place: place, read_har_responses, open_har_content, "responses in HAR files")
