"""The sentences of a report, by language, and the translation of messages that the state has in English."""

import re
from functools import cache
from string import Formatter

from unlost import dates
from unlost.errors import DateError
from unlost.report.format import LANGUAGES, escape_unprintable
from unlost.report.i18n import Translations, load_texts
from unlost.report.recovery.stats import RecoveryStats

PACKAGE = "unlost.report.recovery"
"""Where the texts of reports are."""
_MAX_MESSAGE_LENGTH = 2_000  # characters of what is looked at; what is longer we did not write
_VALUES = {"quote": '".*"', "topic": "[a-z]+", "script": "[a-z]+", "number": "[0-9][0-9,]{0,15}"}


def report_strings(language: str) -> Translations:
    """Return the texts of reports in a language."""
    return Translations.load(language, PACKAGE)


def translate_message(text: str, t: Translations) -> str | None:
    """Return what somebody wrote into a state, in the language of `t`; None if it is none of what we write.

    >>> translate_message('it says "for sale"', report_strings("de")), translate_message("HTTP 503", report_strings("de"))
    ('sie sagt "for sale"', None)
    """
    if t.language == LANGUAGES[0]:
        return text
    for name, pattern in _patterns():
        if len(text) <= _MAX_MESSAGE_LENGTH and (found := pattern.fullmatch(text)):
            return t(name, **{value: _translate_value(value, said, t) for value, said in found.groupdict().items()})
    return None


def _translate_value(name: str, said: str, t: Translations) -> str:
    if name == "number":
        return t.number(int(said.replace(",", "")))
    return t.word(name, said) if name in ("topic", "script") else said


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    texts = load_texts(LANGUAGES[0], PACKAGE)
    return [(name, _pattern(text)) for name, text in texts.items() if name.startswith("said.")]


def _pattern(text: str) -> re.Pattern[str]:
    parts = Formatter().parse(text)
    return re.compile(
        "".join(re.escape(said) + (f"(?P<{name}>{_VALUES[name]})" if name else "") for said, name, _, _ in parts)
    )


INCOMPLETE_LISTING_OUTCOMES = ("cut", "unsupported", "failed", "not-now", "excluded")
"""Outcomes of listings after which an archive may have more than is known."""


def report_headline(stats: RecoveryStats, t: Translations) -> str:
    """Return what everybody wants to know first.

    >>> from unlost.report.recovery.text import report_strings
    >>> report_headline(RecoveryStats(recovered=128, missing=12, queued=3), report_strings("en"))
    '128 of 140 resources came back. 12 are missing. 3 are still to come.'
    >>> report_headline(RecoveryStats(recovered=1), report_strings("en")), report_headline(RecoveryStats(missing=2), report_strings("de"))
    ('1 of 1 resource came back.', 'Keine von 2 Dateien ist zurückgekommen.')
    """
    if not stats.total:
        found = [t("report.nothing_yet")]
    elif not stats.recovered:
        found = [t("report.none_came_back", stats.total)]
    else:
        found = [t("report.came_back", stats.total, back=t.number(stats.recovered))]
        if stats.missing:
            found.append(t("report.missing", stats.missing))
    if stats.queued:
        found.append(t("report.to_come", stats.queued))
    return " ".join(found)


def report_remarks(stats: RecoveryStats, t: Translations) -> list[str]:
    """Return the sentences that follow: about dates, what was rejected, requests, what is only listed."""
    found = []
    if stats.first and stats.last:
        first, last = t.digits(stats.first), t.digits(stats.last)
        name = "report.copies_from" if first == last else "report.copies_between"
        found.append(t(name, first=first, last=last))
    if copies := stats.rejected.total():
        found.append(t("report.rejected", copies))
    if failed := stats.reasons["failed"]:
        found.append(t("report.failed", failed))
    if stats.requests_by_archive:
        found.append(t("report.requests", stats.requests))
    if stats.doubtful:
        found.append(t("report.doubtful", stats.doubtful))
    if unlinked := stats.skipped.get("", 0):
        found.append(t("report.listed", unlinked))
    if left_out := sum(stats.skipped.values()) - unlinked:
        found.append(t("report.left_out", left_out))
    if stats.other_host_lookups:
        found.append(t("report.lookups", stats.other_host_lookups))
    if trapped := sum(stats.skipped_links.values()):
        found.append(t("report.not_followed", trapped))
    return found


def format_day(digits: str) -> str:
    """Return the day of 14 digits as it stands in lists, in every language; what is no date stays as it is.

    >>> format_day("20110401123000"), format_day("20119999000000")
    ('2011-04-01', '20119999000000')
    """
    try:
        return dates.to_iso(digits)[:10]
    except DateError:
        return digits


def outcome_text(stats: RecoveryStats, t: Translations, part: str, key: str) -> str:
    """Return the text for a reason or an outcome: of all archives only if all were listed.

    >>> from unlost.report.recovery.text import report_strings
    >>> english, unlisted = report_strings("en"), RecoveryStats(listings=[("a", "failed", None)])
    >>> outcome_text(RecoveryStats(), english, "reason", "not-held"), outcome_text(unlisted, english, "reason", "not-held")
    ('no archive has it', 'no archive that was listed has it')
    """
    is_known = all(outcome not in INCOMPLETE_LISTING_OUTCOMES for _, outcome, _ in stats.listings)
    other = f"{part}_unlisted"
    return t.word(part if is_known or not t.has(f"{other}.{key.replace('-', '_')}") else other, key)


def listing_text(stats: RecoveryStats, archive: str, t: Translations) -> str:
    """Return what an archive listed, in words; `-` if it was not asked to.

    An archive without a listing API is queried page by page: whether it answered is said, too.
    """
    outcomes = dict.fromkeys(outcome for name, outcome, _ in stats.listings if name == archive)
    captures = t.number(stats.captures.get(archive, 0))
    found = [t.word("list", outcome).replace("{n}", captures) for outcome in outcomes]
    if "unsupported" in outcomes:
        queries = stats.queries.get(archive, {})
        if not queries:
            found.append(t("query.none"))
        elif not queries.get("done"):
            found.append(t("query.failed" if queries.get("failed") else "query.excluded"))
    return escape_unprintable("; ".join(found)) or "-"
