"""Exclusions that are believed for a time: `com,a)/b 0 {"expires": "2026-12-31"}`.

A page that was missed yesterday may be captured today, so an exclusion that was learned from misses ends by itself. The
day that it names is the first on which it is not believed any more. Nothing that reads a map has a clock: whoever knows
the day drops what has expired (`unlost.holdings.exclude_map`) or asks for it (`unlost.holdings.check_map`).
"""

from collections.abc import Mapping
from datetime import date

from unlost.errors import InputError
from unlost.formats.frequency import Frequency
from unlost.formats.looseobject import read_json
from unlost.formats.ukvs import Row

_NAME = "expires"


def expiry_of(row: Row) -> date | None:
    """Return the day on which an exclusion ends; None for what is none, or never does."""
    is_exclusion = row.frequency is not None and row.frequency.is_exclusion
    return _day(row.attributes) if is_exclusion else None


def expiry_in(line: bytes) -> date | None:
    """Return the same for a row of a map of one key field, as it stands.

    >>> expiry_in(b'com,a)/b 0 {"expires": "2026-12-31"}')
    datetime.date(2026, 12, 31)
    """
    # Most rows end here: a map may have millions, and few of them expire.
    if _NAME.encode() not in line:
        return None
    fields, brace, attributes = line.partition(b" {")
    try:
        is_exclusion = Frequency.parse(fields.split()[1].decode()).is_exclusion
        return _day(read_json((brace + attributes).decode())) if is_exclusion else None
    except (IndexError, InputError, ValueError, RecursionError):
        return None


def exclusion(key: bytes, expires: date) -> bytes:
    """Return a row, with its end, that excludes a key for a time.

    `unlost map merge` knows the object by its first bytes, and keeps the earliest of several.
    """
    return b'%b 0 {"%b": "%b"}\n' % (key, _NAME.encode(), expires.isoformat().encode())


def _day(attributes: object) -> date | None:
    value = attributes.get(_NAME) if isinstance(attributes, Mapping) else None
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
