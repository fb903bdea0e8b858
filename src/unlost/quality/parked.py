"""Detects parked domains, default pages of web servers, and placeholder pages."""

from unlost.quality.page import PageVerdict, ParsedPage, VerdictKind, quote_text
from unlost.quality.phrase_matcher import PhraseMatches, load_phrase_file, load_phrases, normalize_text
from unlost.quality.soft404 import is_about_topic

_PROSE = 320  # letters of prose besides
_LITTLE = 700  # letters of a page that has nothing
_NOTHING = 250
_FEW = 14  # lines
_SOME = 30
_SHARE = 0.45
_LINE_SHARE = 0.5
_MENTION = 0.2  # of a line: less is said by the way

_PROVIDER_MARKS = tuple(mark.lower().encode() for mark in load_phrase_file("parked")["marks"]["xx"])

_SectionMatches = dict[str, tuple[PhraseMatches, PhraseMatches]]
_SECTIONS = ("sale", "offer", "parked", "hosting", "advertising", "soon")


def detect_parked(seen: ParsedPage) -> PageVerdict | None:
    """Return the verdict on a page that stands where a domain has no site; None for any other."""
    if seen.is_long:
        return None
    said: _SectionMatches = {
        section: (look.find_in(seen.title_and_headings), look.find_in(seen.lines))
        for section in _SECTIONS
        for look in (load_phrases("parked", section),)
    }
    disclaimer = load_phrases("parked", "disclaimer").find_in(seen.lines)
    fine_print = sum(seen.line_weights[line] for line in disclaimer.shares)
    if seen.prose_length_without(*(lines for _, lines in said.values())) - fine_print >= _PROSE:
        return None
    reason = _match_provider_mark(seen, said)
    if reason is None and any(map(_all_phrases, said.values())) and not is_about_topic(seen, said["parked"][1]):
        is_own = _names_own_host(seen)
        reason = (
            _match_phrases(seen, said, is_own=is_own)
            or _match_link_farm(seen, said)
            or _match_placeholder(seen, said, is_own=is_own)
        )
    return None if reason is None else PageVerdict(VerdictKind.PARKED, reason)


def _all_phrases(pair: tuple[PhraseMatches, PhraseMatches]) -> tuple[str, ...]:
    return (*pair[0].phrases, *pair[1].phrases)


def _match_provider_mark(seen: ParsedPage, said: _SectionMatches) -> str | None:
    """Look for those who park domains."""
    if not any(map(_all_phrases, said.values())) and seen.text_length >= _LITTLE:
        return None
    if words := load_phrases("parked", "disclaimer").find_in(seen.lines).phrases:
        return f"it says {quote_text(words[0])}"
    mark = next((each.decode() for each in _PROVIDER_MARKS if each in seen.lowercase_body), None)
    return None if mark is None else f"it comes from {quote_text(mark)}"


def _match_phrases(seen: ParsedPage, said: _SectionMatches, *, is_own: bool) -> str | None:
    """Look for words that say so. is_own: whether the page speaks of its own host."""
    for section in ("sale", "parked"):
        tops, lines = said[section]
        is_topic = tops.max_share() >= _SHARE or lines.max_share() >= _LINE_SHARE
        others = any(
            max(found.max_share() for found in pair) >= _MENTION
            for other, pair in said.items()
            if other not in (section, "offer")  # whoever sells houses wants offers, too
        )
        is_likely = is_own and (others or seen.text_length < _NOTHING)
        is_all = len(seen.lines) <= _FEW and (section != "sale" or not seen.prose_length_without(lines))
        if (is_topic and (is_own or others or is_all)) or (lines.phrases and is_likely):
            return f"it says {quote_text(_all_phrases(said[section])[0])}"
    if is_own and said["offer"][0].max_share() >= 0.3:
        return f"it says {quote_text(said['offer'][0].phrases[0])}"
    return None


def _match_link_farm(seen: ParsedPage, said: _SectionMatches) -> str | None:
    """Look for a list of advertising: all links lead away, or to one address with other questions."""
    if not said["advertising"][1].phrases or len(seen.lines) > 60:
        return None
    links = [link for link in seen.links if link.scheme]
    paths = {(link.hostname, link.path) for link in links}
    foreign = sum(link.hostname != seen.uri.hostname for link in links)
    if len(paths) > 6 and foreign <= 0.7 * len(links):
        return None
    return f"it is a list of advertising: {quote_text(said['advertising'][1].phrases[0])}"


def _match_placeholder(seen: ParsedPage, said: _SectionMatches, *, is_own: bool) -> str | None:
    """Look for pages that servers and hosters come with."""
    tops, lines = said["hosting"]
    if (tops.max_share() >= 0.5 or lines.max_share() >= 0.4) and len(seen.lines) <= _SOME:
        return f"nothing was put there yet: {quote_text(_all_phrases(said['hosting'])[0])}"
    tops, lines = said["soon"]
    is_all = len(seen.lines) <= 3 and seen.text_length < 120 and lines.max_share() >= 0.4
    if is_all or (is_own and len(seen.lines) <= 6 and tops.max_share() >= 0.4):
        return f"nothing was put there yet: {quote_text(_all_phrases(said['soon'])[0])}"
    return None


def _names_own_host(seen: ParsedPage) -> bool:
    """Return whether the page speaks of its own host, or of "this domain"."""
    host = normalize_text((seen.uri.hostname or "").removeprefix("www.")).strip()
    is_named = any(f" {host} " in line for line in (*seen.title_and_headings, *seen.lines))
    return is_named or bool(load_phrases("parked", "this").find_in(seen.lines).phrases)
