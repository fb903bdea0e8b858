"""The frontier: enqueues what links, scripts, redirects and listings point to, if it is in scope and no crawl trap.

URLs that differ only in letter case are merged if the server ignores it.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from unlost.crawl.traps import TrapDetector
from unlost.errors import UriError
from unlost.html.links import Link, LinkKind
from unlost.recover.listings import NOT_LINKED, OUT_OF_SCOPE, ListingFilter
from unlost.recover.options import RecoverOptions, RecoverPolicy
from unlost.recover.page_requisites import RequisiteBudget
from unlost.recover.scope import RecoveryScope
from unlost.recover.state.captures import ListingStatus
from unlost.recover.state.resources import NewResource, RecoveryResource, ResourceStatus
from unlost.recover.state.schema import CASE_INSENSITIVE_FACT
from unlost.recover.state.store import RecoveryState
from unlost.uri import names as uri_names

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
        names = uri_names.page_names([link.uri for link, _ in admitted], ignore_case=self._options.ignore_case)
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
            uri_names.page_name(link.uri, ignore_case=self._options.ignore_case)
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
        names = uri_names.page_names([link.uri for link, _ in links], ignore_case=self._options.ignore_case)
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


def _guess_link_kind(uri: str) -> LinkKind:
    return LinkKind.REQUISITE if _REQUISITE_EXTENSION.search(re.split("[?#]", uri, maxsplit=1)[0]) else LinkKind.PAGE


_MIN_MATCHING_GROUPS = 2  # groups of URLs that must have the same bytes; one may be a coincidence
_MIN_MATCH_RATIO = 4  # times as many groups with the same bytes as with other bytes
_MAX_GROUPS = 2_000  # that are compared
_MAX_CHECKED_GROUPS = 10


def merge_case_variants(state: RecoveryState, busy: Collection[int]) -> list[int]:
    """Make one resource of those whose URLs differ only in letter case, if the server ignores it.

    Returns the ids of the resources that are aliases of others now.

    busy: ids of resources that are being fetched, which stay as they are.

    A server ignores letter case if archives have the same bytes under URLs that differ only in it, and hardly ever
    other bytes. Bytes that many URLs have in common say nothing: they are error pages, or empty.
    """
    groups = state.resources.case_variants()
    if not groups or (not state.fact(CASE_INSENSITIVE_FACT) and not _ignores_case(state, groups[:_MAX_GROUPS])):
        return []
    state.set_fact(CASE_INSENSITIVE_FACT, "yes")
    merged: list[int] = []
    for group in groups:
        first = max(group, key=lambda each: (each.record is not None, each.is_linked, -each.id))
        for each in group:
            is_free = each.record is None and each.id not in busy and first.id not in busy
            if each is not first and is_free and each.status in (ResourceStatus.LISTED, ResourceStatus.QUEUED):
                state.resources.merge(first.id, each.id)
                merged.append(each.id)
    return merged


def _ignores_case(state: RecoveryState, groups: Sequence[Sequence[RecoveryResource]]) -> bool:
    alike: list[tuple[set[str], list[int]]] = []
    different = 0
    for group in groups:
        digests = state.captures.digests([each.id for each in group])
        known = [found for found in digests.values() if found]
        if len(known) < 2:
            continue
        shared = {each for i, one in enumerate(known) for other in known[i + 1 :] for each in one & other}
        if shared:
            alike.append((shared, list(digests)))
        else:
            different += 1
    if len(alike) < max(_MIN_MATCHING_GROUPS, _MIN_MATCH_RATIO * different):
        return False
    # Each look at who else has these bytes reads all captures.
    return sum(state.captures.is_distinctive(*each) for each in alike[:_MAX_CHECKED_GROUPS]) >= _MIN_MATCHING_GROUPS
