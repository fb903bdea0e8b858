"""Compacts MementoMaps as in the MementoMap paper: a node with too many children becomes one wildcard row."""

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

_IP_ADDRESS = re.compile(r"(\d+(,\d+){3}|\[.*\])(:\d+)?")  # one label, despite its commas

NO_LIMIT = math.inf
"""Weight with which nothing is rolled up."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """When a node of the tree is rolled up: if it has more than `a · x^-k · weight` children.

    The shallowest such node wins. The defaults of a and k are the MementoMap paper's fit to the mean children of its
    Table 8, and the default depths are the paper's.

    Attributes:
        host_weight: Weight of host nodes, set by the user; infinite for no roll-up.
        path_weight: The same for path nodes.
        host_a: Parameter a for host nodes; x is the number of host labels. A top-level domain is only rolled up if
            `rollup` names it.
        host_k: Parameter k for host nodes.
        path_a: Parameter a for path nodes; x is one more than the number of path segments.
        path_k: Parameter k for path nodes.
        host_depth: Number of host levels; deeper labels count as one.
        path_depth: Number of path levels, including the root; deeper segments count as one.
        rollup: Wildcard keys that are rolled up in any case; `*` is everything.

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
        """Raise UsageError for invalid parameters."""
        numbers = (self.host_weight, self.path_weight, self.host_a, self.host_k, self.path_a, self.path_k)
        if any(math.isnan(number) or number < 0 for number in numbers):
            raise UsageError("weights and parameters of compaction must be numbers from 0 on")
        if not (1 <= self.host_depth <= 64 and 1 <= self.path_depth <= 64):
            raise UsageError("depths of compaction must be from 1 to 64")
        for key in self.rollup:
            if key != "*" and not key.endswith((",*", "/*")):
                raise UsageError(f"{key[:60]}: expected a wildcard to roll up, such as com,example,*")
            self._reject_deep(key)

    def _reject_deep(self, key: str) -> None:
        """Raise UsageError for a wildcard at the last level, where subtrees are not distinguished."""
        host, end, path = key[:-2].partition(")")
        if end:
            # Even with one path level, the root is distinguished from its pages.
            option, is_deep = "path-depth", path.count("/") + 1 >= max(self.path_depth, 2)
        else:
            option, is_deep = "host-depth", host.count(",") + 1 >= self.host_depth and not _IP_ADDRESS.fullmatch(host)
        if key != "*" and is_deep:
            raise UsageError(
                f"{key[:60]}: lies too deep to be rolled up: give a larger --{option}, or a wildcard above it"
            )

    def host_cutoff(self, depth: int) -> float:
        """Return the maximum number of children of a host node. `depth` is its number of labels."""
        return self.host_a * math.pow(depth, -self.host_k) * self.host_weight

    def path_cutoff(self, depth: int) -> float:
        """Return the maximum number of children of a path node. `depth` is its number of segments; 0 for the root."""
        return self.path_a * math.pow(depth + 1, -self.path_k) * self.path_weight

    def with_weights(self, host_weight: float, path_weight: float) -> Self:
        """Return a copy with other weights."""
        return replace(self, host_weight=host_weight, path_weight=path_weight)

    def to_core(self) -> "_core.CompactionCurves":
        """Return the parameters for the Rust core."""
        return (
            (self.host_a, self.host_k, self.host_weight, self.host_depth),
            (self.path_a, self.path_k, self.path_weight, self.path_depth),
            [key.encode() for key in self.rollup],
        )

    def header_meta(self) -> dict[str, object]:
        """Return the members of `!meta` that describe the compaction."""
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
    """Write a map with fewer lines that covers every page that the source covers.

    Compacting again with smaller weights gives the same map as compacting once with them. The map is written
    atomically.

    Raises:
        InputError: The source is not a sorted map.
        OSError: The output cannot be written.
    """
    parameters = compaction or Compaction()
    name = fspath(source)
    header = read_map_header(name)
    head = format_header(with_row_bytes(compacted_header(header, parameters)))
    report = InputReport()
    try:
        # The file is renamed in this thread, which receives Ctrl-C, so that an interrupted run leaves none.
        with atomic_map_file(output) as path:

            def work(progress: Progress) -> None:
                report.shape, stats = _core.compact_map(
                    name, len(header.keys), MAX_LINE_BYTES, path, head, parameters.to_core(), memory, progress
                )
                report.add_line_stats(stats, name)

            run_with_progress(work, on_progress)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    return report


def compacted_header(header: UkvsHeader, compaction: Compaction) -> UkvsHeader:
    """Return the header of the result, with the smaller of the old and new weights."""
    meta = {**header.meta, **compaction.header_meta()}
    old_weights = header.meta.get("weights")
    if isinstance(old_weights, Mapping):
        pairs = (("host", compaction.host_weight), ("path", compaction.path_weight))
        parsed = {name: _weight_from_json(old_weights.get(name)) for name, _ in pairs}
        meta["weights"] = {name: _weight_to_json(min(weight, parsed[name])) for name, weight in pairs}
    return replace(header, meta=meta)


def _weight_from_json(value: object) -> float:
    return float(value) if isinstance(value, int | float) else NO_LIMIT
