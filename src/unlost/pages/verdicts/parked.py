"""Domains without a site."""

from unlost.pages.verdicts.about import is_about
from unlost.pages.verdicts.seen import Seen, quoted
from unlost.pages.verdicts.verdict import Kind, Verdict
from unlost.pages.verdicts.wording import Found, normal, phrases, table

_PROSE = 320  # letters of prose besides
_LITTLE = 700  # letters of a page that has nothing
_NOTHING = 250
_FEW = 14  # lines
_SOME = 30
_SHARE = 0.45
_LINE_SHARE = 0.5
_MENTION = 0.2  # of a line: less is said by the way

_MARKS = tuple(mark.lower().encode() for mark in table("parked")["marks"]["xx"])

_Said = dict[str, tuple[Found, Found]]
_SECTIONS = ("sale", "offer", "parked", "hosting", "advertising", "soon")


def parked(seen: Seen) -> Verdict | None:
    """Return the verdict on a page that stands where a domain has no site; None for any other."""
    if seen.is_long:
        return None
    said: _Said = {
        section: (look.within(seen.tops), look.within(seen.lines))
        for section in _SECTIONS
        for look in (phrases("parked", section),)
    }
    disclaimer = phrases("parked", "disclaimer").within(seen.lines)
    fine_print = sum(seen.weights[line] for line in disclaimer.shares)
    if seen.prose_but(*(lines for _, lines in said.values())) - fine_print >= _PROSE:
        return None
    reason = _by_mark(seen, said)
    if reason is None and any(map(_phrases, said.values())) and not is_about(seen, said["parked"][1]):
        is_own = _names_itself(seen)
        reason = (
            _in_words(seen, said, is_own=is_own) or _by_adverts(seen, said) or _never_filled(seen, said, is_own=is_own)
        )
    return None if reason is None else Verdict(Kind.PARKED, reason)


def _phrases(pair: tuple[Found, Found]) -> tuple[str, ...]:
    return (*pair[0].phrases, *pair[1].phrases)


def _by_mark(seen: Seen, said: _Said) -> str | None:
    """Look for those who park domains."""
    if not any(map(_phrases, said.values())) and seen.size >= _LITTLE:
        return None
    if words := phrases("parked", "disclaimer").within(seen.lines).phrases:
        return f"it says {quoted(words[0])}"
    mark = next((each.decode() for each in _MARKS if each in seen.lower), None)
    return None if mark is None else f"it comes from {quoted(mark)}"


def _in_words(seen: Seen, said: _Said, *, is_own: bool) -> str | None:
    """Look for words that say so. is_own: whether the page speaks of its own host."""
    for section in ("sale", "parked"):
        tops, lines = said[section]
        is_topic = tops.best() >= _SHARE or lines.best() >= _LINE_SHARE
        others = any(
            max(found.best() for found in pair) >= _MENTION
            for other, pair in said.items()
            if other not in (section, "offer")  # whoever sells houses wants offers, too
        )
        is_likely = is_own and (others or seen.size < _NOTHING)
        is_all = len(seen.lines) <= _FEW and (section != "sale" or not seen.prose_but(lines))
        if (is_topic and (is_own or others or is_all)) or (lines.phrases and is_likely):
            return f"it says {quoted(_phrases(said[section])[0])}"
    if is_own and said["offer"][0].best() >= 0.3:
        return f"it says {quoted(said['offer'][0].phrases[0])}"
    return None


def _by_adverts(seen: Seen, said: _Said) -> str | None:
    """Look for a list of advertising: all links lead away, or to one address with other questions."""
    if not said["advertising"][1].phrases or len(seen.lines) > 60:
        return None
    links = [link for link in seen.links if link.scheme]
    paths = {(link.hostname, link.path) for link in links}
    foreign = sum(link.hostname != seen.uri.hostname for link in links)
    if len(paths) > 6 and foreign <= 0.7 * len(links):
        return None
    return f"it is a list of advertising: {quoted(said['advertising'][1].phrases[0])}"


def _never_filled(seen: Seen, said: _Said, *, is_own: bool) -> str | None:
    """Look for pages that servers and hosters come with."""
    tops, lines = said["hosting"]
    if (tops.best() >= 0.5 or lines.best() >= 0.4) and len(seen.lines) <= _SOME:
        return f"nothing was put there yet: {quoted(_phrases(said['hosting'])[0])}"
    tops, lines = said["soon"]
    is_all = len(seen.lines) <= 3 and seen.size < 120 and lines.best() >= 0.4
    if is_all or (is_own and len(seen.lines) <= 6 and tops.best() >= 0.4):
        return f"nothing was put there yet: {quoted(_phrases(said['soon'])[0])}"
    return None


def _names_itself(seen: Seen) -> bool:
    """Return whether the page speaks of its own host, or of "this domain"."""
    host = normal((seen.uri.hostname or "").removeprefix("www.")).strip()
    is_named = any(f" {host} " in line for line in (*seen.tops, *seen.lines))
    return is_named or bool(phrases("parked", "this").within(seen.lines).phrases)
