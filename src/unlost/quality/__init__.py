"""Detects pages that are not what they seem to be: soft 404s, parked domains, hijacked sites, walls, archive errors.

The rules use the text, title, structure, URL and headers of a page, and reference pages of its site. No requests are
sent. In doubt a page is good: a page that is rejected wrongly is lost. docs/pages.md describes the rules and reports
their error rates.

Modules in reading order:

- `page`: The page to classify, reference pages, the parsed page, and the verdict.
- `classifier`: Applies all detectors.
- `soft404`, `parked`, `hijacked`, `walls`: The detectors.
- `phrase_matcher`: Finds the phrases of `phrases/*.toml` in normalized text.

Imports `html` and the Rust core. It must not import `archives`, `recovery` or anything else that does input and output.

>>> body = b"<title>Error 404</title>Page not found"
>>> page = PageResponse("http://a.example/b.html", "20140102030405", 200, "text/html", body)
>>> classify_page(page)
PageVerdict(kind=<VerdictKind.SOFT_404: 'soft-404'>, reason='title or heading contains "error 404"')
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
