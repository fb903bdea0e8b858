"""Applies all detectors to a page, the most reliable first."""

import re
from urllib.parse import urlsplit

from unlost.html.redirect_stub import redirect_stub_target
from unlost.quality.hijacked import detect_hijacked, has_spam_topic
from unlost.quality.page import ClassifierContext, PageResponse, PageVerdict, ParsedPage, page_identity
from unlost.quality.parked import detect_parked
from unlost.quality.soft404 import detect_soft404, find_not_found_phrases, is_error_page
from unlost.quality.walls import detect_archive_error, detect_consent_wall, detect_login_wall

# Error pages of archives come first because their texts match other detectors, too. Archives and parking services also
# redirect visitors. A redirect stub of the site itself is a good page, whatever text it shows meanwhile.
_DETECTORS_BEFORE_STUBS = (detect_archive_error, detect_parked)
_DETECTORS = (detect_consent_wall, detect_login_wall, detect_soft404, detect_hijacked)
_MOVED_WORDS = re.compile("mov|umgezogen|verschoben|verlegt|déplac|spostat|trasferit|verplaatst|przenies|перемещ|移")
_NO_CONTEXT = ClassifierContext()


def classify_page(page: PageResponse, context: ClassifierContext = _NO_CONTEXT) -> PageVerdict | None:
    """Return why a page is not the page that its URL promises; None if it is good or undecided.

    Only HTML is classified. Invalid input never raises, and only a bounded part of it is parsed. Takes about 1 ms for
    a page of 50 kB.

    Args:
        page: The page.
        context: Reference pages of the site; more pages make the result more reliable.
    """
    parsed = ParsedPage(page, context)
    verdict = next((verdict for detect in _DETECTORS_BEFORE_STUBS if (verdict := detect(parsed)) is not None), None)
    if verdict is not None or _is_redirect_stub(parsed):
        return verdict
    return next((verdict for detect in _DETECTORS if (verdict := detect(parsed)) is not None), None)


def _is_redirect_stub(parsed: ParsedPage) -> bool:
    """Return whether a page is a redirect of the site itself, and not an error page that redirects."""
    page = parsed.response
    target = redirect_stub_target(page.body, page.mime, page.uri, page.charset)
    if target is None:
        return False
    parts = urlsplit(target)
    # Error pages of blocking services redirect to the home page of another site.
    is_other_site = page_identity(f"{parts.scheme}://{parts.netloc}/") != page_identity(
        f"{parsed.uri.scheme}://{parsed.uri.netloc}/"
    )
    is_home = not f"{parts.path}{parts.query}".strip("/")
    if is_error_page(parts) or (is_other_site and is_home and not parsed.is_root):
        return False
    # A page that claims to have moved, and redirects to the home page, was removed.
    phrases = find_not_found_phrases(parsed).phrases
    return not phrases or (not is_home and all(_MOVED_WORDS.search(phrase) for phrase in phrases))


def is_suspicious(page: PageResponse) -> bool:
    """Return whether a page has the vocabulary of hijacked sites, so that earlier captures are worth fetching."""
    return has_spam_topic(ParsedPage(page, _NO_CONTEXT))
