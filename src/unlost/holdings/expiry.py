"""Exclusions that are believed for a time: `com,a)/b 0 {"expires": "2026-12-31"}`.

A page that was missed yesterday may be captured today, so an exclusion that was learned from misses ends by itself. The
day that it names is the first on which it is not believed any more. Nothing that reads a map has a clock: whoever knows
the day drops what has expired (`unlost.holdings.exclude_map`) or asks for it (`unlost.holdings.check_map`).
"""

from collections.abc import Mapping
from datetime import date

from unlost.errors import InputError
from unlost.formats.frequency import Frequency
from unlost.formats.looseobject import parse_lenient_json
from unlost.formats.ukvs import UkvsRow

_EXPIRES = "expires"


def row_expiry_date(row: UkvsRow) -> date | None:
    """Return the day on which an exclusion ends; None for what is none, or never does."""
    is_exclusion = row.frequency is not None and row.frequency.is_exclusion
    return _parse_expiry_date(row.attributes) if is_exclusion else None


def line_expiry_date(line: bytes) -> date | None:
    """Return the same for a row of a map of one key field, as it stands.

    >>> expiry_in(b'com,a)/b 0 {"expires": "2026-12-31"}')
    datetime.date(2026, 12, 31)
    """
    # Most rows end here: a map may have millions, and few of them expire.
    if _EXPIRES.encode() not in line:
        return None
    fields, brace, attributes = line.partition(b" {")
    try:
        is_exclusion = Frequency.parse(fields.split()[1].decode()).is_exclusion
        return _parse_expiry_date(parse_lenient_json((brace + attributes).decode())) if is_exclusion else None
    except (IndexError, InputError, ValueError, RecursionError):
        return None


def format_exclusion(key: bytes, expires: date) -> bytes:
    """Return a row, with its end, that excludes a key for a time.

    `unlost map merge` knows the object by its first bytes, and keeps the earliest of several.
    """
    return b'%b 0 {"%b": "%b"}\n' % (key, _EXPIRES.encode(), expires.isoformat().encode())


def _parse_expiry_date(attributes: object) -> date | None:
    value = attributes.get(_EXPIRES) if isinstance(attributes, Mapping) else None
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
