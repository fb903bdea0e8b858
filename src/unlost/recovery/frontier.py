"""The frontier: enqueues the targets of links, scripts, redirects and listings that are in scope and not crawl traps.

Also merges URLs that differ only in letter case, if the server ignores case.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from unlost.crawl.traps import TrapDetector
from unlost.errors import UriError
from unlost.html.links import Link, LinkKind
from unlost.recovery.listings import NOT_LINKED, OUT_OF_SCOPE, ListingFilter
from unlost.recovery.options import RecoverOptions, RecoverPolicy
from unlost.recovery.page_requisites import RequisiteBudget
from unlost.recovery.scope import RecoveryScope
from unlost.recovery.state.captures import ListingStatus
from unlost.recovery.state.resources import NewResource, RecoveryResource, ResourceStatus
from unlost.recovery.state.schema import CASE_INSENSITIVE_FACT
from unlost.recovery.state.store import RecoveryState
from unlost.uri import names as uri_names

_MAX_REDIRECT_CHAIN = 20  # consecutive redirects that are followed; browsers have the same limit
REQUISITE_LIMIT_REACHED = "page requisites on other hosts beyond --requisite-files or --requisite-bytes"
# Without listings, each guess costs one query to every archive.
_MAX_GUESSES_PER_PAGE = 50  # from one page or script
_MAX_GUESSES = 2_000
# What scripts load to render a page; any other URL is taken for a page.
_REQUISITE_EXTENSION = re.compile(
    r"\.(png|jpe?g|gif|webp|svg|ico|bmp|avif|css|m?js|json|woff2?|ttf|otf|eot|mp[34]|m4a|og[gv]|webm|wav|swf|flv)$",
    re.IGNORECASE,
)


class RecoveryFrontier:
    """Adds URLs to the queue of a recovery.

    Attributes:
        skipped_links: Number of links that were not followed, by reason.
        requisite_budget: Limits on page requisites from other hosts.
    """

    def __init__(self, options: RecoverOptions, scope: RecoveryScope, state: RecoveryState, this_year: int) -> None:
        self._options = options
        self._scope = scope
        self._state = state
        self._traps = TrapDetector()
        self._filter = ListingFilter(state, this_year)
        self.requisite_budget = RequisiteBudget(options, scope, state)
        self._redirect_chains: dict[int, int] = {}  # length of the redirect chain that ends at a resource
        self.skipped_links: Counter[str] = Counter()

    def enqueue_seeds(self) -> None:
        """Enqueue the start URLs of the site."""
        named = [(Link(uri, kind), 0) for uri, kind in self._scope.seeds()]
        self._state.resources.enqueue(self._new_resources(named, None))

    def enqueue_listed_without_start(self) -> bool:
        """Enqueue everything listed if no start URL was recovered; return whether anything was enqueued.

        Otherwise nothing would be recovered of a site whose home page is in no archive.
        """
        counts = self._state.resources.counts()
        if self._options.page or self._options.policy.uses_listings:
            return False
        if counts[ResourceStatus.QUEUED] or counts[ResourceStatus.RECOVERED] or not counts[ResourceStatus.LISTED]:
            return False
        self.enqueue_listed()
        return self._state.resources.counts()[ResourceStatus.QUEUED] > 0

    def enqueue_links(self, source: RecoveryResource, links: Iterable[Link], date: str) -> None:
        """Enqueue the links of a resource that are in scope.

        Args:
            source: The linking resource.
            links: Its links.
            date: Datetime of the linking capture, 14 digits.
        """
        with_hops = ((link, source.hops + (link.kind is not LinkKind.REQUISITE)) for link in links)
        admitted = [(link, hops) for link, hops in with_hops if self._admits(link, hops)]
        resources, rejected = self.requisite_budget.admit(self._new_resources(admitted, date))
        if rejected:
            self.skipped_links[REQUISITE_LIMIT_REACHED] += rejected
        self._state.resources.enqueue(resources, source.id)

    def add_script_candidates(self, source: RecoveryResource, candidates: Iterable[str], date: str) -> None:
        """Add URLs from scripts of a resource and enqueue those that are listed.

        Only URLs on the site's own hosts and in scope are considered. Where no listings exist, a limited number is
        enqueued with low priority. A candidate that no archive holds does not count as missing.

        Args:
            source: The resource that contains or loads the script.
            candidates: The URLs.
            date: Datetime of the capture, 14 digits.
        """
        links = [Link(uri, _guess_link_kind(uri)) for uri in candidates if self._scope.is_own(uri)]
        with_hops = [(link, source.hops + (link.kind is not LinkKind.REQUISITE)) for link in links]
        admitted = [(link, hops) for link, hops in with_hops if self._admits(link, hops)]
        names = uri_names.page_names([link.uri for link, _ in admitted], ignore_case=self._options.ignore_case)
        resources = [
            NewResource(name, link.uri, link.kind, hops, date if link.kind is LinkKind.REQUISITE else None)
            for name, (link, hops) in zip(names, admitted, strict=True)
            if not isinstance(name, UriError)
        ]
        if self._has_no_listings():
            resources = resources[:_MAX_GUESSES_PER_PAGE]
        if not resources:
            return
        dropped = self._state.candidates.add(resources)
        if dropped:
            self.skipped_links["URLs in scripts beyond the limit"] += dropped
        self.enqueue_candidates([each.name for each in resources])

    def enqueue_without_query(self, resource: RecoveryResource) -> RecoveryResource | None:
        """Enqueue the URL of a resource without its query. If no archive holds it, it does not count as missing."""
        uri, name = resource.uri.partition("?")[0], resource.name.partition("?")[0]
        guess = NewResource(name, uri, resource.link_kind, resource.hops, resource.page_datetime)
        if self._state.resources.find_ids([name]) or self._state.candidates.add([guess]):
            return None
        self._state.candidates.mark_enqueued([guess])
        return self._state.resources.get(self._state.resources.enqueue([guess])[0])

    def enqueue_candidates(self, names: list[str] | None = None) -> None:
        """Enqueue the candidates that are listed now.

        Args:
            names: Page names of the candidates to consider; None for all.
        """
        listed = self._state.candidates.pending_listed(names)
        if listed:
            self._state.resources.enqueue(listed)
            self._state.candidates.mark_enqueued(listed)
        if not self._has_no_listings():
            return
        guesses = self._state.candidates.pending_unknown(_MAX_GUESSES - self._state.candidates.count_enqueued(), names)
        if not guesses:
            return
        self._state.candidates.mark_enqueued(guesses)
        accepted = self._without_traps(guesses)
        self._state.resources.deprioritize(self._state.resources.enqueue(accepted))

    def _has_no_listings(self) -> bool:
        """Return whether no archive is queried for listings, or none supports them."""
        if self._options.policy is RecoverPolicy.NAIVE or not self._scope.prefixes:
            return True
        outcomes = {each.outcome for each in self._state.listings.all()}
        return outcomes == {ListingStatus.UNSUPPORTED}

    def _admits(self, link: Link, hops: int) -> bool:
        """Return whether a link is in scope, directly or as a case variant of a listed URL."""
        if self._scope.admits(link.uri, link.kind, hops):
            return True
        if not self._scope.is_own(link.uri):
            return False
        variant = self._state.resources.find_case_variant(
            uri_names.page_name(link.uri, ignore_case=self._options.ignore_case)
        )
        return variant is not None and self._scope.admits(variant, link.kind, hops)

    def enqueue_redirect_target(self, source: RecoveryResource, target: str) -> None:
        """Enqueue the redirect target of a resource."""
        if not self._scope.is_own(target) and not self._scope.admits(target, source.link_kind, source.hops):
            return
        length = self._redirect_chains.pop(source.id, 0) + 1
        if length > _MAX_REDIRECT_CHAIN:
            self.skipped_links["redirect chains beyond the limit"] += 1
            return
        resources = self._new_resources([(Link(target, source.link_kind), source.hops)], source.page_datetime)
        for id_ in self._state.resources.enqueue(resources, source.id):
            self._redirect_chains[id_] = length

    def enqueue_listed(self) -> None:
        """Enqueue everything listed that is in scope, except what the policy leaves out."""
        options = self._options
        if options.page:
            return
        is_filtered = options.policy is RecoverPolicy.COMPLETE and not options.include_left_out
        for batch in self._state.resources.undecided_batches():
            if options.policy is RecoverPolicy.COMPLETE and options.depth is not None:
                self._state.resources.skip({each.id: NOT_LINKED for each in batch})
                continue
            inside = [each for each in batch if self._is_listed_inside(each)]
            reasons = {each.id: OUT_OF_SCOPE for each in batch} if len(inside) < len(batch) else {}
            for each in inside:
                reasons.pop(each.id, None)
            if is_filtered:
                reasons |= self._filter.skip_reasons(inside)
            self._state.resources.skip(reasons)
            self._state.resources.enqueue_listed([each.id for each in inside if each.id not in reasons])

    def count_listed_to_enqueue(self) -> int:
        """Return an upper bound of what `enqueue_listed` would enqueue; it includes crawl traps and duplicates."""
        options = self._options
        if options.page or (options.policy is RecoverPolicy.COMPLETE and options.depth is not None):
            return 0
        return sum(sum(map(self._is_listed_inside, batch)) for batch in self._state.resources.undecided_batches())

    def _is_listed_inside(self, resource: RecoveryResource) -> bool:
        """Return whether a listed resource is in scope. Page requisites have the scope of pages here."""
        uri = resource.uri
        return self._scope.is_own(uri) and self._scope.admits(uri, LinkKind.PAGE, resource.hops)

    def _new_resources(self, links: list[tuple[Link, int]], date: str | None) -> list[NewResource]:
        names = uri_names.page_names([link.uri for link, _ in links], ignore_case=self._options.ignore_case)
        resources = []
        for name, (link, hops) in zip(names, links, strict=True):
            if isinstance(name, UriError):
                continue
            page_datetime = date if link.kind is LinkKind.REQUISITE else None
            resources.append(NewResource(name, link.uri, link.kind, hops, page_datetime))
        return self._without_traps(resources)

    def _without_traps(self, resources: list[NewResource]) -> list[NewResource]:
        """Return the resources that are not crawl traps, and count the others."""
        known = self._state.resources.find_ids({each.name for each in resources})
        accepted = []
        for each in resources:
            if each.name not in known and (reason := self._traps.check(each.name)) is not None:
                self.skipped_links[reason] += 1
            else:
                accepted.append(each)
        return accepted


def _guess_link_kind(uri: str) -> LinkKind:
    return LinkKind.REQUISITE if _REQUISITE_EXTENSION.search(re.split("[?#]", uri, maxsplit=1)[0]) else LinkKind.PAGE


# A soft 404 has the same bytes under every spelling, so only bytes that no other URL has count as evidence.
_MIN_MATCHING_GROUPS = 2  # groups of URLs with the same bytes that are required; one may be a coincidence
_MIN_MATCH_RATIO = 4  # required ratio of groups with the same bytes to groups with different bytes
_MAX_GROUPS = 2_000  # groups that are compared
_MAX_CHECKED_GROUPS = 10


def merge_case_variants(state: RecoveryState, busy: Collection[int]) -> list[int]:
    """Merge resources whose URLs differ only in letter case, if the server ignores case.

    A server ignores case if archives have the same bytes under such URLs, and hardly ever different bytes. Bytes that
    many URLs have in common are ignored: they are error pages, or empty.

    Args:
        state: The database of the recovery.
        busy: Ids of resources that are being fetched. They are not merged.

    Returns:
        The ids of the resources that were merged into others.
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
        known = [group_digests for group_digests in digests.values() if group_digests]
        if len(known) < 2:
            continue
        shared = {each for i, one in enumerate(known) for other in known[i + 1 :] for each in one & other}
        if shared:
            alike.append((shared, list(digests)))
        else:
            different += 1
    if len(alike) < max(_MIN_MATCHING_GROUPS, _MIN_MATCH_RATIO * different):
        return False
    # Only some groups are checked, because each check reads all captures.
    return sum(state.captures.is_distinctive(*each) for each in alike[:_MAX_CHECKED_GROUPS]) >= _MIN_MATCHING_GROUPS
