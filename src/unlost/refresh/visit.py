"""One visit to a page, as stored in a log. docs/refresh.md specifies the fields."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter

from unlost.dates import from_iso, to_datetime
from unlost.errors import DateError, InputError

VisitRow = tuple[str | int | None, ...]
"""The values of a visit in the order of `FIELDS`, as passed to the core."""

HEADER_FIELDS = {
    "etag": "etag",
    "last-modified": "last_modified",
    "date": "date",
    "cache-control": "cache_control",
    "expires": "expires",
    "server": "server",
    "repr-digest": "repr_digest",
    "digest": "repr_digest",
    "content-md5": "repr_digest",
    "content-length": "content_length",
    "age": "age",
}
"""The field of `Visit` for each header. If several headers have the same field, the first one in this order counts."""
_MAX_NUMBER = 2**62  # leaves room for sums in the core's 64-bit numbers


@dataclass(frozen=True, slots=True)
class Visit:
    """One visit to one page.

    Attributes:
        uri: Requested URL, before redirects. Everything else is of the last response.
        digest: Digest of the body without transfer and content codings, in any notation; None if the body was not read.
        text_digest: Digest of the visible text as from `page_text_digest`; None if unknown.
        etag: Response header.
        last_modified: Response header.
        date: Response header.
        repr_digest: Response header.
        cache_control: Response header.
        expires: Response header.
        server: Response header.
        time: Milliseconds since 1970, UTC.
        status: HTTP status; 0 if there was no response.
        content_length: Response header; None if it is invalid.
        age: Response header; None if it is invalid.
        weight: Number of visits that this one represents; None for 1. If one of 50 skips is audited, it is 50.
    """

    uri: str
    digest: str | None = None
    text_digest: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    date: str | None = None
    repr_digest: str | None = None
    cache_control: str | None = None
    expires: str | None = None
    server: str | None = None
    time: int = 0
    status: int = 200
    content_length: int | None = None
    age: int | None = None
    weight: int | None = None

    @property
    def row(self) -> VisitRow:
        """The values in the order of `FIELDS`."""
        return _values(self)


FIELDS = tuple(each.name for each in fields(Visit))
TEXT_FIELDS = FIELDS[:10]
NUMBER_FIELDS = FIELDS[10:]
_values = attrgetter(*FIELDS)


def visit_from_headers(uri: str, time: int, status: int, headers: Mapping[str, str]) -> Visit:
    """Return a visit with the values of response headers, given by lower-case name.

    >>> visit_from_headers("http://a.example/", 0, 200, {"etag": '"1"', "age": "7", "content-length": "x"}).age
    7
    """
    values: dict[str, str | int] = {}
    for header, field in HEADER_FIELDS.items():
        if header not in headers or field in values:
            continue
        text = headers[header]
        if field in NUMBER_FIELDS:
            if (number := parse_header_number(text)) is not None:
                values[field] = number
        else:
            values[field] = text
    return Visit(uri, time=time, status=status, **values)  # type: ignore[arg-type]  # each by its field


def parse_header_number(text: str) -> int | None:
    """Parse a decimal number of a header; None if it is invalid.

    >>> parse_header_number(" 12 "), parse_header_number("-1"), parse_header_number("1, 2")
    (12, None, None)
    """
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def serialize_visit(visit: Visit) -> bytes:
    r"""Return a visit as a line of JSON, with the line end and without None values.

    >>> serialize_visit(Visit("http://a.example/", "sha1:X", time=1392076801000))
    b'{"uri":"http://a.example/","digest":"sha1:X","time":1392076801000,"status":200}\n'
    """
    values = {name: value for name, value in zip(FIELDS, visit.row, strict=True) if value is not None}
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def parse_visit_row(values: object) -> VisitRow:
    """Return the row of a JSON object. Raises InputError with the name of the first invalid field.

    >>> parse_visit_row({"uri": "http://a.example/", "time": "2014-02-10T00:00:01Z", "status": 200})[10:12]
    (1391990401000, 200)
    """
    if not isinstance(values, Mapping):
        raise InputError("expected a JSON object")
    uri = values.get("uri")
    if not isinstance(uri, str) or not uri:
        raise InputError("expected a text as `uri`")
    row: list[str | int | None] = [uri]
    for name in TEXT_FIELDS[1:]:
        value = values.get(name)
        if value is not None and not isinstance(value, str):
            raise InputError(f"expected a text as `{name}`")
        row.append(value)
    row.append(parse_milliseconds(values.get("time")))
    row += [_parse_number(name, values.get(name)) for name in NUMBER_FIELDS[1:]]
    if row[11] is None:
        row[11] = 0
    return tuple(row)


def _parse_number(name: str, value: object) -> int | None:
    if isinstance(value, str):  # the unparsed header
        value = parse_header_number(value)
    if value is None:
        return None
    if type(value) is not int or not -_MAX_NUMBER < value < _MAX_NUMBER:
        raise InputError(f"expected a number as `{name}`")
    return value


def parse_milliseconds(value: object) -> int:
    """Parse a time: milliseconds since 1970, or ISO 8601. Raises InputError."""
    if isinstance(value, str):
        try:
            return int(to_datetime(from_iso(value)).timestamp()) * 1000
        except DateError as error:
            raise InputError(f"{error}, as `time`") from error
    if type(value) in {int, float} and abs(value) < _MAX_NUMBER:  # type: ignore[arg-type]  # a number
        return int(value)  # type: ignore[call-overload, no-any-return]  # a number
    raise InputError("expected milliseconds since 1970 or an ISO date as `time`")
