"""Datetime negotiation: how close captures are to a date, which may have fewer than 14 digits (`2014` is a year)."""

from collections.abc import AsyncIterator

from unlost import dates
from unlost.capture import Capture

LAST_DATETIME = "99991231235959"
"""The end of time, to which the last capture is closest."""

LAST_QUERY_DATETIME = "29991231235959"
"""The end of time in requests, because pywb rejects later dates."""

ALL_TIME = ("00010101000000", LAST_DATETIME)
"""From the earliest to the latest date."""


def date_span(date: str | None) -> tuple[str, str]:
    """Return the first and last second of a date of 1 to 14 digits; for None, the end of time. Raises DateError.

    >>> date_span("2014"), date_span(None)
    (('20140101000000', '20141231235959'), ('99991231235959', '99991231235959'))
    """
    return (LAST_DATETIME, LAST_DATETIME) if date is None else (dates.pad(date), dates.pad(date, round_up=True))


def target_datetime(date: str | None) -> str:
    """Return the date to request from an archive that accepts only 14 digits. Raises DateError.

    It is the middle of the period: no capture outside the period is closer to it than any inside.

    >>> target_datetime("2014"), target_datetime(None)
    ('20140702115959', '29991231235959')
    """
    if date is None:
        return LAST_QUERY_DATETIME
    first, last = map(dates.to_datetime, date_span(date))
    return min(dates.from_datetime(first + (last - first) / 2), LAST_QUERY_DATETIME)


def pad_bounds(first: str | None, last: str | None) -> tuple[str | None, str | None]:
    """Pad two dates of 1 to 14 digits to 14, since servers pad them differently; None is unchanged. Raises DateError.

    >>> pad_bounds("2014", "2015"), pad_bounds(None, None)
    (('20140101000000', '20151231235959'), (None, None))
    """
    return dates.pad(first) if first else None, dates.pad(last, round_up=True) if last else None


def pad_range(first: str | None, last: str | None) -> tuple[str, str]:
    """Pad two dates as `pad_bounds` does, with the earliest and the latest date for None. Raises DateError.

    >>> pad_range("2014", None)
    ('20140101000000', '99991231235959')
    """
    low, high = pad_bounds(first, last)
    return low or ALL_TIME[0], high or ALL_TIME[1]


def gap_seconds(low: str, high: str, first: str, last: str) -> float:
    """Return the distance in seconds between the period from `low` to `high` and that from `first` to `last`.

    It is 0 if they overlap.

    >>> gap_seconds("20131201000000", "20131231235959", *date_span("2014"))
    1.0
    """
    if high < first:
        return (dates.to_datetime(first) - dates.to_datetime(high)).total_seconds()
    if low > last:
        return (dates.to_datetime(low) - dates.to_datetime(last)).total_seconds()
    return 0.0


async def closest_capture(captures: AsyncIterator[Capture], date: str | None) -> Capture | None:
    """Return the capture closest to a date, or the last one; None if there is none. Raises DateError."""
    first, last = date_span(date)
    closest = None
    async for capture in captures:
        if closest is None or distance_rank(capture.datetime, first, last) < distance_rank(
            closest.datetime, first, last
        ):
            closest = capture
    return closest


def distance_rank(moment: str, first: str, last: str) -> tuple[float, float]:
    """Return a sort key for captures: the closest first, and the later one of two that are equally close.

    >>> dates = ["20131231000000", "20140301000000", "20140201000000"]
    >>> sorted(dates, key=lambda each: distance_rank(each, *date_span("2014")))
    ['20140301000000', '20140201000000', '20131231000000']
    """
    return gap_seconds(moment, moment, first, last), -float(moment)
