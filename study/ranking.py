"""Precision for recall: archives asked only where they likely have what is asked for, by frequencies."""

import tempfile
from pathlib import Path

from study.archives import both_archives
from study.chapter import Chapter
from unlost.research import evaluate_index, list_configurations

LEAST = (0.02, 0.05, 0.1, 0.2, 0.5)
POLICIES = ("DDom", "HxP1")
PAIRS = ((4.0, 1.0), (1.0, 1.0))


def main() -> None:
    """Measure, write."""
    chapter = Chapter("ranking", "Precision for recall")
    chapter.line(
        "What the papers left for later: frequencies tell how likely something is held. The same questions as above; a "
        "question counts as predicted only if it is held with that probability or more. The figures are those of "
        f"`unlost evaluate --min-probability {','.join(map(str, LEAST))}`."
    )
    chapter.line()
    tried = list_configurations(PAIRS, policies=POLICIES, min_probabilities=LEAST)
    with tempfile.TemporaryDirectory(prefix="unlost-study-") as name:
        for archive in both_archives(Path(name)):
            found = evaluate_index([archive.index], [archive.queries], tried, truth="address")
            chapter.keep(archive.name, [one.to_row() for one in found.results])
            chapter.line(f"**{archive.description}.** Precision / recall:")
            chapter.line()
            ways = [one for one in found.results if not one.configuration.min_probability][1:]
            rows = []
            for way in ways:
                likely = [
                    one for one in found.results if one.configuration.name.startswith(f"{way.configuration.name}, p")
                ]
                cells = [f"{one.precision.value or 0:.1%} / {one.recall.value or 0:.1%}" for one in [way, *likely]]
                rows.append((way.configuration.name, *cells))
            chapter.table(("", "all that may be", *(f"p ≥ {least:g}" for least in LEAST)), rows)
            lost = sum(one.held - one.present for one in ways)
            chapter.gate(f"{archive.name}: held pages denied without a probability", lost, at_most=0)
            chapter.line()
    chapter.finish()


if __name__ == "__main__":
    main()
