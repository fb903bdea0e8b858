"""Fields of WARC records: lines of a name and a value, which may hold anything and break nothing."""

import json
import re
from collections.abc import Iterable

from unlost.errors import UriError

MAX_VALUE_CHARS = 1 << 16
"""The longest value, in characters, and of an address in bytes: tools that read WARCs give up at longer lines."""

_PLAIN_VALUE = re.compile(r"[!#-~](?:[ -~]*[!-~])?")
_UNSAFE_URI_CHARS = re.compile(r"[\x00-\x20<>\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f\u3000\ud800-\udfff\ufeff]")

WarcFields = Iterable[tuple[str, str | None]]


def format_fields(fields: WarcFields) -> bytes:
    r"""Return fields as lines; those without a value are left out. Values must be of one line.

    >>> written([("WARC-Type", "response"), ("WARC-Truncated", None)])
    b'WARC-Type: response\r\n'
    """
    return "".join([f"{name}: {value}\r\n" for name, value in fields if value is not None]).encode()


def parse_fields(text: bytes) -> dict[str, str]:
    """Return the values of fields by their names. Raises ValueError for what was not written so."""
    fields: dict[str, str] = {}
    for line in text.decode().split("\r\n"):
        if line:
            name, colon, value = line.partition(": ")
            if not colon or name in fields:
                raise ValueError(name)
            fields[name] = value
    return fields


def encode_value(value: str) -> str:
    r"""Return a text so that it is one line of ASCII: as it is if it can be, else as a string of JSON.

    Raises UriError for one of more than MAX_TEXT characters: only addresses come near that.

    >>> plain("text/html"), plain("a\r\nb"), plain("")
    ('text/html', '"a\\r\\nb"', '""')
    """
    if len(value) > MAX_VALUE_CHARS:
        raise _too_long_error(len(value))
    return value if _PLAIN_VALUE.fullmatch(value) else json.dumps(value)


def decode_value(value: str) -> str:
    """Return the text again. Raises ValueError if it is no such line."""
    text = json.loads(value) if value.startswith('"') else value
    if not isinstance(text, str):
        raise ValueError(value[:40])  # noqa: TRY004  one kind of error for all that was not written here
    return text


def escape_target_uri(uri: str) -> str:
    """Return an address as a field of a record may have it: spaces, brackets and control characters are escaped.

    Raises UriError for one that is empty or has more than MAX_TEXT bytes.

    >>> address("http://example.com/a b"), address("http://example.com/é")
    ('http://example.com/a%20b', 'http://example.com/é')
    """
    if not uri:
        raise UriError("expected an address, found none", "empty")
    escaped = _UNSAFE_URI_CHARS.sub(_percent_encode, uri) if len(uri) <= MAX_VALUE_CHARS else uri
    size = len(escaped) if escaped.isascii() else len(escaped.encode("utf-8", "replace"))
    if size > MAX_VALUE_CHARS:
        raise _too_long_error(size)
    return escaped


def _too_long_error(size: int) -> UriError:
    return UriError(f"expected an address of at most {MAX_VALUE_CHARS} bytes, found {size}", "too-long")


def _percent_encode(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))
