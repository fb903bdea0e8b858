"""What answers have taught about archives: hit rates, and how often maps are right; kept over restarts."""

import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, fields
from pathlib import Path

from unlost.aggregate.accuracy import RoutingAccuracy
from unlost.aggregate.hit_rates import DEFAULT_MEMORY, Evidence, HitRates
from unlost.aggregate.report import ArchiveOutcome
from unlost.archives.archive import Archive
from unlost.formats.output import atomic_file
from unlost.formats.problems import Problems
from unlost.formats.unread import unreadable_error
from unlost.formats.upstream import UpstreamLogEntry, RoutingReason, read_upstream_log

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
