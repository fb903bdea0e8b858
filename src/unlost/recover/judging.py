"""Judges the pages that come: what a recovery knows of a site is their context."""

from urllib.parse import urlsplit

from unlost.pages.verdicts import (
    PageResponse,
    ClassifierContext,
    ReferencePage,
    PageVerdict,
    is_suspicious,
    make_reference_page,
    page_identity,
    classify_page,
)

_MAX_PAGES = 48  # pages of a site that are remembered, of at most 20,000 characters each
_MAX_CONTEXT_PAGES = 6  # of them, for one page
_MAX_YEARS_APART = 1  # year: as long as the frame of a site stays about the same


class SiteContext:
    """Remembers good pages of the site, and what it answers where nothing is."""

    def __init__(self) -> None:
        self._good: dict[str, ReferencePage] = {}  # by address and date
        self._absent: list[ReferencePage] = []

    def classify(self, page: PageResponse) -> PageVerdict | None:
        """Return why a page is not to be taken for what it seems to be; None if it is good, or nobody can tell."""
        return classify_page(page, self._context(page))

    def add_good_page(self, page: PageResponse) -> None:
        """Remember a good page."""
        is_root = urlsplit(page.uri).path in ("", "/")
        if len(self._good) < _MAX_PAGES or is_root:
            self._good[f"{page.uri} {page.datetime}"] = make_reference_page(page)
            if len(self._good) > 2 * _MAX_PAGES:
                del self._good[next(iter(self._good))]

    def add_error_page(self, page: PageResponse) -> None:
        """Remember what the site answers with an honest status where nothing is."""
        self._absent = [*self._absent[-3:], make_reference_page(page)]

    def needs_earlier_page(self, page: PageResponse) -> bool:
        """Return whether a page looks like that of a site which was taken over, and nothing from before is known."""
        return not self._earlier_pages(page) and is_suspicious(page)

    def _context(self, page: PageResponse) -> ClassifierContext:
        year = int(page.datetime[:4])
        near = [known for known in self._good.values() if abs(int(known.datetime[:4]) - year) <= _MAX_YEARS_APART]
        others = [known for known in near if page_identity(known.uri) != page_identity(page.uri)]
        home = next((known for known in reversed(others) if urlsplit(known.uri).path in ("", "/")), None)
        absent = (known for known in self._absent if abs(int(known.datetime[:4]) - year) <= _MAX_YEARS_APART)
        return ClassifierContext(self._earlier_pages(page), others[:_MAX_CONTEXT_PAGES], home, next(absent, None))

    def _earlier_pages(self, page: PageResponse) -> tuple[ReferencePage, ...]:
        """Return pages from before: of the same address first, then the oldest."""
        here = page_identity(page.uri)
        before = [known for known in self._good.values() if known.datetime < page.datetime]
        return tuple(
            sorted(before, key=lambda known: (page_identity(known.uri) != here, known.datetime))[:_MAX_CONTEXT_PAGES]
        )
