"""Report on a routing evaluation: SVG charts, an HTML page, JSON and CSV."""

import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from csv import DictWriter
from html import escape
from pathlib import Path

from unlost.atomic import atomic_files
from unlost.report.format import ReportTable, escape_unprintable
from unlost.report.html_templates import make_template_environment
from unlost.research.growth import IndexGrowth
from unlost.research.routing_results import ArchiveEvaluation, RoutingResult, pareto_optimal_results, upstream_loads
from unlost.statistics import Proportion

_WIDTH, _HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 20, 16, 48
_LABEL_WIDTH = 110  # right margin for the names of curves
_LINE_HEIGHT = 12  # minimum distance of two names
_FONT = 'font-family="system-ui, sans-serif" font-size="11"'
FAMILY_COLOURS = {
    "keys": "#1b1b1f",
    "policy": "#1f5f99",
    "weights": "#c8871a",
    "budget": "#7a9b3f",
    "filter": "#a03070",
    "both": "#208080",
}
FAMILY_NAMES = {
    "keys": "all keys",
    "policy": "profiles by policy",
    "weights": "maps by weights",
    "budget": "maps to a budget",
    "filter": "hosts and filter",
    "both": "map and filter to a budget",
}
_CURVE_COLOURS = ("#1f5f99", "#c8871a", "#7a9b3f", "#a03070", "#208080", "#8a8a92")

PAGE_FILE, JSON_FILE, RESULTS_FILE, GROWTH_FILE = "report.html", "report.json", "results.csv", "growth.csv"
"""Files of a report; the CSV files are written only if they have rows."""
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


def draw_accuracy(results: Sequence[RoutingResult]) -> str:
    """Return a chart of accuracy by published bytes on a logarithmic scale, with the Pareto front. Deterministic."""
    sizes = [max(1, result.size.compressed) for result in results]
    low, high = math.floor(math.log10(min(sizes))), math.ceil(math.log10(max(sizes) + 1))
    floor = math.floor(10 * min(result.accuracy.value or 0.0 for result in results)) / 10

    def position(result: RoutingResult) -> tuple[float, float]:
        x = (math.log10(max(1, result.size.compressed)) - low) / max(1, high - low)
        y = ((result.accuracy.value or 0.0) - floor) / max(0.1, 1 - floor)
        return _x_position(x), _y_position(y)

    parts = [_x_grid(low, high), _y_grid([(floor + step * (1 - floor) / 5, step / 5) for step in range(6)])]
    front = pareto_optimal_results(results)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(position, front))
    parts.append(f'<polyline class="front" points="{points}" fill="none" stroke="#8a8a92" stroke-dasharray="4 3"/>')
    for result in results:
        x, y = position(result)
        family = result.configuration.family
        title = escape(
            escape_unprintable(
                f"{result.configuration.name}: {result.size.compressed:,} bytes, {result.accuracy.value:.2%}"
            )
        )
        ring = ' stroke="#8a8a92" stroke-width="3"' if result in front else ""
        parts.append(
            f'<circle class="{family}" cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{FAMILY_COLOURS[family]}"{ring}>'
            f"<title>{title}</title></circle>"
        )
    families = dict.fromkeys(result.configuration.family for result in results)
    parts.append(_legend([(FAMILY_NAMES[family], FAMILY_COLOURS[family]) for family in families]))
    return _svg(parts, "published bytes (gzip)", "accuracy")


def draw_growth(curves: Mapping[str, Sequence[tuple[float, float]]], x_label: str, y_label: str) -> str:
    """Return a line chart with both axes from 0. Curves are labelled where space permits; all have tooltips."""
    max_x = max((x for curve in curves.values() for x, _ in curve), default=1) or 1
    max_y = max((y for curve in curves.values() for _, y in curve), default=1) or 1
    parts = [_y_grid([(step * max_y / 5, step / 5) for step in range(6)], plain=True)]
    for step in range(6):
        x, y = _x_position(step / 5, _LABEL_WIDTH), _HEIGHT - _BOTTOM + 16
        parts.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{_format_si(step * max_x / 5)}</text>')
    last_label = float("inf")
    for number, (name, curve) in enumerate(sorted(curves.items(), key=lambda each: _last_value(each[1]))):
        colour = _CURVE_COLOURS[number % len(_CURVE_COLOURS)]
        points = " ".join(f"{_x_position(x / max_x, _LABEL_WIDTH):.1f},{_y_position(y / max_y):.1f}" for x, y in curve)
        text = escape(escape_unprintable(name))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5">'
            f"<title>{text}</title></polyline>"
        )
        end = _y_position(_last_value(curve) / max_y)
        if last_label - end >= _LINE_HEIGHT:
            parts.append(f'<text x="{_x_position(1, _LABEL_WIDTH) + 6:.1f}" y="{end + 4:.1f}">{text}</text>')
            last_label = end
    return _svg(parts, x_label, y_label)


def _last_value(curve: Sequence[tuple[float, float]]) -> float:
    return curve[-1][1] if curve else 0.0


def _x_position(share: float, right: float = _RIGHT) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - right)


def _y_position(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _x_grid(low: int, high: int) -> str:
    parts = []
    for power in range(low, high + 1):
        x = _x_position((power - low) / max(1, high - low))
        parts.append(
            f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_HEIGHT - _BOTTOM}"/>'
            f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{_format_si(10**power)}</text>'
        )
    return "".join(parts)


def _y_grid(marks: Sequence[tuple[float, float]], *, plain: bool = False) -> str:
    parts = []
    for value, share in marks:
        y = _y_position(share)
        text = _format_si(value) if plain else f"{value:.0%}"
        parts.append(
            f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
        )
    return "".join(parts)


def _legend(names: Sequence[tuple[str, str]]) -> str:
    parts = []
    for row, (name, colour) in enumerate(names):
        y = _TOP + 14 + 16 * row
        parts.append(
            f'<rect x="{_LEFT + 12}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
            f'<text x="{_LEFT + 28}" y="{y}">{escape(escape_unprintable(name))}</text>'
        )
    return "".join(parts)


def _svg(parts: Sequence[str], x_label: str, y_label: str) -> str:
    grid = "<style>.grid{stroke:#8a8a92;stroke-width:.4}</style>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'role="img" aria-label="{escape(y_label)} against {escape(x_label)}"><g {_FONT}>{grid}{"".join(parts)}'
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 10}" text-anchor="middle">{escape(x_label)}</text>'
        f'<text transform="translate(14 {_HEIGHT / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_label)}</text></g></svg>"
    )


def _format_si(value: float) -> str:
    """Format a number with an SI prefix.

    >>> _format_si(1000), _format_si(2_500_000), _format_si(0.25)
    ('1 k', '2.5 M', '0.25')
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def write_evaluation_report(folder: Path, evaluations: Sequence[ArchiveEvaluation], growth: IndexGrowth | None) -> None:
    """Write the files of a report atomically, creating the folder if needed."""
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
    """Return the JSON document."""
    document: dict[str, object] = {
        "archives": [
            {
                "archive": each.archive,
                "results": [result.to_row() for result in each.results],
                "front": [result.configuration.name for result in pareto_optimal_results(each.results)],
            }
            for each in evaluations
        ]
    }
    if len(evaluations) > 1:
        document["upstream"] = [each.to_row() for each in upstream_loads(evaluations)]
    if growth is not None:
        heaps = growth.fit_heaps_law()
        document["growth"] = {
            "points": [each.to_row() for each in growth.points],
            "heaps": None if heaps is None else {"K": heaps[0], "beta": heaps[1]},
            "straightness": {name: growth.linearity(name) for name in _configuration_names(growth)},
        }
    return document


def result_rows(evaluations: Sequence[ArchiveEvaluation]) -> list[dict[str, object]]:
    """Return the rows of all results, with the archive name if there are several archives."""
    names = [{"archive": each.archive} if len(evaluations) > 1 else {} for each in evaluations]
    return [name | result.to_row() for name, each in zip(names, evaluations, strict=True) for result in each.results]


def rows_to_csv(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as CSV; the first row determines the columns."""
    all_rows = list(rows)
    text = io.StringIO()
    writer = DictWriter(text, list(all_rows[0]) if all_rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(all_rows)
    return text.getvalue()


def result_cells(result: RoutingResult) -> tuple[str, ...]:
    """Return the formatted cells of a result, in the order of `RESULT_COLUMNS`."""
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
    """Return the table of requests to all archives together."""
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
    heads = ("configuration", "compressed", "broadcast", "routed", "present", "saved")
    return ReportTable("Requests to all archives", heads, rows)


def growth_table(growth: IndexGrowth) -> ReportTable:
    """Return the table of sizes and build times, for each slice and cumulatively."""
    rows = [
        (
            each.slice + (" and earlier" if each.cumulative else ""),
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
    """Return the report as a self-contained HTML page. All values are escaped."""
    archives = [
        {
            "name": each.archive,
            "drawing": draw_accuracy(each.results),
            "front": ", ".join(result.configuration.name for result in pareto_optimal_results(each.results)),
            "table": ReportTable("Results", RESULT_COLUMNS, [result_cells(result) for result in each.results]),
            "missed": each.false_negatives,
        }
        for each in evaluations
    ]
    curves = []
    heaps = None
    if growth is not None:
        heaps = growth.fit_heaps_law()
        names = _configuration_names(growth)
        for column, label in (("lines", "lines"), ("compressed", "published bytes (gzip)"), ("seconds", "seconds")):
            points = {
                name: [
                    (float(each.mementos), float(getattr(each, column)))
                    for each in growth.points
                    if each.cumulative and each.configuration == name
                ]
                for name in names
            }
            curves.append((label, draw_growth(points, "URI-Ms", label)))
    return (
        make_template_environment("unlost.research")
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
