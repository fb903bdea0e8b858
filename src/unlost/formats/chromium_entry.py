"""One entry of Chromium's cache, however it is stored: its key, and the head of the response."""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from unlost.dates import from_datetime
from unlost.errors import ArchiveFileError
from unlost.formats.kept import (
    Chunks,
    CachedHeaders,
    CachedResponse,
    content_encoding_of,
    get_header,
    is_partial,
    parse_mime,
    parse_response_head,
    redirect_target,
    parse_web_url,
)

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

    >>> read_key("1/0/_dk_https://a.com https://b.org https://b.org/x?y")
    (False, 'https://b.org/x?y')
    >>> read_key("1/1700000000000/https://a.com/form"), read_key("https://a.com/"), read_key("chrome-extension://x/")
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
