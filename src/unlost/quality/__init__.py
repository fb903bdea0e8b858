"""Whether a page is what it seems to be: soft 404, parked domain, hijacked site, wall, an archive's own page.

Rules on text, title, structure, address and headers, and on what is known of the site; nothing is asked or learned.
docs/verdicts.md says what is rejected, and how well that works.

>>> body = b"<title>Error 404</title>Page not found"
>>> page = Answer("http://a.example/b.html", "20140102030405", 200, "text/html", body)
>>> verdict_of(page)
Verdict(kind=<Kind.SOFT_404: 'soft-404'>, reason='its title or heading says "error 404"')
>>> verdict_of(Answer("http://a.example/", "20140102030405", 200, "text/html", b"<title>A</title>Who we are"))
"""

from unlost.quality.classifier import classify_page, is_suspicious
from unlost.quality.page import (
    ClassifierContext,
    PageResponse,
    PageVerdict,
    ReferencePage,
    VerdictKind,
    make_reference_page,
    page_identity,
)

__all__ = [
    "ClassifierContext",
    "PageResponse",
    "PageVerdict",
    "ReferencePage",
    "VerdictKind",
    "classify_page",
    "is_suspicious",
    "make_reference_page",
    "page_identity",
]
