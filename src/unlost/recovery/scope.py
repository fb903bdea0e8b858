"""Scope of a recovery: which URLs belong to the site, and the prefixes whose listings are queried."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from unlost.crawl.scope import UrlFilter, folder_url, host_of_name, is_ip, is_name_in_folder, is_subdomain, split_url
from unlost.errors import UriError
from unlost.html.links import LinkKind
from unlost.recovery.options import RecoverOptions
from unlost.uri.names import page_name


@dataclass(frozen=True, slots=True)
class RecoveryScope:
    """The scope set by the options of a recovery; created by `RecoveryScope.of`.

    Attributes:
        options: The options.
        prefixes: Prefixes to list, as for `ArchiveClient.list_prefix`; empty with `RecoverOptions.page`.
        host: Host and port of the site as in page names, without `www`.
        folder: Page name of the folder that pages must be in; None for the whole host.
        named: Page names of the start URLs, which are always in scope.
        hosts: Hosts of the start URLs.
    """

    options: RecoverOptions
    prefixes: tuple[str, ...]
    host: str
    folder: str | None
    named: frozenset[str]
    hosts: frozenset[str]
    _url_filter: UrlFilter

    @classmethod
    def of(cls, options: RecoverOptions) -> "RecoveryScope":
        """Return the scope for these options.

        The folder is that of the start URL, as for `folder_url`. With `subdomains`, all hosts below the host of the
        start URL, without `www`, are in scope with any path. Parent domains are not, because others may share them.

        Raises:
            UriError: A start URL is invalid.
            UsageError: A regular expression is invalid.
        """
        folder = folder_url(options.url)
        host, slash, path = _name(options, folder).partition("/")
        named = frozenset(_name(options, uri) for uri in (options.url, *options.urls))
        return cls(
            options,
            _prefixes(options, host, folder),
            host,
            host + slash + path if path else None,
            named,
            frozenset(map(host_of_name, named)),
            UrlFilter.compile(options.include, options.exclude, ignore_case=options.ignore_case),
        )

    def admits(self, uri: str, kind: LinkKind, hops: int) -> bool:
        """Return whether a URL found as a link is in scope.

        Start URLs always are. Other pages must be in the folder and within `depth`. Page requisites may be anywhere on
        the site's hosts, or with `page_requisites` on any host. Sitemaps and robots.txt must be on the site's hosts and
        within `depth`, and are exempt from `include` because their links may match it. Other schemes than http and
        https are never in scope.

        Args:
            uri: The URL.
            kind: The kind of the link.
            hops: Number of links between a start URL and this one.
        """
        try:
            name = _name(self.options, uri)
        except UriError:
            return False
        if name in self.named:
            return True
        if kind is not LinkKind.REQUISITE and (self.options.page or not self._is_within_depth(hops)):
            return False
        return self._is_inside(name, kind) and self._url_filter.matches(uri, is_sitemap=kind is LinkKind.LIST)

    def is_own(self, uri: str) -> bool:
        """Return whether a URL is on one of the site's hosts, in any folder."""
        try:
            return self._has_host(host_of_name(_name(self.options, uri)))
        except UriError:
            return False

    def seeds(self) -> tuple[tuple[str, LinkKind], ...]:
        """Return the start URLs with their link kinds, each page once, in order.

        Unless only pages were requested, the site's `robots.txt` and `sitemap.xml` follow.
        """
        pages: dict[str, tuple[str, LinkKind]] = {}
        for uri in (self.options.url, *self.options.urls):
            pages.setdefault(_name(self.options, uri), ("".join(split_url(uri)), LinkKind.PAGE))
        if self.options.page:
            return tuple(pages.values())
        origin = split_url(self.options.url)[0]
        return (*pages.values(), (f"{origin}/robots.txt", LinkKind.LIST), (f"{origin}/sitemap.xml", LinkKind.LIST))

    def _is_within_depth(self, hops: int) -> bool:
        return self.options.depth is None or hops <= self.options.depth

    def _is_inside(self, name: str, kind: LinkKind) -> bool:
        host = host_of_name(name)
        if kind is not LinkKind.PAGE:
            return self._has_host(host) or (kind is LinkKind.REQUISITE and self.options.page_requisites)
        if host != self.host:
            return self._is_below(host)
        return self.folder is None or is_name_in_folder(name, self.folder)

    def _has_host(self, host: str) -> bool:
        return host == self.host or host in self.hosts or self._is_below(host)

    def _is_below(self, host: str) -> bool:
        return self.options.subdomains and is_subdomain(host, self.host)


def _name(options: RecoverOptions, uri: str) -> str:
    return page_name(uri, ignore_case=options.ignore_case)


def _prefixes(options: RecoverOptions, host: str, folder: str) -> tuple[str, ...]:
    """Return the prefixes to list.

    The folder has the spelling of the start URL, because archives index URLs as they were captured.
    """
    if options.page:
        return ()
    if options.subdomains and not is_ip(host):
        return (f"*.{urlsplit(f'//{host}').hostname}",)
    path = split_url(folder)[1]
    return (f"http://{host}" + ("" if path.strip("/") == "" else path),)
