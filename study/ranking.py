"""Precision against recall: archives are queried only if frequencies make a hit likely."""

import tempfile
from pathlib import Path

from study.archives import make_archives
from study.chapter import Chapter
from unlost.research import evaluate_index, list_configurations

MIN_PROBABILITIES = (0.02, 0.05, 0.1, 0.2, 0.5)
POLICIES = ("DDom", "HxP1")
PAIRS = ((4.0, 1.0), (1.0, 1.0))


def main() -> None:
    """Measure and write the chapter."""
    chapter = Chapter("ranking", "Precision for recall")
    chapter.line(
        "What the papers left for later: frequencies tell how likely something is held. The same questions as above; a "
        "question counts as predicted only if it is held with that probability or more. The figures are those of "
        f"`unlost evaluate --min-probability {','.join(map(str, MIN_PROBABILITIES))}`."
    )
    chapter.line()
    configurations = list_configurations(PAIRS, policies=POLICIES, min_probabilities=MIN_PROBABILITIES)
    with tempfile.TemporaryDirectory(prefix="unlost-study-") as name:
        for archive in make_archives(Path(name)):
            found = evaluate_index([archive.index], [archive.queries], configurations, truth="address")
            chapter.add_figure(archive.name, [one.to_row() for one in found.results])
            chapter.line(f"**{archive.description}.** Precision / recall:")
            chapter.line()
            routings = [one for one in found.results if not one.configuration.min_probability][1:]
            rows = []
            for routing in routings:
                likely = [
                    one
                    for one in found.results
                    if one.configuration.name.startswith(f"{routing.configuration.name}, p")
                ]
                cells = [f"{one.precision.value or 0:.1%} / {one.recall.value or 0:.1%}" for one in [routing, *likely]]
                rows.append((routing.configuration.name, *cells))
            chapter.table(("", "all that may be", *(f"p ≥ {least:g}" for least in MIN_PROBABILITIES)), rows)
            lost = sum(one.held - one.present for one in routings)
            chapter.gate(f"{archive.name}: held pages denied without a probability", lost, at_most=0)
            chapter.line()
    chapter.finish()


if __name__ == "__main__":
    main()
