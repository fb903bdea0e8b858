"""Detects pages shown instead of the requested one: login walls, consent walls, challenges, errors of an archive.

The phrases are in `phrases/walls.toml` and `phrases/archive.toml`; docs/pages.md has the error rates.
"""

import re

from unlost.quality.page import PageVerdict, ParsedPage, VerdictKind, quote_text
from unlost.quality.phrase_matcher import load_phrase_file, load_phrases
from unlost.quality.soft404 import find_not_found_phrases

_MAX_WALL_PROSE = 300  # characters of prose in addition to the phrases
_FEW_LINES = 12
_SOME_LINES = 30
_LOGIN_URL = re.compile(r"log-?[io]n|sign-?in|anmeld|connexion|wp-login|/auth|register|account", re.IGNORECASE)
_CONSENT_URL = re.compile(r"cookie|privacy|datenschutz|terms|consent|agb|javascript|captcha|legal", re.IGNORECASE)
_BACK_TO = re.compile(r"(return|redirect|next|goto|back|continue|target|from|url|ref|dest)\w*=", re.IGNORECASE)
_CHALLENGE_MARKS = tuple(mark.lower().encode() for mark in load_phrase_file("walls")["robot"]["marks"])

_MAX_ARCHIVE_ERROR_PROSE = 320


def detect_login_wall(page: ParsedPage) -> PageVerdict | None:
    """Return the verdict on a page that requires a login; None for any other page."""
    is_redirected = _BACK_TO.search(page.uri.query) is not None
    if page.is_long or (_LOGIN_URL.search(page.uri.path) and not is_redirected):
        return None  # the URL itself is that of a login page
    login, members = load_phrases("walls", "login"), load_phrases("walls", "members")
    line_matches, title_matches = login.find_in(page.lines), login.find_in(page.title_and_headings)
    member_lines, member_titles = members.find_in(page.lines), members.find_in(page.title_and_headings)
    phrases = tuple(
        dict.fromkeys((*member_titles.phrases, *member_lines.phrases, *title_matches.phrases, *line_matches.phrases))
    )
    is_short_notice = member_titles.max_share() >= 0.6 and len(page.lines) <= _FEW_LINES
    if (
        (len(phrases) < 2 and not is_short_notice)
        or page.prose_length_without(line_matches, member_lines) > _MAX_WALL_PROSE
        or find_not_found_phrases(page).max_share() >= 0.3
    ):
        return None
    is_topic = title_matches.max_share() >= 0.5 or member_titles.max_share() >= 0.4
    is_stated = member_lines.max_share() >= 0.2 or member_titles.max_share() >= 0.4
    is_short = len(page.lines) <= _FEW_LINES and not page.is_root  # a home page may have a login form
    if (
        (page.has_password_field and (is_stated or (is_topic and len(page.lines) <= _SOME_LINES) or is_short))
        or (is_stated and len(line_matches.phrases) > 1)
        or (is_topic and is_short)
    ):
        return PageVerdict(VerdictKind.LOGIN_WALL, f"requires a login: {quote_text(phrases[0])}")
    return None


def detect_consent_wall(page: ParsedPage) -> PageVerdict | None:
    """Return the verdict on a page that requires consent, an age check or a captcha; None for any other page."""
    if page.is_long or _CONSENT_URL.search(page.uri.path):
        return None
    reason = _match_challenge(page) or _match_age_gate(page) or _match_consent(page)
    return None if reason is None else PageVerdict(VerdictKind.CONSENT_WALL, reason)


def _match_challenge(page: ParsedPage) -> str | None:
    """Match captchas and other checks for bots."""
    matcher = load_phrases("walls", "challenge")
    title_matches, line_matches = matcher.find_in(page.title_and_headings), matcher.find_in(page.lines)
    is_topic = title_matches.max_share() >= 0.5
    is_short = len(page.lines) <= _FEW_LINES and page.prose_length_without(line_matches) <= 200
    if not (is_topic or is_short):
        return None
    is_stated = len(line_matches.phrases) > 1 or is_topic
    mark = next((each.decode() for each in _CHALLENGE_MARKS if each in page.lowercase_body), None)
    if mark and (line_matches.phrases or not page.lines):
        return f"checks the visitor: {quote_text((*title_matches.phrases, *line_matches.phrases, mark)[0])}"
    if is_stated and is_short and line_matches.max_share() >= 0.3:
        return f"checks the visitor: {quote_text((*title_matches.phrases, *line_matches.phrases)[0])}"
    return None


def _match_age_gate(page: ParsedPage) -> str | None:
    """Match an age check without other content."""
    age, consent = load_phrases("walls", "age"), load_phrases("walls", "consent")
    title_matches, line_matches = age.find_in(page.title_and_headings), age.find_in(page.lines)
    is_topic = title_matches.max_share() >= 0.4 or line_matches.max_share() >= 0.5
    if is_topic and page.prose_length_without(line_matches, consent.find_in(page.lines)) < _MAX_WALL_PROSE / 2:
        return f"age verification: {quote_text((*title_matches.phrases, *line_matches.phrases)[0])}"
    return None


def _match_consent(page: ParsedPage) -> str | None:
    """Match a page that consists of a request for consent."""
    matcher = load_phrases("walls", "consent")
    matches = matcher.find_in(page.lines)
    matched_length = sum(len(page.lines[number]) for number in matches.shares)
    total_length = sum(map(len, page.lines)) or 1
    if (
        len(matches.phrases) >= 3
        and page.prose_length_without(matches) < _MAX_WALL_PROSE
        and matched_length >= 0.5 * total_length
        and len(page.lines) <= 60
    ):
        return f"requires consent: {quote_text(max(matches.phrases, key=len))}"
    return None


def detect_archive_error(page: ParsedPage) -> PageVerdict | None:
    """Return the verdict on an error page of an archive; None for other pages and on the archive's own site."""
    if page.is_long or "archive" in (page.uri.hostname or ""):
        return None
    phrase = _match_archive_phrases(page) or _match_archive_name(page)
    if phrase is None:
        return None
    return PageVerdict(VerdictKind.ARCHIVE_ERROR, f"message of an archive: {quote_text(phrase)}")


def _match_archive_phrases(page: ParsedPage) -> str | None:
    """Match phrases that only archives use."""
    matcher = load_phrases("archive", "own")
    title_matches, line_matches = matcher.find_in(page.title_and_headings), matcher.find_in(page.lines)
    if title_matches.max_share() < 0.4 and line_matches.max_share() < 0.3:
        return None
    other_matches = (load_phrases("archive", section).find_in(page.lines) for section in ("gone", "names"))
    return (
        (*title_matches.phrases, *line_matches.phrases)[0]
        if page.prose_length_without(line_matches, *other_matches) <= _MAX_ARCHIVE_ERROR_PROSE
        else None
    )


def _match_archive_name(page: ParsedPage) -> str | None:
    """Match the name of an archive together with a not-found phrase."""
    names, gone, absent = (
        load_phrases("archive", "names"),
        load_phrases("archive", "gone"),
        load_phrases("not_found", key="phrases"),
    )
    name_matches = names.find_in(page.title_and_headings), names.find_in(page.lines)
    if not name_matches[0].phrases and not name_matches[1].phrases:
        return None
    gone_matches = [
        matcher.find_in(lines) for lines in (page.lines, page.title_and_headings) for matcher in (gone, absent)
    ]
    vague_matches = load_phrases("archive", "vague").find_in(page.lines)
    if page.prose_length_without(
        gone_matches[0], gone_matches[1], name_matches[1], vague_matches
    ) > _MAX_ARCHIVE_ERROR_PROSE or not (gone_matches[0].phrases or gone_matches[1].phrases):
        return None
    is_speaker = name_matches[0].max_share() >= 0.4 or name_matches[1].max_share() >= 0.4
    is_topic = any(match.max_share() >= 0.3 for match in gone_matches)
    if not is_topic or not (is_speaker or len(gone_matches[0].phrases) > 1):
        return None
    return next(phrase for match in gone_matches for phrase in match.phrases)
