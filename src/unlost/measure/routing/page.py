"""An evaluation as files: a page for people, JSON and CSV for programs."""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from csv import DictWriter
from pathlib import Path

from unlost.formats.output import atomic_files
from unlost.measure.intervals import Proportion
from unlost.measure.routing.drawing import draw_accuracy, draw_growth
from unlost.measure.routing.growth import IndexGrowth
from unlost.measure.routing.results import ArchiveEvaluation, RoutingResult, pareto_front, upstream_loads
from unlost.shown.page import make_template_environment
from unlost.shown.table import ReportTable

PAGE_FILE, JSON_FILE, RESULTS_FILE, GROWTH_FILE = "report.html", "report.json", "results.csv", "growth.csv"
"""The files of a report; the last two where there is something to put into them."""

RESULT_COLUMNS = (
    "configuration",
    "lines",
    "bytes",
    "compressed",
    "cost",
    "predicted",
    "present",
    "precision",
    "accuracy",
    "recall",
)


def write_evaluation_report(folder: Path, evaluations: Sequence[ArchiveEvaluation], growth: IndexGrowth | None) -> None:
    """Write all files of a report to a folder, which is made if need be; they appear together, or none does."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        PAGE_FILE: render_evaluation_page(evaluations, growth),
        JSON_FILE: json.dumps(evaluation_to_json(evaluations, growth), indent=1),
    }
    if evaluations:
        texts[RESULTS_FILE] = rows_to_csv(result_rows(evaluations))
    if growth is not None:
        texts[GROWTH_FILE] = rows_to_csv(each.to_row() for each in growth.points)
    with atomic_files([folder / name for name in texts]) as files:
        for file, text in zip(files, texts.values(), strict=True):
            file.write(text.encode())


def evaluation_to_json(evaluations: Sequence[ArchiveEvaluation], growth: IndexGrowth | None) -> dict[str, object]:
    """Return everything as one JSON object."""
    found: dict[str, object] = {
        "archives": [
            {
                "archive": each.archive,
                "results": [one.to_row() for one in each.results],
                "front": [one.configuration.name for one in pareto_front(each.results)],
            }
            for each in evaluations
        ]
    }
    if len(evaluations) > 1:
        found["upstream"] = [each.to_row() for each in upstream_loads(evaluations)]
    if growth is not None:
        heaps = growth.fit_heaps_law()
        found["growth"] = {
            "points": [each.to_row() for each in growth.points],
            "heaps": None if heaps is None else {"K": heaps[0], "beta": heaps[1]},
            "straightness": {name: growth.linearity(name) for name in _configuration_names(growth)},
        }
    return found


def result_rows(evaluations: Sequence[ArchiveEvaluation]) -> list[dict[str, object]]:
    """Return all results, with the name of the archive where there are several."""
    names = [{"archive": each.archive} if len(evaluations) > 1 else {} for each in evaluations]
    return [name | one.to_row() for name, each in zip(names, evaluations, strict=True) for one in each.results]


def rows_to_csv(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as CSV, under the names that the first has."""
    found = list(rows)
    text = io.StringIO()
    writer = DictWriter(text, list(found[0]) if found else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return text.getvalue()


def result_cells(result: RoutingResult) -> tuple[str, ...]:
    """Return a result as people read it, under `HEADS`."""
    return (
        result.configuration.name,
        f"{result.size.lines}",
        f"{result.size.bytes}",
        f"{result.size.compressed}",
        f"{result.cost:.4f}",
        f"{result.predicted}",
        f"{result.present}",
        _format_proportion(result.precision),
        _format_proportion(result.accuracy),
        _format_proportion(result.recall),
    )


def upstream_table(evaluations: Sequence[ArchiveEvaluation]) -> ReportTable:
    """Return what all archives together are asked."""
    rows = [
        (
            each.configuration.name,
            f"{each.compressed}",
            f"{each.broadcast}",
            f"{each.routed}",
            f"{each.present}",
            _format_proportion(each.saved),
        )
        for each in upstream_loads(evaluations)
    ]
    heads = ("configuration", "compressed", "broadcast", "asked", "present", "saved")
    return ReportTable("Requests to all archives", heads, rows)


def growth_table(growth: IndexGrowth) -> ReportTable:
    """Return keys, bytes and seconds of each part, and of all up to it."""
    rows = [
        (
            each.slice + (" and before" if each.cumulative else ""),
            each.configuration,
            f"{each.mementos}",
            f"{each.addresses}",
            f"{each.lines}",
            f"{each.cost:.4f}",
            f"{each.bytes}",
            f"{each.compressed}",
            f"{each.seconds:.3f}",
        )
        for each in growth.points
    ]
    heads = ("slice", "configuration", "URI-Ms", "URI-Rs", "lines", "cost", "bytes", "compressed", "seconds")
    return ReportTable("Growth", heads, rows, words=frozenset({0, 1}))


def render_evaluation_page(evaluations: Sequence[ArchiveEvaluation], growth: IndexGrowth | None) -> str:
    """Return the page: HTML with everything in it. Everything in it is escaped."""
    archives = [
        {
            "name": each.archive,
            "drawing": draw_accuracy(each.results),
            "front": ", ".join(one.configuration.name for one in pareto_front(each.results)),
            "table": ReportTable("Results", RESULT_COLUMNS, [result_cells(one) for one in each.results]),
            "missed": each.false_negatives,
        }
        for each in evaluations
    ]
    curves = []
    heaps = None
    if growth is not None:
        heaps = growth.fit_heaps_law()
        names = _configuration_names(growth)
        for up, what in (("lines", "lines"), ("compressed", "published bytes (gzip)"), ("seconds", "seconds")):
            points = {
                name: [
                    (float(each.mementos), float(getattr(each, up)))
                    for each in growth.points
                    if each.cumulative and each.configuration == name
                ]
                for name in names
            }
            curves.append((what, draw_growth(points, "URI-Ms", what)))
    return (
        make_template_environment("unlost.measure")
        .get_template("evaluation.html")
        .render(
            archives=archives,
            together=upstream_table(evaluations) if len(evaluations) > 1 else None,
            curves=curves,
            heaps=heaps,
            growth=growth_table(growth) if growth is not None else None,
        )
    )


def _configuration_names(growth: IndexGrowth) -> list[str]:
    return list(dict.fromkeys(each.configuration for each in growth.points))


def _format_proportion(share: Proportion) -> str:
    if share.value is None:
        return "-"
    low, high = share.interval()
    return f"{share.value:.1%} ({low:.1%} to {high:.1%})"
