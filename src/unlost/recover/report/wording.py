"""What a report says, in sentences that need no explanation."""

from unlost import dates
from unlost.errors import DateError
from unlost.recover.report.figures import Figures
from unlost.shown.catalogue import Strings
from unlost.shown.words import printable

INCOMPLETE = ("cut", "unsupported", "failed", "not-now", "excluded")
"""Outcomes of listings after which an archive may have more than is known."""


def headline(figures: Figures, t: Strings) -> str:
    """Return what everybody wants to know first.

    >>> from unlost.recover.report.retelling import report_strings
    >>> headline(Figures(recovered=128, missing=12, queued=3), report_strings("en"))
    '128 of 140 resources came back. 12 are missing. 3 are still to come.'
    >>> headline(Figures(recovered=1), report_strings("en")), headline(Figures(missing=2), report_strings("de"))
    ('1 of 1 resource came back.', 'Keine von 2 Dateien ist zurückgekommen.')
    """
    if not figures.total:
        found = [t("report.nothing_yet")]
    elif not figures.recovered:
        found = [t("report.none_came_back", figures.total)]
    else:
        found = [t("report.came_back", figures.total, back=t.number(figures.recovered))]
        if figures.missing:
            found.append(t("report.missing", figures.missing))
    if figures.queued:
        found.append(t("report.to_come", figures.queued))
    return " ".join(found)


def remarks(figures: Figures, t: Strings) -> list[str]:
    """Return the sentences that follow: about dates, what was rejected, requests, what is only listed."""
    found = []
    if figures.first and figures.last:
        first, last = t.digits(figures.first), t.digits(figures.last)
        name = "report.copies_from" if first == last else "report.copies_between"
        found.append(t(name, first=first, last=last))
    if copies := figures.rejected.total():
        found.append(t("report.rejected", copies))
    if failed := figures.reasons["failed"]:
        found.append(t("report.failed", failed))
    if figures.asked:
        found.append(t("report.requests", figures.requests))
    if figures.doubtful:
        found.append(t("report.doubtful", figures.doubtful))
    if unlinked := figures.left_out.get("", 0):
        found.append(t("report.listed", unlinked))
    if left_out := sum(figures.left_out.values()) - unlinked:
        found.append(t("report.left_out", left_out))
    if figures.other_host_lookups:
        found.append(t("report.lookups", figures.other_host_lookups))
    if trapped := sum(figures.trapped.values()):
        found.append(t("report.not_followed", trapped))
    return found


def day(digits: str) -> str:
    """Return the day of 14 digits as it stands in lists, in every language; what is no date stays as it is.

    >>> day("20110401123000"), day("20119999000000")
    ('2011-04-01', '20119999000000')
    """
    try:
        return dates.to_iso(digits)[:10]
    except DateError:
        return digits


def outcome_word(figures: Figures, t: Strings, part: str, key: str) -> str:
    """Return the text for a reason or an outcome: of all archives only if all were listed.

    >>> from unlost.recover.report.retelling import report_strings
    >>> english, unlisted = report_strings("en"), Figures(lists=[("a", "failed", None)])
    >>> outcome_word(Figures(), english, "reason", "not-held"), outcome_word(unlisted, english, "reason", "not-held")
    ('no archive has it', 'no archive that was listed has it')
    """
    is_known = all(outcome not in INCOMPLETE for _, outcome, _ in figures.lists)
    other = f"{part}_unlisted"
    return t.word(part if is_known or not t.has(f"{other}.{key.replace('-', '_')}") else other, key)


def list_words(figures: Figures, archive: str, t: Strings) -> str:
    """Return what an archive listed, in words; `-` if it was not asked to.

    An archive without a listing API is queried page by page: whether it answered is said, too.
    """
    outcomes = dict.fromkeys(outcome for name, outcome, _ in figures.lists if name == archive)
    captures = t.number(figures.captures.get(archive, 0))
    found = [t.word("list", outcome).replace("{n}", captures) for outcome in outcomes]
    if "unsupported" in outcomes:
        queries = figures.queries.get(archive, {})
        if not queries:
            found.append(t("query.none"))
        elif not queries.get("done"):
            found.append(t("query.failed" if queries.get("failed") else "query.excluded"))
    return printable("; ".join(found)) or "-"
