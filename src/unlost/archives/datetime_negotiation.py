"""Datetime negotiation: how close captures are to a date that may be short of digits (`2014` is a year)."""

from collections.abc import AsyncIterator

from unlost import dates
from unlost.capture import Capture

LAST_DATETIME = "99991231235959"
"""The date to which the last capture is the closest."""

LAST_QUERY_DATETIME = "29991231235959"
"""The same for archives that are asked over the network: pywb takes no date beyond it."""

ALL_TIME = ("00010101000000", LAST_DATETIME)
"""All the time there is."""


def date_span(date: str | None) -> tuple[str, str]:
    """Return the first and last moment of a date of 1 to 14 digits; without one, the end of time. Raises DateError.

    >>> date_span("2014"), date_span(None)
    (('20140101000000', '20141231235959'), ('99991231235959', '99991231235959'))
    """
    return (LAST_DATETIME, LAST_DATETIME) if date is None else (dates.pad(date), dates.pad(date, round_up=True))


def target_datetime(date: str | None) -> str:
    """Return the moment for which to ask an archive that takes 14 digits only. Raises DateError.

    It is the middle of the span. What is closest to that is in the span if anything is; if nothing is, it is what is
    closest to an end of it. So who is asked for this moment answers for the span.

    >>> target_datetime("2014"), target_datetime(None)
    ('20140702115959', '29991231235959')
    """
    if date is None:
        return LAST_QUERY_DATETIME
    first, last = map(dates.to_datetime, date_span(date))
    return min(dates.from_datetime(first + (last - first) / 2), LAST_QUERY_DATETIME)


def pad_bounds(first: str | None, last: str | None) -> tuple[str | None, str | None]:
    """Return two dates of 1 to 14 digits as 14, so that no server has to fill them up; None stays. Raises DateError.

    >>> pad_bounds("2014", "2015"), pad_bounds(None, None)
    (('20140101000000', '20151231235959'), (None, None))
    """
    return dates.pad(first) if first else None, dates.pad(last, round_up=True) if last else None


def pad_range(first: str | None, last: str | None) -> tuple[str, str]:
    """Return the same with the beginning and the end of time for none. Raises DateError.

    >>> pad_range("2014", None)
    ('20140101000000', '99991231235959')
    """
    low, high = pad_bounds(first, last)
    return low or ALL_TIME[0], high or ALL_TIME[1]


def gap_seconds(low: str, high: str, first: str, last: str) -> float:
    """Return how far the time from `low` to `high` is from that from `first` to `last`; 0 if they meet.

    >>> gap_seconds("20131201000000", "20131231235959", *date_span("2014"))
    1.0
    """
    if high < first:
        return (dates.to_datetime(first) - dates.to_datetime(high)).total_seconds()
    if low > last:
        return (dates.to_datetime(low) - dates.to_datetime(last)).total_seconds()
    return 0.0


async def closest_capture(captures: AsyncIterator[Capture], date: str | None) -> Capture | None:
    """Return the capture that is closest to a date, or the last one; None if there is none. Raises DateError."""
    first, last = date_span(date)
    best = None
    async for capture in captures:
        if best is None or distance_rank(capture.datetime, first, last) < distance_rank(best.datetime, first, last):
            best = capture
    return best


def distance_rank(moment: str, first: str, last: str) -> tuple[float, float]:
    """Return what captures are sorted by, the closest first; of those equally close, the later.

    >>> sorted(["20131231000000", "20140301000000", "20140201000000"], key=lambda each: distance_rank(each, *date_span("2014")))
    ['20140301000000', '20140201000000', '20131231000000']
    """
    return gap_seconds(moment, moment, first, last), -float(moment)
