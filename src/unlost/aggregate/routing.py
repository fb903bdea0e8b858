"""Chooses the archives that are asked for a page, and says why."""

from collections.abc import Iterable, Mapping
from random import Random

from unlost.aggregate.experience import Experience
from unlost.aggregate.grounds import Grounds, Knows
from unlost.aggregate.hit_rates import Ground
from unlost.aggregate.report import Outcome
from unlost.aggregate.route import Choice, Route
from unlost.aggregate.wish import Wish
from unlost.archives.registry.registry import Registry
from unlost.errors import UsageError
from unlost.formats import upstream
from unlost.uri import DEFAULT_RULES, key

DEFAULT_EXPLORING = 0.02
"""The share of pages for which one archive is asked although its map or filter says no, so that errors are known."""


class Router:
    """Chooses archives. All its methods are for one thread, and none of them waits for anything.

    registry: the archives that there are. known: their maps and filters. experience: what answers have taught.
    exploring: the share of pages, 0 to 1, for which one archive is asked, too, that would be passed over.
    least_rate: the least hit rate, 0 to 1, at which an archive without a map is asked; with 0 all of them are.
    random: chooses what is explored.
    """

    def __init__(
        self,
        registry: Registry,
        known: Knows,
        experience: Experience,
        *,
        exploring: float = DEFAULT_EXPLORING,
        least_rate: float = 0.0,
        random: Random | None = None,
    ) -> None:
        for name, share in (("exploring", exploring), ("least_rate", least_rate)):
            if not 0 <= share <= 1:
                raise UsageError(f"{name}: expected a share from 0 to 1")
        self._registry = registry
        self._on = registry.only()
        self._grounds = Grounds(known)
        self.experience = experience
        self._exploring = exploring
        self._least_rate = least_rate
        self._random = (random or Random()).random  # noqa: S311  nobody gains by guessing it

    def route(self, uri: str, wish: Wish = Wish()) -> Route:  # noqa: B008  it is frozen
        """Return who is to be asked for a page.

        Raises UriError for what is no address, UsageError for an archive that nobody knows, a `top_k` below 1 or a
        `min_probability` that is none.
        """
        keys = {DEFAULT_RULES: key(uri)}
        if wish.top_k is not None and wish.top_k < 1:
            raise UsageError("top_k: expected a number of archives, 1 or more")
        if not 0 <= wish.min_probability <= 1:
            raise UsageError("min_probability: expected a probability from 0 to 1")
        if wish.archives is not None:
            return self._named(wish.archives)
        if wish.broadcast:
            rate = self.experience.rates.rate
            asked = [Choice(archive, "broadcast", rate(archive.id)) for archive in self._on]
            passed_over: list[str] = []
        else:
            grounds = self._grounds.of(uri, keys)
            if wish.is_choosy:
                self._grounds.weigh(keys, grounds)
            asked, passed_over = self._chosen(grounds, wish.min_probability)
        if wish.prefers is not None:
            asked, passed_over = self._preferred(asked, wish.prefers)
        if wish.top_k is not None:
            asked, passed_over = self._likeliest(asked, wish.top_k)
        self.experience.passed_over(passed_over)
        return Route(tuple(asked), tuple(passed_over))

    def _chosen(self, grounds: Mapping[str, Ground], least: float) -> tuple[list[Choice], list[str]]:
        """Return who may have the page, or is explored, and who is passed over."""
        rate = self.experience.rates.rate
        choices: list[Choice | None] = []
        for archive in self._on:
            name = archive.id
            ground = grounds.get(name, Ground.ANY)
            if ground is Ground.ANY and rate(name) >= max(self._least_rate, least):
                choices.append(Choice(archive, "learned", rate(name)))
            elif ground is not Ground.ANY and ground is not Ground.DENIED and rate(name, ground) >= least:
                choices.append(Choice(archive, "routed", rate(name, ground), ground))
            else:
                choices.append(None)
        if self._random() < self._exploring:
            self._explore(choices, grounds)
        asked = [choice for choice in choices if choice is not None]
        return asked, [archive.id for archive, choice in zip(self._on, choices, strict=True) if choice is None]

    def _explore(self, choices: list[Choice | None], grounds: Mapping[str, Ground]) -> None:
        """Choose one, too, of the archives that would be passed over."""
        places = [place for place, choice in enumerate(choices) if choice is None]
        if places:
            place = places[int(self._random() * len(places))]
            archive = self._on[place]
            ground = grounds.get(archive.id, Ground.ANY)
            choices[place] = Choice(archive, "explored", self.experience.rates.rate(archive.id, ground), ground)

    def _preferred(self, asked: list[Choice], names: frozenset[str]) -> tuple[list[Choice], list[str]]:
        """Return those of them that are preferred, and who is passed over then; if none is, all of them."""
        kept = [choice for choice in asked if choice.archive.id in names and choice.reason != "explored"]
        chosen = kept or asked
        ids = {choice.archive.id for choice in chosen}
        return chosen, [archive.id for archive in self._on if archive.id not in ids]

    def _likeliest(self, asked: list[Choice], count: int) -> tuple[list[Choice], list[str]]:
        """Return the likeliest of them, beside those that are explored, and who is passed over then."""
        # Of equally likely ones the first in the registry: sorting keeps their order.
        ranked = sorted(asked, key=lambda choice: (choice.reason == "explored", -choice.likelihood))
        kept = {choice.archive.id for choice in ranked[:count] if choice.reason != "explored"}
        kept |= {choice.archive.id for choice in asked if choice.reason == "explored"}
        chosen = [choice for choice in asked if choice.archive.id in kept]
        return chosen, [archive.id for archive in self._on if archive.id not in kept]

    def _named(self, names: frozenset[str]) -> Route:
        if not names:
            raise UsageError("no archive is named")
        rate = self.experience.rates.rate
        named = self._registry.only(sorted(names))
        return Route(tuple(Choice(archive, "requested", rate(archive.id)) for archive in named))

    def learn(self, choice: Choice, outcome: Outcome) -> None:
        """Learn from what came of asking an archive that was chosen."""
        self.experience.learn(choice.archive.id, choice.reason, outcome, choice.ground)

    def learn_answers(self, answers: Iterable[upstream.Answer]) -> int:
        """Learn from answers of a log, oldest first, and return how many were looked at.

        What the maps said then is not in the log: what they say now stands for it.
        """
        count = 0
        for answer in answers:
            count += 1
            if not answer.from_cache:
                self.experience.learn(answer.archive, answer.reason, answer.outcome, self._ground_of(answer))
        return count

    def _ground_of(self, answer: upstream.Answer) -> Ground:
        if answer.reason not in ("routed", "explored"):
            return Ground.ANY
        ground = self._grounds.of(answer.uri, {}).get(answer.archive, Ground.ANY)
        if answer.reason == "explored":
            return Ground.ANY if ground is Ground.ANY else Ground.DENIED
        # A map that has changed since says nothing about that question: the vaguest ground stands for it.
        return Ground.WILDCARD if ground in (Ground.ANY, Ground.DENIED) else ground
