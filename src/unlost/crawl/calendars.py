"""Calendars without end: pages of months that have not come yet, and of those before the web."""

import re

_FIRST = 1990
"""The year in which the web began: no page is older, and calendars that go back further go back forever."""

_AHEAD = 2
"""How many years ahead somebody may have announced something."""

_DATE = re.compile(
    r"(?:^|[/=_-])(\d{4})(?:[/_-](?:0?[1-9]|1[0-2])(?:[/?&_-]|$)|(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[/?&]|$))"
)
_YEAR = re.compile(r"[?&;](?:\w{0,20}(?:year|jahr|annee|ano|yr)|y|yyyy)=(\d{4})(?:[&;]|$)", re.IGNORECASE)


def is_endless(name: str, this_year: int) -> bool:
    """Return whether the name of a page has a date that no page is about, so that a calendar must have made it.

    >>> [is_endless(f"example.com/{tail}", 2026) for tail in ("cal/2041/07", "news/2025/07", "?year=1850", "item/2099")]
    [True, False, True, False]
    """
    years = [int(found[1]) for pattern in (_DATE, _YEAR) for found in pattern.finditer(name[:2_000])]
    # Numbers of four digits that are no years stand in addresses, too: what is far from all of them is none.
    return any(1000 <= year < _FIRST or this_year + _AHEAD < year < 10_000 for year in years)
