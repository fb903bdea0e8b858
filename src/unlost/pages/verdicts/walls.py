"""Walls: pages that are shown before the page."""

import re

from unlost.pages.verdicts.seen import Seen, quoted
from unlost.pages.verdicts.soft404 import not_there
from unlost.pages.verdicts.verdict import Kind, Verdict
from unlost.pages.verdicts.wording import phrases, table

_PROSE = 300  # letters, besides what the wall says itself
_FEW = 12  # lines
_SOME = 30
_LOGIN_ADDRESS = re.compile(r"log-?[io]n|sign-?in|anmeld|connexion|wp-login|/auth|register|account", re.IGNORECASE)
_CONSENT_ADDRESS = re.compile(r"cookie|privacy|datenschutz|terms|consent|agb|javascript|captcha|legal", re.IGNORECASE)
_BACK_TO = re.compile(r"(return|redirect|next|goto|back|continue|target|from|url|ref|dest)\w*=", re.IGNORECASE)
_MARKS = tuple(mark.lower().encode() for mark in table("walls")["robot"]["marks"])


def login_wall(seen: Seen) -> Verdict | None:
    """Return the verdict on a page that lets nobody in whom the site does not know; None for any other."""
    is_sent_there = _BACK_TO.search(seen.uri.query) is not None
    if seen.is_long or (_LOGIN_ADDRESS.search(seen.uri.path) and not is_sent_there):
        return None  # it is what its address says
    look, only = phrases("walls", "login"), phrases("walls", "members")
    found, tops = look.within(seen.lines), look.within(seen.tops)
    sentences, headed = only.within(seen.lines), only.within(seen.tops)
    said = tuple(dict.fromkeys((*headed.phrases, *sentences.phrases, *tops.phrases, *found.phrases)))
    is_only = headed.best() >= 0.6 and len(seen.lines) <= _FEW  # and nothing is said besides
    if (len(said) < 2 and not is_only) or seen.prose_but(found, sentences) > _PROSE or not_there(seen).best() >= 0.3:
        return None
    is_topic = tops.best() >= 0.5 or headed.best() >= 0.4
    is_told = sentences.best() >= 0.2 or headed.best() >= 0.4
    is_all = len(seen.lines) <= _FEW and not seen.is_root  # a home page with a box for members is a home page
    if (
        (seen.has_password and (is_told or (is_topic and len(seen.lines) <= _SOME) or is_all))
        or (is_told and len(found.phrases) > 1)
        or (is_topic and is_all)
    ):
        return Verdict(Kind.LOGIN_WALL, f"it asks who is there: {quoted(said[0])}")
    return None


def consent_wall(seen: Seen) -> Verdict | None:
    """Return the verdict on a page that wants consent or a proof first; None for any other."""
    if seen.is_long or _CONSENT_ADDRESS.search(seen.uri.path):
        return None
    reason = _challenge(seen) or _age(seen) or _consent(seen)
    return None if reason is None else Verdict(Kind.CONSENT_WALL, reason)


def _challenge(seen: Seen) -> str | None:
    """Look for what tells people from machines."""
    look = phrases("walls", "challenge")
    tops, found = look.within(seen.tops), look.within(seen.lines)
    is_topic = tops.best() >= 0.5
    is_all = len(seen.lines) <= _FEW and seen.prose_but(found) <= 200
    if not (is_topic or is_all):
        return None
    is_told = len(found.phrases) > 1 or is_topic
    mark = next((each.decode() for each in _MARKS if each in seen.lower), None)
    if mark and (found.phrases or not seen.lines):
        return f"it checks who asks: {quoted((*tops.phrases, *found.phrases, mark)[0])}"
    if is_told and is_all and found.best() >= 0.3:
        return f"it checks who asks: {quoted((*tops.phrases, *found.phrases)[0])}"
    return None


def _age(seen: Seen) -> str | None:
    """Look for a question about one's age, and nothing else."""
    look, consent = phrases("walls", "age"), phrases("walls", "consent")
    tops, found = look.within(seen.tops), look.within(seen.lines)
    is_topic = tops.best() >= 0.4 or found.best() >= 0.5
    if is_topic and seen.prose_but(found, consent.within(seen.lines)) < _PROSE / 2:
        return f"it asks how old one is: {quoted((*tops.phrases, *found.phrases)[0])}"
    return None


def _consent(seen: Seen) -> str | None:
    """Look for a page that says nothing but what is to be agreed to."""
    look = phrases("walls", "consent")
    found = look.within(seen.lines)
    said = sum(len(seen.lines[number]) for number in found.shares)
    total = sum(map(len, seen.lines)) or 1
    if len(found.phrases) >= 3 and seen.prose_but(found) < _PROSE and said >= 0.5 * total and len(seen.lines) <= 60:
        return f"it wants consent first: {quoted(max(found.phrases, key=len))}"
    return None
