"""From links and lists to what is wanted: what is in scope, and no trap."""

import re
from collections import Counter
from collections.abc import Iterable

from unlost.crawl.traps import Traps
from unlost.errors import UriError
from unlost.pages.link import Link, Use
from unlost.recover.listing_filter import NOT_LINKED, OUT_OF_SCOPE, ListingFilter
from unlost.recover.plan import Plan, Policy
from unlost.recover.scope import Scope
from unlost.recover.state.listings import Listed
from unlost.recover.state.resources import Resource, Standing, Wanted
from unlost.recover.state.state import State
from unlost.uri import naming

_CHAIN = 20  # redirects that are followed one behind the other; browsers follow as many
OVER_CAP = "page requisites on other hosts beyond --requisite-files or --requisite-bytes"
# Where no list tells what is there, each guess costs a question to every archive.
_GUESSES = 50  # of one page, or script
_GUESSES_IN_ALL = 2_000


# What scripts ask for to show it; all else is a page.
_SHOWN = re.compile(
    r"\.(png|jpe?g|gif|webp|svg|ico|bmp|avif|css|m?js|json|woff2?|ttf|otf|eot|mp[34]|m4a|og[gv]|webm|wav|swf|flv)$",
    re.IGNORECASE,
)


class Following:
    """Puts into the queue what links lead to.

    trapped: how many links were not followed since they look like a trap, by the reason.
    other_hosts: counts what pages need from other hosts.
    """

    def __init__(self, plan: Plan, scope: Scope, state: State, this_year: int) -> None:
        self._plan = plan
        self._scope = scope
        self._state = state
        self._traps = Traps()
        self._filter = ListingFilter(state, this_year)
        self.other_hosts = OtherHosts(plan, scope, state)
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
        if self._plan.page or self._plan.policy.uses_listings:
            return False
        if counts[Standing.QUEUED] or counts[Standing.RECOVERED] or not counts[Standing.LISTED]:
            return False
        self.want_listed()
        return self._state.resources.counts()[Standing.QUEUED] > 0

    def follow(self, source: Resource, links: Iterable[Link], date: str) -> None:
        """Want what a resource links to and the scope admits. date: of the copy that has the links, 14 digits."""
        found = ((link, source.hops + (link.use is not Use.REQUISITE)) for link in links)
        admitted = [(link, hops) for link, hops in found if self._admits(link, hops)]
        wanted, over = self.other_hosts.within_caps(self._named(admitted, date))
        if over:
            self.trapped[OVER_CAP] += over
        self._state.resources.want(wanted, source.id)

    def consider(self, source: Resource, candidates: Iterable[str], date: str) -> None:
        """Want what scripts of a resource may ask for, if it is on the site's own hosts, in scope, and listed.

        Where there are no lists, some of it is wanted when nothing else is left to ask for. What is not there is not
        missing. date: of the copy that has the scripts, 14 digits.
        """
        links = [Link(uri, _use_of(uri)) for uri in candidates if self._scope.is_own(uri)]
        found = [(link, source.hops + (link.use is not Use.REQUISITE)) for link in links]
        admitted = [(link, hops) for link, hops in found if self._admits(link, hops)]
        names = naming.names_of([link.uri for link, _ in admitted], ignore_case=self._plan.ignore_case)
        wanted = [
            Wanted(name, link.uri, link.use, hops, date if link.use is Use.REQUISITE else None)
            for name, (link, hops) in zip(names, admitted, strict=True)
            if not isinstance(name, UriError)
        ]
        if self._is_without_lists():
            wanted = wanted[:_GUESSES]
        if not wanted:
            return
        left_out = self._state.candidates.note(wanted)
        if left_out:
            self.trapped["more addresses in scripts than are remembered"] += left_out
        self.want_candidates([each.name for each in wanted])

    def guess_without_query(self, resource: Resource) -> Resource | None:
        """Queue the URL of a resource without its query; it is not missing if no archive has it."""
        uri, name = resource.uri.partition("?")[0], resource.name.partition("?")[0]
        guess = Wanted(name, uri, resource.use, resource.hops, resource.near)
        if self._state.resources.ids([name]) or self._state.candidates.note([guess]):
            return None
        self._state.candidates.note_wanted([guess])
        return self._state.resources.get(self._state.resources.want([guess])[0])

    def want_candidates(self, names: list[str] | None = None) -> None:
        """Want the candidates of which lists have shown that they are there. names: only of these; None for all."""
        found = self._state.candidates.listed(names)
        if found:
            self._state.resources.want(found)
            self._state.candidates.note_wanted(found)
        if not self._is_without_lists():
            return
        guesses = self._state.candidates.unknown(_GUESSES_IN_ALL - self._state.candidates.wanted(), names)
        if not guesses:
            return
        self._state.candidates.note_wanted(guesses)
        safe = self._safe(guesses)
        self._state.resources.put_last(self._state.resources.want(safe))

    def _is_without_lists(self) -> bool:
        """Return whether no archive is asked for lists, or none has any."""
        if self._plan.policy is Policy.NAIVE or not self._scope.prefixes:
            return True
        outcomes = {each.outcome for each in self._state.listings.all()}
        return outcomes == {Listed.UNSUPPORTED}

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
        """Queue everything listed that is in scope, but for what the plan leaves out."""
        plan = self._plan
        if plan.page:
            return
        is_filtered = plan.policy is Policy.COMPLETE and not plan.include_left_out
        for part in self._state.resources.undecided():
            if plan.policy is Policy.COMPLETE and plan.depth is not None:
                self._state.resources.leave_out({each.id: NOT_LINKED for each in part})
                continue
            inside = [each for each in part if self._is_listed_inside(each)]
            reasons = {each.id: OUT_OF_SCOPE for each in part} if len(inside) < len(part) else {}
            for each in inside:
                reasons.pop(each.id, None)
            if is_filtered:
                reasons |= self._filter.reasons(inside)
            self._state.resources.leave_out(reasons)
            self._state.resources.queue_listed([each.id for each in inside if each.id not in reasons])

    def listed_to_want(self) -> int:
        """Return how many resources `want_listed` would queue at most: crawl traps and duplicates are among them."""
        plan = self._plan
        if plan.page or (plan.policy is Policy.COMPLETE and plan.depth is not None):
            return 0
        return sum(sum(map(self._is_listed_inside, part)) for part in self._state.resources.undecided())

    def _is_listed_inside(self, resource: Resource) -> bool:
        """Return whether a listed resource is in scope. Files that pages need have no other scope than pages here."""
        uri = resource.uri
        return self._scope.is_own(uri) and self._scope.admits(uri, Use.PAGE, resource.hops)

    def _named(self, links: list[tuple[Link, int]], date: str | None) -> list[Wanted]:
        names = naming.names_of([link.uri for link, _ in links], ignore_case=self._plan.ignore_case)
        wanted = []
        for name, (link, hops) in zip(names, links, strict=True):
            if isinstance(name, UriError):
                continue
            near = date if link.use is Use.REQUISITE else None
            wanted.append(Wanted(name, link.uri, link.use, hops, near))
        return self._safe(wanted)

    def _safe(self, wanted: list[Wanted]) -> list[Wanted]:
        """Return those that are no trap, and count the others."""
        known = self._state.resources.ids({each.name for each in wanted})
        safe = []
        for each in wanted:
            if each.name not in known and (reason := self._traps.reason(each.name)) is not None:
                self.trapped[reason] += 1
            else:
                safe.append(each)
        return safe


class OtherHosts:
    """Counts what pages need from other hosts, over all runs, and keeps it within the caps of a plan."""

    def __init__(self, plan: Plan, scope: Scope, state: State) -> None:
        self._plan = plan
        self._scope = scope
        self._state = state
        found = state.resources.outside(scope.host)
        sizes = [size for uri, size in found if not scope.is_own(uri)]
        self._files = len(sizes)
        self._bytes = sum(sizes)

    def note_stored(self, uri: str, size: int) -> None:
        """Count the bytes of a capture that was stored, if it is one of another host."""
        if not self._scope.is_own(uri):
            self._bytes += size

    def within_caps(self, wanted: list[Wanted]) -> tuple[list[Wanted], int]:
        """Return what may be queued, and how many requisites of other hosts may not."""
        others = {each.name for each in wanted if each.use is Use.REQUISITE and not self._scope.is_own(each.uri)}
        if not others:
            return wanted, 0
        new = sorted(others - self._state.resources.ids(others).keys())
        room = max(0, self._plan.requisite_files - self._files) if self._bytes < self._plan.requisite_bytes else 0
        self._files += min(room, len(new))
        left_out = set(new[room:])
        return [each for each in wanted if each.name not in left_out], len(left_out)


def _use_of(uri: str) -> Use:
    return Use.REQUISITE if _SHOWN.search(re.split("[?#]", uri, maxsplit=1)[0]) else Use.PAGE
