"""Which address of a site is which file of its export."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from unlost.errors import UriError, UsageError
from unlost.pages.link import Use
from unlost.recover.export.contents import Contents
from unlost.recover.export.local_address import address_of
from unlost.recover.export.placing.clashes import Places
from unlost.recover.export.placing.paths import Paths, is_default_page
from unlost.recover.export.placing.style import Style
from unlost.recover.export.placing.wish import Wish
from unlost.recover.plan import Plan
from unlost.recover.scope import Scope
from unlost.uri import naming

_CHAIN = 20  # redirects that are followed one behind the other; browsers follow as many
_LONG = 2_000  # letters of an address that a redirect leads to: no browser of that time opened a longer one


class Kind(StrEnum):
    """What a link leads to."""

    FILE = "file"
    MISSING = "missing"
    """A part of the site that was not recovered."""
    OUTSIDE = "outside"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a link leads.

    path: of the file, or where it would be; None outside the site.
    uri: the address that it leads to in the end.
    address: the path as it stands in links from the top of the export; empty outside the site.
    """

    kind: Kind
    path: str | None
    uri: str
    address: str = ""


class SiteMap:
    """Where everything is.

    paths: of files, by the names of resources. hosts: of these resources.
    renamed: how many files are not called what their addresses say, by the reason.
    """

    def __init__(self, contents: Contents, style: Style) -> None:
        self._ignore_case = contents.ignore_case
        self._redirects = contents.redirects
        self._aliases = contents.aliases
        self._scope = _scope(contents.plan)
        self.hosts: set[str] = set()
        self._mapped = Paths(style, None if self._scope is None else self._scope.host)
        self.renamed: Counter[str] = Counter()
        self._places = Places(self._wishes(contents))
        self.renamed += self._places.renamed
        self.paths = self._places.paths

    def _wishes(self, contents: Contents) -> list[Wish]:
        wishes: list[Wish] = []
        defaults: list[tuple[str, str, str | None]] = []
        for entry in contents.files:
            self.hosts.add(_host(entry.name))
            if is_default_page(entry.name):
                defaults.append((entry.name, entry.record.capture.uri, entry.mime))
            else:
                wishes.append(self._mapped.wish(entry.name, entry.record.capture.uri, entry.mime))
        # What a folder shows is its own page, if it has one; that is known when all were seen.
        folders = {naming.folder_name(name) for name, _, _ in defaults}
        folders.intersection_update([wish.key for wish in wishes])
        for name, uri, mime in defaults:
            is_default = naming.folder_name(name) not in folders
            wishes.append(self._mapped.wish(name, uri, mime, is_default=is_default))
        for wish in wishes:
            self.renamed.update(wish.reasons)
        return wishes

    def free_path(self, names: tuple[str, ...]) -> str:
        """Return the first of several paths that no file or folder of the site has; a variation if all are taken."""
        return self._places.would_be(Wish("", names, names[0]))

    def destination(self, uri: str, use: Use) -> Destination:
        """Return where a link leads: through redirects and other spellings, to a file if there is one.

        What is on the site, and is not there, is where its file would be. On the site is what a recovery would have
        taken for a part of it; parts of pages may also be on other hosts, if anything was recovered from these.
        """
        try:
            name = naming.name_of(uri, ignore_case=self._ignore_case)
        except UriError:
            return Destination(Kind.OUTSIDE, None, uri)
        name, uri = self._followed(name, uri)
        path = self.paths.get(name)
        if path is not None:
            return Destination(Kind.FILE, path, uri, address_of(path))
        if not self._is_inside(name, uri, use):
            return Destination(Kind.OUTSIDE, None, uri)
        wish = self._mapped.missing(name, uri, is_page=use is not Use.REQUISITE)
        path = self._places.would_be(wish)
        return Destination(Kind.MISSING, path, uri, address_of(path))

    def _followed(self, name: str, uri: str) -> tuple[str, str]:
        """Return name and address of what is behind redirects; of a loop, those of its beginning."""
        first = name, uri
        for _ in range(_CHAIN):
            name = self._aliases.get(name, name)
            if name in self.paths or name not in self._redirects:
                return name, uri
            uri = self._redirects[name]
            if len(uri) > _LONG:
                return first
            try:
                name = naming.name_of(uri, ignore_case=self._ignore_case)
            except UriError:
                return first
        return first

    def _is_inside(self, name: str, uri: str, use: Use) -> bool:
        if use is Use.REQUISITE and _host(name) in self.hosts:
            return True
        scope = self._scope
        if scope is None:
            return _host(name) in self.hosts
        if not scope.is_own(uri):
            return False
        is_elsewhere = _host(name) != scope.host or scope.folder is None or use is not Use.PAGE
        return is_elsewhere or name == scope.folder or name.startswith((f"{scope.folder}/", f"{scope.folder}?"))


def _host(name: str) -> str:
    return name.partition("/")[0]


def _scope(plan: Plan | None) -> Scope | None:
    try:
        return None if plan is None else Scope.of(plan)
    except (UriError, UsageError):
        return None  # of a state that somebody changed
