"""Compacts MementoMaps: a subtree with too many children becomes one wildcard."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Self

from unlost import _core
from unlost._core import Progress
from unlost.errors import InputError, UsageError
from unlost.index.ukvs import UkvsHeader, format_header
from unlost.mementomap.map_file import atomic_map_file, read_map_header, with_row_bytes
from unlost.mementomap.readers import InputReport, ProgressCallback, run_with_progress
from unlost.text_lines import MAX_LINE_BYTES

_IP_ADDRESS = re.compile(r"(\d+(,\d+){3}|\[.*\])(:\d+)?")  # one label, however many commas there are

NO_LIMIT = math.inf
"""The weight with which nothing is rolled up."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """When a node of the tree is rolled up: if it has more than `a · x^-k · weight` children.

    host_weight, path_weight: what users turn; infinite for no roll-up.
    host_a, host_k: x is the number of the node's host labels; a top-level domain is never rolled up by itself.
    path_a, path_k: x is one more than the number of the node's path segments.
    host_depth, path_depth: how many levels there are, the root being the first of paths; what lies deeper is one.
    rollup: wildcard keys that are rolled up in any case; `*` is everything.

    The defaults are the second paper's fit to the index of a national archive.

    >>> round(Compaction().host_cutoff(2), 2), round(Compaction().path_cutoff(0), 2)
    (9.95, 24.55)
    """

    host_weight: float = 1.0
    path_weight: float = 1.0
    host_a: float = 16.329
    host_k: float = 0.714
    path_a: float = 24.546
    path_k: float = 1.429
    host_depth: int = 8
    path_depth: int = 9
    rollup: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        numbers = (self.host_weight, self.path_weight, self.host_a, self.host_k, self.path_a, self.path_k)
        if any(math.isnan(number) or number < 0 for number in numbers):
            raise UsageError("weights and parameters of compaction must be numbers from 0 on")
        if not (1 <= self.host_depth <= 64 and 1 <= self.path_depth <= 64):
            raise UsageError("depths of compaction must be from 1 to 64")
        for key in self.rollup:
            if key != "*" and not key.endswith((",*", "/*")):
                raise UsageError(f"{key[:60]}: expected a wildcard to roll up, such as com,example,*")
            self._refuse_deep(key)

    def _refuse_deep(self, key: str) -> None:
        """Refuse a wildcard of the last level, where what lies below a node is not told apart from what lies beside."""
        host, end, path = key[:-2].partition(")")
        if end:
            # One level has the root apart from its pages all the same.
            option, is_deep = "path-depth", path.count("/") + 1 >= max(self.path_depth, 2)
        else:
            option, is_deep = "host-depth", host.count(",") + 1 >= self.host_depth and not _IP_ADDRESS.fullmatch(host)
        if key != "*" and is_deep:
            raise UsageError(
                f"{key[:60]}: lies too deep to be rolled up: give a larger --{option}, or a wildcard above it"
            )

    def host_cutoff(self, depth: int) -> float:
        """Return how many children a host node of so many labels may have."""
        return self.host_a * math.pow(depth, -self.host_k) * self.host_weight

    def path_cutoff(self, depth: int) -> float:
        """Return how many children a path node of so many segments may have; the root has none."""
        return self.path_a * math.pow(depth + 1, -self.path_k) * self.path_weight

    def with_weights(self, host_weight: float, path_weight: float) -> Self:
        """Return the same with other weights."""
        return replace(self, host_weight=host_weight, path_weight=path_weight)

    def to_core(self) -> "_core.CompactionCurves":
        """Return it as the core takes it."""
        return (
            (self.host_a, self.host_k, self.host_weight, self.host_depth),
            (self.path_a, self.path_k, self.path_weight, self.path_depth),
            [key.encode() for key in self.rollup],
        )

    def header_meta(self) -> dict[str, object]:
        """Return what a map's header says about it."""
        weights = {"host": _weight_to_json(self.host_weight), "path": _weight_to_json(self.path_weight)}
        return {"weights": weights, **({"rolled_up": True} if "*" in self.rollup else {})}


def _weight_to_json(weight: float) -> float | None:
    return None if math.isinf(weight) else weight


def compact_map(
    source: str | PathLike[str],
    output: str | PathLike[str],
    compaction: Compaction | None = None,
    on_progress: ProgressCallback | None = None,
    *,
    memory: int | None = None,
) -> InputReport:
    """Write a map with fewer lines that covers every page that the given one covers.

    Compacting again with smaller weights gives what compacting once with them would have given. The map appears under
    its name once it is whole. Raises InputError if the source is no sorted map, OSError if the output
    cannot be written.
    """
    how = compaction or Compaction()
    name = fspath(source)
    header = read_map_header(name)
    head = format_header(with_row_bytes(compacted_header(header, how)))
    report = InputReport()
    try:
        # The file gets its name in this thread, which sees Ctrl-C: none appears behind an interruption.
        with atomic_map_file(output) as aside:

            def work(progress: Progress) -> None:
                report.shape, tally = _core.compact_map(
                    name, len(header.keys), MAX_LINE_BYTES, aside, head, how.to_core(), memory, progress
                )
                report.add_line_stats(tally, name)

            run_with_progress(work, on_progress)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    return report


def compacted_header(header: UkvsHeader, compaction: Compaction) -> UkvsHeader:
    """Return the header of the result: the smallest weights count, whichever were applied first."""
    meta = {**header.meta, **compaction.header_meta()}
    before = header.meta.get("weights")
    if isinstance(before, Mapping):
        pairs = (("host", compaction.host_weight), ("path", compaction.path_weight))
        known = {name: _weight_from_json(before.get(name)) for name, _ in pairs}
        meta["weights"] = {name: _weight_to_json(min(weight, known[name])) for name, weight in pairs}
    return replace(header, meta=meta)


def _weight_from_json(value: object) -> float:
    return float(value) if isinstance(value, int | float) else NO_LIMIT
