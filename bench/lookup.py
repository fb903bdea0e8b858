"""Speed of look-ups in a compacted map, relative to `mementomap`, the published reference, on the same rows.

The gates apply to `lookup_many`, which takes URLs and derives their keys first. The reference takes keys (SURTs);
look-ups by key are reported without a gate. Results are a lazy sequence: the gates include creating all result
objects; the list of booleans alone is reported without a gate.
"""

import random
import re
import tempfile
from pathlib import Path

from tests import real_data
from tests.external import mementomap as reference_tool

from bench.measure import Report, best_of
from unlost import uri
from unlost.mementomap import Map, MapOptions, build_map

QUERIES = 400_000
REFERENCE_QUERIES = 3_000  # takes it about a second
THREADS = 2


def read_urls() -> tuple[list[str], str]:
    """Return URLs in random order, and their source."""
    rng = random.Random(1)  # noqa: S311  a bench, not a secret
    if real_data.DATA.is_dir():
        found = real_data.urls()
        rng.shuffle(found)
        return found, "both real URL lists"
    words = ["news", "index.html", "a", "archive", "2013", "page.aspx", "b-c"]
    made = [
        f"http://{rng.choice(['', 'shop.', 'blog.'])}host{int(rng.paretovariate(0.3)) % 300_000}.com/"
        + "/".join(rng.choices(words, k=rng.randrange(6)))
        for _ in range(1_000_000)
    ]
    return made, "made-up URLs, since the real lists are not here"


def write_maps(folder: Path, page_urls: list[str]) -> tuple[Path, Path, int]:
    """Write a compacted map of the pages, and its rows for the reference; return both paths and the number of rows."""
    listed, ours, theirs = folder / "urls", folder / "ours.ukvs", folder / "theirs.ukvs"
    listed.write_text("".join(f"{url}\n" for url in page_urls))
    build_map([listed], ours, MapOptions(kind="urls", host_weight=1, path_weight=1))
    rows = [line for line in ours.read_text().splitlines() if not line.startswith(("!", "*"))]
    # The reference writes roots without a final slash and fails at the last row: four extra rows follow, which no
    # query matches.
    theirs_rows = sorted([*(row.replace(")/ ", ") ") for row in rows), "~1 1", "~2 1", "~3 1", "~4 1"])
    theirs.write_text("".join(f"{row}\n" for row in theirs_rows))
    return ours, theirs, len(rows)


def supported_pairs(page_urls: list[str]) -> list[tuple[str, str]]:
    """Return URLs with their keys, as far as the reference supports them: no single labels or IP page_urls."""
    return [
        (url, key.partition("?")[0])
        for url, key in zip(page_urls, uri.key_many(page_urls), strict=True)
        if isinstance(key, str) and re.match(r"[a-z]+,", key)
    ]


def reference_seconds(theirs: Path, keys: list[str], folder: Path) -> tuple[float, list[str]]:
    """Return the seconds of the reference for each key, without start-up, and the rows that it finds."""
    surts, none = folder / "surts", folder / "none"
    surts.write_text("".join(f"{key}\n" for key in keys))
    none.touch()
    start_up = min(reference_tool.batch_lookup(theirs, none)[1] for _ in range(3))
    found, seconds = min((reference_tool.batch_lookup(theirs, surts) for _ in range(3)), key=lambda run: run[1])
    return (seconds - start_up) / len(keys), found


def main() -> None:
    """Measure and write the report."""
    report = Report("lookup", "Looking pages up in a compacted map, beside `mementomap`")
    page_urls, origin = read_urls()
    pairs = supported_pairs(page_urls)
    half = len(pairs) // 2
    rng = random.Random(2)  # noqa: S311
    sample = rng.sample(pairs, min(QUERIES, half))
    queried_urls, keys = [url for url, _ in sample], [key for _, key in sample]
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as folder:
        ours, theirs, rows = write_maps(Path(folder), [url for url, _ in pairs[:half]])
        report.line(
            f"{rows:,} rows, {ours.stat().st_size / 1e6:.1f} MB, of half of {origin}, compacted with weights 1, 1; "
            f"{len(queried_urls):,} pages of both halves in random order, {REFERENCE_QUERIES:,} of them for the "
            "reference. From Python strings to answers; start-up is not counted, on either side; best of 3."
        )
        report.line("")
        reference, found = reference_seconds(theirs, keys[:REFERENCE_QUERIES], Path(folder))
        opened, loaded = Map.open(ours), Map.load(ours)
        answers = opened.lookup_keys_many(keys)
        assert loaded.lookup_keys_many(keys) == opened.lookup_many(queried_urls) == answers  # noqa: S101
        held = sum(answer.held for answer in answers[:REFERENCE_QUERIES])

        def each(task: Map, threads: int) -> tuple[float, float, float]:
            by_key = best_of(3, lambda: task.lookup_keys_many(keys, threads)[:])
            by_uri = best_of(3, lambda: task.lookup_many(queried_urls, threads)[:])
            held = best_of(3, lambda: task.lookup_many(queried_urls, threads).held)
            return by_key / len(keys), by_uri / len(queried_urls), held / len(queried_urls)

        times = {
            "in the file, 1 thread": each(opened, 1),
            f"in the file, {THREADS} threads": each(opened, THREADS),
            "in memory, 1 thread": each(loaded, 1),
            f"in memory, {THREADS} threads": each(loaded, THREADS),
        }
        one = queried_urls[:20_000]
        single = {
            "in the file": best_of(3, lambda: [opened.lookup(each) for each in one]) / len(one),
            "in memory": best_of(3, lambda: [loaded.lookup(each) for each in one]) / len(one),
        }
        report.line("| | µs a page | pages a second |")
        report.line("|---|---|---|")
        report.line(f"| `mementomap batchlookup`, of SURTs | {reference * 1e6:.1f} | {1 / reference:,.0f} |")
        for name, (by_key, by_uri, held_only) in times.items():
            report.line(f"| `lookup_keys_many`, each an object, {name} | {by_key * 1e6:.2f} | {1 / by_key:,.0f} |")
            report.line(f"| `lookup_many`, each an object, {name} | {by_uri * 1e6:.2f} | {1 / by_uri:,.0f} |")
            report.line(f"| `lookup_many`, `held`, {name} | {held_only * 1e6:.2f} | {1 / held_only:,.0f} |")
        for name, each_one in single.items():
            report.line(f"| `lookup`, one by one, {name} | {each_one * 1e6:.2f} | {1 / each_one:,.0f} |")
        opening = best_of(3, lambda: Map.open(ours))
        loading = best_of(3, lambda: Map.load(ours))
        report.line("")
        report.line(
            f"Opening takes {opening * 1e3:.2f} ms, loading {loading:.2f} s ({rows / loading:,.0f} rows a second). "
            f"Of the reference's {REFERENCE_QUERIES:,} pages, it finds {len(found):,}, unlost {held:,}."
        )
        report.line("")
        for form in ("in the file", "in memory"):
            by_key, by_uri, held_only = times[f"{form}, {THREADS} threads"]
            report.gate(f"times as many pages a second as the reference, {form}", reference / by_uri, at_least=300)
            report.line(f"- only `held`: {reference / held_only:.0f} times; by key: {reference / by_key:.0f} times")
    report.finish()


if __name__ == "__main__":
    main()
