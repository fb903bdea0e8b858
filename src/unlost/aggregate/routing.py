"""Chooses the archives that are asked for a page, and says why."""

from collections.abc import Iterable, Mapping
from random import Random

from unlost.aggregate.experience import LearnedStats
from unlost.aggregate.grounds import HoldingsLookup, HoldingsSource
from unlost.aggregate.hit_rates import Evidence
from unlost.aggregate.report import ArchiveOutcome
from unlost.aggregate.route import RouteTarget, ArchiveRoute
from unlost.aggregate.wish import RoutingOptions
from unlost.archives.registry.registry import Registry
from unlost.errors import UsageError
from unlost.formats import upstream
from unlost.uri import DEFAULT_RULES, key

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
