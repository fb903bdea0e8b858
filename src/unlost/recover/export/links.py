"""From a link in a page to what stands in its place in the export."""

from collections import Counter
from string import punctuation
from urllib.parse import quote

from unlost.errors import UriError
from unlost.formats.capture import Capture
from unlost.pages.link import Use
from unlost.recover.export.external import External, outside_address
from unlost.recover.export.local_address import address_of, relative
from unlost.recover.export.site_map import Kind, SiteMap
from unlost.uri.naming import name_of


class PageLinks:
    """What `rewrite` asks for each address of one page.

    path: of the page in the export. capture: of its copy.
    counts: how many addresses lead where, by `Kind`.
    """

    def __init__(self, site: SiteMap, path: str, capture: Capture, external: External) -> None:
        self._site = site
        self._page = address_of(path)
        self._host = _host(capture.uri)
        self._date = capture.datetime
        self._urim = capture.urim
        self._external = external
        self.counts: Counter[str] = Counter()

    def __call__(self, uri: str, use: Use) -> str | None:
        """Return what is to stand there; None if it stays."""
        found = self._site.destination(uri, use)
        self.counts[found.kind] += 1
        if found.kind is Kind.OUTSIDE:
            # What is on the page's own host may be written relative to it, and it is no longer there.
            is_moved = found.uri != uri or _host(uri) == self._host
            whole = quote(found.uri, safe=punctuation, errors="surrogatepass") if is_moved else None
            return outside_address(self._external, whole or uri, use, self._date, self._urim) or whole
        return relative(found.address, self._page)


def _host(uri: str) -> str | None:
    """Return the host of an address, in one spelling; None of an address that is none."""
    try:
        return name_of(uri).partition("/")[0]
    except UriError:
        return None
