"""Detects pages shown in place of the page: login walls, consent walls, challenges, and errors of an archive."""

import re

from unlost.quality.page import PageVerdict, ParsedPage, VerdictKind, quote_text
from unlost.quality.phrase_matcher import load_phrase_file, load_phrases
from unlost.quality.soft404 import find_not_found_phrases

_MAX_WALL_PROSE = 300  # letters, besides what the wall says itself
_FEW_LINES = 12  # lines
_SOME_LINES = 30
_LOGIN_URL = re.compile(r"log-?[io]n|sign-?in|anmeld|connexion|wp-login|/auth|register|account", re.IGNORECASE)
_CONSENT_URL = re.compile(r"cookie|privacy|datenschutz|terms|consent|agb|javascript|captcha|legal", re.IGNORECASE)
_BACK_TO = re.compile(r"(return|redirect|next|goto|back|continue|target|from|url|ref|dest)\w*=", re.IGNORECASE)
_CHALLENGE_MARKS = tuple(mark.lower().encode() for mark in load_phrase_file("walls")["robot"]["marks"])


def detect_login_wall(seen: ParsedPage) -> PageVerdict | None:
    """Return the verdict on a page that lets nobody in whom the site does not know; None for any other."""
    is_sent_there = _BACK_TO.search(seen.uri.query) is not None
    if seen.is_long or (_LOGIN_URL.search(seen.uri.path) and not is_sent_there):
        return None  # it is what its address says
    look, only = load_phrases("walls", "login"), load_phrases("walls", "members")
    found, tops = look.find_in(seen.lines), look.find_in(seen.title_and_headings)
    sentences, headed = only.find_in(seen.lines), only.find_in(seen.title_and_headings)
    said = tuple(dict.fromkeys((*headed.phrases, *sentences.phrases, *tops.phrases, *found.phrases)))
    is_only = headed.max_share() >= 0.6 and len(seen.lines) <= _FEW_LINES  # and nothing is said besides
    if (
        (len(said) < 2 and not is_only)
        or seen.prose_length_without(found, sentences) > _MAX_WALL_PROSE
        or find_not_found_phrases(seen).max_share() >= 0.3
    ):
        return None
    is_topic = tops.max_share() >= 0.5 or headed.max_share() >= 0.4
    is_told = sentences.max_share() >= 0.2 or headed.max_share() >= 0.4
    is_all = len(seen.lines) <= _FEW_LINES and not seen.is_root  # a home page with a box for members is a home page
    if (
        (seen.has_password_field and (is_told or (is_topic and len(seen.lines) <= _SOME_LINES) or is_all))
        or (is_told and len(found.phrases) > 1)
        or (is_topic and is_all)
    ):
        return PageVerdict(VerdictKind.LOGIN_WALL, f"it asks who is there: {quote_text(said[0])}")
    return None


def detect_consent_wall(seen: ParsedPage) -> PageVerdict | None:
    """Return the verdict on a page that wants consent or a proof first; None for any other."""
    if seen.is_long or _CONSENT_URL.search(seen.uri.path):
        return None
    reason = _match_challenge(seen) or _match_age_gate(seen) or _match_consent(seen)
    return None if reason is None else PageVerdict(VerdictKind.CONSENT_WALL, reason)


def _match_challenge(seen: ParsedPage) -> str | None:
    """Look for what tells people from machines."""
    look = load_phrases("walls", "challenge")
    tops, found = look.find_in(seen.title_and_headings), look.find_in(seen.lines)
    is_topic = tops.max_share() >= 0.5
    is_all = len(seen.lines) <= _FEW_LINES and seen.prose_length_without(found) <= 200
    if not (is_topic or is_all):
        return None
    is_told = len(found.phrases) > 1 or is_topic
    mark = next((each.decode() for each in _CHALLENGE_MARKS if each in seen.lowercase_body), None)
    if mark and (found.phrases or not seen.lines):
        return f"it checks who asks: {quote_text((*tops.phrases, *found.phrases, mark)[0])}"
    if is_told and is_all and found.max_share() >= 0.3:
        return f"it checks who asks: {quote_text((*tops.phrases, *found.phrases)[0])}"
    return None


def _match_age_gate(seen: ParsedPage) -> str | None:
    """Look for a question about one's age, and nothing else."""
    look, consent = load_phrases("walls", "age"), load_phrases("walls", "consent")
    tops, found = look.find_in(seen.title_and_headings), look.find_in(seen.lines)
    is_topic = tops.max_share() >= 0.4 or found.max_share() >= 0.5
    if is_topic and seen.prose_length_without(found, consent.find_in(seen.lines)) < _MAX_WALL_PROSE / 2:
        return f"it asks how old one is: {quote_text((*tops.phrases, *found.phrases)[0])}"
    return None


def _match_consent(seen: ParsedPage) -> str | None:
    """Look for a page that says nothing but what is to be agreed to."""
    look = load_phrases("walls", "consent")
    found = look.find_in(seen.lines)
    said = sum(len(seen.lines[number]) for number in found.shares)
    total = sum(map(len, seen.lines)) or 1
    if (
        len(found.phrases) >= 3
        and seen.prose_length_without(found) < _MAX_WALL_PROSE
        and said >= 0.5 * total
        and len(seen.lines) <= 60
    ):
        return f"it wants consent first: {quote_text(max(found.phrases, key=len))}"
    return None


_MAX_ARCHIVE_ERROR_PROSE = 320


def detect_archive_error(seen: ParsedPage) -> PageVerdict | None:
    """Return the verdict on a page that is an archive's own; None for any other, also of an archive's own site."""
    if seen.is_long or "archive" in (seen.uri.hostname or ""):
        return None
    phrase = _match_archive_phrases(seen) or _match_archive_name(seen)
    return None if phrase is None else PageVerdict(VerdictKind.ARCHIVE_ERROR, f"an archive says {quote_text(phrase)}")


def _match_archive_phrases(seen: ParsedPage) -> str | None:
    """Look for what only archives say."""
    own = load_phrases("archive", "own")
    tops, lines = own.find_in(seen.title_and_headings), own.find_in(seen.lines)
    if tops.max_share() < 0.4 and lines.max_share() < 0.3:
        return None
    besides = (load_phrases("archive", section).find_in(seen.lines) for section in ("gone", "names"))
    return (
        (*tops.phrases, *lines.phrases)[0]
        if seen.prose_length_without(lines, *besides) <= _MAX_ARCHIVE_ERROR_PROSE
        else None
    )


def _match_archive_name(seen: ParsedPage) -> str | None:
    """Look for an archive's name, and that something is not there."""
    names, gone, absent = (
        load_phrases("archive", "names"),
        load_phrases("archive", "gone"),
        load_phrases("not_found", key="phrases"),
    )
    named = names.find_in(seen.title_and_headings), names.find_in(seen.lines)
    if not named[0].phrases and not named[1].phrases:
        return None
    told = [look.find_in(lines) for lines in (seen.lines, seen.title_and_headings) for look in (gone, absent)]
    vague = load_phrases("archive", "vague").find_in(seen.lines)
    if seen.prose_length_without(told[0], told[1], named[1], vague) > _MAX_ARCHIVE_ERROR_PROSE or not (
        told[0].phrases or told[1].phrases
    ):
        return None
    is_speaker = named[0].max_share() >= 0.4 or named[1].max_share() >= 0.4
    is_topic = any(found.max_share() >= 0.3 for found in told)
    if not is_topic or not (is_speaker or len(told[0].phrases) > 1):
        return None
    return next(phrase for found in told for phrase in found.phrases)
