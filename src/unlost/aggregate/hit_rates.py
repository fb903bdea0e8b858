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


@dataclass(frozen=True, slots=True)
class HitShare:
    """So many of so many, and what that tells about the share of all.

    >>> HitShare(3, 100).rate, HitShare(0, 0).rate, [round(bound, 3) for bound in HitShare(3, 100).bounds]
    (0.03, None, [0.01, 0.085])
    """

    hits: int
    total: int

    @property
    def rate(self) -> float | None:
        """The share, 0 to 1; None if nobody was asked."""
        return self.hits / self.total if self.total else None

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which the share lies, with a confidence of 95 % (Wilson's interval); 0 and 1 if nobody was asked."""
        if not self.total:
            return 0.0, 1.0
        share, square = self.hits / self.total, _Z * _Z / self.total
        middle = (share + square / 2) / (1 + square)
        half = _Z * sqrt(share * (1 - share) / self.total + square / (4 * self.total)) / (1 + square)
        # Rounding must not take away what was seen.
        return max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share))


@dataclass(frozen=True, slots=True)
class RoutingAccuracy:
    """What came of asking an archive, by why it was asked: answers only, no failures.

    routed_hits, routed_misses: its map or filter said that it may have the page.
    explored_hits, explored_misses: it said no, and the archive was asked nevertheless; or its hit rate was too low.
    learned_hits, learned_misses: it has no map.
    passed_over: how often it was not asked.
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
        """How many of those that were routed had the page."""
        return HitShare(self.routed_hits, self.routed_hits + self.routed_misses)

    @property
    def false_negatives(self) -> HitShare:
        """How many of those that were denied had the page nevertheless, by the ones that were explored."""
        return HitShare(self.explored_hits, self.explored_hits + self.explored_misses)

    @property
    def hit_rate(self) -> HitShare:
        """How many of those that were asked without a map had the page."""
        return HitShare(self.learned_hits, self.learned_hits + self.learned_misses)


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

    __slots__ = ("_decay", "_prior_hits", "_weight", "hits", "total", "value")

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

    >>> from unlost.registry.models import SourcedNumber, ArchiveKind
    >>> rates = HitRates([Archive("a", "A", ArchiveKind.MEMENTO, hit_rate=SourcedNumber(0.2, "counted"))])
    >>> for _ in range(20):
    ...     rates.learn("a", Evidence.ANY, is_hit=False)
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


MAX_LOG_BYTES = 1 << 26
"""How much of a log is learnt from, from its end: some hundred thousand answers, far more than rates remember."""
_MAX_BYTES = 1 << 24  # of the file; an archive has less than a thousand
_MAX_COUNT = 2**53  # what every reader of JSON keeps exactly
_VERSION = 1
_PASSED_OVER = "passed_over"
_COUNT_NAMES = tuple(each.name for each in fields(RoutingAccuracy) if each.name != _PASSED_OVER)
_log = logging.getLogger(__name__)


class LearnedStats:
    """What answers have taught. Its size is that of the registry, whatever comes.

    archives: those of the registry. memory: how many answers of each hit rates remember.
    """

    def __init__(self, archives: Iterable[Archive], memory: float = DEFAULT_MEMORY) -> None:
        known = tuple(archives)
        self.rates = HitRates(known, memory)
        self._counts = {archive.id: dict.fromkeys(_COUNT_NAMES, 0) for archive in known}
        self._passed_over = {archive.id: 0 for archive in known}

    def learn(
        self, archive: str, reason: RoutingReason, outcome: ArchiveOutcome, evidence: Evidence = Evidence.ANY
    ) -> None:
        """Learn from one answer of an archive: a hit or a miss; failures teach nothing about what it holds.

        ground: what made it worth asking. Nor do answers of archives that somebody named: whoever does has a reason.
        """
        if outcome not in ("hit", "miss") or reason == "requested" or archive not in self._counts:
            return
        is_hit = outcome == "hit"
        if reason in ("routed", "explored", "learned"):
            self._counts[archive][f"{reason}_{'hits' if is_hit else 'misses'}"] += 1
        self.rates.learn(archive, evidence, is_hit)

    def record_passed_over(self, archives: Iterable[str]) -> None:
        """Count that archives were not asked."""
        for archive in archives:
            self._passed_over[archive] += 1

    def accuracy(self, archive: str) -> RoutingAccuracy:
        """Return what came of asking an archive so far."""
        return RoutingAccuracy(**self._counts[archive], passed_over=self._passed_over[archive])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, which appears whole or not at all. Raises OSError."""
        counts = {archive: asdict(self.accuracy(archive)) for archive in self._counts}
        learnt = {"version": _VERSION, "rates": self.rates.export_counts(), "counts": counts}
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            file.write(json.dumps(learnt, separators=(",", ":")).encode())

    def restore(self, path: str | os.PathLike[str], warn: Callable[[str], None] = _log.warning) -> bool:
        """Take what was saved, and return whether there was something.

        A file that cannot be read is told and left as it is, until the next one is saved: nothing in it is needed to
        give right answers. What it says about archives that are not in the registry is passed over.
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
        for archive, ground, hits, total in rates:
            self.rates.restore_counts(archive, ground, hits, total)
        for archive, name, count in counts:
            if archive in self._counts:
                if name == _PASSED_OVER:
                    self._passed_over[archive] = count
                else:
                    self._counts[archive][name] = count
        return True


def _validate(table: object) -> tuple[list[tuple[str, str, float, float]], list[tuple[str, str, int]]]:
    """Return what a file says: rates, and counts. Raises ValueError if it is not what was saved."""
    if not isinstance(table, dict) or table.get("version") != _VERSION:
        raise ValueError("version")
    rates = [
        (archive, ground, *_validate_pair(pair))
        for archive, ground, pair in _iter_leaves(table.get("rates"))
        if ground in set(Evidence)
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
    """Yield the last answers of a log, of about so many bytes, in their order; none if there is no log.

    What cannot be read is counted in `problems`. Raises InputError if the file cannot be read at all.
    """
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - max_bytes))
            if size > max_bytes:
                file.readline()  # whose beginning is not there
            yield from read_upstream_log(file, problems, os.fspath(path))
    except FileNotFoundError:
        return
    except OSError as error:
        raise unreadable_error(path, error) from error
