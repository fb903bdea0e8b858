"""Resolves URLs to files of the export and rewrites the links of pages; links off the site as the user chose."""

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
from unlost.recover.options import RecoverOptions
from unlost.recover.scope import RecoveryScope
from unlost.uri import names as uri_names
from unlost.uri.names import page_name


@dataclass(frozen=True, slots=True)
class ExportedResource:
    """Where a resource is in an export.

    uri: its address, as it was. path: of its file, relative, with slashes and without escapes; None of a redirect.
    mime, charset: of the file, as far as they are known. to: the whole URL that a redirect leads to; of a file, the one
        that it redirects to if it is a page that does nothing else.
    """

    uri: str
    path: str | None
    mime: str | None = None
    charset: str | None = None
    redirect_target: str | None = None


_MAX_REDIRECT_CHAIN = 20  # redirects that are followed one behind the other; browsers follow as many
_MAX_REDIRECT_URL = 2_000  # letters of an address that a redirect leads to: no browser of that time opened a longer one


class LinkTargetKind(StrEnum):
    """What a link leads to."""

    FILE = "file"
    MISSING = "missing"
    """A part of the site that was not recovered."""
    OUTSIDE = "outside"


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """Where a link leads.

    path: of the file, or where it would be; None outside the site.
    uri: the address that it leads to in the end.
    address: the path as it stands in links from the top of the export; empty outside the site.
    """

    kind: LinkTargetKind
    path: str | None
    uri: str
    relative_url: str = ""


class LinkResolver:
    """Where everything is.

    paths: of files, by the names of resources. hosts: of these resources.
    renamed: how many files are not called what their addresses say, by the reason.
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
        wishes: list[PathCandidates] = []
        defaults: list[tuple[str, str, str | None]] = []
        for entry in contents.files:
            self.hosts.add(_host_of_name(entry.name))
            if is_default_page(entry.name):
                defaults.append((entry.name, entry.record.capture.uri, entry.mime))
            else:
                wishes.append(self._mapper.candidates(entry.name, entry.record.capture.uri, entry.mime))
        # What a folder shows is its own page, if it has one; that is known when all were seen.
        folders = {uri_names.folder_of_default_page(name) for name, _, _ in defaults}
        folders.intersection_update([wish.key for wish in wishes])
        for name, uri, mime in defaults:
            is_default = uri_names.folder_of_default_page(name) not in folders
            wishes.append(self._mapper.candidates(name, uri, mime, is_default=is_default))
        for wish in wishes:
            self.renamed.update(wish.reasons)
        return wishes

    def free_path(self, names: tuple[str, ...]) -> str:
        """Return the first of several paths that no file or folder of the site has; a variation if all are taken."""
        return self._allocator.free_path(PathCandidates("", names, names[0]))

    def resolve(self, uri: str, use: LinkKind) -> LinkTarget:
        """Return where a link leads: through redirects and other spellings, to a file if there is one.

        What is on the site, and is not there, is where its file would be. On the site is what a recovery would have
        taken for a part of it; parts of pages may also be on other hosts, if anything was recovered from these.
        """
        try:
            name = uri_names.page_name(uri, ignore_case=self._ignore_case)
        except UriError:
            return LinkTarget(LinkTargetKind.OUTSIDE, None, uri)
        name, uri = self._follow_redirects(name, uri)
        path = self.paths.get(name)
        if path is not None:
            return LinkTarget(LinkTargetKind.FILE, path, uri, relative_url(path))
        if not self._is_inside(name, uri, use):
            return LinkTarget(LinkTargetKind.OUTSIDE, None, uri)
        wish = self._mapper.candidates_for_missing(name, uri, is_page=use is not LinkKind.REQUISITE)
        path = self._allocator.free_path(wish)
        return LinkTarget(LinkTargetKind.MISSING, path, uri, relative_url(path))

    def _follow_redirects(self, name: str, uri: str) -> tuple[str, str]:
        """Return name and address of what is behind redirects; of a loop, those of its beginning."""
        first = name, uri
        for _ in range(_MAX_REDIRECT_CHAIN):
            name = self._aliases.get(name, name)
            if name in self.paths or name not in self._redirects:
                return name, uri
            uri = self._redirects[name]
            if len(uri) > _MAX_REDIRECT_URL:
                return first
            try:
                name = uri_names.page_name(uri, ignore_case=self._ignore_case)
            except UriError:
                return first
        return first

    def _is_inside(self, name: str, uri: str, use: LinkKind) -> bool:
        if use is LinkKind.REQUISITE and _host_of_name(name) in self.hosts:
            return True
        scope = self._scope
        if scope is None:
            return _host_of_name(name) in self.hosts
        if not scope.is_own(uri):
            return False
        is_elsewhere = _host_of_name(name) != scope.host or scope.folder is None or use is not LinkKind.PAGE
        return is_elsewhere or name == scope.folder or name.startswith((f"{scope.folder}/", f"{scope.folder}?"))


def _host_of_name(name: str) -> str:
    return name.partition("/")[0]


def _export_scope(options: RecoverOptions | None) -> RecoveryScope | None:
    try:
        return None if options is None else RecoveryScope.of(options)
    except (UriError, UsageError):
        return None  # of a state that somebody changed


EMPTY_IMAGE_URL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
"""An address that leads to nothing, without asking anybody."""
_MAX_URL = 8_000  # letters, as `rewrite` takes them
_DEFAULT_REPLAY_PREFIX = "https://web.archive.org/web/"
_URIM = re.compile(r"(https?://[^\s?#]{1,500}?/)\d{4,14}(?:[a-z]{2}_)?/(?=https?:/|[\w-]+\.)", re.ASCII)


class ExternalLinks(StrEnum):
    """What to do with them."""

    KEEP = "keep"
    """Nothing."""
    ARCHIVE = "archive"
    """They lead to the copies of an archive, as of the date of the page."""
    NONE = "none"
    """What is needed to show a page leads to nothing, so that nobody is asked for it; links stay."""


def replay_prefix(urim: str | None) -> str:
    """Return what an archive puts before the date and the address of a copy.

    urim: the address of one of its copies. Where that does not tell, the Wayback Machine's.

    >>> replay_prefix("https://arquivo.pt/wayback/20140102030405id_/http://a.example/")
    'https://arquivo.pt/wayback/'
    >>> replay_prefix("https://archive.ph/Ab1cD")
    'https://web.archive.org/web/'
    """
    found = _URIM.match(urim or "")
    return found[1] if found and found[1].isascii() else _DEFAULT_REPLAY_PREFIX


def external_url(external: ExternalLinks, uri: str, use: LinkKind, date: str, urim: str | None) -> str | None:
    """Return what stands in the place of a link that leads away from the site; None if it stays as it is.

    date: of the page, 14 digits. urim: the address of its copy in the archive that it is from.

    >>> external_url(ExternalLinks.ARCHIVE, "http://b.example/", LinkKind.PAGE, "20140102030405", None)
    'https://web.archive.org/web/20140102030405/http://b.example/'
    """
    if external is ExternalLinks.NONE and use is LinkKind.REQUISITE:
        return EMPTY_IMAGE_URL
    if external is ExternalLinks.ARCHIVE:
        found = f"{replay_prefix(urim)}{date}/{uri}"
        return found if len(found) <= _MAX_URL else None
    return None


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
