"""How often archives have what they are asked for: the registry's figures to begin with, then what answers teach."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from unlost.archives.archive import Archive

PRIOR_WEIGHT = 20.0
"""What the registry says counts as much as so many answers: its figures are of others' questions, of years ago."""

DEFAULT_MEMORY = 1_000.0
"""Answers come to count half after about 700 more, and next to nothing after some thousand: archives change."""


class Evidence(StrEnum):
    """What makes an archive worth asking: each has a hit rate of its own."""

    ANY = "any"
    """Nothing about the page: there is no map, or it was not looked at."""
    BOTH = "map and filter"
    FILTER = "filter"
    LISTED = "listed"
    """The map has the page itself."""
    WILDCARD = "wildcard"
    """The map has what the page lies below."""
    WILDCARD_FEW = "wildcard, few copies"
    """The same, and there are few copies below it."""
    WILDCARD_MANY = "wildcard, many copies"
    LISTED_ONLY = "listed, not in the filter"
    OLD_FILTER = "wildcard, old filter"
    DENIED = "denied"
    """Map or filter say that it has nothing."""


_PRIORS: Mapping[Evidence, tuple[float, float]] = {
    # Guesses, of a small weight: only their order matters, until answers are there. A filter is wrong once in some
    # hundred pages that are not held, and most pages that are asked for are held by few archives.
    Evidence.BOTH: (0.9, 5.0),
    Evidence.FILTER: (0.85, 5.0),
    Evidence.LISTED: (0.8, 5.0),
    Evidence.LISTED_ONLY: (0.6, 5.0),
    Evidence.WILDCARD: (0.3, 5.0),
    Evidence.OLD_FILTER: (0.1, 5.0),
    Evidence.DENIED: (0.01, 5.0),
    # Whoever has neither map nor figure is thought to have everything as likely as nothing, and learns fast.
    Evidence.ANY: (0.5, 2.0),
}


_ODDS_FACTORS: Mapping[Evidence, float] = {Evidence.WILDCARD_FEW: 0.6, Evidence.WILDCARD_MANY: 1.6}
"""By how much the odds are others than those of all wildcards of an archive, until answers teach it: guesses, too."""

_ODDS_WEIGHT = 5.0  # answers


class HitRate:
    """A share that is learnt: the mean of a Beta distribution, whose answers are forgotten and whose prior is not.

    value: the share, 0 to 1. hits, total: of answers, each counted the less the older it is.
    """

    __slots__ = ("_prior_hits", "_decay", "_weight", "hits", "total", "value")

    def __init__(self, prior: float, weight: float, memory: float = DEFAULT_MEMORY) -> None:
        self._prior_hits = prior * weight
        self._weight = weight
        self._decay = 1.0 - 1.0 / memory
        self.set(0.0, 0.0)

    def set(self, hits: float, total: float) -> None:
        """Take what was learnt before."""
        self.hits = hits
        self.total = total
        self.value = (self._prior_hits + hits) / (self._weight + total)

    def learn(self, is_hit: bool) -> None:
        """Learn from one answer."""
        self.set(self.hits * self._decay + is_hit, self.total * self._decay + 1.0)


class HitRates:
    """The hit rates of archives, by what made them worth asking. As many as there are archives, and no more.

    archives: those of the registry. memory: how many answers are remembered.

    >>> from unlost.archives.archive import Figure, Kind
    >>> rates = HitRates([Archive("a", "A", Kind.MEMENTO, hit_rate=Figure(0.2, "counted"))])
    >>> for _ in range(20):
    ...     rates.learn("a", Ground.ANY, is_hit=False)
    >>> round(rates.rate("a"), 2)
    0.1
    """

    def __init__(self, archives: Iterable[Archive], memory: float = DEFAULT_MEMORY) -> None:
        self._rates = {archive.id: _prior_rates(archive, memory) for archive in archives}

    def rate(self, archive: str, evidence: Evidence = Evidence.ANY) -> float:
        """Return how likely an archive has a page, 0 to 1, given what makes it worth asking."""
        rates = self._rates[archive]
        if evidence not in _ODDS_FACTORS:
            return rates[evidence].value
        odds = _ODDS_FACTORS[evidence] * rates[Evidence.WILDCARD].value / (1 - rates[Evidence.WILDCARD].value or 1e-9)
        own = rates[evidence]
        return (_ODDS_WEIGHT * odds / (1 + odds) + own.hits) / (_ODDS_WEIGHT + own.total)

    def learn(self, archive: str, evidence: Evidence, is_hit: bool) -> None:
        """Learn from one answer. That of an archive that is none of ours is passed over."""
        if rates := self._rates.get(archive):
            rates[evidence].learn(is_hit)
            if evidence in _ODDS_FACTORS:
                rates[Evidence.WILDCARD].learn(is_hit)

    def export_counts(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Return what was learnt: by archive and ground, hits and answers, each counted the less the older it is."""
        return {
            archive: {ground.value: (rate.hits, rate.total) for ground, rate in rates.items() if rate.total}
            for archive, rates in self._rates.items()
        }

    def restore_counts(self, archive: str, evidence: str, hits: float, total: float) -> None:
        """Take what was learnt before. What is of no archive of ours, or no ground, is passed over."""
        rates = self._rates.get(archive)
        if rates and evidence in _EVIDENCE_VALUES:
            rates[Evidence(evidence)].set(hits, total)


def _prior_rates(archive: Archive, memory: float) -> dict[Evidence, HitRate]:
    rates = {ground: HitRate(first, weight, memory) for ground, (first, weight) in _PRIORS.items()}
    rates |= {ground: HitRate(0.0, _ODDS_WEIGHT, memory) for ground in _ODDS_FACTORS}
    if archive.hit_rate is not None:
        rates[Evidence.ANY] = HitRate(archive.hit_rate.value, PRIOR_WEIGHT, memory)
    return rates


_EVIDENCE_VALUES = frozenset(ground.value for ground in Evidence)
