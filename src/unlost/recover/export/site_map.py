"""Which address of a site is which file of its export."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from unlost.errors import UriError, UsageError
from unlost.pages.link import LinkKind
from unlost.recover.export.contents import ExportContents
from unlost.recover.export.local_address import relative_url
from unlost.recover.export.placing.clashes import PathAllocator
from unlost.recover.export.placing.paths import PathMapper, is_default_page
from unlost.recover.export.placing.style import PathStyle
from unlost.recover.export.placing.wish import PathCandidates
from unlost.recover.plan import RecoverOptions
from unlost.recover.scope import RecoveryScope
from unlost.uri import naming

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
        folders = {naming.folder_of_default_page(name) for name, _, _ in defaults}
        folders.intersection_update([wish.key for wish in wishes])
        for name, uri, mime in defaults:
            is_default = naming.folder_of_default_page(name) not in folders
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
            name = naming.page_name(uri, ignore_case=self._ignore_case)
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
                name = naming.page_name(uri, ignore_case=self._ignore_case)
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
