"""What belongs to the site that is visited."""

from dataclasses import dataclass

from unlost.crawl.bounds import Picking, folder_of, host_of, is_below, is_in_folder
from unlost.crawl.plan import Plan, Reach
from unlost.pages.link import Use
from unlost.uri.naming import name_of

ELSEWHERE = "elsewhere"
"""Why most links are not followed: they lead to other sites."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The bounds of a crawl, as a plan sets them; `Scope.of` makes it.

    hosts: of the starts, as in names: without `www`, with their ports. folders: of the starts, as names.
    named: the names of all addresses that were given; they are always wanted.
    """

    plan: Plan
    hosts: frozenset[str]
    folders: frozenset[str]
    named: frozenset[str]
    _picking: Picking

    @classmethod
    def of(cls, plan: Plan) -> "Scope":
        """Return the scope of a plan. Raises UriError for an address that is none, UsageError for an expression."""
        starts = [name_of(uri) for uri in plan.starts]
        return cls(
            plan,
            frozenset(map(host_of, starts)),
            frozenset(name_of(folder_of(uri)) for uri in plan.starts),
            frozenset([*starts, *map(name_of, plan.extra)]),
            Picking.of(plan.include, plan.exclude),
        )

    def reason_against(self, uri: str, name: str, use: Use, hops: int, *, is_link: bool = True) -> str | None:
        """Return why an address is not wanted that a link of this use leads to, in a word; None if it is.

        name: of the address. hops: how many links away from a beginning it is. is_link: whether it is a link of a page,
        and no entry of a sitemap, nor another spelling of what is wanted anyway.

        The words are `elsewhere`, `outside` (on the site's hosts, but not in its folder), `unwanted` (links of this use
        are not followed), `too-far`, `too-deep` and `excluded`.
        """
        if name in self.named:
            return None
        plan = self.plan
        is_followed = plan.links if use is Use.PAGE else plan.parts if use is Use.REQUISITE else plan.sitemaps
        if is_link and not is_followed:
            return "unwanted"
        return self._place(name, use) or self._distance(name, use, hops) or self._picked(uri, use)

    def _distance(self, name: str, use: Use, hops: int) -> str | None:
        if self.plan.hops is not None and use is Use.PAGE and hops > self.plan.hops:
            return "too-far"
        folders = name.partition("?")[0].rstrip("/").count("/") - 1
        return "too-deep" if self.plan.depth is not None and folders > self.plan.depth else None

    def _picked(self, uri: str, use: Use) -> str | None:
        return None if self._picking.picks(uri, is_list=use is Use.LIST) else "excluded"

    def _place(self, name: str, use: Use) -> str | None:
        host = host_of(name)
        if not self.has_host(host):
            return None if use is Use.REQUISITE and self.plan.foreign_parts else ELSEWHERE
        if self.plan.reach is not Reach.PREFIX or use is not Use.PAGE:
            return None
        return None if any(_is_in(name, folder) for folder in self.folders) else "outside"

    def has_host(self, host: str) -> bool:
        """Return whether a host, as names have it, is one of the site."""
        if host in self.hosts:
            return True
        return self.plan.reach is Reach.DOMAIN and any(is_below(host, each) for each in self.hosts)


def _is_in(name: str, folder: str) -> bool:
    # The name of a whole host ends in its one slash.
    return name.startswith(folder) if folder.endswith("/") else is_in_folder(name, folder)
