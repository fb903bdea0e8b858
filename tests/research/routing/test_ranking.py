"""Ranking by frequency: probabilities, precision and recall."""

import random
from pathlib import Path

from unlost.research import estimate_probabilities, evaluate_index, likelihood_band, list_configurations


def test_probabilities_are_cross_validated() -> None:
    """Each half is estimated from the other, with two pseudo-observations of the mean."""
    rng = random.Random(5)  # noqa: S311
    bands = [rng.choice([0, 2, 5, 130]) for _ in range(200)]
    held = [band > 0 and rng.random() < 1 / band for band in bands]
    counts = [rng.randrange(1, 4) for _ in range(200)]
    found = estimate_probabilities(bands, held, counts)
    for place, band in enumerate(bands):
        others = [each for each in range(200) if each % 2 != place % 2 and bands[each]]
        mean = sum(counts[each] for each in others if held[each]) / sum(counts[each] for each in others)
        alike = [each for each in others if bands[each] == band]
        hits, total = sum(counts[each] for each in alike if held[each]), sum(counts[each] for each in alike)
        expected = (hits + 2 * mean) / (total + 2) if band else 0.0
        assert abs(found[place] - expected) < 1e-12


def test_bands_distinguish_wildcards_and_orders_of_magnitude() -> None:
    """None is 0, and no wildcard shares a band with a page."""
    bands = {likelihood_band(captures, is_wildcard=wild) for captures in (None, 1, 2, 10**17) for wild in (False, True)}
    assert len(bands) == 8
    assert min(bands) > 0


def test_minimum_probability_trades_recall_for_precision(tmp_path: Path) -> None:
    """Without it, recall is 1."""
    index, queries = tmp_path / "held.txt", tmp_path / "asked.txt"
    full = [f"http://full.com/{n}" for n in range(60)]
    index.write_text("".join(f"{url}\n" for url in [*full, "http://thin.com/a"]))
    thin = [f"http://thin.com/{n}" for n in range(60)]
    queries.write_text("".join(f"{url}\n" for url in [*full[:40], *thin, "http://thin.com/a"]))
    configurations = list_configurations(policies=["HxP0"], min_probabilities=[0.5])
    found = evaluate_index([index], [queries], configurations)
    results = {one.configuration.name: one for one in found.results}
    sure, likely = results["policy HxP0"], results["policy HxP0, p >= 0.5"]
    assert (sure.predicted, sure.present, sure.recall.value) == (101, 41, 1.0)
    assert (likely.predicted, likely.present) == (40, 40)
    assert likely.precision.value == 1.0
    assert likely.recall.count == 40 < likely.recall.total
    assert found.false_negatives == []
    assert likely.size == sure.size
