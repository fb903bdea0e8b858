"""From links and lists to what is wanted: what is in scope, and no trap."""

import re
from collections import Counter
from collections.abc import Iterable

from unlost.crawl.traps import TrapDetector
from unlost.errors import UriError
from unlost.pages.link import Link, LinkKind
from unlost.recover.listing_filter import NOT_LINKED, OUT_OF_SCOPE, ListingFilter
from unlost.recover.plan import RecoverOptions, RecoverPolicy
from unlost.recover.scope import RecoveryScope
from unlost.recover.state.listings import ListingStatus
from unlost.recover.state.resources import RecoveryResource, ResourceStatus, NewResource
from unlost.recover.state.state import RecoveryState
from unlost.uri import naming

_MAX_REDIRECT_CHAIN = 20  # redirects that are followed one behind the other; browsers follow as many
REQUISITE_LIMIT_REACHED = "page requisites on other hosts beyond --requisite-files or --requisite-bytes"
# Where no list tells what is there, each guess costs a question to every archive.
_MAX_GUESSES_PER_PAGE = 50  # of one page, or script
_MAX_GUESSES = 2_000


# What scripts ask for to show it; all else is a page.
_REQUISITE_EXTENSION = re.compile(
    r"\.(png|jpe?g|gif|webp|svg|ico|bmp|avif|css|m?js|json|woff2?|ttf|otf|eot|mp[34]|m4a|og[gv]|webm|wav|swf|flv)$",
    re.IGNORECASE,
)


class RecoveryFrontier:
    """Puts into the queue what links lead to.

    trapped: how many links were not followed since they look like a trap, by the reason.
    other_hosts: counts what pages need from other hosts.
    """

    def __init__(self, options: RecoverOptions, scope: RecoveryScope, state: RecoveryState, this_year: int) -> None:
        self._options = options
        self._scope = scope
        self._state = state
        self._traps = TrapDetector()
        self._filter = ListingFilter(state, this_year)
        self.requisite_budget = RequisiteBudget(options, scope, state)
        self._redirect_chains: dict[int, int] = {}  # how many redirects led to a resource
        self.skipped_links: Counter[str] = Counter()

    def enqueue_seeds(self) -> None:
        """Want the beginnings of the site."""
        named = [(Link(uri, use), 0) for uri, use in self._scope.seeds()]
        self._state.resources.enqueue(self._new_resources(named, None))

    def enqueue_listed_without_start(self) -> bool:
        """Want everything that is listed if nothing of the beginnings came back; return whether that is so.

        Nothing leads to the pages of a site whose front page no archive has.
        """
        counts = self._state.resources.counts()
        if self._options.page or self._options.policy.uses_listings:
            return False
        if counts[ResourceStatus.QUEUED] or counts[ResourceStatus.RECOVERED] or not counts[ResourceStatus.LISTED]:
            return False
        self.enqueue_listed()
        return self._state.resources.counts()[ResourceStatus.QUEUED] > 0

    def enqueue_links(self, source: RecoveryResource, links: Iterable[Link], date: str) -> None:
        """Want what a resource links to and the scope admits. date: of the copy that has the links, 14 digits."""
        found = ((link, source.hops + (link.kind is not LinkKind.REQUISITE)) for link in links)
        admitted = [(link, hops) for link, hops in found if self._admits(link, hops)]
        wanted, over = self.requisite_budget.admit(self._new_resources(admitted, date))
        if over:
            self.skipped_links[REQUISITE_LIMIT_REACHED] += over
        self._state.resources.enqueue(wanted, source.id)

    def add_script_candidates(self, source: RecoveryResource, candidates: Iterable[str], date: str) -> None:
        """Want what scripts of a resource may ask for, if it is on the site's own hosts, in scope, and listed.

        Where there are no lists, some of it is wanted when nothing else is left to ask for. What is not there is not
        missing. date: of the copy that has the scripts, 14 digits.
        """
        links = [Link(uri, _guess_link_kind(uri)) for uri in candidates if self._scope.is_own(uri)]
        found = [(link, source.hops + (link.kind is not LinkKind.REQUISITE)) for link in links]
        admitted = [(link, hops) for link, hops in found if self._admits(link, hops)]
        names = naming.page_names([link.uri for link, _ in admitted], ignore_case=self._options.ignore_case)
        wanted = [
            NewResource(name, link.uri, link.kind, hops, date if link.kind is LinkKind.REQUISITE else None)
            for name, (link, hops) in zip(names, admitted, strict=True)
            if not isinstance(name, UriError)
        ]
        if self._has_no_listings():
            wanted = wanted[:_MAX_GUESSES_PER_PAGE]
        if not wanted:
            return
        left_out = self._state.candidates.add(wanted)
        if left_out:
            self.skipped_links["more addresses in scripts than are remembered"] += left_out
        self.enqueue_candidates([each.name for each in wanted])

    def enqueue_without_query(self, resource: RecoveryResource) -> RecoveryResource | None:
        """Queue the URL of a resource without its query; it is not missing if no archive has it."""
        uri, name = resource.uri.partition("?")[0], resource.name.partition("?")[0]
        guess = NewResource(name, uri, resource.link_kind, resource.hops, resource.page_datetime)
        if self._state.resources.find_ids([name]) or self._state.candidates.add([guess]):
            return None
        self._state.candidates.mark_enqueued([guess])
        return self._state.resources.get(self._state.resources.enqueue([guess])[0])

    def enqueue_candidates(self, names: list[str] | None = None) -> None:
        """Want the candidates of which lists have shown that they are there. names: only of these; None for all."""
        found = self._state.candidates.pending_listed(names)
        if found:
            self._state.resources.enqueue(found)
            self._state.candidates.mark_enqueued(found)
        if not self._has_no_listings():
            return
        guesses = self._state.candidates.pending_unknown(_MAX_GUESSES - self._state.candidates.count_enqueued(), names)
        if not guesses:
            return
        self._state.candidates.mark_enqueued(guesses)
        safe = self._without_traps(guesses)
        self._state.resources.deprioritize(self._state.resources.enqueue(safe))

    def _has_no_listings(self) -> bool:
        """Return whether no archive is asked for lists, or none has any."""
        if self._options.policy is RecoverPolicy.NAIVE or not self._scope.prefixes:
            return True
        outcomes = {each.outcome for each in self._state.listings.all()}
        return outcomes == {ListingStatus.UNSUPPORTED}

    def _admits(self, link: Link, hops: int) -> bool:
        """Return whether a link is in scope, or is only spelled otherwise than what is listed there."""
        if self._scope.admits(link.uri, link.kind, hops):
            return True
        if not self._scope.is_own(link.uri):
            return False
        meant = self._state.resources.find_case_variant(
            naming.page_name(link.uri, ignore_case=self._options.ignore_case)
        )
        return meant is not None and self._scope.admits(meant, link.kind, hops)

    def enqueue_redirect_target(self, source: RecoveryResource, target: str) -> None:
        """Want what a resource redirects to, in its place."""
        if not self._scope.is_own(target) and not self._scope.admits(target, source.link_kind, source.hops):
            return
        length = self._redirect_chains.pop(source.id, 0) + 1
        if length > _MAX_REDIRECT_CHAIN:
            self.skipped_links["redirects that lead on and on"] += 1
            return
        wanted = self._new_resources([(Link(target, source.link_kind), source.hops)], source.page_datetime)
        for number in self._state.resources.enqueue(wanted, source.id):
            self._redirect_chains[number] = length

    def enqueue_listed(self) -> None:
        """Queue everything listed that is in scope, but for what the plan leaves out."""
        plan = self._options
        if plan.page:
            return
        is_filtered = plan.policy is RecoverPolicy.COMPLETE and not plan.include_left_out
        for part in self._state.resources.undecided_batches():
            if plan.policy is RecoverPolicy.COMPLETE and plan.depth is not None:
                self._state.resources.skip({each.id: NOT_LINKED for each in part})
                continue
            inside = [each for each in part if self._is_listed_inside(each)]
            reasons = {each.id: OUT_OF_SCOPE for each in part} if len(inside) < len(part) else {}
            for each in inside:
                reasons.pop(each.id, None)
            if is_filtered:
                reasons |= self._filter.skip_reasons(inside)
            self._state.resources.skip(reasons)
            self._state.resources.enqueue_listed([each.id for each in inside if each.id not in reasons])

    def count_listed_to_enqueue(self) -> int:
        """Return how many resources `want_listed` would queue at most: crawl traps and duplicates are among them."""
        plan = self._options
        if plan.page or (plan.policy is RecoverPolicy.COMPLETE and plan.depth is not None):
            return 0
        return sum(sum(map(self._is_listed_inside, part)) for part in self._state.resources.undecided_batches())

    def _is_listed_inside(self, resource: RecoveryResource) -> bool:
        """Return whether a listed resource is in scope. Files that pages need have no other scope than pages here."""
        uri = resource.uri
        return self._scope.is_own(uri) and self._scope.admits(uri, LinkKind.PAGE, resource.hops)

    def _new_resources(self, links: list[tuple[Link, int]], date: str | None) -> list[NewResource]:
        names = naming.page_names([link.uri for link, _ in links], ignore_case=self._options.ignore_case)
        wanted = []
        for name, (link, hops) in zip(names, links, strict=True):
            if isinstance(name, UriError):
                continue
            near = date if link.kind is LinkKind.REQUISITE else None
            wanted.append(NewResource(name, link.uri, link.kind, hops, near))
        return self._without_traps(wanted)

    def _without_traps(self, wanted: list[NewResource]) -> list[NewResource]:
        """Return those that are no trap, and count the others."""
        known = self._state.resources.find_ids({each.name for each in wanted})
        safe = []
        for each in wanted:
            if each.name not in known and (reason := self._traps.check(each.name)) is not None:
                self.skipped_links[reason] += 1
            else:
                safe.append(each)
        return safe


class RequisiteBudget:
    """Counts what pages need from other hosts, over all runs, and keeps it within the caps of a plan."""

    def __init__(self, options: RecoverOptions, scope: RecoveryScope, state: RecoveryState) -> None:
        self._options = options
        self._scope = scope
        self._state = state
        found = state.resources.other_host_sizes(scope.host)
        sizes = [size for uri, size in found if not scope.is_own(uri)]
        self._files = len(sizes)
        self._bytes = sum(sizes)

    def add_stored_bytes(self, uri: str, size: int) -> None:
        """Count the bytes of a capture that was stored, if it is one of another host."""
        if not self._scope.is_own(uri):
            self._bytes += size

    def admit(self, wanted: list[NewResource]) -> tuple[list[NewResource], int]:
        """Return what may be queued, and how many requisites of other hosts may not."""
        others = {
            each.name for each in wanted if each.link_kind is LinkKind.REQUISITE and not self._scope.is_own(each.uri)
        }
        if not others:
            return wanted, 0
        new = sorted(others - self._state.resources.find_ids(others).keys())
        room = max(0, self._options.requisite_files - self._files) if self._bytes < self._options.requisite_bytes else 0
        self._files += min(room, len(new))
        left_out = set(new[room:])
        return [each for each in wanted if each.name not in left_out], len(left_out)


def _guess_link_kind(uri: str) -> LinkKind:
    return LinkKind.REQUISITE if _REQUISITE_EXTENSION.search(re.split("[?#]", uri, maxsplit=1)[0]) else LinkKind.PAGE
