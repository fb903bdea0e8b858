"""Walls: pages that are shown before the page."""

import re

from unlost.pages.verdicts.seen import ParsedPage, quote_text
from unlost.pages.verdicts.soft404 import find_not_found_phrases
from unlost.pages.verdicts.verdict import VerdictKind, PageVerdict
from unlost.pages.verdicts.wording import load_phrases, load_phrase_file

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
