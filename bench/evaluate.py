"""`unlost evaluate` with all 23 policies and all 36 pairs of weights, relative to one `map build` of the same index."""

import sys
import tempfile
from pathlib import Path

from bench.measure import Report, best_of
from unlost.mementomap import build_map
from unlost.problems import Problems
from unlost.research import (
    WEIGHT_PAIRS,
    SynthIndexOptions,
    SynthQueryOptions,
    evaluate_index,
    list_configurations,
    write_synthetic_index,
    write_synthetic_queries,
)
from unlost.uri import POLICIES

LINES = 2_770_000  # captures of a million URI-Rs
QUERIES = 200_000


def main() -> None:
    """Measure and write the report."""
    report = Report("evaluate", "Evaluating all policies and all weights")
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as name:
        folder = Path(name)
        index, queries = folder / "a.cdxj", folder / "asked.txt"
        write_synthetic_index(SynthIndexOptions(LINES, seed=1), index, Problems())
        write_synthetic_queries(
            [index], SynthQueryOptions(count=QUERIES, held=0.25, near=0.4, seed=1), queries, Problems()
        )
        configurations = list_configurations(WEIGHT_PAIRS, policies=POLICIES)
        # Measured before and after, since the speed of the machine varies.
        built = best_of(3, lambda: build_map([index], folder / "a.ukvs"))
        evaluation = evaluate_index([index], [queries], configurations)
        seconds = best_of(2, lambda: evaluate_index([index], [queries], configurations))
        built = min(built, best_of(2, lambda: build_map([index], folder / "a.ukvs")))
        exact = next(one for one in evaluation.results if one.configuration.policy == "URIR")
        if evaluation.false_negatives or exact.held != exact.predicted:
            sys.exit(f"bench evaluate: something that is held was denied: {evaluation.false_negatives[:1]}")
        report.line(
            f"{LINES:,} made-up captures of {exact.keys:,} URI-Rs, {QUERIES:,} questions, {len(configurations)} ways; "
            "warm cache, without start-up. Sizes by gzip, answers and intervals are all in it."
        )
        report.line("")
        report.line("| | seconds |")
        report.line("|---|---|")
        report.line(f"| `map build` | {built:.2f} |")
        report.line(f"| `evaluate --policies all --weights all` | {seconds:.2f} |")
        report.line("")
        report.gate("all of them, to one `map build`", seconds / built, at_most=80)
    report.finish()


if __name__ == "__main__":
    main()
