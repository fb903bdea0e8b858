"""Calendars without end: pages of months that have not come yet."""

import re

_MAX_YEARS_AHEAD = 2
"""How many years ahead somebody may have announced something. Back in time there is no such bound: newspapers have
pages for days of centuries ago, and a calendar that goes back forever is stopped by the number of its pages."""

_DATE_IN_PATH = re.compile(
    r"(?:^|[/=_-])(\d{4})(?:[/_-](?:0?[1-9]|1[0-2])(?:[/?&_-]|$)|(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[/?&]|$))"
)
_YEAR_IN_QUERY = re.compile(r"[?&;](?:\w{0,20}(?:year|jahr|annee|ano|yr)|y|yyyy)=(\d{4})(?:[&;]|$)", re.IGNORECASE)


def is_endless_calendar(name: str, this_year: int) -> bool:
    """Return whether the name of a page has a date that is too far ahead, so that a calendar must have made it.

    >>> [is_endless(f"example.com/{tail}", 2026) for tail in ("cal/2041/07", "news/1850/07", "?year=2041", "item/2099")]
    [True, False, True, False]
    """
    years = [int(found[1]) for pattern in (_DATE_IN_PATH, _YEAR_IN_QUERY) for found in pattern.finditer(name[:2_000])]
    return any(year > this_year + _MAX_YEARS_AHEAD for year in years)
