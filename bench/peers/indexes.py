"""Compares SURTs with `surt`, index summaries with `cdxsummary`, and maps with `mementomap`, on the same input.

Commands run as processes, including start-up and writing the output, for both tools.
"""

import random
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.external import cdxsummary, mementomap
from tests.external import surt as surt_package

from bench import lookup, uri
from bench.holdings import UNLOST, Run, build_command
from bench.measure import best_of
from bench.peers.row import Row
from bench.stats import stats_command
from unlost import uri as unlost_uri
from unlost.mementomap import Map

WEIGHTS = ("--host-weight", "1", "--path-weight", "1")
_SENTINELS = ["!first 1"], [f"~last{number},{'x' * 40}) 1" for number in range(4)]


def measure_indexes(folder: Path, lines: int, questions: int) -> Iterator[Row]:
    """Measure all comparisons on an index of `lines` lines, with `questions` queries to maps."""
    index, cdx = folder / "a.cdxj", folder / "a.cdx"
    synth: list[str | Path] = [UNLOST, "synth", "index", "--lines", str(lines), "--seed", "1", "-o", index]
    subprocess.run(synth, check=True, capture_output=True)
    subprocess.run([UNLOST, "index", "convert", index, "-o", cdx], check=True, capture_output=True)
    yield from _surts(min(lines, uri.URLS))
    options = f"of {lines:,} lines, 2 threads beside 1: it has one"
    their_summary: list[str | Path] = [cdxsummary.PROGRAM, "--json", cdx]
    yield from _run_both(
        "summary of an index", "cdxsummary", stats_command(cdx, folder / "report"), their_summary, options
    )
    yield from _maps(folder, index, questions, options)
    yield from _lookups(folder, questions)


def _run_both(
    work: str, peer: str, ours: Sequence[str | Path], theirs: Sequence[str | Path], options: str
) -> Iterator[Row]:
    """Run both commands, ours three times since it is short; then once more each for the memory."""
    our_run, their_run = Run(ours), Run(theirs, 1)
    yield Row(work, peer, "seconds", our_run.seconds, their_run.seconds, options=options)
    yield Row(work, peer, "processor seconds", our_run.cpu_seconds, their_run.cpu_seconds, options=options)
    yield Row(work, peer, "MB of memory", _peak_memory(ours), _peak_memory(theirs), options=options)


def _peak_memory(command: Sequence[str | Path]) -> float:
    """Return the peak memory of a process in MB.

    It is polled while the process runs: the value reported at its end includes the memory of this process.
    """
    process = subprocess.Popen(list(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0.0
    while process.poll() is None:
        found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
        peak = max(peak, int(found[1]) / 1024 if found else 0.0)
        time.sleep(0.002)  # between polls
    return peak


def _surts(count: int) -> Iterator[Row]:
    urls = uri.sample_urls()[0][:count]
    urls = "\n".join(url for url in urls if isinstance(unlost_uri.surt_many([url])[0], str)).split("\n")
    theirs = min(surt_package.compute_surts(urls)[1] for _ in range(2)) / len(urls)
    ours = best_of(3, lambda: unlost_uri.surt_many(urls)) / len(urls)
    options = f"of {len(urls):,} addresses that both take, one thread each, start-up not counted"
    yield Row("addresses to SURTs", "surt", "µs each", ours * 1e6, theirs * 1e6, options=options)


def _maps(folder: Path, index: Path, questions: int, options: str) -> Iterator[Row]:
    """Build maps of an index, compact them, and look up keys of the index."""
    made, compacted = folder / "made.ukvs", folder / "compacted.ukvs"
    their_map, their_compacted = folder / "theirs.ukvs", folder / "theirs-compacted.ukvs"
    making: list[str | Path] = [mementomap.COMMAND, "generate", index, their_map]
    yield from _run_both("making a MementoMap", "mementomap", build_command(index, made), making, options)
    ours: list[str | Path] = [UNLOST, "map", "compact", made, "-o", compacted, *WEIGHTS]
    theirs: list[str | Path] = [mementomap.COMMAND, "compact", their_map, their_compacted, "--hcf", "1", "--pcf", "1"]
    yield from _run_both("compacting a MementoMap", "mementomap", ours, theirs, options)
    held = _sample_keys(index, questions)
    for what, our_file, their_file in (("made", made, their_map), ("compacted", compacted, their_compacted)):
        missed = sum(not answer.held for answer in Map.open(our_file).lookup_keys_many(held))
        theirs_missed = len(held) - len(_reference_lookup(their_file, held, folder))
        unit = f"of {len(held):,} held pages, said not to be"
        yield Row(f"asking a map as it was {what}", "mementomap", unit, missed, theirs_missed)


def _sample_keys(index: Path, count: int) -> list[str]:
    """Return keys of an index that both kinds of maps support: without queries, hosts with a dot."""
    with index.open() as lines:
        keys = {line.partition(" ")[0].partition("?")[0] for line in lines}
    known = sorted(key for key in keys if "," in key.partition(")")[0])
    return random.Random(1).sample(known, min(count, len(known)))  # noqa: S311  a bench, not a secret


def _reference_lookup(file: Path, keys: list[str], folder: Path) -> set[str]:
    """Return the keys that the reference finds, with sentinels for the first and last lines, which it cannot find."""
    padded, batch = folder / "fenced.ukvs", folder / "keys.txt"
    own = [line for line in file.read_text().splitlines() if line]
    padded.write_text("".join(f"{line}\n" for line in [*_SENTINELS[0], *own, *_SENTINELS[1]]))
    queried = [key.removesuffix("/") if key.endswith(")/") else key for key in keys]
    batch.write_text("".join(f"{key}\n" for key in queried))
    found, _ = mementomap.batch_lookup(padded, batch)
    return {line.partition(" ")[0] for line in found}


def _lookups(folder: Path, questions: int) -> Iterator[Row]:
    """Look up real URLs in a compacted map, as `bench.lookup` does."""
    pairs = lookup.supported_pairs(lookup.read_urls()[0][: 400 * questions])
    ours, theirs, _ = lookup.write_maps(folder, [url for url, _ in pairs[: len(pairs) // 2]])
    queried = random.Random(2).sample(pairs, min(questions, len(pairs)))  # noqa: S311
    theirs_each = lookup.reference_seconds(theirs, [key for _, key in queried], folder)[0]
    many = [url for url, _ in random.Random(3).sample(pairs, min(100 * questions, len(pairs)))]  # noqa: S311
    opened = Map.open(ours)
    each = best_of(3, lambda: opened.lookup_many(many, 1)[:]) / len(many)
    options = (
        "from addresses to objects, in the file, beside from SURTs to lines; one thread each, start-up not counted"
    )
    yield Row("looking pages up in a map", "mementomap", "µs each", each * 1e6, theirs_each * 1e6, options=options)
