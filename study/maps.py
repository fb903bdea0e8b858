"""The second paper: 36 pairs of weights; beside them budgets, filters, both, and exclusions that were learned."""

import random
import tempfile
from datetime import date
from pathlib import Path

from study.archives import HELD, NEAR, QUESTIONS, SEED, Archive, both_archives
from study.chapter import RESULTS, Chapter
from unlost.mementomap import (
    Compaction,
    ExclusionOptions,
    Map,
    MapBudget,
    build_map,
    compact_map,
    compressed_size,
    exclude_map,
)
from unlost.research import (
    WEIGHT_PAIRS,
    RoutingResult,
    draw_accuracy,
    evaluate_index,
    list_configurations,
    pareto_optimal_results,
)

BITS = (1, 2, 4, 8, 12)
CHOSEN = ((4.0, 4.0), (4.0, 1.0), (4.0, 0.0), (1.0, 1.0), (1.0, 0.0))
"""Pairs whose bytes are given to budgets."""

CHEAP = 0.015
TODAY = date(2024, 1, 1)


def main() -> None:
    """Measure, write, judge."""
    chapter = Chapter("maps", "Maps by weights, budgets and filters")
    with tempfile.TemporaryDirectory(prefix="unlost-study-") as name:
        folder = Path(name)
        chapter.line(
            f"{QUESTIONS:,} questions to each archive, as above: {HELD:.0%} held, {NEAR:.0%} held out, the rest "
            "foreign. A page counts as held if its key without the query is. The figures are those of `unlost "
            f"evaluate --weights all --bits {','.join(map(str, BITS))}` and, for the bytes of some pairs, of "
            "`--budgets` with and without `--with-filter`."
        )
        chapter.line()
        for archive in both_archives(folder):
            chapter.line(f"### {archive.description}")
            chapter.line()
            compare(chapter, archive)
            exclusions(chapter, archive, folder)
    chapter.finish()


def compare(chapter: Chapter, archive: Archive) -> None:
    """Tell what each kind makes of the same bytes."""
    first = evaluate_index([archive.index], [archive.queries], list_configurations(WEIGHT_PAIRS, BITS))
    weighed = {one.configuration.weights: one for one in first.results if one.configuration.family == "weights"}
    budgets = [MapBudget(weighed[pair].size.compressed, "bytes") for pair in CHOSEN]
    alone = evaluate_index([archive.index], [archive.queries], list_configurations(budgets=budgets)).results[1:]
    both = evaluate_index(
        [archive.index], [archive.queries], list_configurations(budgets=budgets, with_filter=True)
    ).results[1:]
    results = [*first.results, *alone, *both]
    chapter.keep(archive.name, [one.to_row() for one in results])
    chapter.table(
        ("weights", "lines", "relative cost", "gzip bytes", "accuracy", "budget", "budget for map and filter", "bits"),
        (
            (
                f"{pair[0]:g}, {pair[1]:g}",
                f"{weighed[pair].size.lines:,}",
                f"{weighed[pair].cost:.2%}",
                f"{weighed[pair].size.compressed:,}",
                accuracy(weighed[pair]),
                accuracy(budget),
                accuracy(divided),
                divided.size.bits,
            )
            for pair, budget, divided in zip(CHOSEN, alone, both, strict=True)
        ),
    )
    filtered = {one.configuration.bits: one for one in first.results if one.configuration.family == "filter"}
    chapter.table(
        ("a map of hosts and a filter", "gzip bytes", "accuracy"),
        ((f"{bits} bits a key", f"{one.size.compressed:,}", accuracy(one)) for bits, one in filtered.items()),
    )
    front = [one.configuration.name for one in pareto_optimal_results(results)]
    chapter.keep(f"{archive.name} front", front)
    chapter.line(f"Nothing beats, from the smallest: {', '.join(front)}.")
    chapter.line()
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"maps-{archive.name}.svg").write_text(draw_accuracy(results))
    chapter.line(f"![accuracy against bytes](../study/results/maps-{archive.name}.svg)")
    chapter.line()
    judge(chapter, archive.name, weighed, both[CHOSEN.index((4.0, 1.0))], filtered[8])
    worst = min(zip(CHOSEN, alone, strict=True), key=lambda each: points(each[1]) - points(weighed[each[0]]))
    less = points(worst[1]) - points(weighed[worst[0]])
    chapter.finding(
        f"(ours) a budget is no worse than weights of its bytes ({archive.name})",
        f"at worst {less:+.1f} points, at the bytes of {worst[0][0]:g}, {worst[0][1]:g}",
        holds=less >= -0.3,
    )
    denied = sum(one.held - one.present for one in results)
    chapter.gate(f"{archive.name}: false negatives in {len(results)} configurations", denied, at_most=0)
    chapter.line()


def judge(
    chapter: Chapter,
    name: str,
    weighed: dict[tuple[float, float], RoutingResult],
    divided: RoutingResult,
    eight: RoutingResult,
) -> None:
    """Say what of the paper holds, and whether filters do what they must."""
    cheap = [one for one in weighed.values() if one.cost < CHEAP]
    best = max(cheap, key=lambda one: one.accuracy.value or 0.0) if cheap else None
    chapter.finding(
        f"60 % of accuracy at less than 1.5 % of the cost ({name})",
        "no pair is that small"
        if best is None
        else f"{accuracy(best)} by {best.configuration.name}, at {best.cost:.2%} of the keys",
        holds=best is not None and (best.accuracy.value or 0.0) >= 0.6,
    )
    more = points(divided) - points(weighed[4.0, 1.0])
    chapter.gate(f"{name}: points more than weights 4, 1 with a filter, at its bytes", more, at_least=15)
    chapter.gate(f"{name}: accuracy with a filter of 8 bits", points(eight), at_least=98)


def exclusions(chapter: Chapter, archive: Archive, folder: Path) -> None:
    """Tell what a map gains by exclusions learned from one half of the questions, asked the other half."""
    full, made, better = (folder / f"{archive.name}-{part}.ukvs" for part in ("full", "made", "better"))
    build_map([archive.index], full)
    compact_map(full, made, Compaction(4, 1))
    # People ask for few pages often and for many once: the n-th page is asked for 1/n times as often as the first.
    pool = archive.queries.read_text().splitlines()
    popular = [1 / rank for rank in range(1, len(pool) + 1)]
    questions = random.Random(SEED).choices(pool, popular, k=len(pool))  # noqa: S311  not a secret
    half = len(questions) // 2
    truth = Map.open(full).lookup_many(questions).held
    missed = folder / f"{archive.name}-missed.txt"
    missed.write_text("".join(f"{url}\n" for url, held in zip(questions[:half], truth[:half], strict=True) if not held))
    options = ExclusionOptions(today=TODAY, kind="urls")
    report = exclude_map(made, better, options, [missed], [archive.index])
    rows = []
    kept = {}
    for what, path in (("weights 4, 1", made), ("the same with exclusions", better)):
        said = Map.open(path).lookup_many(questions[half:]).held
        right = sum(a == b for a, b in zip(said, truth[half:], strict=True)) / len(said)
        denied = sum(held and not yes for yes, held in zip(said, truth[half:], strict=True))
        rows.append((what, f"{compressed_size(path):,}", f"{right:.2%}", denied))
        kept[what] = {"bytes": compressed_size(path), "accuracy": right, "denied": denied}
    chapter.keep(f"{archive.name} exclusions", kept)
    chapter.line(
        f"Exclusions learned (`unlost map exclude --index`) from {half:,} questions drawn from the same, "
        f"the n-th of which is asked 1/n times as often as the first: {report.added:,} pages and {report.wildcards:,} "
        f"subtrees. Both maps are asked {len(questions) - half:,} others, drawn alike:"
    )
    chapter.line()
    chapter.table(("map", "gzip bytes", "accuracy", "held pages denied"), rows)
    chapter.gate(
        f"{archive.name}: held pages denied by exclusions", kept["the same with exclusions"]["denied"], at_most=0
    )
    chapter.line()


def points(one: RoutingResult) -> float:
    """Return its accuracy in points of a hundred."""
    return 100 * (one.accuracy.value or 0.0)


def accuracy(one: RoutingResult) -> str:
    """Return it with two digits behind the point."""
    return f"{one.accuracy.value or 0.0:.2%}"


if __name__ == "__main__":
    main()
