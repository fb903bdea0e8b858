"""What belongs to the site: which addresses are wanted, and what archives are asked to list."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from unlost.crawl.scope import UrlFilter, folder_url, host_of_name, is_ip, is_name_in_folder, is_subdomain, split_url
from unlost.errors import UriError
from unlost.html.links import LinkKind
from unlost.recover.options import RecoverOptions
from unlost.uri.names import page_name


@dataclass(frozen=True, slots=True)
class RecoveryScope:
    """The bounds of a recovery, as a plan sets them; `Scope.of` makes it.

    prefixes: what to ask listers for, as `Repository.under` takes it; empty if only pages were named.
    host: the site's own host with its port, as in names: without `www`.
    folder: the name of the folder that pages must be in; None for the whole host.
    named: the names of the addresses that were given; they are always wanted.
    hosts: the hosts of those.
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
        """Return the scope of a plan.

        The folder is that of the address, as `folder_of` has it. Subdomains are all hosts below the start's own,
        without `www`: what its owner registered above that does not count, since others may share it; on all of them,
        any path.

        Raises UriError for an address that is none, UsageError for an expression that is none.
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

    def admits(self, uri: str, use: LinkKind, hops: int) -> bool:
        """Return whether an address is wanted that was found as a link of this use.

        hops: how many links away from a beginning it is.

        What was named is always wanted. Other pages must be in the folder and near enough; what is needed to show a
        page may be anywhere on the site's hosts, however far, or with `page_requisites` on any host; lists must be on
        its hosts and near enough, and are not held to `include`, since they lead to what is. URLs of other schemes
        than http and https are never wanted.
        """
        try:
            name = _name(self.options, uri)
        except UriError:
            return False
        if name in self.named:
            return True
        if use is not LinkKind.REQUISITE and (self.options.page or not self._is_within_depth(hops)):
            return False
        return self._is_inside(name, use) and self._url_filter.matches(uri, is_sitemap=use is LinkKind.LIST)

    def is_own(self, uri: str) -> bool:
        """Return whether an address is on one of the site's hosts, in whatever folder: not elsewhere."""
        try:
            return self._has_host(host_of_name(_name(self.options, uri)))
        except UriError:
            return False

    def seeds(self) -> tuple[tuple[str, LinkKind], ...]:
        """Return the addresses to begin from, with their use, in order; each page once.

        The start, the further addresses, and, unless only pages were named, the site's `robots.txt` and `sitemap.xml`.
        """
        pages: dict[str, tuple[str, LinkKind]] = {}
        for uri in (self.options.url, *self.options.urls):
            pages.setdefault(_name(self.options, uri), ("".join(split_url(uri)), LinkKind.PAGE))
        if self.options.page:
            return tuple(pages.values())
        place = split_url(self.options.url)[0]
        return (*pages.values(), (f"{place}/robots.txt", LinkKind.LIST), (f"{place}/sitemap.xml", LinkKind.LIST))

    def _is_within_depth(self, hops: int) -> bool:
        return self.options.depth is None or hops <= self.options.depth

    def _is_inside(self, name: str, use: LinkKind) -> bool:
        host = host_of_name(name)
        if use is not LinkKind.PAGE:
            return self._has_host(host) or (use is LinkKind.REQUISITE and self.options.page_requisites)
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
    """Return what to ask for: the folder in the spelling that it was given in, by which archives know it."""
    if options.page:
        return ()
    if options.subdomains and not is_ip(host):
        return (f"*.{urlsplit(f'//{host}').hostname}",)
    path = split_url(folder)[1]
    return (f"http://{host}" + ("" if path.strip("/") == "" else path),)
