"""The second paper: 36 pairs of weights, compared with budgets, filters, both, and learned exclusions."""

import random
import tempfile
from datetime import date
from pathlib import Path

from study.archives import HELD_SHARE, NEAR_SHARE, QUERIES, SEED, StudyArchive, make_archives
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
BUDGET_PAIRS = ((4.0, 4.0), (4.0, 1.0), (4.0, 0.0), (1.0, 1.0), (1.0, 0.0))
"""Pairs whose sizes are used as budgets."""

LOW_COST = 0.015
TODAY = date(2024, 1, 1)


def main() -> None:
    """Measure and write the chapter."""
    chapter = Chapter("maps", "Maps by weights, budgets and filters")
    with tempfile.TemporaryDirectory(prefix="unlost-study-") as name:
        folder = Path(name)
        chapter.line(
            f"{QUERIES:,} questions to each archive, as above: {HELD_SHARE:.0%} held, {NEAR_SHARE:.0%} held out, the "
            "rest foreign. A page counts as held if its key without the query is. The figures are those of `unlost "
            f"evaluate --weights all --bits {','.join(map(str, BITS))}` and, for the bytes of some pairs, of "
            "`--budgets` with and without `--with-filter`."
        )
        chapter.line()
        for archive in make_archives(folder):
            chapter.line(f"### {archive.description}")
            chapter.line()
            report_comparison(chapter, archive)
            report_exclusions(chapter, archive, folder)
    chapter.finish()


def report_comparison(chapter: Chapter, archive: StudyArchive) -> None:
    """Compare the accuracy of all kinds of maps of the same size."""
    first = evaluate_index([archive.index], [archive.queries], list_configurations(WEIGHT_PAIRS, BITS))
    weighed = {one.configuration.weights: one for one in first.results if one.configuration.family == "weights"}
    budgets = [MapBudget(weighed[pair].size.compressed, "bytes") for pair in BUDGET_PAIRS]
    alone = evaluate_index([archive.index], [archive.queries], list_configurations(budgets=budgets)).results[1:]
    both = evaluate_index(
        [archive.index], [archive.queries], list_configurations(budgets=budgets, with_filter=True)
    ).results[1:]
    results = [*first.results, *alone, *both]
    chapter.add_figure(archive.name, [one.to_row() for one in results])
    chapter.table(
        ("weights", "lines", "relative cost", "gzip bytes", "accuracy", "budget", "budget for map and filter", "bits"),
        (
            (
                f"{pair[0]:g}, {pair[1]:g}",
                f"{weighed[pair].size.lines:,}",
                f"{weighed[pair].cost:.2%}",
                f"{weighed[pair].size.compressed:,}",
                format_accuracy(weighed[pair]),
                format_accuracy(budget),
                format_accuracy(divided),
                divided.size.bits,
            )
            for pair, budget, divided in zip(BUDGET_PAIRS, alone, both, strict=True)
        ),
    )
    filtered = {one.configuration.bits: one for one in first.results if one.configuration.family == "filter"}
    chapter.table(
        ("a map of hosts and a filter", "gzip bytes", "accuracy"),
        ((f"{bits} bits a key", f"{one.size.compressed:,}", format_accuracy(one)) for bits, one in filtered.items()),
    )
    front = [one.configuration.name for one in pareto_optimal_results(results)]
    chapter.add_figure(f"{archive.name} front", front)
    chapter.line(f"Nothing beats, from the smallest: {', '.join(front)}.")
    chapter.line()
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"maps-{archive.name}.svg").write_text(draw_accuracy(results))
    chapter.line(f"![accuracy against bytes](../study/results/maps-{archive.name}.svg)")
    chapter.line()
    report_findings(chapter, archive.name, weighed, both[BUDGET_PAIRS.index((4.0, 1.0))], filtered[8])
    worst = min(
        zip(BUDGET_PAIRS, alone, strict=True),
        key=lambda each: accuracy_points(each[1]) - accuracy_points(weighed[each[0]]),
    )
    less = accuracy_points(worst[1]) - accuracy_points(weighed[worst[0]])
    chapter.add_finding(
        f"(ours) a budget is no worse than weights of its bytes ({archive.name})",
        f"at worst {less:+.1f} points, at the bytes of {worst[0][0]:g}, {worst[0][1]:g}",
        holds=less >= -0.3,
    )
    denied = sum(one.held - one.present for one in results)
    chapter.gate(f"{archive.name}: false negatives in {len(results)} configurations", denied, at_most=0)
    chapter.line()


def report_findings(
    chapter: Chapter,
    name: str,
    weighed: dict[tuple[float, float], RoutingResult],
    divided: RoutingResult,
    eight: RoutingResult,
) -> None:
    """Report the findings of the paper, and check the gates of filters."""
    cheap = [one for one in weighed.values() if one.cost < LOW_COST]
    best = max(cheap, key=lambda one: one.accuracy.value or 0.0) if cheap else None
    chapter.add_finding(
        f"60 % of accuracy at less than 1.5 % of the cost ({name})",
        "no pair is that small"
        if best is None
        else f"{format_accuracy(best)} by {best.configuration.name}, at {best.cost:.2%} of the keys",
        holds=best is not None and (best.accuracy.value or 0.0) >= 0.6,
    )
    more = accuracy_points(divided) - accuracy_points(weighed[4.0, 1.0])
    chapter.gate(f"{name}: points more than weights 4, 1 with a filter, at its bytes", more, at_least=15)
    chapter.gate(f"{name}: accuracy with a filter of 8 bits", accuracy_points(eight), at_least=98)


def report_exclusions(chapter: Chapter, archive: StudyArchive, folder: Path) -> None:
    """Report the gain of exclusions that are learned from one half of the queries, on the other half."""
    full, compacted, improved = (folder / f"{archive.name}-{part}.ukvs" for part in ("full", "compacted", "improved"))
    build_map([archive.index], full)
    compact_map(full, compacted, Compaction(4, 1))
    # Zipf distribution: the n-th page is requested 1/n times as often as the first.
    pool = archive.queries.read_text().splitlines()
    popular = [1 / rank for rank in range(1, len(pool) + 1)]
    questions = random.Random(SEED).choices(pool, popular, k=len(pool))  # noqa: S311  not a secret
    half = len(questions) // 2
    truth = Map.open(full).lookup_many(questions).held
    missed = folder / f"{archive.name}-missed.txt"
    missed.write_text("".join(f"{url}\n" for url, held in zip(questions[:half], truth[:half], strict=True) if not held))
    options = ExclusionOptions(today=TODAY, kind="urls")
    report = exclude_map(compacted, improved, options, [missed], [archive.index])
    rows = []
    figures = {}
    for what, path in (("weights 4, 1", compacted), ("the same with exclusions", improved)):
        predicted = Map.open(path).lookup_many(questions[half:]).held
        right = sum(a == b for a, b in zip(predicted, truth[half:], strict=True)) / len(predicted)
        denied = sum(held and not yes for yes, held in zip(predicted, truth[half:], strict=True))
        rows.append((what, f"{compressed_size(path):,}", f"{right:.2%}", denied))
        figures[what] = {"bytes": compressed_size(path), "accuracy": right, "denied": denied}
    chapter.add_figure(f"{archive.name} exclusions", figures)
    chapter.line(
        f"Exclusions learned (`unlost map exclude --index`) from {half:,} questions drawn from the same, "
        f"the n-th of which is asked 1/n times as often as the first: {report.added:,} pages and {report.wildcards:,} "
        f"subtrees. Both maps are asked {len(questions) - half:,} others, drawn alike:"
    )
    chapter.line()
    chapter.table(("map", "gzip bytes", "accuracy", "held pages denied"), rows)
    chapter.gate(
        f"{archive.name}: held pages denied by exclusions", figures["the same with exclusions"]["denied"], at_most=0
    )
    chapter.line()


def accuracy_points(one: RoutingResult) -> float:
    """Return the accuracy in percentage points."""
    return 100 * (one.accuracy.value or 0.0)


def format_accuracy(one: RoutingResult) -> str:
    """Return the accuracy as a percentage with two decimals."""
    return f"{one.accuracy.value or 0.0:.2%}"


if __name__ == "__main__":
    main()
