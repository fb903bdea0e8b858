"""Detects parked domains, default pages of web servers, and placeholder pages.

Phrases and marks of parking services are in `phrases/parked.toml`; docs/pages.md has the error rates.
"""

from unlost.quality.page import PageVerdict, ParsedPage, VerdictKind, quote_text
from unlost.quality.phrase_matcher import PhraseMatches, load_phrase_file, load_phrases, normalize_text
from unlost.quality.soft404 import is_about_topic

_MAX_PROSE = 320  # characters of prose in addition to the phrases
_SMALL_LENGTH = 700  # characters of text
_TINY_LENGTH = 250
_FEW_LINES = 14
_SOME_LINES = 30
_TITLE_SHARE = 0.45  # share of a title or heading that phrases must have
_LINE_SHARE = 0.5  # share of a line
_MENTION_SHARE = 0.2  # share of a line below which a phrase is only mentioned

_PROVIDER_MARKS = tuple(mark.lower().encode() for mark in load_phrase_file("parked")["marks"]["xx"])

_SectionMatches = dict[str, tuple[PhraseMatches, PhraseMatches]]
_SECTIONS = ("sale", "offer", "parked", "hosting", "advertising", "soon")


def detect_parked(page: ParsedPage) -> PageVerdict | None:
    """Return the verdict on a page of a domain without a site; None for any other page."""
    if page.is_long:
        return None
    matches: _SectionMatches = {
        section: (matcher.find_in(page.title_and_headings), matcher.find_in(page.lines))
        for section in _SECTIONS
        for matcher in (load_phrases("parked", section),)
    }
    disclaimer = load_phrases("parked", "disclaimer").find_in(page.lines)
    fine_print = sum(page.line_weights[line] for line in disclaimer.shares)
    if page.prose_length_without(*(lines for _, lines in matches.values())) - fine_print >= _MAX_PROSE:
        return None
    reason = _match_provider_mark(page, matches)
    if reason is None and any(map(_all_phrases, matches.values())) and not is_about_topic(page, matches["parked"][1]):
        is_own = _names_own_host(page)
        reason = (
            _match_phrases(page, matches, is_own=is_own)
            or _match_link_farm(page, matches)
            or _match_placeholder(page, matches, is_own=is_own)
        )
    return None if reason is None else PageVerdict(VerdictKind.PARKED, reason)


def _all_phrases(matches: tuple[PhraseMatches, PhraseMatches]) -> tuple[str, ...]:
    return (*matches[0].phrases, *matches[1].phrases)


def _match_provider_mark(page: ParsedPage, matches: _SectionMatches) -> str | None:
    """Match marks of parking services."""
    if not any(map(_all_phrases, matches.values())) and page.text_length >= _SMALL_LENGTH:
        return None
    if phrases := load_phrases("parked", "disclaimer").find_in(page.lines).phrases:
        return f"contains {quote_text(phrases[0])}"
    mark = next((each.decode() for each in _PROVIDER_MARKS if each in page.lowercase_body), None)
    return None if mark is None else f"served by {quote_text(mark)}"


def _match_phrases(page: ParsedPage, matches: _SectionMatches, *, is_own: bool) -> str | None:
    """Match phrases of sale and parking pages. `is_own` is whether the page mentions its own host."""
    for section in ("sale", "parked"):
        title_matches, line_matches = matches[section]
        is_topic = title_matches.max_share() >= _TITLE_SHARE or line_matches.max_share() >= _LINE_SHARE
        has_others = any(
            max(match.max_share() for match in pair) >= _MENTION_SHARE
            for other, pair in matches.items()
            if other not in (section, "offer")  # pages of sites that sell things ask for offers, too
        )
        is_likely = is_own and (has_others or page.text_length < _TINY_LENGTH)
        is_whole_page = len(page.lines) <= _FEW_LINES and (
            section != "sale" or not page.prose_length_without(line_matches)
        )
        if (is_topic and (is_own or has_others or is_whole_page)) or (line_matches.phrases and is_likely):
            return f"contains {quote_text(_all_phrases(matches[section])[0])}"
    if is_own and matches["offer"][0].max_share() >= 0.3:
        return f"contains {quote_text(matches['offer'][0].phrases[0])}"
    return None


def _match_link_farm(page: ParsedPage, matches: _SectionMatches) -> str | None:
    """Match pages of advertising links, most of which link to other hosts, or to few URLs with different queries."""
    if not matches["advertising"][1].phrases or len(page.lines) > 60:
        return None
    links = [link for link in page.links if link.scheme]
    paths = {(link.hostname, link.path) for link in links}
    foreign = sum(link.hostname != page.uri.hostname for link in links)
    if len(paths) > 6 and foreign <= 0.7 * len(links):
        return None
    return f"list of advertising links: {quote_text(matches['advertising'][1].phrases[0])}"


def _match_placeholder(page: ParsedPage, matches: _SectionMatches, *, is_own: bool) -> str | None:
    """Match default pages of web servers and hosters."""
    title_matches, line_matches = matches["hosting"]
    if (title_matches.max_share() >= 0.5 or line_matches.max_share() >= 0.4) and len(page.lines) <= _SOME_LINES:
        return f"no content yet: {quote_text(_all_phrases(matches['hosting'])[0])}"
    title_matches, line_matches = matches["soon"]
    is_whole_page = len(page.lines) <= 3 and page.text_length < 120 and line_matches.max_share() >= 0.4
    if is_whole_page or (is_own and len(page.lines) <= 6 and title_matches.max_share() >= 0.4):
        return f"no content yet: {quote_text(_all_phrases(matches['soon'])[0])}"
    return None


def _names_own_host(page: ParsedPage) -> bool:
    """Return whether the page mentions its own host, or "this domain"."""
    host = normalize_text((page.uri.hostname or "").removeprefix("www.")).strip()
    is_named = any(f" {host} " in line for line in (*page.title_and_headings, *page.lines))
    return is_named or bool(load_phrases("parked", "this").find_in(page.lines).phrases)
