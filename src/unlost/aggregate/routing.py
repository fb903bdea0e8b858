"""Chooses the archives that are asked for a page, and says why."""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from unlost.aggregate.experience import Experience
from unlost.aggregate.hit_rates import Ground
from unlost.aggregate.report import Outcome
from unlost.aggregate.wish import Wish
from unlost.archives.archive import Archive
from unlost.archives.registry.registry import Registry
from unlost.errors import InputError, UriError, UsageError
from unlost.formats import upstream
from unlost.holdings.routing import Holdings, Ruling
from unlost.holdings.routing import Reason as Basis
from unlost.uri import DEFAULT_RULES, key

DEFAULT_EXPLORING = 0.02
"""The share of questions that go to an archive although its map or filter says no, so that its errors are known."""

_GROUNDS = {
    Basis.BOTH: Ground.BOTH,
    Basis.FILTER: Ground.FILTER,
    Basis.LISTED: Ground.LISTED_ONLY,
    Basis.OLD_FILTER: Ground.OLD_FILTER,
    Basis.UNCOVERED: Ground.DENIED,
    Basis.EXCLUDED: Ground.DENIED,
    Basis.FILTERED: Ground.DENIED,
}


@dataclass(frozen=True, slots=True)
class Choice:
    """An archive that is to be asked.

    reason: why. likelihood: that it has the page, 0 to 1, as far as answers have taught.
    ground: what its map and filters say about the page, if they were looked at; to be given back when it has answered.
    """

    archive: Archive
    reason: upstream.Reason
    likelihood: float
    ground: Ground = Ground.ANY


@dataclass(frozen=True, slots=True)
class Route:
    """Who is asked for a page, and who is not, by id; both in the order of the registry."""

    asked: tuple[Choice, ...]
    passed_over: tuple[str, ...] = ()


class Knows(Protocol):
    """Whoever knows maps and filters."""

    def holdings(self, archive: str) -> Holdings | None:
        """Return what is known of what an archive holds; None if nothing is."""
        ...

    def set_aside(self, archive: str, problem: str) -> None:
        """Take note that what is known turned out to be damaged: from now on nothing is, until it is read anew."""
        ...


class Router:
    """Chooses archives. All its methods are for one thread, and none of them waits for anything.

    registry: the archives that there are. known: their maps and filters. experience: what answers have taught.
    exploring: the share of questions, 0 to 1, that go to an archive which would be passed over.
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
        self._known = known
        self.experience = experience
        self._exploring = exploring
        self._least_rate = least_rate
        self._random = (random or Random()).random  # noqa: S311  nobody gains by guessing it

    def route(self, uri: str, wish: Wish = Wish()) -> Route:  # noqa: B008  it is frozen
        """Return who is to be asked for a page.

        Raises UriError for what is no address, UsageError for an archive that nobody knows or a `top_k` below 1.
        """
        keys = {DEFAULT_RULES: key(uri)}
        if wish.top_k is not None and wish.top_k < 1:
            raise UsageError("top_k: expected a number of archives, 1 or more")
        if wish.archives is not None:
            return self._named(wish.archives)
        if wish.broadcast:
            rate = self.experience.rates.rate
            asked = [Choice(archive, "broadcast", rate(archive.id)) for archive in self._on]
            return self._counted(asked, [], wish.top_k)
        asked = []
        explored: list[Choice] = []
        for archive in self._on:
            choice = self._choice(archive, uri, keys)
            if choice is None:
                continue
            (explored if choice.reason == "explored" else asked).append(choice)
        return self._counted(asked, explored, wish.top_k)

    def _named(self, names: frozenset[str]) -> Route:
        if not names:
            raise UsageError("no archive is named")
        rate = self.experience.rates.rate
        named = self._registry.only(sorted(names))
        return Route(tuple(Choice(archive, "requested", rate(archive.id)) for archive in named))

    def _choice(self, archive: Archive, uri: str, keys: dict[str, str]) -> Choice | None:
        """Return an archive if it is to be asked, among the k likeliest or for exploring's sake."""
        rate = self.experience.rates.rate
        ruling = self._ruling(archive.id, uri, keys)
        if ruling is None:
            likelihood = rate(archive.id)
            if likelihood >= self._least_rate:
                return Choice(archive, "learned", likelihood)
            return Choice(archive, "explored", likelihood) if self._explores() else None
        if ruling.is_worth_asking:
            ground = _ground(ruling)
            return Choice(archive, "routed", rate(archive.id, ground), ground)
        if self._explores():
            return Choice(archive, "explored", rate(archive.id, Ground.DENIED), Ground.DENIED)
        return None

    def _explores(self) -> bool:
        return self._random() < self._exploring

    def _ruling(self, archive: str, uri: str, keys: dict[str, str]) -> Ruling | None:
        """Return what map and filters of an archive say; None if there are none.

        keys: of the page, by the rules under which they were made; others that are needed are added.
        """
        holdings = self._known.holdings(archive)
        if holdings is None:
            return None
        try:
            page = keys.get(holdings.rules)
            if page is None:
                page = keys[holdings.rules] = key(uri, holdings.rules)
            return holdings.lookup_key(page)
        except UriError:
            return None  # no page by these rules, although it is one by the usual: nobody can have listed it, or not
        except InputError as error:
            self._known.set_aside(archive, str(error))
            return None

    def _counted(self, asked: list[Choice], explored: list[Choice], top_k: int | None) -> Route:
        """Return the route, and count who is passed over."""
        if top_k is not None and len(asked) > top_k:
            # Of equally likely ones the first in the registry: sorting keeps their order.
            asked = sorted(asked, key=lambda choice: -choice.likelihood)[:top_k]
        chosen = {choice.archive.id: choice for choice in (*asked, *explored)}
        passed_over = tuple(archive.id for archive in self._on if archive.id not in chosen)
        for archive in passed_over:
            self.experience.passed_over(archive)
        return Route(tuple(chosen[archive.id] for archive in self._on if archive.id in chosen), passed_over)

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
        ruling = self._ruling(answer.archive, answer.uri, {})
        if answer.reason == "explored":
            return Ground.ANY if ruling is None else Ground.DENIED
        # A map that has changed since says nothing about that question: the vaguest ground stands for it.
        return _ground(ruling) if ruling is not None and ruling.is_worth_asking else Ground.WILDCARD


def _ground(ruling: Ruling) -> Ground:
    if ruling.reason is Basis.MAP:
        is_wild = ruling.answer is not None and (ruling.answer.matched or "").endswith("*")
        return Ground.WILDCARD if is_wild else Ground.LISTED
    return _GROUNDS[ruling.reason]
