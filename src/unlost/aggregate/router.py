"""Chooses the archives to query for a page, from their MementoMaps, filters and hit rates."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Protocol

from unlost.aggregate.hit_rates import Evidence, LearnedStats
from unlost.aggregate.models import ArchiveOutcome, RoutingOptions
from unlost.errors import InputError, UriError, UsageError
from unlost.logs import upstream
from unlost.mementomap.lookup import ArchiveHoldings, HoldingsMatch, MultiLookup
from unlost.registry.loader import Registry
from unlost.registry.models import Archive
from unlost.uri import DEFAULT_RULES, alternative_keys, key

_EVIDENCE_OF_MATCH = {
    HoldingsMatch.UNCOVERED: Evidence.DENIED,
    HoldingsMatch.EXCLUDED: Evidence.DENIED,
    HoldingsMatch.NOT_IN_FILTERS: Evidence.DENIED,
    HoldingsMatch.IN_FILTERS: Evidence.FILTER,
    HoldingsMatch.LISTED: Evidence.LISTED,
    HoldingsMatch.WILDCARD: Evidence.WILDCARD,
    HoldingsMatch.IN_BOTH: Evidence.BOTH,
    HoldingsMatch.LISTED_ONLY: Evidence.LISTED_ONLY,  # DENIED if the filters are of whole URLs
    HoldingsMatch.WILDCARD_ONLY: Evidence.DENIED,  # OLD_FILTER if the filter is old
    HoldingsMatch.DAMAGED: Evidence.ANY,
}
_EVIDENCE_BY_NUMBER = [_EVIDENCE_OF_MATCH[match] for match in HoldingsMatch]
_AMBIGUOUS_MATCHES = frozenset({HoldingsMatch.WILDCARD_ONLY, HoldingsMatch.LISTED_ONLY, HoldingsMatch.DAMAGED})
FEW_MEMENTOS, MANY_MEMENTOS = 100, 10_000
"""Numbers of mementos under a wildcard that count as few (less than the first) or many (the second or more).

A page under a wildcard with few mementos is less likely to be held, with many more likely. Most wildcards of maps
compacted by weights are in between."""

DEFAULT_EXPLORATION_SHARE = 0.02
"""Share of pages for which one archive is queried although its map or filter denies the page, to measure errors.

It is drawn once per page, for one archive. Drawn for each of 14 archives, 2 % would add a request for every fourth
page."""


@dataclass(frozen=True, slots=True)
class RouteTarget:
    """One archive to query.

    Attributes:
        archive: The archive.
        reason: Why it is queried.
        likelihood: Estimated probability, from 0 to 1, that it holds the page.
        evidence: What its map and filters say about the page; passed back to `ArchiveRouter.learn` with the outcome.
    """

    archive: Archive
    reason: upstream.RoutingReason
    likelihood: float = 1.0
    evidence: Evidence = Evidence.ANY


@dataclass(frozen=True, slots=True)
class ArchiveRoute:
    """The archives to query for a page, in the order of the registry.

    Attributes:
        targets: The archives to query, each once.
        passed_over: IDs of the enabled archives that are not queried, because they most likely hold nothing.
    """

    targets: tuple[RouteTarget, ...]
    passed_over: tuple[str, ...] = ()


class RouteProvider(Protocol):
    """Chooses archives for a page."""

    def route(self, uri: str, options: RoutingOptions) -> ArchiveRoute:
        """Return the archives to query for a page. Called in the event loop, so it must not block.

        Raises:
            UriError: The URL is invalid.
            UsageError: The options are invalid.
        """
        ...


def _prefer_holding(match: int, alternative: int) -> int:
    """Return the match for a page's key, or that for its alternative key if only that one indicates a holding.

    Indexing tools disagree on the keys of some URLs, so a page may be in a map under its alternative key.
    """
    if match in (HoldingsMatch.WILDCARD_ONLY, HoldingsMatch.LISTED_ONLY):
        return alternative if _EVIDENCE_BY_NUMBER[alternative] is not Evidence.DENIED else match
    return alternative if _EVIDENCE_BY_NUMBER[match] is Evidence.DENIED else match


class HoldingsSource(Protocol):
    """Provides MementoMaps and filters."""

    def holdings(self) -> Mapping[str, ArchiveHoldings]:
        """Return the holdings of archives by ID: the same object until something changes."""
        ...

    def mark_damaged(self, archive: str, problem: str) -> None:
        """Discard the holdings of an archive that turned out to be damaged, until they are loaded again."""
        ...


class HoldingsLookup:
    """Looks pages up in all maps and filters at once.

    One call of the core takes 40 µs for 14 archives; a call for each archive takes 140 µs.
    """

    def __init__(self, source: HoldingsSource) -> None:
        self._source = source
        self._holdings: Mapping[str, ArchiveHoldings] = {}
        self._lookups: list[tuple[tuple[str, ...], MultiLookup]] = []

    def find_evidence(self, uri: str, keys: dict[str, str]) -> dict[str, Evidence]:
        """Return the evidence by archive ID; archives without a map or filters are omitted.

        A damaged map is reported to the source and then ignored.

        Args:
            uri: The page.
            keys: Keys of the page by key rules; missing ones are added.
        """
        if self._source.holdings() is not self._holdings:
            self._rebuild_lookups()
        evidence: dict[str, Evidence] = {}
        for names, lookup in self._lookups:
            page_key = keys.get(lookup.rules)
            if page_key is None:
                try:
                    page_key = keys[lookup.rules] = key(uri, lookup.rules)
                except UriError:
                    continue  # these rules have no key for the URL, so the maps say nothing about it
            numbers = lookup.lookup_key(page_key)
            for alternative in alternative_keys(uri, lookup.rules):
                numbers = bytes(map(_prefer_holding, numbers, lookup.lookup_key(alternative)))
            evidence.update(zip(names, map(_EVIDENCE_BY_NUMBER.__getitem__, numbers), strict=True))
            if not _AMBIGUOUS_MATCHES.isdisjoint(numbers):
                self._resolve_ambiguous(page_key, dict(zip(names, numbers, strict=True)), evidence)
        return evidence

    def refine_wildcards(self, keys: Mapping[str, str], evidence: dict[str, Evidence]) -> None:
        """Replace the evidence of wildcards, in place, by the number of mementos under them.

        This costs one more look-up in each map, so it is done only where the choice depends on likelihood.
        """
        for name, kind in evidence.items():
            holdings = self._holdings.get(name)
            if kind is not Evidence.WILDCARD or holdings is None or holdings.map is None:
                continue
            try:
                frequency = holdings.map.lookup_key(keys[holdings.rules]).frequency
            except InputError as error:
                self._source.mark_damaged(name, str(error))
                continue
            mementos = None if frequency is None else frequency.mementos
            if mementos is not None and not FEW_MEMENTOS <= mementos < MANY_MEMENTOS:
                evidence[name] = Evidence.WILDCARD_FEW if mementos < FEW_MEMENTOS else Evidence.WILDCARD_MANY

    def _rebuild_lookups(self) -> None:
        self._holdings = self._source.holdings()
        rules = dict.fromkeys(holdings.rules for holdings in self._holdings.values())
        self._lookups = []
        for rule_set in rules:
            names = tuple(name for name, holdings in self._holdings.items() if holdings.rules == rule_set)
            self._lookups.append((names, MultiLookup([self._holdings[name] for name in names])))

    def _resolve_ambiguous(self, page_key: str, matches: dict[str, int], evidence: dict[str, Evidence]) -> None:
        """Correct the evidence of archives with old filters, filters of whole URLs, or damaged files."""
        for name, match in matches.items():
            holdings = self._holdings[name]
            if match == HoldingsMatch.WILDCARD_ONLY and holdings.has_old_filter():
                evidence[name] = Evidence.OLD_FILTER
            elif match == HoldingsMatch.LISTED_ONLY and holdings.has_deciding_filters:
                evidence[name] = Evidence.DENIED
            elif match == HoldingsMatch.DAMAGED:
                del evidence[name]
                try:
                    holdings.lookup_key(page_key)
                except InputError as error:
                    self._source.mark_damaged(name, str(error))


class ArchiveRouter:
    """Chooses archives. Not thread-safe; no method blocks.

    Args:
        registry: The known archives.
        holdings: Their maps and filters.
        stats: Learned hit rates and routing accuracy.
        exploration_share: Share of pages, from 0 to 1, for which one archive that would be passed over is queried, too.
        min_hit_rate: Minimum hit rate, from 0 to 1, at which an archive without a map is queried; 0 for all of them.
        random: Source of randomness for exploration.
    """

    def __init__(
        self,
        registry: Registry,
        holdings: HoldingsSource,
        stats: LearnedStats,
        *,
        exploration_share: float = DEFAULT_EXPLORATION_SHARE,
        min_hit_rate: float = 0.0,
        random: Random | None = None,
    ) -> None:
        for name, share in (("exploration_share", exploration_share), ("min_hit_rate", min_hit_rate)):
            if not 0 <= share <= 1:
                raise UsageError(f"{name}: expected a share from 0 to 1")
        self._registry = registry
        self._enabled = registry.only()
        self._lookup = HoldingsLookup(holdings)
        self.stats = stats
        self._exploration_share = exploration_share
        self._min_hit_rate = min_hit_rate
        self._random = (random or Random()).random  # noqa: S311  not security relevant

    def route(self, uri: str, options: RoutingOptions = RoutingOptions()) -> ArchiveRoute:  # noqa: B008  it is frozen
        """Return the archives to query for a page.

        Raises:
            UriError: The URL is invalid.
            UsageError: An archive is unknown, `top_k` is below 1, or `min_probability` is not from 0 to 1.
        """
        keys = {DEFAULT_RULES: key(uri)}
        if options.top_k is not None and options.top_k < 1:
            raise UsageError("top_k: expected a number of archives, 1 or more")
        if not 0 <= options.min_probability <= 1:
            raise UsageError("min_probability: expected a probability from 0 to 1")
        if options.archives is not None:
            return self._route_to(options.archives)
        if options.broadcast:
            rate = self.stats.rates.rate
            targets = [RouteTarget(archive, "broadcast", rate(archive.id)) for archive in self._enabled]
            passed_over: list[str] = []
        else:
            evidence = self._lookup.find_evidence(uri, keys)
            if options.needs_likelihood:
                self._lookup.refine_wildcards(keys, evidence)
            targets, passed_over = self._select(evidence, options.min_probability)
        if options.preferred is not None:
            targets, passed_over = self._select_preferred(targets, options.preferred)
        if options.top_k is not None:
            targets, passed_over = self._select_likeliest(targets, options.top_k)
        self.stats.record_passed_over(passed_over)
        return ArchiveRoute(tuple(targets), tuple(passed_over))

    def _select(self, evidence: Mapping[str, Evidence], min_probability: float) -> tuple[list[RouteTarget], list[str]]:
        """Return the archives that may hold the page or are explored, and the IDs of the others."""
        rate = self.stats.rates.rate
        targets: list[RouteTarget | None] = []
        for archive in self._enabled:
            archive_id = archive.id
            archive_evidence = evidence.get(archive_id, Evidence.ANY)
            if archive_evidence is Evidence.ANY and rate(archive_id) >= max(self._min_hit_rate, min_probability):
                targets.append(RouteTarget(archive, "learned", rate(archive_id)))
            elif (
                archive_evidence is not Evidence.ANY
                and archive_evidence is not Evidence.DENIED
                and rate(archive_id, archive_evidence) >= min_probability
            ):
                targets.append(RouteTarget(archive, "routed", rate(archive_id, archive_evidence), archive_evidence))
            else:
                targets.append(None)
        if self._random() < self._exploration_share:
            self._explore(targets, evidence)
        selected = [target for target in targets if target is not None]
        return selected, [archive.id for archive, target in zip(self._enabled, targets, strict=True) if target is None]

    def _explore(self, targets: list[RouteTarget | None], evidence: Mapping[str, Evidence]) -> None:
        """Add one of the archives that would be passed over."""
        indices = [index for index, target in enumerate(targets) if target is None]
        if indices:
            index = indices[int(self._random() * len(indices))]
            archive = self._enabled[index]
            archive_evidence = evidence.get(archive.id, Evidence.ANY)
            targets[index] = RouteTarget(
                archive, "explored", self.stats.rates.rate(archive.id, archive_evidence), archive_evidence
            )

    def _select_preferred(
        self, targets: list[RouteTarget], archive_ids: frozenset[str]
    ) -> tuple[list[RouteTarget], list[str]]:
        """Return the preferred targets, or all if none is preferred, and the IDs passed over."""
        preferred = [target for target in targets if target.archive.id in archive_ids and target.reason != "explored"]
        selected = preferred or targets
        selected_ids = {target.archive.id for target in selected}
        return selected, [archive.id for archive in self._enabled if archive.id not in selected_ids]

    def _select_likeliest(self, targets: list[RouteTarget], count: int) -> tuple[list[RouteTarget], list[str]]:
        """Return the likeliest targets and the explored ones, and the IDs passed over."""
        # Ties keep the order of the registry, since sorting is stable.
        ranked = sorted(targets, key=lambda target: (target.reason == "explored", -target.likelihood))
        selected_ids = {target.archive.id for target in ranked[:count] if target.reason != "explored"}
        selected_ids |= {target.archive.id for target in targets if target.reason == "explored"}
        selected = [target for target in targets if target.archive.id in selected_ids]
        return selected, [archive.id for archive in self._enabled if archive.id not in selected_ids]

    def _route_to(self, archive_ids: frozenset[str]) -> ArchiveRoute:
        if not archive_ids:
            raise UsageError("no archive is named")
        rate = self.stats.rates.rate
        archives = self._registry.only(sorted(archive_ids))
        return ArchiveRoute(tuple(RouteTarget(archive, "requested", rate(archive.id)) for archive in archives))

    def learn(self, target: RouteTarget, outcome: ArchiveOutcome) -> None:
        """Learn from the outcome of a request to an archive that this router selected."""
        self.stats.learn(target.archive.id, target.reason, outcome, target.evidence)

    def learn_from_log(self, entries: Iterable[upstream.UpstreamLogEntry]) -> int:
        """Learn from log entries, oldest first, and return their number.

        The log does not record what the maps said at the time; the current maps are used instead.
        """
        count = 0
        for entry in entries:
            count += 1
            if not entry.from_cache:
                self.stats.learn(entry.archive, entry.reason, entry.outcome, self._evidence_of(entry))
        return count

    def _evidence_of(self, entry: upstream.UpstreamLogEntry) -> Evidence:
        if entry.reason not in ("routed", "explored"):
            return Evidence.ANY
        evidence = self._lookup.find_evidence(entry.uri, {}).get(entry.archive, Evidence.ANY)
        if entry.reason == "explored":
            return Evidence.ANY if evidence is Evidence.ANY else Evidence.DENIED
        # The map has changed since and no longer covers the page: assume the weakest positive evidence.
        return Evidence.WILDCARD if evidence in (Evidence.ANY, Evidence.DENIED) else evidence
