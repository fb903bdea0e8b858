"""Resolves URLs to files of the export and rewrites links of pages. Links to other sites follow an option."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from string import punctuation
from urllib.parse import quote

from unlost.capture import Capture
from unlost.errors import UriError, UsageError
from unlost.export.contents import ExportContents
from unlost.export.formats import ExternalLinks
from unlost.export.paths import (
    PathAllocator,
    PathCandidates,
    PathMapper,
    PathStyle,
    is_default_page,
    relative_to_page,
    relative_url,
)
from unlost.html.links import LinkKind
from unlost.html.rewrite import LinkDirectory
from unlost.recovery.options import RecoverOptions
from unlost.recovery.scope import RecoveryScope
from unlost.uri import names as uri_names
from unlost.uri.names import page_name


@dataclass(frozen=True, slots=True)
class ExportedResource:
    """A resource with its location in the export.

    Attributes:
        uri: Its original URL.
        path: Relative path of its file, with slashes and without escapes; None for a redirect.
        mime: Media type of the file, if known.
        charset: Charset of the file, if known.
        redirect_target: Absolute target of a redirect, or of a page that only redirects.
    """

    uri: str
    path: str | None
    mime: str | None = None
    charset: str | None = None
    redirect_target: str | None = None


_MAX_REDIRECT_CHAIN = 20  # consecutive redirects that are followed; browsers have the same limit
_MAX_REDIRECT_URL = 2_000  # characters; Internet Explorer opened no URL of more than 2,083


class LinkTargetKind(StrEnum):
    """Where a link points."""

    FILE = "file"
    MISSING = "missing"
    """To a part of the site that was not recovered."""
    OUTSIDE = "outside"


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """The target of a link.

    Attributes:
        kind: Where the link points.
        path: Path of the file, or of the file that a missing resource would have; None outside the site.
        uri: The URL after following redirects.
        relative_url: URL of the file relative to the top folder; empty outside the site.
    """

    kind: LinkTargetKind
    path: str | None
    uri: str
    relative_url: str = ""


class LinkResolver:
    """Resolves URLs to files of the export.

    Attributes:
        paths: Paths of files, by page name.
        hosts: Hosts of the resources that have files.
        renamed: Number of files whose names differ from their URLs, by reason.
    """

    def __init__(self, contents: ExportContents, style: PathStyle) -> None:
        self._ignore_case = contents.ignore_case
        self._redirects = contents.redirects
        self._aliases = contents.aliases
        self._scope = _export_scope(contents.options)
        self.hosts: set[str] = set()
        self._mapper = PathMapper(style, None if self._scope is None else self._scope.host)
        self.renamed: Counter[str] = Counter()
        self._allocator = PathAllocator(self._path_candidates(contents))
        self.renamed += self._allocator.renamed
        self.paths = self._allocator.paths

    def _path_candidates(self, contents: ExportContents) -> list[PathCandidates]:
        candidates: list[PathCandidates] = []
        default_pages: list[tuple[str, str, str | None]] = []
        for entry in contents.files:
            self.hosts.add(_host_of_name(entry.name))
            if is_default_page(entry.name):
                default_pages.append((entry.name, entry.record.capture.uri, entry.mime))
            else:
                candidates.append(self._mapper.candidates(entry.name, entry.record.capture.uri, entry.mime))
        # A default page is the index of its folder only if the folder has no page of its own.
        folders = {uri_names.folder_of_default_page(name) for name, _, _ in default_pages}
        folders.intersection_update([each.key for each in candidates])
        for name, uri, mime in default_pages:
            is_default = uri_names.folder_of_default_page(name) not in folders
            candidates.append(self._mapper.candidates(name, uri, mime, is_default=is_default))
        for each in candidates:
            self.renamed.update(each.reasons)
        return candidates

    def free_path(self, names: tuple[str, ...]) -> str:
        """Return the first of the paths that is not used by the site, or a variation if all are used."""
        return self._allocator.free_path(PathCandidates("", names, names[0]))

    def resolve(self, uri: str, kind: LinkKind) -> LinkTarget:
        """Return the target of a link after redirects and aliases.

        A URL inside the site without a file resolves to the path that its file would have, so that the link is dead and
        not wrong. A URL is inside if the scope of the recovery admits it; that of a page requisite, also if any file
        of its host was recovered.
        """
        try:
            name = uri_names.page_name(uri, ignore_case=self._ignore_case)
        except UriError:
            return LinkTarget(LinkTargetKind.OUTSIDE, None, uri)
        name, uri = self._follow_redirects(name, uri)
        path = self.paths.get(name)
        if path is not None:
            return LinkTarget(LinkTargetKind.FILE, path, uri, relative_url(path))
        if not self._is_inside(name, uri, kind):
            return LinkTarget(LinkTargetKind.OUTSIDE, None, uri)
        candidates = self._mapper.candidates_for_missing(name, uri, is_page=kind is not LinkKind.REQUISITE)
        path = self._allocator.free_path(candidates)
        return LinkTarget(LinkTargetKind.MISSING, path, uri, relative_url(path))

    def _follow_redirects(self, name: str, uri: str) -> tuple[str, str]:
        """Return page name and URL after following redirects; for a loop, those of its start."""
        start = name, uri
        for _ in range(_MAX_REDIRECT_CHAIN):
            name = self._aliases.get(name, name)
            if name in self.paths or name not in self._redirects:
                return name, uri
            uri = self._redirects[name]
            if len(uri) > _MAX_REDIRECT_URL:
                return start
            try:
                name = uri_names.page_name(uri, ignore_case=self._ignore_case)
            except UriError:
                return start
        return start

    def _is_inside(self, name: str, uri: str, kind: LinkKind) -> bool:
        if kind is LinkKind.REQUISITE and _host_of_name(name) in self.hosts:
            return True
        scope = self._scope
        if scope is None:
            return _host_of_name(name) in self.hosts
        if not scope.is_own(uri):
            return False
        is_exempt = _host_of_name(name) != scope.host or scope.folder is None or kind is not LinkKind.PAGE
        return is_exempt or name == scope.folder or name.startswith((f"{scope.folder}/", f"{scope.folder}?"))


def _host_of_name(name: str) -> str:
    return name.partition("/")[0]


def _export_scope(options: RecoverOptions | None) -> RecoveryScope | None:
    try:
        return None if options is None else RecoveryScope.of(options)
    except (UriError, UsageError):
        return None  # the database was modified by hand


EMPTY_IMAGE_URL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
"""A transparent 1x1 image that needs no request."""
_MAX_URL = 8_000  # characters, as for `rewrite_links`
_DEFAULT_REPLAY_PREFIX = "https://web.archive.org/web/"
_URIM = re.compile(r"(https?://[^\s?#]{1,500}?/)\d{4,14}(?:[a-z]{2}_)?/(?=https?:/|[\w-]+\.)", re.ASCII)


def replay_prefix(urim: str | None) -> str:
    """Return the URL prefix of an archive's mementos.

    Args:
        urim: URI-M of one of its captures. If it has no recognizable prefix, that of the Wayback Machine is used.

    >>> replay_prefix("https://arquivo.pt/wayback/20140102030405id_/http://a.example/")
    'https://arquivo.pt/wayback/'
    >>> replay_prefix("https://archive.ph/Ab1cD")
    'https://web.archive.org/web/'
    """
    match = _URIM.match(urim or "")
    return match[1] if match and match[1].isascii() else _DEFAULT_REPLAY_PREFIX


def external_url(external: ExternalLinks, uri: str, kind: LinkKind, date: str, urim: str | None) -> str | None:
    """Return the replacement for a link to another site, or None if it remains unchanged.

    Args:
        external: What to do with such links.
        uri: The target.
        kind: The kind of the link.
        date: Datetime of the page, 14 digits.
        urim: URI-M of the page.

    >>> external_url(ExternalLinks.ARCHIVE, "http://b.example/", LinkKind.PAGE, "20140102030405", None)
    'https://web.archive.org/web/20140102030405/http://b.example/'
    """
    if external is ExternalLinks.NONE and kind is LinkKind.REQUISITE:
        return EMPTY_IMAGE_URL
    if external is ExternalLinks.ARCHIVE:
        memento_url = f"{replay_prefix(urim)}{date}/{uri}"
        return memento_url if len(memento_url) <= _MAX_URL else None
    return None


_CACHE_BYTES = 32 << 20  # limit of the cache; most links belong to the navigation, which is on all pages of a site
_KINDS = tuple(LinkTargetKind)
_MAX_SCRIPT_URLS = 20_000  # cached URLs used by scripts


class SiteLinkRewriter:
    """Rewrites the links of all pages and caches results that are the same on every page.

    Attributes:
        directory: The cache, to be passed to `rewrite_links` together with a page's rewriter.
    """

    def __init__(self, site: LinkResolver, external: ExternalLinks) -> None:
        self.directory = LinkDirectory(_CACHE_BYTES)
        self._resolver = site
        self._external = external
        self._files: dict[str, str | None] = {}  # by URLs used in scripts

    def for_page(self, path: str, capture: Capture) -> "PageLinkRewriter":
        """Return the rewriter for one page.

        Args:
            path: Path of the page in the export.
            capture: Capture of the page.
        """
        return PageLinkRewriter(self, path, capture)

    def replacement(self, uri: str, kind: LinkKind, page: "PageLinkRewriter") -> str | None:
        """Return the replacement for a URL on a page; None if it remains unchanged."""
        target = self._resolver.resolve(uri, kind)
        page.counts[target.kind] += 1
        if target.kind is not LinkTargetKind.OUTSIDE:
            self.directory.add(uri, kind, target.relative_url, _KINDS.index(target.kind))
            return relative_to_page(target.relative_url, page.relative_url)
        # Links to the page's own host may be relative, and would resolve to the export.
        host = _host_of_url(uri)
        if target.uri == uri and host != page.host:
            if self._external is ExternalLinks.KEEP and host not in self._resolver.hosts:
                self.directory.add(uri, kind, None, _KINDS.index(LinkTargetKind.OUTSIDE))
            return external_url(self._external, uri, kind, page.date, page.urim)
        absolute = quote(target.uri, safe=punctuation, errors="surrogatepass")
        return external_url(self._external, absolute, kind, page.date, page.urim) or absolute

    def file_url(self, uri: str, page: "PageLinkRewriter") -> str | None:
        """Return the URL of the file for a URL that scripts of a page may request; None without a file.

        A URL without a file is left unchanged, because the text may not be a URL.
        """
        if uri not in self._files:
            if len(self._files) >= _MAX_SCRIPT_URLS:
                self._files.clear()
            target = self._resolver.resolve(uri, LinkKind.PAGE)
            self._files[uri] = target.relative_url if target.kind is LinkTargetKind.FILE else None
        url = self._files[uri]
        if url is None:
            return None
        page.counts[LinkTargetKind.FILE] += 1
        return relative_to_page(url, page.relative_url)


class PageLinkRewriter:
    """Rewrites the URLs of one page that are not in the cache.

    Attributes:
        directory: The cache of all pages.
        relative_url: URL of the page relative to the top folder.
        host: Host of the page.
        date: Datetime of the page's capture, 14 digits.
        urim: URI-M of the page's capture.
        counts: Number of URLs by `LinkTargetKind`.
    """

    def __init__(self, links: SiteLinkRewriter, path: str, capture: Capture) -> None:
        self._links = links
        self.directory = links.directory
        self.relative_url = relative_url(path)
        self.host = _host_of_url(capture.uri)
        self.date = capture.datetime
        self.urim = capture.urim
        self.counts: Counter[str] = Counter()

    def __call__(self, uri: str, kind: LinkKind) -> str | None:
        """Return the replacement for a URL; None if it remains unchanged."""
        return self._links.replacement(uri, kind, self)

    def file_url(self, uri: str) -> str | None:
        """Return the relative URL of the file that a URL used by scripts resolves to; None if there is no such file."""
        return self._links.file_url(uri, self)

    def add_cached_counts(self, groups: Iterable[int]) -> None:
        """Add the counts of URLs that were in the cache, as counted by `rewrite_links`."""
        self.counts.update(dict(zip(_KINDS, groups, strict=False)))


def _host_of_url(uri: str) -> str | None:
    """Return the normalized host of a URL; None for an invalid URL."""
    try:
        return page_name(uri).partition("/")[0]
    except UriError:
        return None
