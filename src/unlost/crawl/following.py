"""From links, redirects and sitemaps to what is visited next: what is in scope, known by no other name, and no trap."""

from collections import Counter
from collections.abc import Iterable, Sequence

from unlost.archives.asking.addresses import parse
from unlost.archives.spelling import asked
from unlost.clock import Clock
from unlost.crawl.bounds import host_of
from unlost.crawl.calendars import is_endless
from unlost.crawl.plan import Plan
from unlost.crawl.scope import ELSEWHERE, Scope
from unlost.crawl.state import CrawlState, Queued, Wanted
from unlost.crawl.traps import Traps
from unlost.dates import from_epoch
from unlost.errors import UriError
from unlost.pages.link import Link, Use
from unlost.uri import key_many
from unlost.uri.naming import names_of

CHAIN = 10
"""Redirects that are followed one behind the other. Browsers follow 20; who needs more than a few goes in a circle."""

MAX_KNOWN = 1_000_000
"""Addresses that are remembered: a state of some 500 MB. What links lead to beyond that is only counted."""

MAX_SITEMAPS = 500
"""Sitemaps of one crawl, with those in indexes."""

MAX_LISTED = 200_000
"""Addresses that are taken from sitemaps: at one a second, two days and a half."""

_EXAMPLES = 1_000  # of addresses that are left out, for each reason
_NOT_TOLD = frozenset({ELSEWHERE, "unwanted"})


class Following:
    """Puts into the queue of a crawl what leads on.

    known: how many addresses are. hosts: those on which something was put into the queue since somebody emptied it.
    """

    def __init__(self, plan: Plan, scope: Scope, state: CrawlState, clock: Clock) -> None:
        self._plan = plan
        self._scope = scope
        self._state = state
        self._year = int(from_epoch(str(int(clock.now())))[:4])
        self._traps = Traps(alike=plan.alike)
        for name in state.names():  # as far as it had counted before
            self._traps.reason(name)
        self._left_out: Counter[str] = Counter(state.left_out())  # by the reason
        self._sitemaps = state.sitemaps()
        self._listed = state.listed()
        self.known = state.total()
        self.hosts: set[str] = set()

    def begin(self) -> None:
        """Want the addresses that were given. Raises UriError for one that is none."""
        for uris, is_start in ((self._plan.starts, True), (self._plan.extra, False)):
            spelled = [str(parse(asked(uri))) for uri in uris]
            found = [Link(uri, Use.PAGE) for uri in spelled]
            self._want(found, 0, is_start=is_start)

    def begin_lists(self, origin: str, sitemaps: Sequence[str]) -> None:
        """Want the sitemaps of a site: those that its robots.txt names, and the one that most sites have."""
        if not self._plan.sitemaps:
            return
        self._want([Link(uri, Use.LIST) for uri in sitemaps], 0, is_sitemap=True)
        self._want([Link(f"{origin}/sitemap.xml", Use.LIST)], 0, is_sitemap=True, is_guess=True)

    def follow(self, source: Queued, links: Iterable[Link], *, is_sitemap: bool) -> None:
        """Want what a page, or a sitemap, links to."""
        found = list(links)
        if source.use is not Use.LIST:
            targets = [
                *self._want([link for link in found if link.use is Use.PAGE], source.far + 1),
                *self._want([link for link in found if link.use is Use.REQUISITE], source.far),
            ]
            self._want([link for link in found if link.use is Use.LIST], source.far + 1)
            self._state.link(source.id, targets)
            return
        self._want([link for link in found if link.use is Use.LIST], source.far, is_sitemap=is_sitemap)
        # What is named there is as near as what the front page links to.
        self._want([link for link in found if link.use is not Use.LIST], source.far + 1, in_sitemap=is_sitemap)

    def redirect(self, source: Queued, target: str) -> tuple[int | None, str | None]:
        """Want what an address redirects to, in its place; return its id if it is known, and what is strange about it.

        What is strange is `elsewhere`, `circle`, `redirects` (too many of them), or why the target is left out.
        """
        name, key = names_of([target])[0], key_many([target])[0]
        if isinstance(name, UriError) or isinstance(key, UriError):
            return None, "no-address"
        own = names_of([source.uri])[0]
        reason = self._scope.reason_against(target, name, source.use, source.far, is_link=name != own)
        if reason in _NOT_TOLD:
            return None, reason
        names, uris = self._state.known([name], [target])
        # Only another spelling of the same page has to be asked for by itself: with https, or with a slash.
        number = uris.get(target) or (names.get(name) if name != own else None)
        if number is not None:
            is_circle = number == source.id or number in self._state.chain(source.id, CHAIN)
            return number, "circle" if is_circle else None
        if source.redirects >= CHAIN:
            reason = reason or "redirects"
        wanted = Wanted(
            target, name, key, _paced(name), source.use, source.far,
            in_sitemap=False, is_sitemap=source.is_sitemap, redirects=source.redirects + 1, is_guess=source.is_guess,
        )  # fmt: skip
        return self._added(wanted, reason), reason

    def note(self) -> None:
        """Put into the state how many links were not followed: call it before each commit."""
        self._state.keep_left_out(self._left_out)

    def _want(
        self,
        links: Sequence[Link],
        far: int,
        *,
        in_sitemap: bool = False,
        is_sitemap: bool = False,
        is_start: bool = False,
        is_guess: bool = False,
    ) -> list[tuple[int, Use]]:
        """Want what links lead to; return the ids of what is known then, with the use of each link."""
        names, keys = names_of([link.uri for link in links]), key_many([link.uri for link in links])
        fit: list[tuple[Link, Wanted, str | None]] = []
        for link, name, key in zip(links, names, keys, strict=True):
            if isinstance(name, UriError) or isinstance(key, UriError):
                continue
            reason = self._scope.reason_against(link.uri, name, link.use, far, is_link=not in_sitemap)
            host = _paced(name)
            if reason in _NOT_TOLD:
                continue
            wanted = Wanted(link.uri, name, key, host, link.use, far, in_sitemap, is_sitemap, 0, is_start, is_guess)
            fit.append((link, wanted, reason))
        by_name, by_uri = self._state.known([each.name for _, each, _ in fit], [each.uri for _, each, _ in fit])
        found: list[tuple[int, Use]] = []
        named: set[int] = set()
        for link, wanted, reason in fit:
            number = by_uri.get(wanted.uri) or by_name.get(wanted.name)
            if number is None:
                number = self._added(wanted, reason)
                if number is not None:
                    by_name[wanted.name] = by_uri[wanted.uri] = number
            elif reason is None:
                self._state.want_after_all(number, wanted)
                self.hosts.add(wanted.host)
            if number is not None:
                found.append((number, link.use))
                named.add(number)
        if in_sitemap:
            self._state.note_sitemap(named)
        return found

    def _added(self, wanted: Wanted, reason: str | None) -> int | None:
        """Note an address that is not known; return its id, or None if it is only counted."""
        reason = reason or self._trap(wanted)
        if reason is None:
            self.known += 1
            self._sitemaps += wanted.is_sitemap
            self._listed += wanted.in_sitemap
            self.hosts.add(wanted.host)
            return self._state.want(wanted)
        self._left_out[reason] += 1
        if self._left_out[reason] > _EXAMPLES or self.known >= MAX_KNOWN:
            return None
        self.known += 1
        return self._state.leave_out(wanted, reason)

    def _trap(self, wanted: Wanted) -> str | None:
        """Return why an address is not visited although it is in scope; None if it is."""
        if self.known >= MAX_KNOWN:
            return "too-many"
        if wanted.is_start or wanted.is_guess or wanted.name in self._scope.named:
            return None
        if wanted.is_sitemap and self._sitemaps >= MAX_SITEMAPS:
            return "too-many-sitemaps"
        if wanted.in_sitemap:
            return "too-many-listed" if self._listed >= MAX_LISTED else None
        is_trap = is_endless(wanted.name, self._year) or self._traps.reason(wanted.name) is not None
        return "trap" if is_trap else None


def _paced(name: str) -> str:
    """Return the host that a page is on, without `www` and its port: what is visited by one request at a time."""
    host = host_of(name)
    before, _, port = host.rpartition(":")
    return before if port.isdecimal() and before else host
