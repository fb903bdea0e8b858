"""Scope of a crawl: which hosts, folders and URLs belong to the site, and URL filters by regular expressions."""

import re
from dataclasses import dataclass

from unlost.crawl.models import CrawlConfig, ScopeType
from unlost.errors import UsageError
from unlost.html.links import LinkKind
from unlost.uri.names import page_name
from unlost.uri.normalize import normalize_input_url

MAX_SEARCHED_CHARS = 2_000
"""How many characters of an address expressions are searched in, so that a hostile one costs little: pages have no
longer ones, since Internet Explorer opened none of more than 2,083. An expression whose repetitions are nested,
`(a+)+$`, can take forever on much less; that is up to whoever writes it."""
# What browsers read as the beginning of an address, however many slashes were typed.
_SCHEME_AND_SLASHES = re.compile(r"[\0-\x20]*(?:(https?):[/\\]*|//)", re.IGNORECASE)
_IP_ADDRESS = re.compile(r"(\d+\.){3}\d+|\[.*\]")


@dataclass(frozen=True, slots=True)
class UrlFilter:
    """Expressions, ready to be searched for."""

    _include: tuple[re.Pattern[str], ...]
    _exclude: tuple[re.Pattern[str], ...]

    @classmethod
    def compile(cls, include: tuple[str, ...], exclude: tuple[str, ...], *, ignore_case: bool = False) -> "UrlFilter":
        """Return what picks addresses in which one of `include` is found, if there are any, and none of `exclude`.

        Raises UsageError for an expression that is none.
        """
        return cls(_compile_patterns(include, ignore_case), _compile_patterns(exclude, ignore_case))

    def matches(self, uri: str, *, is_sitemap: bool = False) -> bool:
        """Return whether an address is wanted. is_list: lists are not held to `include`, since they lead to what is."""
        text = uri[:MAX_SEARCHED_CHARS]
        if any(pattern.search(text) for pattern in self._exclude):
            return False
        return is_sitemap or not self._include or any(pattern.search(text) for pattern in self._include)


def _compile_patterns(expressions: tuple[str, ...], ignore_case: bool) -> tuple[re.Pattern[str], ...]:
    """Return expressions ready to be searched for; letter case counts where it does in addresses."""
    patterns = []
    for text in expressions:
        try:
            patterns.append(re.compile(text, re.IGNORECASE if ignore_case else 0))
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"`{text[:80]}` is no regular expression: {error}") from None
    return tuple(patterns)


def host_of_name(name: str) -> str:
    """Return the host of a page's name, with its port if it has one."""
    return name.partition("/")[0]


def is_ip(host: str) -> bool:
    """Return whether a host, with a port or without, is an IP address."""
    return _IP_ADDRESS.fullmatch(re.sub(r":\d+$", "", host)) is not None


def is_subdomain(host: str, parent: str) -> bool:
    """Return whether a host is a subdomain of another.

    >>> is_subdomain("b.example.com", "example.com"), is_subdomain("example.com", "example.com")
    (True, False)
    """
    # A port is part of the host, and at its end: so it must be the same.
    return not is_ip(parent) and host.endswith(f".{parent}")


def is_name_in_folder(name: str, folder: str) -> bool:
    """Return whether the name of a page is that of a folder, or lies below it."""
    return name == folder or name.startswith((f"{folder}/", f"{folder}?"))


def split_url(uri: str) -> tuple[str, str]:
    """Return an address as it is asked for, cut before its path, and without a user's name and password.

    Raises UriError.
    """
    begin = _SCHEME_AND_SLASHES.match(uri)
    rest = uri[begin.end() :] if begin else uri
    # The fragment stays until the end: what stands before it is not at the end, where space does not count.
    place, mark, more = re.split("([?#]|$)", rest, maxsplit=1)
    scheme = begin[1].lower() if begin and begin[1] else "http"
    scheme, mark, rest = normalize_input_url(f"{scheme}://" + place.replace("\\", "/") + mark + more).partition("://")
    place = re.split("[/?]", rest, maxsplit=1)[0]
    return scheme + mark + place.rpartition("@")[2], rest[len(place) :]


def folder_url(uri: str) -> str:
    """Return the address of the folder that an address is in, with a slash at its end.

    That is what stands before the last slash of its path, as with other tools: `/a/` for `/a/b.html` and for `/a/`, but
    the whole host for `/a`. Only `/~joe` is a folder without its slash, since nobody means the other users of a host.
    """
    place, tail = split_url(uri)
    above, _, last = tail.partition("?")[0].rpartition("/")
    return f"{place}{above}/{last}/" if last.startswith(("~", "%7E", "%7e")) else f"{place}{above}/"


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
