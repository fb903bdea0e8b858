"""What a watch says, in words that need no explanation."""

from collections.abc import Mapping

from unlost.measure.visits.history import ANY
from unlost.measure.watching.looking import Look
from unlost.measure.watching.survey import Row, Survey
from unlost.shown.words import counted, share

_LOOKS: Mapping[Look, str] = {
    Look.FINE: "it is there",
    Look.WAIT: "it says that it is away for a while",
    Look.UNRESPONSIVE: "it does not answer",
    Look.MISSING: "nothing of it is there",
    Look.PARKED: "the domain has no site",
    Look.HIJACKED: "another site is in its place",
    Look.MOVED: "it leads to another domain",
    Look.UNSEEN: "its robots.txt does not want us to look",
}

COLUMNS = (
    "in",
    "resources",
    "ever held",
    "until held",
    "held for (TTL_c)",
    "to be had (P_r)",
    "vulnerable for",
    "endangered for",
    "held late",
    "still held",
)
"""What stands above the cells of a row."""


def look_words(look: Look) -> str:
    """Return how a site looks.

    >>> look_words(Look.PARKED)
    'the domain has no site'
    """
    return _LOOKS[look]


def days(value: float | None) -> str:
    """Return a number of days.

    >>> days(12.34), days(None)
    ('12.3 d', 'n/a')
    """
    return "n/a" if value is None else f"{value:.1f} d"


def cells(row: Row) -> tuple[str, ...]:
    """Return what a row says, as `COLUMNS` has it. Times are means."""
    lives = row.lives
    place = "all archives" if row.archive == ANY else row.archive
    return (
        f"{place}, {row.group}" if row.group else place,
        f"{lives.resources:,}",
        f"{lives.held:,}",
        days(lives.ta),
        days(lives.ttl_c),
        share(lives.p_r),
        days(lives.vulnerable),
        days(lives.endangered),
        f"{lives.late:,}",
        f"{lives.open:,}",
    )


def remarks(found: Survey) -> list[str]:
    """Return sentences about all visits: how many there were, what cannot be counted, how a site changes."""
    undated = sum(not each.is_dated for each in found.visits)
    lines = [f"{counted(len(found.visits), 'visit')}."]
    if undated:
        lines.append(f"{undated:,} of them have no date, since the clock went back: times are without them.")
    if found.change_rate is not None:
        lines.append(f"A page differs from what it was at the visit before in {share(found.change_rate)} of the cases.")
    if found.birth_rate is not None:
        lines.append(f"Of what is on the web, {share(found.birth_rate)} is new at each visit.")
    return lines
