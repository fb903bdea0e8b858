"""Scope of a crawl: which hosts, folders and URLs belong to the site, and URL filters by regular expressions."""

import re
from dataclasses import dataclass

from unlost.crawl.models import CrawlConfig, ScopeType
from unlost.errors import UsageError
from unlost.html.links import LinkKind
from unlost.uri.names import page_name
from unlost.uri.normalize import normalize_input_url

MAX_SEARCHED_CHARS = 2_000
"""Characters of a URL in which the filters search, so that a hostile URL costs little. Internet Explorer opened no URL
of more than 2,083 characters, so real pages have shorter ones. Catastrophic backtracking, as in `(a+)+$`, is possible
below this limit; avoiding it is up to the author of the expression.
"""
# Browsers accept any number of slashes or backslashes after the scheme.
_SCHEME_AND_SLASHES = re.compile(r"[\0-\x20]*(?:(https?):[/\\]*|//)", re.IGNORECASE)
_IP_ADDRESS = re.compile(r"(\d+\.){3}\d+|\[.*\]")

OTHER_SITE = "elsewhere"
"""Reason of exclusion for links to other sites."""


@dataclass(frozen=True, slots=True)
class UrlFilter:
    """Compiled include and exclude expressions."""

    _include: tuple[re.Pattern[str], ...]
    _exclude: tuple[re.Pattern[str], ...]

    @classmethod
    def compile(cls, include: tuple[str, ...], exclude: tuple[str, ...], *, ignore_case: bool = False) -> "UrlFilter":
        """Compile regular expressions. Raises UsageError for an invalid one."""
        return cls(_compile_patterns(include, ignore_case), _compile_patterns(exclude, ignore_case))

    def matches(self, uri: str, *, is_sitemap: bool = False) -> bool:
        """Return whether a URL matches an include expression, if there are any, and no exclude expression.

        Args:
            uri: The URL.
            is_sitemap: Whether it is a sitemap. Sitemaps are exempt from `include`, since their entries may match.
        """
        text = uri[:MAX_SEARCHED_CHARS]
        if any(pattern.search(text) for pattern in self._exclude):
            return False
        return is_sitemap or not self._include or any(pattern.search(text) for pattern in self._include)


def _compile_patterns(expressions: tuple[str, ...], ignore_case: bool) -> tuple[re.Pattern[str], ...]:
    patterns = []
    for text in expressions:
        try:
            patterns.append(re.compile(text, re.IGNORECASE if ignore_case else 0))
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"`{text[:80]}` is no regular expression: {error}") from None
    return tuple(patterns)


def host_of_name(name: str) -> str:
    """Return the host of a page name, with its port if it has one."""
    return name.partition("/")[0]


def is_ip(host: str) -> bool:
    """Return whether a host, with or without port, is an IP address."""
    return _IP_ADDRESS.fullmatch(re.sub(r":\d+$", "", host)) is not None


def is_subdomain(host: str, parent: str) -> bool:
    """Return whether a host is a subdomain of another.

    >>> is_subdomain("b.example.com", "example.com"), is_subdomain("example.com", "example.com")
    (True, False)
    """
    # A port ends the host, so it must be equal, too.
    return not is_ip(parent) and host.endswith(f".{parent}")


def is_name_in_folder(name: str, folder: str) -> bool:
    """Return whether a page name is that of a folder or below it."""
    return name == folder or name.startswith((f"{folder}/", f"{folder}?"))


def split_url(uri: str) -> tuple[str, str]:
    """Return a normalized URL in two parts: scheme and authority without user info, and the rest. Raises UriError."""
    scheme_match = _SCHEME_AND_SLASHES.match(uri)
    rest = uri[scheme_match.end() :] if scheme_match else uri
    # The fragment is removed by normalization, which strips whitespace at the end of the URL only.
    authority, mark, suffix = re.split("([?#]|$)", rest, maxsplit=1)
    scheme = scheme_match[1].lower() if scheme_match and scheme_match[1] else "http"
    scheme, mark, rest = normalize_input_url(f"{scheme}://" + authority.replace("\\", "/") + mark + suffix).partition(
        "://"
    )
    authority = re.split("[/?]", rest, maxsplit=1)[0]
    return scheme + mark + authority.rpartition("@")[2], rest[len(authority) :]


def folder_url(uri: str) -> str:
    """Return the URL of the folder of a URL, with a trailing slash.

    The folder is everything up to the last slash of the path: `/a/` for `/a/b.html` and for `/a/`, but the root for
    `/a`. The exception is `/~joe`, a home directory, which is a folder even without its slash.
    """
    origin, tail = split_url(uri)
    above, _, last = tail.partition("?")[0].rpartition("/")
    return f"{origin}{above}/{last}/" if last.startswith(("~", "%7E", "%7e")) else f"{origin}{above}/"


@dataclass(frozen=True, slots=True)
class CrawlScope:
    """The scope of a crawl; created by `CrawlScope.from_config`.

    Attributes:
        config: The configuration.
        hosts: Hosts of the seeds as in page names: without `www`, with non-default ports.
        folders: Folders of the seeds, as page names.
        given_names: Names of all configured URLs; these are always in scope.
    """

    config: CrawlConfig
    hosts: frozenset[str]
    folders: frozenset[str]
    given_names: frozenset[str]
    _url_filter: UrlFilter

    @classmethod
    def from_config(cls, config: CrawlConfig) -> "CrawlScope":
        """Return the scope of a configuration.

        Raises:
            UriError: A configured URL is invalid.
            UsageError: A regular expression is invalid.
        """
        starts = [page_name(uri) for uri in config.starts]
        return cls(
            config,
            frozenset(map(host_of_name, starts)),
            frozenset(page_name(folder_url(uri)) for uri in config.starts),
            frozenset([*starts, *map(page_name, config.extra)]),
            UrlFilter.compile(config.include, config.exclude),
        )

    def exclusion_reason(
        self, uri: str, name: str, link_kind: LinkKind, hops: int, *, is_link: bool = True
    ) -> str | None:
        """Return why the target of a link is out of scope; None if it is in scope.

        Args:
            uri: URL of the target.
            name: Its page name.
            link_kind: Kind of the link.
            hops: Number of links from a seed.
            is_link: False for sitemap entries and for other spellings of a URL in scope.

        Returns:
            `elsewhere`, `outside` (on the site's hosts, but not in its folder), `unwanted` (links of this kind are not
            followed), `too-far`, `too-deep`, `excluded`, or None.
        """
        if name in self.given_names:
            return None
        config = self.config
        if link_kind is LinkKind.PAGE:
            is_followed = config.links
        else:
            is_followed = config.parts if link_kind is LinkKind.REQUISITE else config.sitemaps
        if is_link and not is_followed:
            return "unwanted"
        return (
            self._host_reason(name, link_kind)
            or self._distance_reason(name, link_kind, hops)
            or self._filter_reason(uri, link_kind)
        )

    def _distance_reason(self, name: str, link_kind: LinkKind, hops: int) -> str | None:
        if self.config.hops is not None and link_kind is LinkKind.PAGE and hops > self.config.hops:
            return "too-far"
        folders = name.partition("?")[0].rstrip("/").count("/") - 1
        return "too-deep" if self.config.depth is not None and folders > self.config.depth else None

    def _filter_reason(self, uri: str, link_kind: LinkKind) -> str | None:
        return None if self._url_filter.matches(uri, is_sitemap=link_kind is LinkKind.LIST) else "excluded"

    def _host_reason(self, name: str, link_kind: LinkKind) -> str | None:
        host = host_of_name(name)
        if not self.has_host(host):
            return None if link_kind is LinkKind.REQUISITE and self.config.foreign_parts else OTHER_SITE
        if self.config.reach is not ScopeType.PREFIX or link_kind is not LinkKind.PAGE:
            return None
        return None if any(_is_in_scope_folder(name, folder) for folder in self.folders) else "outside"

    def has_host(self, host: str) -> bool:
        """Return whether a host, as in page names, belongs to the site."""
        if host in self.hosts:
            return True
        return self.config.reach is ScopeType.DOMAIN and any(is_subdomain(host, each) for each in self.hosts)


def _is_in_scope_folder(name: str, folder: str) -> bool:
    # Only the name of a whole host ends in a slash.
    return name.startswith(folder) if folder.endswith("/") else is_name_in_folder(name, folder)
