"""From links and lists to what is wanted: what is in scope, and no trap."""

from collections import Counter
from collections.abc import Iterable

from unlost.errors import UriError
from unlost.pages.link import Link, Use
from unlost.recover import naming
from unlost.recover.plan import Plan
from unlost.recover.scope import Scope
from unlost.recover.state.resources import Resource, Standing, Wanted
from unlost.recover.state.state import State
from unlost.recover.traps import Traps

_CHAIN = 20  # redirects that are followed one behind the other; browsers follow as many


class Following:
    """Puts into the queue what links lead to.

    trapped: how many links were not followed since they look like a trap, by the reason.
    """

    def __init__(self, plan: Plan, scope: Scope, state: State) -> None:
        self._plan = plan
        self._scope = scope
        self._state = state
        self._traps = Traps()
        self._chains: dict[int, int] = {}  # how many redirects led to a resource
        self.trapped: Counter[str] = Counter()

    def begin(self) -> None:
        """Want the beginnings of the site."""
        named = [(Link(uri, use), 0) for uri, use in self._scope.beginnings()]
        self._state.resources.want(self._named(named, None))

    def begin_from_lists(self) -> bool:
        """Want everything that is listed if nothing of the beginnings came back; return whether that is so.

        Nothing leads to the pages of a site whose front page no archive has.
        """
        counts = self._state.resources.counts()
        if self._plan.page or counts[Standing.QUEUED] or counts[Standing.RECOVERED] or not counts[Standing.LISTED]:
            return False
        self.want_listed()
        return self._state.resources.counts()[Standing.QUEUED] > 0

    def follow(self, source: Resource, links: Iterable[Link], date: str) -> None:
        """Want what a resource links to and the scope admits. date: of the copy that has the links, 14 digits."""
        found = ((link, source.hops + (link.use is not Use.REQUISITE)) for link in links)
        admitted = [(link, hops) for link, hops in found if self._admits(link, hops)]
        self._state.resources.want(self._named(admitted, date), source.id)

    def _admits(self, link: Link, hops: int) -> bool:
        """Return whether a link is in scope, or is only spelled otherwise than what is listed there."""
        if self._scope.admits(link.uri, link.use, hops):
            return True
        if not self._scope.is_own(link.uri):
            return False
        meant = self._state.resources.meant(naming.name_of(link.uri, ignore_case=self._plan.ignore_case))
        return meant is not None and self._scope.admits(meant, link.use, hops)

    def redirect(self, source: Resource, target: str) -> None:
        """Want what a resource redirects to, in its place."""
        if not self._scope.is_own(target) and not self._scope.admits(target, source.use, source.hops):
            return
        length = self._chains.pop(source.id, 0) + 1
        if length > _CHAIN:
            self.trapped["redirects that lead on and on"] += 1
            return
        wanted = self._named([(Link(target, source.use), source.hops)], source.near)
        for number in self._state.resources.want(wanted, source.id):
            self._chains[number] = length

    def want_listed(self) -> None:
        """Want everything in scope that is listed."""
        for part in self._state.resources.parts(Standing.LISTED):
            admitted = (each for each in part if self._scope.admits(each.uri, each.use, each.hops))
            self._state.resources.want([Wanted(each.name, each.uri, each.use, each.hops) for each in admitted])

    def _named(self, links: list[tuple[Link, int]], date: str | None) -> list[Wanted]:
        names = naming.names_of([link.uri for link, _ in links], ignore_case=self._plan.ignore_case)
        known = self._state.resources.ids({name for name in names if not isinstance(name, UriError)})
        wanted = []
        for name, (link, hops) in zip(names, links, strict=True):
            if isinstance(name, UriError):
                continue
            if name not in known and (reason := self._traps.reason(name)) is not None:
                self.trapped[reason] += 1
                continue
            near = date if link.use is Use.REQUISITE else None
            wanted.append(Wanted(name, link.uri, link.use, hops, near))
        return wanted
