"""Archives with maps and filters of synthetic indexes, and holdings in memory."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from unlost.mementomap import (
    ArchiveHoldings,
    Compaction,
    Filter,
    FilterOptions,
    Map,
    build_filter,
    build_map,
    compact_map,
)
from unlost.problems import Problems
from unlost.registry import Archive, ArchiveKind, SourcedNumber
from unlost.research import SynthIndexOptions, write_synthetic_index

BUILT_AT = "20240301000000"
DAY = datetime(2024, 3, 1, tzinfo=UTC)


def archive(name: str, **fields: object) -> Archive:
    """Return an archive with a TimeMap."""
    return Archive(name, name.upper(), ArchiveKind.MEMENTO, timemap=f"http://{name}.example/timemap/", **fields)  # type: ignore[arg-type]


def archive_with_hit_rate(name: str, rate: float, **fields: object) -> Archive:
    """Return an archive with a hit rate in the registry."""
    return archive(name, hit_rate=SourcedNumber(rate, "a test"), **fields)


@dataclass
class MemoryHoldings:
    """Holdings in memory.

    Attributes:
        damaged: Archives that were marked as damaged, with the problems.
    """

    held: dict[str, ArchiveHoldings] = field(default_factory=dict)
    damaged: list[tuple[str, str]] = field(default_factory=list)

    def holdings(self) -> Mapping[str, ArchiveHoldings]:
        """Return the holdings."""
        return self.held

    def mark_damaged(self, archive: str, problem: str) -> None:
        """Drop the holdings of an archive."""
        self.damaged.append((archive, problem))
        self.held = {name: each for name, each in self.held.items() if name != archive}


def synthetic_index(path: Path, lines: int, seed: int) -> list[str]:
    """Write a synthetic index, and return the URLs of its captures."""
    write_synthetic_index(SynthIndexOptions(lines=lines, seed=seed), path, Problems())
    return [json.loads(line.split(" ", 2)[2])["url"] for line in path.read_text().splitlines()]


def write_map(index: Path, output: Path, weight: float | None = None) -> Path:
    """Write the map of an index, compacted if a weight is given."""
    if weight is None:
        build_map([index], output)
        return output
    whole = output.with_suffix(".whole")
    build_map([index], whole)
    compact_map(whole, output, Compaction(weight, weight))
    return output


def write_filter(index: Path, output: Path, built_at: str = BUILT_AT) -> Path:
    """Write the filter of an index."""
    build_filter([index], output, FilterOptions(built_at=built_at))
    return output


def map_of_rows(folder: Path, text: str, name: str = "a") -> Map:
    """Return a map with these rows."""
    path = folder / f"{name}.ukvs"
    path.write_text(text)
    return Map.load(path)


def filter_of_pages(folder: Path, *addresses: str, name: str = "a", built_at: str | None = BUILT_AT) -> Filter:
    """Return a filter of these pages."""
    listed, output = folder / f"{name}.urls", folder / f"{name}.filter"
    listed.write_text("".join(f"{address}\n" for address in addresses))
    build_filter([listed], output, FilterOptions(bits=16, built_at=built_at, kind="urls"))
    return Filter.load(output)
