"""Sentences of a report by language, and translation of English messages in the database."""

import re
from functools import cache
from string import Formatter

from unlost import dates
from unlost.errors import DateError
from unlost.report.format import LANGUAGES, escape_unprintable
from unlost.report.i18n import Translations, load_texts
from unlost.report.recovery.stats import RecoveryStats

PACKAGE = "unlost.report.recovery"
"""The package of the texts."""
_MAX_MESSAGE_LENGTH = 2_000  # characters of a message that is translated; no known message is longer
_VALUES = {"quote": '".*"', "topic": "[a-z]+", "script": "[a-z]+", "number": "[0-9][0-9,]{0,15}"}


def report_strings(language: str) -> Translations:
    """Return the texts of reports in a language."""
    return Translations.load(language, PACKAGE)


def translate_message(text: str, t: Translations) -> str | None:
    """Translate a message from the database; return None if it is not a known message.

    >>> german = report_strings("de")
    >>> translate_message('contains "for sale"', german), translate_message("HTTP 503", german)
    ('enthält "for sale"', None)
    """
    if t.language == LANGUAGES[0]:
        return text
    for name, pattern in _patterns():
        if len(text) <= _MAX_MESSAGE_LENGTH and (match := pattern.fullmatch(text)):
            return t(
                name, **{value: _translate_value(value, matched, t) for value, matched in match.groupdict().items()}
            )
    return None


def _translate_value(name: str, matched: str, t: Translations) -> str:
    if name == "number":
        return t.number(int(matched.replace(",", "")))
    return t.word(name, matched) if name in ("topic", "script") else matched


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    texts = load_texts(LANGUAGES[0], PACKAGE)
    return [(name, _pattern(text)) for name, text in texts.items() if name.startswith("said.")]


def _pattern(text: str) -> re.Pattern[str]:
    segments = Formatter().parse(text)
    return re.compile(
        "".join(
            re.escape(literal) + (f"(?P<{name}>{_VALUES[name]})" if name else "") for literal, name, _, _ in segments
        )
    )


INCOMPLETE_LISTING_OUTCOMES = ("cut", "unsupported", "failed", "not-now", "excluded")
"""Statuses of listings after which an archive may hold more than is known."""


def report_headline(stats: RecoveryStats, t: Translations) -> str:
    """Return the headline of the report: recovered, missing and queued resources.

    >>> from unlost.report.recovery.text import report_strings
    >>> report_headline(RecoveryStats(recovered=128, missing=12, queued=3), report_strings("en"))
    '128 of 140 resources recovered. 12 missing. 3 queued.'
    >>> english, german = report_strings("en"), report_strings("de")
    >>> report_headline(RecoveryStats(recovered=1), english), report_headline(RecoveryStats(missing=2), german)
    ('1 of 1 resource recovered.', '0 von 2 Dateien wiederhergestellt.')
    """
    if not stats.total:
        sentences = [t("report.nothing_yet")]
    elif not stats.recovered:
        sentences = [t("report.none_came_back", stats.total)]
    else:
        sentences = [t("report.came_back", stats.total, back=t.number(stats.recovered))]
        if stats.missing:
            sentences.append(t("report.missing", stats.missing))
    if stats.queued:
        sentences.append(t("report.to_come", stats.queued))
    return " ".join(sentences)


def report_remarks(stats: RecoveryStats, t: Translations) -> list[str]:
    """Return the sentences after the headline: dates, rejected captures, requests, resources that are only listed."""
    sentences = []
    if stats.first and stats.last:
        first, last = t.digits(stats.first), t.digits(stats.last)
        name = "report.copies_from" if first == last else "report.copies_between"
        sentences.append(t(name, first=first, last=last))
    if rejected := stats.rejected.total():
        sentences.append(t("report.rejected", rejected))
    if failed := stats.reasons["failed"]:
        sentences.append(t("report.failed", failed))
    if stats.requests_by_archive:
        sentences.append(t("report.requests", stats.requests))
    if stats.doubtful:
        sentences.append(t("report.doubtful", stats.doubtful))
    if unlinked := stats.skipped.get("", 0):
        sentences.append(t("report.listed", unlinked))
    if left_out := sum(stats.skipped.values()) - unlinked:
        sentences.append(t("report.left_out", left_out))
    if stats.other_host_lookups:
        sentences.append(t("report.lookups", stats.other_host_lookups))
    if skipped := sum(stats.skipped_links.values()):
        sentences.append(t("report.not_followed", skipped))
    return sentences


def format_day(digits: str) -> str:
    """Return the date of 14 digits in ISO 8601; an invalid one is returned unchanged.

    >>> format_day("20110401123000"), format_day("20119999000000")
    ('2011-04-01', '20119999000000')
    """
    try:
        return dates.to_iso(digits)[:10]
    except DateError:
        return digits


def outcome_text(stats: RecoveryStats, t: Translations, part: str, key: str) -> str:
    """Return the text for a reason or outcome. If a listing is incomplete, the text is limited to listed archives.

    >>> from unlost.report.recovery.text import report_strings
    >>> english, stats = report_strings("en"), RecoveryStats(listings=[("a", "failed", None)])
    >>> outcome_text(RecoveryStats(), english, "reason", "not-held"), outcome_text(stats, english, "reason", "not-held")
    ('not archived', 'not in any listed archive')
    """
    is_complete = all(outcome not in INCOMPLETE_LISTING_OUTCOMES for _, outcome, _ in stats.listings)
    unlisted_part = f"{part}_unlisted"
    return t.word(part if is_complete or not t.has(f"{unlisted_part}.{key.replace('-', '_')}") else unlisted_part, key)


def listing_text(stats: RecoveryStats, archive: str, t: Translations) -> str:
    """Return the results of an archive's listings as text; `-` if it was not queried.

    For an archive without a listing API, the text includes whether it answered queries for single URLs.
    """
    outcomes = dict.fromkeys(outcome for name, outcome, _ in stats.listings if name == archive)
    captures = t.number(stats.captures.get(archive, 0))
    phrases = [t.word("list", outcome).replace("{n}", captures) for outcome in outcomes]
    if "unsupported" in outcomes:
        queries = stats.queries.get(archive, {})
        if not queries:
            phrases.append(t("query.none"))
        elif not queries.get("done"):
            phrases.append(t("query.failed" if queries.get("failed") else "query.excluded"))
    return escape_unprintable("; ".join(phrases)) or "-"
