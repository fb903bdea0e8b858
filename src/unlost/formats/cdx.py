"""CDX: rows of columns between delimiters, named by the letters of a header line or by their number."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from unlost.formats.row import NO_VALUE, IndexRow, RowError, escape_column

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
"""The letters that have a name here; columns of other letters are kept as `cdx-LETTER`."""

_STATUS_CODE = re.compile("[0-9]{3}")
_LETTERS_BY_COUNT = {9: "N b a m s k r V g", 10: "N b a m s k r M V g", 11: "N b a m s k r M S V g"}


@dataclass(frozen=True, slots=True)
class CdxLayout:
    """What the columns of a CDX file are.

    delimiter: one character, nearly always a space.
    columns: their names, in order.

    >>> Layout.of_header(b" CDX N b a m s k r V g").columns[:3]
    ('urlkey', 'timestamp', 'url')
    """

    delimiter: str
    columns: tuple[str, ...]

    @classmethod
    def from_header(cls, line: bytes) -> "CdxLayout":
        """Read a header line: its first byte is the delimiter. Raises RowError of kind `bad-header`."""
        text = line.decode("utf-8", "surrogateescape")
        delimiter, (word, *letters) = text[0], text[1:].rstrip().split(text[0])
        if word != "CDX" or not letters or any(len(letter) != 1 for letter in letters):
            raise RowError("bad-header", "expected ` CDX` and one letter for each column")
        names: list[str] = []
        for letter in letters:
            name = CDX_FIELD_NAMES.get(letter, f"cdx-{letter}")
            # wget names the address twice, first where others have the key.
            names.append(name if name not in names else f"{name}-{names.count(name) + 1}")
        if "timestamp" not in names or not {"urlkey", "url"} & set(names):
            raise RowError("bad-header", "expected columns for a date (b) and a key (N) or an address (a)")
        return cls(delimiter, tuple(names))

    @classmethod
    def from_column_count(cls, count: int) -> "CdxLayout":
        """Tell the columns of a file without a header by how many there are. Raises RowError of kind `bad-field-count`.

        >>> Layout.of_count(9).columns[6:]
        ('redirect', 'offset', 'filename')
        """
        if count not in _LETTERS_BY_COUNT:
            raise RowError("bad-field-count", f"expected 9, 10 or 11 fields without a header, found {count}")
        return cls.from_header(b" CDX " + _LETTERS_BY_COUNT[count].encode())

    def header_line(self) -> bytes:
        """Return the header line, without its end."""
        letters = {name: letter for letter, name in reversed(CDX_FIELD_NAMES.items())}
        words = [letters.get(name) or name.removeprefix("cdx-")[:1] for name in self.columns]
        return self.delimiter.join(["", "CDX", *words]).encode()

    def parse_row(self, line: bytes, number: int = 0, place: int = 0) -> IndexRow:
        """Read one line. Raises RowError of kind `bad-field-count`."""
        values = line.decode("utf-8", "surrogateescape").split(self.delimiter)
        if len(values) > len(self.columns) and self.delimiter == " " and self.columns[:5] == CDX11.columns[:5]:
            values = _join_url(values, (len(self.columns),))
        return self._build_row(values, number, place)

    def _build_row(self, values: list[str], number: int, place: int) -> IndexRow:
        if len(values) != len(self.columns):
            message = f"expected {len(self.columns)} fields, found {len(values)}"
            raise RowError("bad-field-count", message)
        fields = {name: value for name, value in zip(self.columns, values, strict=True) if value not in ("", NO_VALUE)}
        key = fields.pop("urlkey", "")
        return IndexRow(key, fields.pop("timestamp", ""), fields, number, place)


def parse_row(line: bytes, number: int = 0, place: int = 0) -> IndexRow:
    """Read one line of a file without a header. Raises RowError of kind `bad-field-count`."""
    values = line.decode("utf-8", "surrogateescape").split(" ")
    if len(values) > max(_LETTERS_BY_COUNT):
        values = _join_url(values, _LETTERS_BY_COUNT)
    return _default_layout(len(values))._build_row(values, number, place)  # noqa: SLF001  the same module


@cache
def _default_layout(count: int) -> CdxLayout:
    return CdxLayout.from_column_count(count)


def _join_url(values: list[str], widths: Collection[int]) -> list[str]:
    """Join the fields of a row whose URL has spaces in it, so that there are too many.

    The media type and the status must be where one of the widths leaves them, and at no other such place. Rows that may
    be anything else, such as two rows in one line, are returned as they are.

    >>> _join_url("com,a)/ 2014 http://a.com/x y text/html 200 A - 7 a.warc.gz".split(" "), (9,))[2:5]
    ['http://a.com/x y', 'text/html', '200']
    """
    places = [at for width in widths if _has_media_type(values, at := 3 + len(values) - width)]
    if _has_media_type(values, 3) or len(places) != 1 or any("://" in value for value in values[3 : places[0]]):
        return values
    return [*values[:2], " ".join(values[2 : places[0]]), *values[places[0] :]]


def _has_media_type(values: list[str], at: int) -> bool:
    """Return whether a field looks like a media type, and the next like a status."""
    mime, status = values[at : at + 2]
    return ("/" in mime or mime in (NO_VALUE, "unk")) and (
        status == NO_VALUE or _STATUS_CODE.fullmatch(status) is not None
    )


CDX9, CDX10, CDX11 = (CdxLayout.from_header(b" CDX " + letters.encode()) for letters in _LETTERS_BY_COUNT.values())


def write_cdx(rows: Iterable[IndexRow], layout: CdxLayout = CDX11) -> Iterator[bytes]:
    """Yield the header and one line for each row, with their ends; a value that the layout has no column for is lost.

    A space inside a value becomes `%20`, since nothing else can stand for it in CDX; so do control characters, which
    could end the line. A row without a key gets that of its address.
    """
    yield layout.header_line() + b"\n"
    for row in rows:
        values = {"urlkey": row.output_key(), "timestamp": row.timestamp, **row.fields}
        texts = [escape_column(values.get(name, ""), layout.delimiter) or NO_VALUE for name in layout.columns]
        yield layout.delimiter.join(texts).encode("utf-8", "surrogateescape") + b"\n"
