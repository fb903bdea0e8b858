"""Accuracy and build time of maps with a budget, relative to maps with weights of the same size.

Queries are held out: the archive is a part of a list of real URLs; queries are the rest, or URLs posted later.
"""

import gzip
import hashlib
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from tests import real_data

from bench.holdings import UNLOST, Run
from bench.measure import Report
from unlost import uri
from unlost.errors import UsageError
from unlost.mementomap import (
    NO_LIMIT,
    BudgetOptions,
    Compaction,
    Map,
    MapBudget,
    MapOptions,
    build_map,
    compact_map,
    compact_to_budget,
    compressed_size,
    lookup_keys_in_filter,
    write_page_filter,
)
from unlost.problems import Problems
from unlost.research import SynthIndexOptions, write_synthetic_index

WEIGHTS = (4.0, 2.0, 1.0, 0.5, 0.25, 0.0)  # host and path weights of the second paper
LARGE = 10_000_000
TOLERANCE = 0.3  # percentage points


class Archive:
    """Archived pages and queries, as keys without queries."""

    def __init__(self, name: str, held: list[str], queries: list[str], folder: Path) -> None:
        self.name, self.archived, self.queries = name, set(held), queries
        self.path = folder / f"{name}.ukvs"
        self.map_path, self.filter_path = folder / "made.ukvs", folder / "made.filter"
        urls = folder / f"{name}.urls"
        urls.write_text("".join(f"{one}\n" for one in uri.unsurt_many(held)))
        build_map([urls], self.path, MapOptions(kind="urls"))
        self.expected = [key in self.archived for key in queries]

    def compact_by_weights(self, host: float, path: float) -> tuple[int, float]:
        """Return compressed bytes and accuracy of a map by weights."""
        compact_map(self.path, self.map_path, Compaction(host, path))
        return compressed_size(self.map_path), self.accuracy()

    def compact_to_budget(self, size: int) -> tuple[int, float, bool]:
        """Return bytes and accuracy of a map with a budget, and whether public suffixes had to be rolled up to fit."""
        for protects in (True, False):
            options = BudgetOptions(protect_suffixes=protects)
            try:
                report = compact_to_budget(self.path, self.map_path, MapBudget(size, "bytes"), options)
            except UsageError:
                if not protects:
                    raise
                continue
            if compressed_size(self.map_path) > size:
                sys.exit(f"bench budget: {compressed_size(self.map_path)} bytes, more than the budget of {size}")
            return report.size, self.accuracy(), not protects
        raise AssertionError

    def compact_with_filter(self, size: int) -> tuple[int, int, float]:
        """Return bits, bytes and accuracy of a map and a filter that share the bytes."""
        options = BudgetOptions(with_filter=self.filter_path)
        report = compact_to_budget(self.path, self.map_path, MapBudget(size, "bytes"), options)
        used = compressed_size(self.map_path) + self.filter_path.stat().st_size
        if used > size:
            sys.exit(f"bench budget: {used} bytes, more than the budget of {size}")
        return report.filter_bits, used, self.accuracy(self.filter_path)

    def compact_to_hosts(self, bits: int) -> tuple[int, float]:
        """Return bytes and accuracy of a map of hosts with a filter."""
        compact_map(self.path, self.map_path, Compaction(NO_LIMIT, 0))
        written = write_page_filter(self.path, self.filter_path, bits)
        return compressed_size(self.map_path) + written, self.accuracy(self.filter_path)

    def accuracy(self, filter_path: Path | None = None) -> float:
        """Return the share of queries that the map (and filter) predictions correctly, in percentage points."""
        predictions = [result.held for result in Map.load(self.map_path).lookup_keys_many(self.queries)]
        if filter_path:
            in_filter = lookup_keys_in_filter(filter_path, self.queries)
            predictions = [in_map and passed for in_map, passed in zip(predictions, in_filter, strict=True)]
        correct = 0
        for key, held, predicted in zip(self.queries, self.expected, predictions, strict=True):
            if held and not predicted:
                sys.exit(f"bench budget: {key} is held, and was denied")
            correct += predicted == held
        return 100 * correct / len(self.queries)


def unique_keys(urls: list[str]) -> list[str]:
    """Return the unique keys of URLs without their queries, in order."""
    found = (key.partition("?")[0] for key in uri.key_many(urls) if isinstance(key, str))
    return list(dict.fromkeys(found))


def make_archives(folder: Path) -> list[Archive]:
    """Return an archive of whole hosts and one of links, in random but fixed order."""
    rng = random.Random(1)  # noqa: S311  a bench, not a secret
    if real_data.DATA.is_dir():
        with gzip.open(real_data.DATA / "urls" / "eot2024-hosts.txt.gz", "rt", newline="\n") as lines:
            hosts = unique_keys([line.rstrip("\n") for line in lines])
        with gzip.open(real_data.DATA / "urls" / "reddit2013-links.tsv.gz", "rt", newline="\n") as lines:
            rows = sorted((line.rstrip("\n").split("\t") for line in lines), key=lambda row: int(row[0]))
        links = unique_keys([row[2] for row in rows])
    else:
        made = folder / "made.cdxj"
        write_synthetic_index(SynthIndexOptions(400_000, seed=1), made, Problems())
        found = list(dict.fromkeys(line.split(" ")[0].partition("?")[0] for line in made.open()))
        hosts, links = [key for key in found if hash_host(key) % 2], [key for key in found if not hash_host(key) % 2]
    rng.shuffle(hosts)
    cut = len(hosts) * 7 // 10
    held, hidden = hosts[:cut], hosts[cut:]
    known = set(held)
    foreign = rng.sample([key for key in links if key not in known], min(20_000, len(links) // 2))
    queries = foreign + hidden[:20_000] + held[:5_000]
    half = len(links) // 2
    later = rng.sample(links[half:], min(60_000, len(links) - half))
    return [
        Archive("hosts", held, queries, folder),
        Archive("links", links[:half], later + links[: half : half // 5000], folder),
    ]


def hash_host(key: str) -> int:
    """Return a number derived from the host alone."""
    return int.from_bytes(hashlib.blake2b(key.partition(")")[0].encode(), digest_size=4).digest())


def compare_with_weights(archive: Archive, report: Report) -> None:
    """Compare budgets with the 36 pairs of weights, and with filters."""
    report.line(f"## {archive.name}: {len(archive.archived):,} keys, {len(archive.queries):,} questions")
    report.line("")
    report.line("| weights | bytes | accuracy | budget: bytes | accuracy | points more |")
    report.line("|---|---|---|---|---|---|")
    worst = float("inf")
    weighed = {}
    for host in WEIGHTS:
        for path in WEIGHTS:
            size, accuracy = weighed[host, path] = archive.compact_by_weights(host, path)
            used, better, unprotected = archive.compact_to_budget(size)
            worst = min(worst, better - accuracy)
            note = ", suffixes not protected" if unprotected else ""
            report.line(
                f"| {host:g}, {path:g} | {size:,} | {accuracy:.2f} | {used:,}{note} | {better:.2f} | "
                f"{better - accuracy:+.2f} |"
            )
    report.line("")
    report.line("| | bits | bytes | accuracy |")
    report.line("|---|---|---|---|")
    size, accuracy = weighed[4.0, 1.0]
    bits, used, filtered = archive.compact_with_filter(size)
    report.line(f"| weights 4, 1 | | {size:,} | {accuracy:.2f} |")
    report.line(f"| the same bytes, divided between map and filter | {bits} | {used:,} | {filtered:.2f} |")
    eight, with_eight = archive.compact_to_hosts(8)
    report.line(f"| a map of hosts, a filter of 8 bits | 8 | {eight:,} | {with_eight:.2f} |")
    report.line("")
    report.gate(f"{archive.name}: least points more than weights, and {TOLERANCE}", worst + TOLERANCE, at_least=0.0)
    report.gate(f"{archive.name}: points more with a filter at the bytes of 4, 1", filtered - accuracy, at_least=15)
    report.gate(f"{archive.name}: accuracy with 8 bits", with_eight, at_least=98)


def measure_speed(archive: Archive, folder: Path, report: Report) -> None:
    """Measure time relative to compacting by weights, and the memory of ten million keys."""
    out = folder / "out.ukvs"
    plain = Run([UNLOST, "map", "compact", archive.path, "-o", out])
    size = compressed_size(archive.path)
    report.line("")
    report.line("| | seconds | of `map compact` | MB of memory |")
    report.line("|---|---|---|---|")
    report.line(f"| `map compact`, {len(archive.archived):,} keys | {plain.seconds:.2f} | 1 | {plain.megabytes:.0f} |")
    slowest = 0.0
    for budget in ("20000", f"{size // 50}B", f"{size // 4}B", f"{size * 3 // 4}B"):
        run = Run([UNLOST, "map", "compact", archive.path, "-o", out, "--budget", budget])
        slowest = max(slowest, run.seconds / plain.seconds)
        report.line(
            f"| `--budget {budget}` | {run.seconds:.2f} | {run.seconds / plain.seconds:.1f} | {run.megabytes:.0f} |"
        )
    large = folder / "large.ukvs"
    keys = write_large(archive.path, large)
    plain = Run([UNLOST, "map", "compact", large, "-o", out], 1)
    run = Run([UNLOST, "map", "compact", large, "-o", out, "--budget", "20MB"], 1)
    what = f"{keys:,} keys, copied below other top-level domains"
    report.line(f"| `map compact`, {what} | {plain.seconds:.2f} | 1 | {plain.megabytes:.0f} |")
    report.line(
        f"| `--budget 20MB` of them | {run.seconds:.2f} | {run.seconds / plain.seconds:.1f} | {run.megabytes:.0f} |"
    )
    report.line("")
    report.gate("slowest budget, to `map compact`", max(slowest, run.seconds / plain.seconds), at_most=15)
    report.gate(
        f"memory of {keys:,} keys, scaled to ten million, in units of 2 GB",
        run.megabytes / 2000 * LARGE / keys,
        at_most=1,
    )


def write_large(source: Path, target: Path) -> int:
    """Write a map of ten million keys: the keys of another map below many top-level domains."""
    lines = [line for line in source.read_bytes().splitlines(keepends=True) if line[:1] not in b"!*"]
    copies = -(-LARGE // len(lines))
    with target.open("wb") as file:
        for copy in range(copies):
            prefix = b"a%05d," % copy
            file.writelines(prefix + line for line in lines)
    return copies * len(lines)


def main() -> None:
    """Measure and write the report."""
    report = Report("budget", "Maps of a budget beside maps by weights")
    start = time.process_time()
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as name:
        folder = Path(name)
        report.line(
            "Real URLs; pages held out." if real_data.DATA.is_dir() else "Made-up URLs: the real lists are not here."
        )
        report.line("")
        both = make_archives(folder)
        for archive in both:
            compare_with_weights(archive, report)
        measure_speed(both[0], folder, report)
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    report.line("")
    report.line(f"{time.process_time() - start:.0f} s of processor time here, {children:.0f} s in other processes.")
    report.finish()


if __name__ == "__main__":
    main()
