"""From a link in a page to what stands in its place in the export."""

from collections import Counter
from collections.abc import Iterable
from string import punctuation
from urllib.parse import quote

from unlost.errors import UriError
from unlost.formats.capture import Capture
from unlost.pages.link import LinkKind
from unlost.pages.rewriting import LinkDirectory
from unlost.recover.export.external import ExternalLinks, external_url
from unlost.recover.export.local_address import relative_url, relative_to_page
from unlost.recover.export.site_map import LinkTargetKind, LinkResolver
from unlost.uri.naming import page_name

_CACHE_BYTES = 32 << 20  # bytes: the navigation of a site is on all of its pages
_KINDS = tuple(LinkTargetKind)
_MAX_SCRIPT_URLS = 20_000  # URLs used by scripts that are remembered


class SiteLinkRewriter:
    """What the links of all pages become; what is the same on every page is found out once.

    directory: to be given to `rewrite`, with the page, together with what `of_page` returns.
    """

    def __init__(self, site: LinkResolver, external: ExternalLinks) -> None:
        self.directory = LinkDirectory(_CACHE_BYTES)
        self._resolver = site
        self._external = external
        self._files: dict[str, str | None] = {}  # by URLs that scripts may use

    def for_page(self, path: str, capture: Capture) -> "PageLinkRewriter":
        """Return what `rewrite` asks on one page. path: of the page in the export. capture: of its copy."""
        return PageLinkRewriter(self, path, capture)

    def replacement(self, uri: str, use: LinkKind, page: "PageLinkRewriter") -> str | None:
        """Return what is to stand on a page for an address; None if it stays."""
        found = self._resolver.resolve(uri, use)
        page.counts[found.kind] += 1
        if found.kind is not LinkTargetKind.OUTSIDE:
            self.directory.add(uri, use, found.relative_url, _KINDS.index(found.kind))
            return relative_to_page(found.relative_url, page.relative_url)
        # What is on the page's own host may be written relative to it, and it is no longer there.
        host = _host_of_url(uri)
        if found.uri == uri and host != page.host:
            if self._external is ExternalLinks.KEEP and host not in self._resolver.hosts:
                self.directory.add(uri, use, None, _KINDS.index(LinkTargetKind.OUTSIDE))
            return external_url(self._external, uri, use, page.date, page.urim)
        whole = quote(found.uri, safe=punctuation, errors="surrogatepass")
        return external_url(self._external, whole, use, page.date, page.urim) or whole

    def file_url(self, uri: str, page: "PageLinkRewriter") -> str | None:
        """Return the URL of the file for a URL that may be used by scripts of a page; None if no file has it.

        Nothing is assumed about a URL without a file: it may not be one.
        """
        if uri not in self._files:
            if len(self._files) >= _MAX_SCRIPT_URLS:
                self._files.clear()
            found = self._resolver.resolve(uri, LinkKind.PAGE)
            self._files[uri] = found.relative_url if found.kind is LinkTargetKind.FILE else None
        address = self._files[uri]
        if address is None:
            return None
        page.counts[LinkTargetKind.FILE] += 1
        return relative_to_page(address, page.relative_url)


class PageLinkRewriter:
    """What `rewrite` asks for each address of one page that is not known from other pages.

    address: of the page in the export, as it stands in links. host, date, urim: of its copy.
    counts: how many addresses lead where, by `Kind`.
    """

    def __init__(self, links: SiteLinkRewriter, path: str, capture: Capture) -> None:
        self._links = links
        self.directory = links.directory
        self.relative_url = relative_url(path)
        self.host = _host_of_url(capture.uri)
        self.date = capture.datetime
        self.urim = capture.urim
        self.counts: Counter[str] = Counter()

    def __call__(self, uri: str, use: LinkKind) -> str | None:
        """Return what is to stand there; None if it stays."""
        return self._links.replacement(uri, use, self)

    def file_url(self, uri: str) -> str | None:
        """Return the relative URL of the file that a URL used by scripts resolves to; None if there is no such file."""
        return self._links.file_url(uri, self)

    def add_cached_counts(self, groups: Iterable[int]) -> None:
        """Add what was known, as `rewrite` counted it."""
        self.counts.update(dict(zip(_KINDS, groups, strict=False)))


def _host_of_url(uri: str) -> str | None:
    """Return the host of an address, in one spelling; None of an address that is none."""
    try:
        return page_name(uri).partition("/")[0]
    except UriError:
        return None
