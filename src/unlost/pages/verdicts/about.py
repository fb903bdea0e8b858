"""Pages about errors, domains or archives, which say what such pages say without being any."""

import re

from unlost.pages.verdicts.seen import ParsedPage
from unlost.pages.verdicts.wording import PhraseMatches, load_phrases

_MIN_PROSE_ABOUT = 150  # letters
_MIN_LISTED_ERRORS = 4  # errors that are told on one page: then it is a list of them
_ABOUT_URL = re.compile(r"\b(404|not[-_]?found|errors?|faq|help|hilfe|aide|support|docs?|manual)\b", re.IGNORECASE)
_LISTING = re.compile(r"\s*index of /", re.IGNORECASE)
_SEARCH = re.compile(r"\bsearch|suche|recherche|buscar|\b(q|s|query|search|keywords?|suche|wort)=", re.IGNORECASE)


def is_about_topic(seen: ParsedPage, found: PhraseMatches) -> bool:
    """Return whether a page is about what it says in its lines, or what its address asks for, rather than that itself.

    found: where it says so, among its lines.
    """
    address = f"{seen.uri.path}?{seen.uri.query}"
    if _LISTING.match(seen.title):
        return True
    if _SEARCH.search(address):
        return True  # a search that found nothing has found nothing
    if len({seen.lines[line] for line, share in found.shares.items() if share >= 0.5}) >= _MIN_LISTED_ERRORS:
        return True
    is_told = load_phrases("headings", "about").find_in(seen.title_and_headings).phrases or _ABOUT_URL.search(address)
    return bool(is_told) and seen.prose_length >= _MIN_PROSE_ABOUT
