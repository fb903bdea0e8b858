"""CDXJ: a key, a date and an object, as pywb, OpenWayback, ipwb and Common Crawl write it."""

import json
import re
from collections.abc import Iterable, Iterator

from unlost.formats.row import NO_VALUE, REVISIT_TYPE, IndexRow, RowError, escape_column

# What OpenWayback's and ipwb's rows call the fields that pywb names otherwise.
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


def parse_cdxj_row(line: bytes, number: int = 0, place: int = 0) -> IndexRow:
    """Read one line. Raises RowError of kind `bad-field-count`, `bad-json`.

    >>> row(b'com,a)/ 2014 {"url": "http://a.com/", "status": 200}').fields
    {'url': 'http://a.com/', 'status': '200'}
    """
    # Keys may hold braces themselves; only the object begins a column with one.
    head, brace, body = line.partition(b" {")
    # Cut as bytes: a key may hold white space that only Unicode calls so.
    columns = [column.decode("utf-8", "surrogateescape") for column in head.split()]
    if not brace or len(columns) not in (2, 3):
        raise RowError("bad-field-count", "expected a key, a date and an object in braces")
    try:
        # Numbers stay as they are written: they are text in every other index.
        values = json.loads(
            (brace + body).decode("utf-8", "surrogateescape"), parse_int=str, parse_float=str, parse_constant=str
        )
        fields = {
            _FIELD_ALIASES.get(name, name): _value_text(value) for name, value in values.items() if _has_value(value)
        }
        if _LONE_SURROGATE.search(body):
            # Half of a surrogate pair is no text. Those that stand for a byte that is no UTF-8 are ours.
            "".join([*fields, *fields.values()]).encode("utf-8", "surrogateescape")
    except (ValueError, RecursionError) as error:
        raise RowError("bad-json", f"expected an object: {str(error)[:80]}") from None
    if len(columns) == 3:
        _convert_openwayback(columns[2], fields)
    return IndexRow(columns[0], columns[1], fields, number, place)


def _has_value(value: object) -> bool:
    return value is not None and value != NO_VALUE


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _convert_openwayback(record_type: str, fields: dict[str, str]) -> None:
    """Bring the fourth column and the reference of OpenWayback's rows to pywb's fields."""
    if record_type == "revisit":
        fields["mime"] = REVISIT_TYPE
    name, mark, offset = fields.get("ref", "").removeprefix(_WARCFILE_PREFIX).rpartition("#")
    if mark:
        del fields["ref"]
        fields |= {"filename": name, "offset": offset}


def write_cdxj(rows: Iterable[IndexRow]) -> Iterator[bytes]:
    """Yield one line for each row, with its end, in pywb's order of fields; what else a row has comes behind.

    White space in a key or date is escaped. A row without a key gets that of its address.
    """
    for each in rows:
        known = {name: each.fields[name] for name in _CDXJ_FIELD_ORDER if name in each.fields}
        fields = json.dumps({**known, **each.fields}, ensure_ascii=True)
        head = f"{escape_column(each.output_key())} {escape_column(each.timestamp)}"
        yield f"{head} {fields}\n".encode("utf-8", "surrogateescape")
