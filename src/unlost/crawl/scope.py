"""What belongs to the site that is visited."""

from dataclasses import dataclass

from unlost.crawl.bounds import UrlFilter, folder_url, host_of_name, is_subdomain, is_name_in_folder
from unlost.crawl.plan import CrawlConfig, ScopeType
from unlost.pages.link import LinkKind
from unlost.uri.naming import page_name

OTHER_SITE = "elsewhere"
"""Why most links are not followed: they lead to other sites."""


@dataclass(frozen=True, slots=True)
class CrawlScope:
    """The bounds of a crawl, as a plan sets them; `Scope.of` makes it.

    hosts: of the starts, as in names: without `www`, with their ports. folders: of the starts, as names.
    named: the names of all addresses that were given; they are always wanted.
    """

    config: CrawlConfig
    hosts: frozenset[str]
    folders: frozenset[str]
    given_names: frozenset[str]
    _url_filter: UrlFilter

    @classmethod
    def from_config(cls, config: CrawlConfig) -> "CrawlScope":
        """Return the scope of a plan. Raises UriError for an address that is none, UsageError for an expression."""
        starts = [page_name(uri) for uri in config.starts]
        return cls(
            config,
            frozenset(map(host_of_name, starts)),
            frozenset(page_name(folder_url(uri)) for uri in config.starts),
            frozenset([*starts, *map(page_name, config.extra)]),
            UrlFilter.compile(config.include, config.exclude),
        )

    def exclusion_reason(self, uri: str, name: str, use: LinkKind, hops: int, *, is_link: bool = True) -> str | None:
        """Return why an address is not wanted that a link of this use leads to, in a word; None if it is.

        name: of the address. hops: how many links away from a beginning it is. is_link: whether it is a link of a page,
        and no entry of a sitemap, nor another spelling of what is wanted anyway.

        The words are `elsewhere`, `outside` (on the site's hosts, but not in its folder), `unwanted` (links of this use
        are not followed), `too-far`, `too-deep` and `excluded`.
        """
        if name in self.given_names:
            return None
        plan = self.config
        is_followed = plan.links if use is LinkKind.PAGE else plan.parts if use is LinkKind.REQUISITE else plan.sitemaps
        if is_link and not is_followed:
            return "unwanted"
        return self._host_reason(name, use) or self._distance_reason(name, use, hops) or self._filter_reason(uri, use)

    def _distance_reason(self, name: str, use: LinkKind, hops: int) -> str | None:
        if self.config.hops is not None and use is LinkKind.PAGE and hops > self.config.hops:
            return "too-far"
        folders = name.partition("?")[0].rstrip("/").count("/") - 1
        return "too-deep" if self.config.depth is not None and folders > self.config.depth else None

    def _filter_reason(self, uri: str, use: LinkKind) -> str | None:
        return None if self._url_filter.matches(uri, is_sitemap=use is LinkKind.LIST) else "excluded"

    def _host_reason(self, name: str, use: LinkKind) -> str | None:
        host = host_of_name(name)
        if not self.has_host(host):
            return None if use is LinkKind.REQUISITE and self.config.foreign_parts else OTHER_SITE
        if self.config.reach is not ScopeType.PREFIX or use is not LinkKind.PAGE:
            return None
        return None if any(_is_in_scope_folder(name, folder) for folder in self.folders) else "outside"

    def has_host(self, host: str) -> bool:
        """Return whether a host, as names have it, is one of the site."""
        if host in self.hosts:
            return True
        return self.config.reach is ScopeType.DOMAIN and any(is_subdomain(host, each) for each in self.hosts)


def _is_in_scope_folder(name: str, folder: str) -> bool:
    # The name of a whole host ends in its one slash.
    return name.startswith(folder) if folder.endswith("/") else is_name_in_folder(name, folder)
