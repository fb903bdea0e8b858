"""Applies all detectors to a page, the most reliable first."""

import re
from urllib.parse import urlsplit

from unlost.html.redirect_stub import redirect_stub_target
from unlost.quality.hijacked import detect_hijacked, has_spam_topic
from unlost.quality.page import ClassifierContext, PageResponse, PageVerdict, ParsedPage, page_identity
from unlost.quality.parked import detect_parked
from unlost.quality.soft404 import detect_soft404, find_not_found_phrases, is_error_page
from unlost.quality.walls import detect_archive_error, detect_consent_wall, detect_login_wall

# The surest first: what an archive says may sound like any of the others. Archives and those who park domains redirect
# visitors, too; a stub of the site itself is a page, whatever it says to those who have to wait for it.
_DETECTORS_BEFORE_STUBS = (detect_archive_error, detect_parked)
_DETECTORS = (detect_consent_wall, detect_login_wall, detect_soft404, detect_hijacked)
_MOVED_WORDS = re.compile("mov|umgezogen|verschoben|verlegt|déplac|spostat|trasferit|verplaatst|przenies|перемещ|移")
_NO_CONTEXT = ClassifierContext()


def classify_page(page: PageResponse, context: ClassifierContext = _NO_CONTEXT) -> PageVerdict | None:
    """Return why a page is not to be taken for what its address stands for; None if it is good, or nobody can tell.

    page: HTML; of anything else nothing is said. context: what is known of its site; the more, the better.
    Nothing is raised for what is in it; what is looked at has bounds. Takes about a millisecond for 50 kB.
    """
    seen = ParsedPage(page, context)
    found = next((found for rule in _DETECTORS_BEFORE_STUBS if (found := rule(seen)) is not None), None)
    if found is not None or _is_redirect_stub(seen):
        return found
    return next((found for rule in _DETECTORS if (found := rule(seen)) is not None), None)


def _is_redirect_stub(seen: ParsedPage) -> bool:
    """Return whether a page is a redirect of the site itself, and not an error page that leads elsewhere by itself."""
    page = seen.page
    target = redirect_stub_target(page.body, page.mime, page.uri, page.charset)
    if target is None:
        return False
    parts = urlsplit(target)
    # Block pages redirect to the home page of another site.
    is_sent_away = page_identity(f"{parts.scheme}://{parts.netloc}/") != page_identity(
        f"{seen.uri.scheme}://{seen.uri.netloc}/"
    )
    is_home = not f"{parts.path}{parts.query}".strip("/")
    if is_error_page(parts) or (is_sent_away and is_home and not seen.is_root):
        return False
    # A page that claims to have moved, and redirects to the home page, was removed.
    said = find_not_found_phrases(seen).phrases
    return not said or (not is_home and all(_MOVED_WORDS.search(phrase) for phrase in said))


def is_suspicious(page: PageResponse) -> bool:
    """Return whether a page has what hijacked sites have, so that it is worth to look at what was there before."""
    return has_spam_topic(ParsedPage(page, _NO_CONTEXT))
