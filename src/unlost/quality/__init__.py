"""Detects pages that are not what they seem to be: soft 404s, parked domains, hijacked sites, walls, archive errors.

The rules look at text, title, structure, URL and headers of a page, and at reference pages of its site. Nothing is
requested. docs/pages.md lists the rules and how well they work.

Modules, in reading order:
- `page`: the page to classify, reference pages, the parsed page, and the verdict.
- `classifier`: applies all detectors.
- `soft404`, `parked`, `hijacked`, `walls`: the detectors.
- `phrase_matcher`: finds the phrases of `phrases/*.toml` in normalised text.

Builds on html. Must not import archives, check, recover or anything else that does input and output.

>>> body = b"<title>Error 404</title>Page not found"
>>> page = PageResponse("http://a.example/b.html", "20140102030405", 200, "text/html", body)
>>> classify_page(page)
PageVerdict(kind=<VerdictKind.SOFT_404: 'soft-404'>, reason='its title or heading says "error 404"')
>>> classify_page(PageResponse("http://a.example/", "20140102030405", 200, "text/html", b"<title>A</title>Who we are"))
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
