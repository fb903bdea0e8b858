"""Hit rates and routing accuracy of archives: priors of the registry, updated by responses, saved across restarts."""

import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from math import sqrt
from pathlib import Path

from unlost.aggregate.models import ArchiveOutcome
from unlost.atomic import atomic_file
from unlost.logs.upstream import RoutingReason, UpstreamLogEntry, read_upstream_log
from unlost.problems import Problems, unreadable_error
from unlost.registry.models import Archive

_Z = 1.959964  # 95 %, two-sided

PRIOR_WEIGHT = 20.0
"""Number of responses that the registry's hit rate counts as. These rates were measured from 2015 to 2019, on the
requests to another aggregator, so the responses to this one outweigh them soon."""
DEFAULT_MEMORY = 1_000.0
"""Time constant of forgetting, in responses: a response counts half after about 700 more, since archives change."""

_ODDS_WEIGHT = 5.0  # responses that the initial odds of wildcards with few or many mementos count as

MAX_LOG_BYTES = 1 << 26
"""Bytes at the end of a log that are learned from: some hundred thousand entries, far more than hit rates remember."""
_MAX_BYTES = 1 << 24  # of the saved statistics; an archive takes less than a thousand
_MAX_COUNT = 2**53  # largest integer that all JSON parsers represent exactly
_VERSION = 1
_PASSED_OVER = "passed_over"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HitShare:
    """A proportion `hits` of `total`, with a confidence interval.

    >>> HitShare(3, 100).rate, HitShare(0, 0).rate, [round(bound, 3) for bound in HitShare(3, 100).bounds]
    (0.03, None, [0.01, 0.085])
    """

    hits: int
    total: int

    @property
    def rate(self) -> float | None:
        """The proportion, 0 to 1; None if the total is 0."""
        return self.hits / self.total if self.total else None

    @property
    def bounds(self) -> tuple[float, float]:
        """Wilson's 95 % confidence interval of the proportion; 0 and 1 if the total is 0."""
        if not self.total:
            return 0.0, 1.0
        share, square = self.hits / self.total, _Z * _Z / self.total
        middle = (share + square / 2) / (1 + square)
        half = _Z * sqrt(share * (1 - share) / self.total + square / (4 * self.total)) / (1 + square)
        # Rounding must not exclude the observed proportion.
        return max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share))


@dataclass(frozen=True, slots=True)
class RoutingAccuracy:
    """Outcomes of the requests to an archive, by the reason of the request. Failures do not count.

    Attributes:
        routed_hits: Hits where its map or filter said that it may hold the page.
        routed_misses: Misses of the same.
        explored_hits: Hits where the map or filter denied the page, or the hit rate was too low, and it was queried
            anyway.
        explored_misses: Misses of the same.
        learned_hits: Hits of an archive without a map.
        learned_misses: Misses of the same.
        passed_over: How often it was not queried.
    """

    routed_hits: int = 0
    routed_misses: int = 0
    explored_hits: int = 0
    explored_misses: int = 0
    learned_hits: int = 0
    learned_misses: int = 0
    passed_over: int = 0

    @property
    def precision(self) -> HitShare:
        """Share of the routed requests that hit."""
        return HitShare(self.routed_hits, self.routed_hits + self.routed_misses)

    @property
    def false_negatives(self) -> HitShare:
        """Share of the denied pages that the archive held, estimated by exploration."""
        return HitShare(self.explored_hits, self.explored_hits + self.explored_misses)

    @property
    def hit_rate(self) -> HitShare:
        """Share of the requests without a map that hit."""
        return HitShare(self.learned_hits, self.learned_hits + self.learned_misses)


class Evidence(StrEnum):
    """What is known about a page in an archive. Each kind has a hit rate of its own."""

    ANY = "any"
    """Nothing: there is no map, or it was not consulted."""
    BOTH = "map and filter"
    FILTER = "filter"
    LISTED = "listed"
    """The map lists the page itself."""
    WILDCARD = "wildcard"
    """A wildcard of the map covers the page."""
    WILDCARD_FEW = "wildcard, few copies"
    """The same, with few mementos under the wildcard."""
    WILDCARD_MANY = "wildcard, many copies"
    LISTED_ONLY = "listed, not in the filter"
    OLD_FILTER = "wildcard, old filter"
    DENIED = "denied"
    """The map or the filter says that the archive does not hold the page."""


_PRIORS: Mapping[Evidence, tuple[float, float]] = {
    # Guesses of low weight: only their order matters until there are responses. A filter has a false-positive rate
    # of less than 1 %, and most requested pages are held by few archives.
    Evidence.BOTH: (0.9, 5.0),
    Evidence.FILTER: (0.85, 5.0),
    Evidence.LISTED: (0.8, 5.0),
    Evidence.LISTED_ONLY: (0.6, 5.0),
    Evidence.WILDCARD: (0.3, 5.0),
    Evidence.OLD_FILTER: (0.1, 5.0),
    Evidence.DENIED: (0.01, 5.0),
    # An archive without map and hit rate starts at 0.5 and learns fast.
    Evidence.ANY: (0.5, 2.0),
}
_ODDS_FACTORS: Mapping[Evidence, float] = {Evidence.WILDCARD_FEW: 0.6, Evidence.WILDCARD_MANY: 1.6}
"""Initial odds relative to those of all wildcards of an archive; guesses, replaced by responses."""
_EVIDENCE_VALUES = frozenset(evidence.value for evidence in Evidence)
_COUNT_NAMES = tuple(each.name for each in fields(RoutingAccuracy) if each.name != _PASSED_OVER)


class HitRate:
    """A learned proportion: the mean of a Beta distribution with a fixed prior and decaying observations.

    Attributes:
        value: The proportion, 0 to 1.
        hits: Decayed number of hits.
        total: Decayed number of responses.
    """

    __slots__ = ("_decay", "_prior_hits", "_weight", "hits", "total", "value")

    def __init__(self, prior: float, weight: float, memory: float = DEFAULT_MEMORY) -> None:
        self._prior_hits = prior * weight
        self._weight = weight
        self._decay = 1.0 - 1.0 / memory
        self.set(0.0, 0.0)

    def set(self, hits: float, total: float) -> None:
        """Restore saved observations."""
        self.hits = hits
        self.total = total
        self.value = (self._prior_hits + hits) / (self._weight + total)

    def learn(self, is_hit: bool) -> None:
        """Update with one response."""
        self.set(self.hits * self._decay + is_hit, self.total * self._decay + 1.0)


class HitRates:
    """Hit rates of the registry's archives by evidence.

    Args:
        archives: The archives of the registry.
        memory: Time constant of forgetting, in responses.

    >>> from unlost.registry.models import ArchiveKind, SourcedNumber
    >>> rates = HitRates([Archive("a", "A", ArchiveKind.MEMENTO, hit_rate=SourcedNumber(0.2, "counted"))])
    >>> for _ in range(20):
    ...     rates.learn("a", Evidence.ANY, is_hit=False)
    >>> round(rates.rate("a"), 2)
    0.1
    """

    def __init__(self, archives: Iterable[Archive], memory: float = DEFAULT_MEMORY) -> None:
        self._rates = {archive.id: _prior_rates(archive, memory) for archive in archives}

    def rate(self, archive: str, evidence: Evidence = Evidence.ANY) -> float:
        """Return the probability, 0 to 1, that an archive holds a page, given the evidence."""
        rates = self._rates[archive]
        if evidence not in _ODDS_FACTORS:
            return rates[evidence].value
        odds = _ODDS_FACTORS[evidence] * rates[Evidence.WILDCARD].value / (1 - rates[Evidence.WILDCARD].value or 1e-9)
        own = rates[evidence]
        return (_ODDS_WEIGHT * odds / (1 + odds) + own.hits) / (_ODDS_WEIGHT + own.total)

    def learn(self, archive: str, evidence: Evidence, is_hit: bool) -> None:
        """Update with one response. Archives outside the registry are ignored."""
        if rates := self._rates.get(archive):
            rates[evidence].learn(is_hit)
            if evidence in _ODDS_FACTORS:
                rates[Evidence.WILDCARD].learn(is_hit)

    def export_counts(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Return the decayed hits and totals by archive and evidence."""
        return {
            archive: {evidence.value: (rate.hits, rate.total) for evidence, rate in rates.items() if rate.total}
            for archive, rates in self._rates.items()
        }

    def restore_counts(self, archive: str, evidence: str, hits: float, total: float) -> None:
        """Restore exported counts. Unknown archives and kinds of evidence are ignored."""
        rates = self._rates.get(archive)
        if rates and evidence in _EVIDENCE_VALUES:
            rates[Evidence(evidence)].set(hits, total)


def _prior_rates(archive: Archive, memory: float) -> dict[Evidence, HitRate]:
    rates = {evidence: HitRate(prior, weight, memory) for evidence, (prior, weight) in _PRIORS.items()}
    rates |= {evidence: HitRate(0.0, _ODDS_WEIGHT, memory) for evidence in _ODDS_FACTORS}
    if archive.hit_rate is not None:
        rates[Evidence.ANY] = HitRate(archive.hit_rate.value, PRIOR_WEIGHT, memory)
    return rates


class LearnedStats:
    """Hit rates and routing accuracy of the registry's archives, in memory that does not grow with the responses.

    Args:
        archives: The archives of the registry.
        memory: Time constant of forgetting, in responses.
    """

    def __init__(self, archives: Iterable[Archive], memory: float = DEFAULT_MEMORY) -> None:
        archives = tuple(archives)
        self.rates = HitRates(archives, memory)
        self._counts = {archive.id: dict.fromkeys(_COUNT_NAMES, 0) for archive in archives}
        self._passed_over = {archive.id: 0 for archive in archives}

    def learn(
        self, archive: str, reason: RoutingReason, outcome: ArchiveOutcome, evidence: Evidence = Evidence.ANY
    ) -> None:
        """Learn from one response. Only hits and misses count; failures say nothing about holdings.

        Requests for archives that the user named are ignored, because the user had a reason to name them.

        Args:
            archive: ID of the archive.
            reason: Why it was queried.
            outcome: Outcome of the request.
            evidence: What its map and filters said.
        """
        if outcome not in ("hit", "miss") or reason == "requested" or archive not in self._counts:
            return
        is_hit = outcome == "hit"
        if reason in ("routed", "explored", "learned"):
            self._counts[archive][f"{reason}_{'hits' if is_hit else 'misses'}"] += 1
        self.rates.learn(archive, evidence, is_hit)

    def record_passed_over(self, archives: Iterable[str]) -> None:
        """Count archives that were not queried."""
        for archive in archives:
            self._passed_over[archive] += 1

    def accuracy(self, archive: str) -> RoutingAccuracy:
        """Return the routing accuracy of an archive so far."""
        return RoutingAccuracy(**self._counts[archive], passed_over=self._passed_over[archive])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the statistics to a file, atomically. Raises OSError."""
        counts = {archive: asdict(self.accuracy(archive)) for archive in self._counts}
        state = {"version": _VERSION, "rates": self.rates.export_counts(), "counts": counts}
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            file.write(json.dumps(state, separators=(",", ":")).encode())

    def restore(self, path: str | os.PathLike[str], warn: Callable[[str], None] = _log.warning) -> bool:
        """Restore saved statistics and return whether there were any.

        A file that cannot be read is reported through `warn` and left until the next save, since the statistics affect
        only efficiency. Archives that are not in the registry are ignored.
        """
        try:
            with Path(path).open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
            rates, counts = _validate(json.loads(data) if len(data) <= _MAX_BYTES else None)
        except FileNotFoundError:
            return False
        except (OSError, ValueError, RecursionError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not what was saved"
            warn(f"{os.fspath(path)}: cannot be read ({reason}): hit rates are learnt anew")
            return False
        for archive, evidence, hits, total in rates:
            self.rates.restore_counts(archive, evidence, hits, total)
        for archive, name, count in counts:
            if archive in self._counts:
                if name == _PASSED_OVER:
                    self._passed_over[archive] = count
                else:
                    self._counts[archive][name] = count
        return True


def _validate(table: object) -> tuple[list[tuple[str, str, float, float]], list[tuple[str, str, int]]]:
    """Return the rates and counts of a saved state. Raises ValueError if it is invalid."""
    if not isinstance(table, dict) or table.get("version") != _VERSION:
        raise ValueError("version")
    rates = [
        (archive, evidence, *_validate_pair(pair))
        for archive, evidence, pair in _iter_leaves(table.get("rates"))
        if evidence in set(Evidence)
    ]
    counts = [
        (archive, name, count)
        for archive, name, count in _iter_leaves(table.get("counts"))
        if name in (*_COUNT_NAMES, _PASSED_OVER)
    ]
    if any(type(count) is not int or not 0 <= count <= _MAX_COUNT for _, _, count in counts):
        raise ValueError("counts")
    return rates, [(archive, name, int(str(count))) for archive, name, count in counts]


def _iter_leaves(table: object) -> Iterator[tuple[str, str, object]]:
    if not isinstance(table, dict) or any(not isinstance(inner, dict) for inner in table.values()):
        raise ValueError("table")
    for archive, inner in table.items():
        for name, value in inner.items():
            yield archive, name, value


def _validate_pair(pair: object) -> tuple[float, float]:
    if not isinstance(pair, list) or len(pair) != 2 or any(type(each) not in (int, float) for each in pair):
        raise ValueError("rates")
    hits, total = float(pair[0]), float(pair[1])
    if not (math.isfinite(total) and 0 <= hits <= total <= _MAX_COUNT):
        raise ValueError("rates")
    return hits, total


def read_recent_responses(
    path: str | os.PathLike[str], problems: Problems, max_bytes: int = MAX_LOG_BYTES
) -> Iterator[UpstreamLogEntry]:
    """Yield the last entries of a log, oldest first; none if there is no log.

    Args:
        path: The log.
        problems: Gets the lines that cannot be read.
        max_bytes: Approximate number of bytes to read, from the end.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - max_bytes))
            if size > max_bytes:
                file.readline()  # skip the partial line
            yield from read_upstream_log(file, problems, os.fspath(path))
    except FileNotFoundError:
        return
    except OSError as error:
        raise unreadable_error(path, error) from error
