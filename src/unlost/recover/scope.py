"""What belongs to the site: which addresses are wanted, and what archives are asked to list."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from unlost.crawl.bounds import Picking, cut, folder_of, host_of, is_below, is_in_folder, is_ip
from unlost.errors import UriError
from unlost.pages.link import Use
from unlost.recover.plan import Plan
from unlost.uri.naming import name_of


@dataclass(frozen=True, slots=True)
class Scope:
    """The bounds of a recovery, as a plan sets them; `Scope.of` makes it.

    prefixes: what to ask listers for, as `Repository.under` takes it; empty if only pages were named.
    host: the site's own host with its port, as in names: without `www`.
    folder: the name of the folder that pages must be in; None for the whole host.
    named: the names of the addresses that were given; they are always wanted.
    hosts: the hosts of those.
    """

    plan: Plan
    prefixes: tuple[str, ...]
    host: str
    folder: str | None
    named: frozenset[str]
    hosts: frozenset[str]
    _picking: Picking

    @classmethod
    def of(cls, plan: Plan) -> "Scope":
        """Return the scope of a plan.

        The folder is that of the address, as `folder_of` has it. Subdomains are all hosts below the start's own,
        without `www`: what its owner registered above that does not count, since others may share it; on all of them,
        any path.

        Raises UriError for an address that is none, UsageError for an expression that is none.
        """
        folder = folder_of(plan.url)
        host, slash, path = _name(plan, folder).partition("/")
        named = frozenset(_name(plan, uri) for uri in (plan.url, *plan.urls))
        return cls(
            plan,
            _prefixes(plan, host, folder),
            host,
            host + slash + path if path else None,
            named,
            frozenset(map(host_of, named)),
            Picking.of(plan.include, plan.exclude, ignore_case=plan.ignore_case),
        )

    def admits(self, uri: str, use: Use, hops: int) -> bool:
        """Return whether an address is wanted that was found as a link of this use.

        hops: how many links away from a beginning it is.

        What was named is always wanted. Other pages must be in the folder and near enough; what is needed to show a
        page may be anywhere on the site's hosts, however far, or with `page_requisites` on any host; lists must be on
        its hosts and near enough, and are not held to `include`, since they lead to what is. URLs of other schemes
        than http and https are never wanted.
        """
        try:
            name = _name(self.plan, uri)
        except UriError:
            return False
        if name in self.named:
            return True
        if use is not Use.REQUISITE and (self.plan.page or not self._is_near(hops)):
            return False
        return self._has_place(name, use) and self._picking.picks(uri, is_list=use is Use.LIST)

    def is_own(self, uri: str) -> bool:
        """Return whether an address is on one of the site's hosts, in whatever folder: not elsewhere."""
        try:
            return self._has_host(host_of(_name(self.plan, uri)))
        except UriError:
            return False

    def beginnings(self) -> tuple[tuple[str, Use], ...]:
        """Return the addresses to begin from, with their use, in order; each page once.

        The start, the further addresses, and, unless only pages were named, the site's `robots.txt` and `sitemap.xml`.
        """
        pages: dict[str, tuple[str, Use]] = {}
        for uri in (self.plan.url, *self.plan.urls):
            pages.setdefault(_name(self.plan, uri), ("".join(cut(uri)), Use.PAGE))
        if self.plan.page:
            return tuple(pages.values())
        place = cut(self.plan.url)[0]
        return (*pages.values(), (f"{place}/robots.txt", Use.LIST), (f"{place}/sitemap.xml", Use.LIST))

    def _is_near(self, hops: int) -> bool:
        return self.plan.depth is None or hops <= self.plan.depth

    def _has_place(self, name: str, use: Use) -> bool:
        host = host_of(name)
        if use is not Use.PAGE:
            return self._has_host(host) or (use is Use.REQUISITE and self.plan.page_requisites)
        if host != self.host:
            return self._is_below(host)
        return self.folder is None or is_in_folder(name, self.folder)

    def _has_host(self, host: str) -> bool:
        return host == self.host or host in self.hosts or self._is_below(host)

    def _is_below(self, host: str) -> bool:
        return self.plan.subdomains and is_below(host, self.host)


def _name(plan: Plan, uri: str) -> str:
    return name_of(uri, ignore_case=plan.ignore_case)


def _prefixes(plan: Plan, host: str, folder: str) -> tuple[str, ...]:
    """Return what to ask for: the folder in the spelling that it was given in, by which archives know it."""
    if plan.page:
        return ()
    if plan.subdomains and not is_ip(host):
        return (f"*.{urlsplit(f'//{host}').hostname}",)
    path = cut(folder)[1]
    return (f"http://{host}" + ("" if path.strip("/") == "" else path),)
