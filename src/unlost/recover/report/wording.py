"""What a report says, in sentences that need no explanation."""

from unlost import dates
from unlost.errors import DateError
from unlost.recover.report.figures import Figures
from unlost.shown.words import counted, printable

REASONS = {
    "not-held": "no archive has it",
    "rejected": "archives have only copies that are not the page",
    "no-good-copy": "archives have only errors, redirects elsewhere or empty answers",
    "excluded": "an archive has it, and does not show it",
    "failed": "an archive lists it, and did not give it: it may another time",
}
"""Why something is missing, by the reason."""

VERDICTS = {
    "soft-404": "the site says that there is no such page, or had an accident",
    "parked": "the domain has no site: for sale, full of advertising, or empty",
    "hijacked": "somebody else has the domain: it is about something else",
    "login-wall": "only for those whom the site knows",
    "consent-wall": "something is to be agreed to, or proved, first",
    "archive-error": "the archive speaks, not the site",
}
"""Why a copy was rejected, by the verdict."""

LISTS = {
    "done": "whole",
    "cut": "cut: there may be more",
    "unsupported": "has none",
    "excluded": "does not show the site",
    "failed": "failed: it is asked again",
    "not-now": "not yet: it is asked again",
}
"""What came of asking an archive for a list of what it holds."""


def headline(figures: Figures) -> str:
    """Return what everybody wants to know first.

    >>> headline(Figures(recovered=128, missing=12, queued=3))
    '128 of 140 resources came back. 12 are missing. 3 are still to come.'
    >>> headline(Figures(recovered=1)), headline(Figures(missing=2)), headline(Figures())
    ('1 of 1 resource came back.', 'None of 2 resources came back.', 'Nothing has come back yet.')
    """
    if not figures.total:
        text = "Nothing has come back yet"
    else:
        back = f"{figures.recovered:,}" if figures.recovered else "None"
        text = f"{back} of {counted(figures.total, 'resource')} came back"
        if figures.missing and figures.recovered:
            text += f". {_are(figures.missing)} missing"
    if figures.queued:
        text += f". {_are(figures.queued)} still to come"
    return text + "."


def remarks(figures: Figures) -> list[str]:
    """Return the sentences that follow: about dates, what was rejected, requests, what is only listed."""
    found = []
    if figures.first and figures.last:
        first, last = day(figures.first), day(figures.last)
        found.append(f"The copies are from {first}." if first == last else f"The copies are from {first} to {last}.")
    if copies := figures.rejected.total():
        which = "copy was rejected, since it is" if copies == 1 else "copies were rejected, since they are"
        found.append(f"{copies:,} {which} not what was wanted.")
    if failed := figures.reasons["failed"]:
        them = "it" if failed == 1 else "them"
        found.append(f"{_are(failed)} missing since an archive failed: the same recovery, run again, asks for {them}.")
    if figures.asked:
        found.append(f"{counted(figures.requests, 'request')} to archives.")
    if figures.listed:
        which = "is listed by archives, and nothing that came back leads to it"
        if figures.listed > 1:
            which = "are listed by archives, and nothing that came back leads to them"
        found.append(f"{figures.listed:,} more {which}.")
    if trapped := sum(figures.trapped.values()):
        found.append(f"{counted(trapped, 'link')} {'was' if trapped == 1 else 'were'} not followed.")
    return found


def day(digits: str) -> str:
    """Return the day of 14 digits; what is no date stays as it is.

    >>> day("20110401123000"), day("20119999000000")
    ('2011-04-01', '20119999000000')
    """
    try:
        return dates.to_iso(digits)[:10]
    except DateError:
        return digits


def list_words(figures: Figures, archive: str) -> str:
    """Return what came of an archive's lists, in words; `-` if it was asked for none."""
    found = dict.fromkeys(LISTS.get(outcome, outcome) for name, outcome, _ in figures.lists if name == archive)
    return printable("; ".join(found)) or "-"


def _are(count: int) -> str:
    return f"{count:,} {'is' if count == 1 else 'are'}"
