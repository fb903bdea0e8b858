"""Endless calendars."""

import pytest

from unlost.crawl import is_endless_calendar


@pytest.mark.parametrize(
    "tail", ["cal/2031/07/", "cal/2031-07-01", "?month=7&year=2090", "?date=20990101", "c?d=2050-01", "kalender;y=2077"]
)
def test_far_future_dates_are_endless_calendars(tail: str) -> None:
    """Future years in several notations."""
    assert is_endless_calendar(f"example.com/{tail}", 2026)


@pytest.mark.parametrize(
    "tail",
    [
        "",
        "2026/07/",
        "2028/01/01/plans",
        "1994/10",
        "item/9999",
        "p/2099",
        "?id=2099",
        "v/2099/99",
        "?year=2027",
        "news/20261117-a",
        "rfc/1035/3",
        "iso/9001/quality",
        "paper/1850-12-31/",
    ],
)
def test_plausible_dates_are_not_endless_calendars(tail: str) -> None:
    """News, next year's plans, old newspapers, and numbers that are not years."""
    assert not is_endless_calendar(f"example.com/{tail}", 2026)
