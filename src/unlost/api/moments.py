"""Dates as people give them in Python: datetimes, dates, or text."""

from datetime import UTC, date, datetime
from typing import TypeAlias

from unlost import dates

DateLike: TypeAlias = datetime | date | str
"""A moment: a datetime (in UTC, if it has no time zone), a date, or text: `2014`, `2014-02-10`, `20140210000001`."""


def parse_date(when: DateLike) -> str:
    """Return a moment as digits: 14 of a datetime, 8 of a date, of a text as many as it has. Raises DateError.

    >>> digits_of("2014"), digits_of(date(2014, 2, 10)), digits_of(datetime(2014, 2, 10, 0, 0, 1))
    ('2014', '20140210', '20140210000001')
    """
    if isinstance(when, datetime):
        return dates.from_datetime(when if when.tzinfo else when.replace(tzinfo=UTC))
    if isinstance(when, date):
        return f"{when.year:04d}{when:%m%d}"
    digits = when.replace("-", "")
    if digits.isdecimal():
        dates.pad(digits)  # raises for what is no date
        return digits
    return dates.from_user_input(when)
