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


@dataclass(frozen=True, slots=True)
class RouteTarget:
    """One archive that is to be asked.

    reason: why. likelihood: how likely it has the page, from 0 to 1, as far as answers have taught.
    ground: what its map and filters say about the page, if they were looked at; to be given back when it has answered.
    """

    archive: Archive
    reason: upstream.RoutingReason
    likelihood: float = 1.0
    evidence: Evidence = Evidence.ANY


@dataclass(frozen=True, slots=True)
class ArchiveRoute:
    """Whom to ask for a page.

    asked: those to ask, each once. passed_over: the ids of those that are on and not asked: they have nothing, most
    likely. Both are in the order of the registry.
    """

    targets: tuple[RouteTarget, ...]
    passed_over: tuple[str, ...] = ()


class RouteProvider(Protocol):
    """Whoever chooses archives."""

    def route(self, uri: str, options: RoutingOptions) -> ArchiveRoute:
        """Return whom to ask for a page; at once, since the event loop waits.

        Raises UriError for what is no address, UsageError for a wish that cannot be met.
        """
        ...


_EVIDENCE_OF_FINDING = {
    HoldingsMatch.UNCOVERED: Evidence.DENIED,
    HoldingsMatch.EXCLUDED: Evidence.DENIED,
    HoldingsMatch.NOT_IN_FILTERS: Evidence.DENIED,
    HoldingsMatch.IN_FILTERS: Evidence.FILTER,
    HoldingsMatch.LISTED: Evidence.LISTED,
    HoldingsMatch.WILDCARD: Evidence.WILDCARD,
    HoldingsMatch.IN_BOTH: Evidence.BOTH,
    HoldingsMatch.LISTED_ONLY: Evidence.LISTED_ONLY,  # unless the filters are of whole URLs
    HoldingsMatch.WILDCARD_ONLY: Evidence.DENIED,  # unless the filter is old
    HoldingsMatch.DAMAGED: Evidence.ANY,
}
_EVIDENCE_BY_NUMBER = [_EVIDENCE_OF_FINDING[finding] for finding in HoldingsMatch]
_AMBIGUOUS_FINDINGS = frozenset({HoldingsMatch.WILDCARD_ONLY, HoldingsMatch.LISTED_ONLY, HoldingsMatch.DAMAGED})
FEW_MEMENTOS, MANY_MEMENTOS = 100, 10_000
"""Copies below a wildcard: fewer than the one, or as many as the other, make it less likely, or more, that one is of
the page. Between them is what most wildcards of maps by weights have."""


def _prefer_holding(finding: int, other: int) -> int:
    """Return what is found under a page's key, or under another one that tools give it where the first is denied."""
    if finding in (HoldingsMatch.WILDCARD_ONLY, HoldingsMatch.LISTED_ONLY):
        return other if _EVIDENCE_BY_NUMBER[other] is not Evidence.DENIED else finding
    return other if _EVIDENCE_BY_NUMBER[finding] is Evidence.DENIED else finding


class HoldingsSource(Protocol):
    """Whoever knows maps and filters."""

    def holdings(self) -> Mapping[str, ArchiveHoldings]:
        """Return what is known of archives, by id: the very same object until something changes."""
        ...

    def mark_damaged(self, archive: str, problem: str) -> None:
        """Take note that what is known turned out to be damaged: from now on nothing is, until it is read anew."""
        ...


class HoldingsLookup:
    """Looks pages up in all maps and filters at once."""

    def __init__(self, source: HoldingsSource) -> None:
        self._source = source
        self._holdings: Mapping[str, ArchiveHoldings] = {}
        self._lookups: list[tuple[tuple[str, ...], MultiLookup]] = []

    def find_evidence(self, uri: str, keys: dict[str, str]) -> dict[str, Evidence]:
        """Return the ground of each archive that has a map or filters, by id; the others are not there.

        keys: of the page, by the rules under which they were made; others that are needed are added.
        A map that turns out to be damaged is set aside, and counts as none.
        """
        if self._source.holdings() is not self._holdings:
            self._rebuild_lookups()
        found: dict[str, Evidence] = {}
        for names, panel in self._lookups:
            page = keys.get(panel.rules)
            if page is None:
                try:
                    page = keys[panel.rules] = key(uri, panel.rules)
                except UriError:
                    continue  # no page by these rules, although it is one by others: they know nothing about it
            numbers = panel.lookup_key(page)
            for other in alternative_keys(uri, panel.rules):
                numbers = bytes(map(_prefer_holding, numbers, panel.lookup_key(other)))
            found.update(zip(names, map(_EVIDENCE_BY_NUMBER.__getitem__, numbers), strict=True))
            if not _AMBIGUOUS_FINDINGS.isdisjoint(numbers):
                self._resolve_ambiguous(page, dict(zip(names, numbers, strict=True)), found)
        return found

    def refine_wildcards(self, keys: Mapping[str, str], found: dict[str, Evidence]) -> None:
        """Tell wildcards apart, among grounds that `of` found for the same page, by how many copies lie below them.

        It takes a look into each map more, so that it is done only where somebody chooses by likelihood.
        """
        for name, ground in found.items():
            holdings = self._holdings.get(name)
            if ground is not Evidence.WILDCARD or holdings is None or holdings.map is None:
                continue
            try:
                frequency = holdings.map.lookup_key(keys[holdings.rules]).frequency
            except InputError as error:
                self._source.mark_damaged(name, str(error))
                continue
            copies = None if frequency is None else frequency.mementos
            if copies is not None and not FEW_MEMENTOS <= copies < MANY_MEMENTOS:
                found[name] = Evidence.WILDCARD_FEW if copies < FEW_MEMENTOS else Evidence.WILDCARD_MANY

    def _rebuild_lookups(self) -> None:
        """Put together what is known now."""
        self._holdings = self._source.holdings()
        rules = dict.fromkeys(each.rules for each in self._holdings.values())
        self._lookups = []
        for each in rules:
            names = tuple(name for name, holdings in self._holdings.items() if holdings.rules == each)
            self._lookups.append((names, MultiLookup([self._holdings[name] for name in names])))

    def _resolve_ambiguous(self, page: str, numbers: dict[str, int], found: dict[str, Evidence]) -> None:
        """Correct the grounds of archives whose filter may be old, or of whole URLs, or whose files are damaged."""
        for name, number in numbers.items():
            holdings = self._holdings[name]
            if number == HoldingsMatch.WILDCARD_ONLY and holdings.has_old_filter():
                found[name] = Evidence.OLD_FILTER
            elif number == HoldingsMatch.LISTED_ONLY and holdings.has_deciding_filters:
                found[name] = Evidence.DENIED
            elif number == HoldingsMatch.DAMAGED:
                del found[name]
                try:
                    holdings.lookup_key(page)
                except InputError as error:
                    self._source.mark_damaged(name, str(error))


DEFAULT_EXPLORATION_SHARE = 0.02
"""The share of pages for which one archive is asked although its map or filter says no, so that errors are known."""


class ArchiveRouter:
    """Chooses archives. All its methods are for one thread, and none of them waits for anything.

    registry: the archives that there are. known: their maps and filters. experience: what answers have taught.
    exploring: the share of pages, 0 to 1, for which one archive is asked, too, that would be passed over.
    least_rate: the least hit rate, 0 to 1, at which an archive without a map is asked; with 0 all of them are.
    random: chooses what is explored.
    """

    def __init__(
        self,
        registry: Registry,
        holdings: HoldingsSource,
        stats: LearnedStats,
        *,
        exploring: float = DEFAULT_EXPLORATION_SHARE,
        least_rate: float = 0.0,
        random: Random | None = None,
    ) -> None:
        for name, share in (("exploring", exploring), ("least_rate", least_rate)):
            if not 0 <= share <= 1:
                raise UsageError(f"{name}: expected a share from 0 to 1")
        self._registry = registry
        self._enabled = registry.only()
        self._lookup = HoldingsLookup(holdings)
        self.stats = stats
        self._exploration_share = exploring
        self._min_hit_rate = least_rate
        self._random = (random or Random()).random  # noqa: S311  nobody gains by guessing it

    def route(self, uri: str, options: RoutingOptions = RoutingOptions()) -> ArchiveRoute:  # noqa: B008  it is frozen
        """Return who is to be asked for a page.

        Raises UriError for what is no address, UsageError for an archive that nobody knows, a `top_k` below 1 or a
        `min_probability` that is none.
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
            asked = [RouteTarget(archive, "broadcast", rate(archive.id)) for archive in self._enabled]
            passed_over: list[str] = []
        else:
            grounds = self._lookup.find_evidence(uri, keys)
            if options.needs_likelihood:
                self._lookup.refine_wildcards(keys, grounds)
            asked, passed_over = self._select(grounds, options.min_probability)
        if options.preferred is not None:
            asked, passed_over = self._select_preferred(asked, options.preferred)
        if options.top_k is not None:
            asked, passed_over = self._select_likeliest(asked, options.top_k)
        self.stats.record_passed_over(passed_over)
        return ArchiveRoute(tuple(asked), tuple(passed_over))

    def _select(self, grounds: Mapping[str, Evidence], least: float) -> tuple[list[RouteTarget], list[str]]:
        """Return who may have the page, or is explored, and who is passed over."""
        rate = self.stats.rates.rate
        choices: list[RouteTarget | None] = []
        for archive in self._enabled:
            name = archive.id
            ground = grounds.get(name, Evidence.ANY)
            if ground is Evidence.ANY and rate(name) >= max(self._min_hit_rate, least):
                choices.append(RouteTarget(archive, "learned", rate(name)))
            elif ground is not Evidence.ANY and ground is not Evidence.DENIED and rate(name, ground) >= least:
                choices.append(RouteTarget(archive, "routed", rate(name, ground), ground))
            else:
                choices.append(None)
        if self._random() < self._exploration_share:
            self._explore(choices, grounds)
        asked = [choice for choice in choices if choice is not None]
        return asked, [archive.id for archive, choice in zip(self._enabled, choices, strict=True) if choice is None]

    def _explore(self, choices: list[RouteTarget | None], grounds: Mapping[str, Evidence]) -> None:
        """Choose one, too, of the archives that would be passed over."""
        places = [place for place, choice in enumerate(choices) if choice is None]
        if places:
            place = places[int(self._random() * len(places))]
            archive = self._enabled[place]
            ground = grounds.get(archive.id, Evidence.ANY)
            choices[place] = RouteTarget(archive, "explored", self.stats.rates.rate(archive.id, ground), ground)

    def _select_preferred(self, asked: list[RouteTarget], names: frozenset[str]) -> tuple[list[RouteTarget], list[str]]:
        """Return those of them that are preferred, and who is passed over then; if none is, all of them."""
        kept = [choice for choice in asked if choice.archive.id in names and choice.reason != "explored"]
        chosen = kept or asked
        ids = {choice.archive.id for choice in chosen}
        return chosen, [archive.id for archive in self._enabled if archive.id not in ids]

    def _select_likeliest(self, asked: list[RouteTarget], count: int) -> tuple[list[RouteTarget], list[str]]:
        """Return the likeliest of them, beside those that are explored, and who is passed over then."""
        # Of equally likely ones the first in the registry: sorting keeps their order.
        ranked = sorted(asked, key=lambda choice: (choice.reason == "explored", -choice.likelihood))
        kept = {choice.archive.id for choice in ranked[:count] if choice.reason != "explored"}
        kept |= {choice.archive.id for choice in asked if choice.reason == "explored"}
        chosen = [choice for choice in asked if choice.archive.id in kept]
        return chosen, [archive.id for archive in self._enabled if archive.id not in kept]

    def _route_to(self, names: frozenset[str]) -> ArchiveRoute:
        if not names:
            raise UsageError("no archive is named")
        rate = self.stats.rates.rate
        named = self._registry.only(sorted(names))
        return ArchiveRoute(tuple(RouteTarget(archive, "requested", rate(archive.id)) for archive in named))

    def learn(self, target: RouteTarget, outcome: ArchiveOutcome) -> None:
        """Learn from what came of asking an archive that was chosen."""
        self.stats.learn(target.archive.id, target.reason, outcome, target.evidence)

    def learn_from_log(self, answers: Iterable[upstream.UpstreamLogEntry]) -> int:
        """Learn from answers of a log, oldest first, and return how many were looked at.

        What the maps said then is not in the log: what they say now stands for it.
        """
        count = 0
        for answer in answers:
            count += 1
            if not answer.from_cache:
                self.stats.learn(answer.archive, answer.reason, answer.outcome, self._evidence_of(answer))
        return count

    def _evidence_of(self, answer: upstream.UpstreamLogEntry) -> Evidence:
        if answer.reason not in ("routed", "explored"):
            return Evidence.ANY
        ground = self._lookup.find_evidence(answer.uri, {}).get(answer.archive, Evidence.ANY)
        if answer.reason == "explored":
            return Evidence.ANY if ground is Evidence.ANY else Evidence.DENIED
        # A map that has changed since says nothing about that question: the vaguest ground stands for it.
        return Evidence.WILDCARD if ground in (Evidence.ANY, Evidence.DENIED) else ground
