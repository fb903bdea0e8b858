"""CDX and CDXJ: index rows, parsed, written, and converted to captures.

CDX has delimited columns, whose names follow from the letters of a header line or from the number of columns. CDXJ has
a key, a date and a JSON object, as pywb, OpenWayback, ipwb and Common Crawl write it.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from unlost import dates, uri
from unlost.capture import Capture, normalize_digest
from unlost.errors import DateError, UriError

REVISIT_TYPE = "warc/revisit"
"""Media type of revisit records in indexes."""
NO_VALUE = "-"
_CONTROL_ESCAPES = {code: f"%{code:02X}" for code in (*range(32), 127)}

CDX_FIELD_NAMES = {
    "N": "urlkey",
    "A": "urlkey",
    "b": "timestamp",
    "a": "url",
    "m": "mime",
    "s": "status",
    "k": "digest",
    "r": "redirect",
    "M": "robotflags",
    "S": "length",
    "V": "offset",
    "g": "filename",
    "e": "ip",
    "v": "uncompressed-offset",
    "n": "document-length",
    "c": "old-checksum",
    "t": "title",
    "u": "record-id",
}
"""Names of the columns by their letter; columns of other letters are stored as `cdx-LETTER`."""
_STATUS_CODE = re.compile("[0-9]{3}")
# CDX10 lacks the length of the record (S); CDX9 lacks the robot flags (M), too.
_LETTERS_BY_COUNT = {9: "N b a m s k r V g", 10: "N b a m s k r M V g", 11: "N b a m s k r M S V g"}

# Names of pywb's fields in the CDXJ of OpenWayback and ipwb.
_FIELD_ALIASES = {
    "uri": "url",
    "original_uri": "url",
    "mct": "mime",
    "mime_type": "mime",
    "mimetype": "mime",
    "hsc": "status",
    "status_code": "status",
    "statuscode": "status",
    "sha": "digest",
    "rle": "length",
    "rou": "refers-to-uri",
    "rod": "refers-to-date",
}
_CDXJ_FIELD_ORDER = ("url", "mime", "status", "digest", "redirect", "robotflags", "length", "offset", "filename")
_WARCFILE_PREFIX = "warcfile:"
_LONE_SURROGATE = re.compile(rb"\\u[dD]")


class RowError(Exception):
    """An invalid line, or a row that is not a valid capture. Internal: callers count it as a problem.

    Attributes:
        kind: Kind of the problem.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One row of an index.

    Attributes:
        key: Key, as in the file.
        timestamp: Date, as in the file.
        fields: Other fields by pywb's names: `url`, `mime`, `status`, `digest`, `redirect`, `robotflags`, `length`,
            `offset`, `filename`; further fields under their own names. Fields without a value are omitted.
        number: Line number.
        offset: Offset of the line.
    """

    key: str
    timestamp: str
    fields: Mapping[str, str]
    number: int = 0
    offset: int = 0

    def to_capture(self) -> Capture:
        """Return the row as a capture. Raises RowError of kind `bad-date`, `bad-number` or `bad-address`."""
        fields = self.fields
        url = fields.get("url", "")
        mime = _parse_mime(fields.get("mime"))
        is_revisit = mime == REVISIT_TYPE
        return Capture(
            uri=_escape_invalid_utf8(url),
            key=self._page_key(url),
            datetime=_parse_date(self.timestamp),
            status=_parse_status(fields.get("status")),
            mime=None if is_revisit else mime,
            digest=normalize_digest(fields["digest"]) if "digest" in fields else None,
            length=_parse_byte_count("length", fields.get("length")),
            redirect=_escape_invalid_utf8(fields["redirect"]) if "redirect" in fields else None,
            revisit=is_revisit,
            revisit_of=_parse_revisit_of(fields),
            filename=fields.get("filename"),
            offset=_parse_byte_count("offset", fields.get("offset")),
        )

    def output_key(self) -> str:
        """Return the key to write: the row's own, or that of its URL if the file has none, as with wget."""
        return self.key or index_key(self.fields.get("url", ""))

    def _page_key(self, url: str) -> str | None:
        key_bytes, url_bytes = self.key.encode("utf-8", "surrogateescape"), url.encode("utf-8", "surrogateescape")
        try:
            return uri.row_key(key_bytes, url_bytes)
        except UriError as error:
            if error.kind == "foreign-scheme":
                return None
            raise RowError("bad-address", f"neither key nor address can be read: {error}") from None


def index_key(url: str) -> str:
    """Return the key of a URL for an index: the SURT of a web page, else the text in lower case.

    >>> index_key("http://www.Example.com/A"), index_key("dns:Example.com"), index_key("")
    ('com,example)/a', 'dns:example.com', '-')
    """
    try:
        return uri.surt(_escape_invalid_utf8(url))
    except UriError:
        return "".join(url.lower().split()) or NO_VALUE


def escape_column(text: str, delimiter: str = " ") -> str:
    r"""Percent-encode the characters that would end a column or a line.

    >>> escape_column("a b\nc")
    'a%20b%0Ac'
    """
    return text.replace(delimiter, f"%{ord(delimiter):02X}").translate(_CONTROL_ESCAPES)


def _escape_invalid_utf8(url: str) -> str:
    """Percent-encode bytes that are not UTF-8, so that the URL can be written as JSON."""
    try:
        url.encode()
    except UnicodeEncodeError:
        return "".join(f"%{ord(char) - 0xDC00:02X}" if "\udc80" <= char <= "\udcff" else char for char in url)
    return url


def _parse_date(text: str) -> str:
    try:
        return dates.pad(text) if text.isdigit() else dates.from_iso(text)
    except DateError as error:
        raise RowError("bad-date", str(error)) from None


def _parse_mime(text: str | None) -> str | None:
    """Return the media type in lower case without parameters. `unk`, which some indexers write, means unknown."""
    mime = re.split(r"[;\s]", (text or "").strip().lower(), maxsplit=1)[0]
    return mime if mime and mime != "unk" else None


def _parse_status(text: str | None) -> int | None:
    # Indexers copy whatever is in the position of the status: only three digits are valid.
    return int(text) if text and len(text) == 3 and text.isascii() and text.isdigit() and text >= "100" else None


def _parse_byte_count(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise RowError("bad-number", f"expected a number of bytes as {name}, found `{text[:40]}`")
    return int(text)


def _parse_revisit_of(fields: Mapping[str, str]) -> tuple[str, str] | None:
    url, date = fields.get("refers-to-uri"), fields.get("refers-to-date")
    if not url or not date:
        return None
    return url, _parse_date(date)


@dataclass(frozen=True, slots=True)
class CdxLayout:
    """Delimiter and columns of a CDX file.

    Attributes:
        delimiter: One character, nearly always a space.
        columns: Names of the columns, in order.

    >>> CdxLayout.from_header(b" CDX N b a m s k r V g").columns[:3]
    ('urlkey', 'timestamp', 'url')
    """

    delimiter: str
    columns: tuple[str, ...]

    @classmethod
    def from_header(cls, line: bytes) -> "CdxLayout":
        """Parse a header line, whose first byte is the delimiter. Raises RowError of kind `bad-header`."""
        text = line.decode("utf-8", "surrogateescape")
        delimiter, (word, *letters) = text[0], text[1:].rstrip().split(text[0])
        if word != "CDX" or not letters or any(len(letter) != 1 for letter in letters):
            raise RowError("bad-header", "expected ` CDX` and one letter for each column")
        names: list[str] = []
        for letter in letters:
            name = CDX_FIELD_NAMES.get(letter, f"cdx-{letter}")
            # The CDX of wget has two URL columns, the first in place of the key.
            names.append(name if name not in names else f"{name}-{names.count(name) + 1}")
        if "timestamp" not in names or not {"urlkey", "url"} & set(names):
            raise RowError("bad-header", "expected columns for a date (b) and a key (N) or an address (a)")
        return cls(delimiter, tuple(names))

    @classmethod
    def from_column_count(cls, count: int) -> "CdxLayout":
        """Return the layout of a file without a header, by its number of columns.

        Raises RowError of kind `bad-field-count`.

        >>> CdxLayout.from_column_count(9).columns[6:]
        ('redirect', 'offset', 'filename')
        """
        if count not in _LETTERS_BY_COUNT:
            raise RowError("bad-field-count", f"expected 9, 10 or 11 fields without a header, found {count}")
        return cls.from_header(b" CDX " + _LETTERS_BY_COUNT[count].encode())

    def header_line(self) -> bytes:
        """Return the header line, without its line end."""
        letters = {name: letter for letter, name in reversed(CDX_FIELD_NAMES.items())}
        column_letters = [letters.get(name) or name.removeprefix("cdx-")[:1] for name in self.columns]
        return self.delimiter.join(["", "CDX", *column_letters]).encode()

    def parse_row(self, line: bytes, number: int = 0, offset: int = 0) -> IndexRow:
        """Parse a line. Raises RowError of kind `bad-field-count`."""
        values = line.decode("utf-8", "surrogateescape").split(self.delimiter)
        if len(values) > len(self.columns) and self.delimiter == " " and self.columns[:5] == CDX11.columns[:5]:
            values = _join_url(values, (len(self.columns),))
        return self._build_row(values, number, offset)

    def _build_row(self, values: list[str], number: int, offset: int) -> IndexRow:
        if len(values) != len(self.columns):
            message = f"expected {len(self.columns)} fields, found {len(values)}"
            raise RowError("bad-field-count", message)
        fields = {name: value for name, value in zip(self.columns, values, strict=True) if value not in ("", NO_VALUE)}
        key = fields.pop("urlkey", "")
        return IndexRow(key, fields.pop("timestamp", ""), fields, number, offset)


def parse_row(line: bytes, number: int = 0, offset: int = 0) -> IndexRow:
    """Parse a line of a CDX file without a header. Raises RowError of kind `bad-field-count`."""
    values = line.decode("utf-8", "surrogateescape").split(" ")
    if len(values) > max(_LETTERS_BY_COUNT):
        values = _join_url(values, _LETTERS_BY_COUNT)
    return _default_layout(len(values))._build_row(values, number, offset)  # noqa: SLF001  the same module


@cache
def _default_layout(count: int) -> CdxLayout:
    return CdxLayout.from_column_count(count)


def _join_url(values: list[str], widths: Collection[int]) -> list[str]:
    """Join the fields of a row that has too many because its URL contains spaces.

    The media type and the status must be at the position that one of the widths implies, and at no other position.
    Ambiguous rows, such as two rows in one line, are returned unchanged.

    >>> _join_url("com,a)/ 2014 http://a.com/x y text/html 200 A - 7 a.warc.gz".split(" "), (9,))[2:5]
    ['http://a.com/x y', 'text/html', '200']
    """
    positions = [position for width in widths if _has_media_type(values, position := 3 + len(values) - width)]
    if _has_media_type(values, 3) or len(positions) != 1 or any("://" in value for value in values[3 : positions[0]]):
        return values
    return [*values[:2], " ".join(values[2 : positions[0]]), *values[positions[0] :]]


def _has_media_type(values: list[str], index: int) -> bool:
    """Return whether a field resembles a media type, and the next one a status."""
    mime, status = values[index : index + 2]
    return ("/" in mime or mime in (NO_VALUE, "unk")) and (
        status == NO_VALUE or _STATUS_CODE.fullmatch(status) is not None
    )


CDX9, CDX10, CDX11 = (CdxLayout.from_header(b" CDX " + letters.encode()) for letters in _LETTERS_BY_COUNT.values())


def write_cdx(rows: Iterable[IndexRow], layout: CdxLayout = CDX11) -> Iterator[bytes]:
    """Yield the header and a line for each row, with line ends. Fields without a column in the layout are dropped.

    Spaces in values are percent-encoded, because CDX has no other way to write them; so are control characters, which
    could end the line. A row without a key gets that of its URL.
    """
    yield layout.header_line() + b"\n"
    for row in rows:
        values = {"urlkey": row.output_key(), "timestamp": row.timestamp, **row.fields}
        texts = [escape_column(values.get(name, ""), layout.delimiter) or NO_VALUE for name in layout.columns]
        yield layout.delimiter.join(texts).encode("utf-8", "surrogateescape") + b"\n"


def parse_cdxj_row(line: bytes, number: int = 0, offset: int = 0) -> IndexRow:
    """Parse a CDXJ line. Raises RowError of kind `bad-field-count` or `bad-json`.

    >>> parse_cdxj_row(b'com,a)/ 2014 {"url": "http://a.com/", "status": 200}').fields
    {'url': 'http://a.com/', 'status': '200'}
    """
    # Keys may contain braces, but only the object begins a column with one.
    head, brace, body = line.partition(b" {")
    # Split as bytes: a key may contain Unicode white space.
    columns = [column.decode("utf-8", "surrogateescape") for column in head.split()]
    if not brace or len(columns) not in (2, 3):
        raise RowError("bad-field-count", "expected a key, a date and an object in braces")
    try:
        # Numbers stay text, as in all other index formats.
        values = json.loads(
            (brace + body).decode("utf-8", "surrogateescape"), parse_int=str, parse_float=str, parse_constant=str
        )
        fields = {
            _FIELD_ALIASES.get(name, name): _value_text(value) for name, value in values.items() if _has_value(value)
        }
        if _LONE_SURROGATE.search(body):
            # Reject lone surrogates, except those with which Python represents bytes that are not UTF-8.
            "".join([*fields, *fields.values()]).encode("utf-8", "surrogateescape")
    except (ValueError, RecursionError) as error:
        raise RowError("bad-json", f"expected an object: {str(error)[:80]}") from None
    if len(columns) == 3:
        _convert_openwayback(columns[2], fields)
    return IndexRow(columns[0], columns[1], fields, number, offset)


def _has_value(value: object) -> bool:
    return value is not None and value != NO_VALUE


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _convert_openwayback(record_type: str, fields: dict[str, str]) -> None:
    """Convert the fourth column and the reference of OpenWayback's rows to pywb's fields."""
    if record_type == "revisit":
        fields["mime"] = REVISIT_TYPE
    name, separator, offset = fields.get("ref", "").removeprefix(_WARCFILE_PREFIX).rpartition("#")
    if separator:
        del fields["ref"]
        fields |= {"filename": name, "offset": offset}


def write_cdxj(rows: Iterable[IndexRow]) -> Iterator[bytes]:
    """Yield a line for each row, with line ends, in pywb's order of fields, followed by other fields.

    White space in a key or date is escaped. A row without a key gets that of its URL.
    """
    for row in rows:
        ordered = {name: row.fields[name] for name in _CDXJ_FIELD_ORDER if name in row.fields}
        fields = json.dumps({**ordered, **row.fields}, ensure_ascii=True)
        head = f"{escape_column(row.output_key())} {escape_column(row.timestamp)}"
        yield f"{head} {fields}\n".encode("utf-8", "surrogateescape")
