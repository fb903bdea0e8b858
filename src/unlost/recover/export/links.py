"""From a link in a page to what stands in its place in the export."""

from collections import Counter
from collections.abc import Iterable
from string import punctuation
from urllib.parse import quote

from unlost.errors import UriError
from unlost.formats.capture import Capture
from unlost.pages.link import Use
from unlost.pages.rewriting import Directory
from unlost.recover.export.external import External, outside_address
from unlost.recover.export.local_address import address_of, relative
from unlost.recover.export.site_map import Kind, SiteMap
from unlost.uri.naming import name_of

_REMEMBERED = 32 << 20  # bytes: the navigation of a site is on all of its pages
_KINDS = tuple(Kind)
_CANDIDATES = 20_000  # URLs used by scripts that are remembered


class SiteLinks:
    """What the links of all pages become; what is the same on every page is found out once.

    directory: to be given to `rewrite`, with the page, together with what `of_page` returns.
    """

    def __init__(self, site: SiteMap, external: External) -> None:
        self.directory = Directory(_REMEMBERED)
        self._site = site
        self._external = external
        self._files: dict[str, str | None] = {}  # by URLs that scripts may use

    def of_page(self, path: str, capture: Capture) -> "PageLinks":
        """Return what `rewrite` asks on one page. path: of the page in the export. capture: of its copy."""
        return PageLinks(self, path, capture)

    def replaced(self, uri: str, use: Use, page: "PageLinks") -> str | None:
        """Return what is to stand on a page for an address; None if it stays."""
        found = self._site.destination(uri, use)
        page.counts[found.kind] += 1
        if found.kind is not Kind.OUTSIDE:
            self.directory.add(uri, use, found.address, _KINDS.index(found.kind))
            return relative(found.address, page.address)
        # What is on the page's own host may be written relative to it, and it is no longer there.
        host = _host(uri)
        if found.uri == uri and host != page.host:
            if self._external is External.KEEP and host not in self._site.hosts:
                self.directory.add(uri, use, None, _KINDS.index(Kind.OUTSIDE))
            return outside_address(self._external, uri, use, page.date, page.urim)
        whole = quote(found.uri, safe=punctuation, errors="surrogatepass")
        return outside_address(self._external, whole, use, page.date, page.urim) or whole

    def file_address(self, uri: str, page: "PageLinks") -> str | None:
        """Return the URL of the file for a URL that may be used by scripts of a page; None if no file has it.

        Nothing is assumed about a URL without a file: it may not be one.
        """
        if uri not in self._files:
            if len(self._files) >= _CANDIDATES:
                self._files.clear()
            found = self._site.destination(uri, Use.PAGE)
            self._files[uri] = found.address if found.kind is Kind.FILE else None
        address = self._files[uri]
        if address is None:
            return None
        page.counts[Kind.FILE] += 1
        return relative(address, page.address)


class PageLinks:
    """What `rewrite` asks for each address of one page that is not known from other pages.

    address: of the page in the export, as it stands in links. host, date, urim: of its copy.
    counts: how many addresses lead where, by `Kind`.
    """

    def __init__(self, links: SiteLinks, path: str, capture: Capture) -> None:
        self._links = links
        self.directory = links.directory
        self.address = address_of(path)
        self.host = _host(capture.uri)
        self.date = capture.datetime
        self.urim = capture.urim
        self.counts: Counter[str] = Counter()

    def __call__(self, uri: str, use: Use) -> str | None:
        """Return what is to stand there; None if it stays."""
        return self._links.replaced(uri, use, self)

    def file_address(self, uri: str) -> str | None:
        """Return the relative URL of the file that a URL used by scripts resolves to; None if there is no such file."""
        return self._links.file_address(uri, self)

    def count_known(self, groups: Iterable[int]) -> None:
        """Add what was known, as `rewrite` counted it."""
        self.counts.update(dict(zip(_KINDS, groups, strict=False)))


def _host(uri: str) -> str | None:
    """Return the host of an address, in one spelling; None of an address that is none."""
    try:
        return name_of(uri).partition("/")[0]
    except UriError:
        return None
