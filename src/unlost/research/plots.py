"""Plots of measurements as PNG, PDF or SVG with matplotlib (extra `plots`).

Reports also have these charts as SVG, which needs no extra.
"""

import warnings
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from unlost.atomic import atomic_file
from unlost.check.availability import STATE_ORDER
from unlost.errors import UsageError
from unlost.report.format import escape_unprintable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from unlost.research.factors import FactorAnalysis
    from unlost.research.overlap_stats import OverlapStats
    from unlost.watch.report import WatchedSite

PLOT_SUFFIXES = (".png", ".pdf", ".svg")
"""File name suffixes of the supported formats."""

_MAX_NAME_LENGTH = 30  # characters of a label
_MAX_SITES = 12  # of a watch; further sites are not plotted
_DAY_SECONDS = 86_400.0
_COLOURS = ("#1f5f99", "#c8871a", "#7a9b3f", "#8a8a92", "#d9d9de")


def validate_plot_path(file: Path | None) -> None:
    """Check the file name suffix, and that matplotlib is installed.

    Raises:
        UsageError: One of them fails.
    """
    if file is None:
        return
    if file.suffix.lower() not in PLOT_SUFFIXES:
        raise UsageError(f"{file}: expected a name that ends in {', '.join(PLOT_SUFFIXES[:-1])} or {PLOT_SUFFIXES[-1]}")
    if find_spec("matplotlib") is None:
        raise UsageError("plots need matplotlib: pip install 'unlost[plots]'; --html and --svg draw without it")


def plot_overlap(stats: "OverlapStats", file: Path) -> None:
    """Plot pages by archive, covers, mementos by year, and similarity by staleness."""
    membership = stats.membership
    pairs = [(each.archive, each.live.points) for each in stats.archives if each.live.points]
    figure, axes = _figure(4 if pairs else 3)
    order = sorted(range(len(membership.archives)), key=lambda index: -membership.held_by_archive(index))
    names = [_short_name(membership.archives[index]) for index in order]
    axes[0].bar(names, [membership.held_by_archive(index) for index in order], color=_COLOURS[0], label="held")
    axes[0].bar(
        names, [membership.held_only_by(index) for index in order], color=_COLOURS[1], label="only in this archive"
    )
    _label_axes(axes[0], "Pages by archive", "", "pages")
    axes[0].tick_params(axis="x", rotation=45)
    shares = [100 * each.covered / membership.held if membership.held else 0.0 for each in stats.covers]
    axes[1].plot(range(1, len(shares) + 1), shares, marker="o", color=_COLOURS[0], label="best set")
    for level in (90, 95, 99):
        axes[1].axhline(level, color=_COLOURS[3], linewidth=0.6)
    _label_axes(axes[1], "Holdings covered by the best sets", "archives", "%")
    years = sorted(stats.years)
    mementos = [sum(count for _, count in stats.years[year].values()) for year in years]
    axes[2].bar([int(year) for year in years], mementos, color=_COLOURS[0], label="mementos")
    _label_axes(axes[2], "Mementos by year", "", "")
    for number, (archive, points) in enumerate(pairs):
        days, similarities = zip(*points, strict=True)
        axes[3].scatter(days, similarities, s=12, alpha=0.6, color=_COLOURS[number % 3], label=_short_name(archive))
    if pairs:
        axes[3].set_xscale("symlog", linthresh=1)
        _label_axes(axes[3], "Similarity to the live page", "days stale", "share")
    _save(figure, file)


def plot_watch(sites: "Sequence[WatchedSite]", file: Path) -> None:
    """Plot for each site the resources by state over its reliably dated visits."""
    figure, axes = _figure(min(len(sites), _MAX_SITES))
    for plot, site in zip(axes, sites, strict=False):
        visits = [each for each in site.survey.visits if each.is_dated]
        if visits:
            days = [(each.time - visits[0].time) / _DAY_SECONDS for each in visits]
            counts = [[each.states[state] for each in visits] for state in STATE_ORDER]
            plot.stackplot(days, counts, labels=[state.value for state in STATE_ORDER], colors=_COLOURS)
        _label_axes(plot, _short_name(site.url), "days since the first visit", "resources")
    _save(figure, file)


def plot_factors(analysis: "FactorAnalysis", file: Path) -> None:
    """Plot the coefficients of both models with their intervals."""
    figure, axes = _figure(2)
    for plot, model, title in zip(
        axes, (analysis.linear, analysis.logistic), ("Recovered share", "Logarithm of the odds"), strict=True
    ):
        coefficients = model.coefficients[:0:-1] if model is not None else ()
        for row, coefficient in enumerate(coefficients):
            plot.plot([coefficient.low, coefficient.high], [row, row], color=_COLOURS[3])
            plot.plot([coefficient.value], [row], marker="o", color=_COLOURS[0])
        plot.axvline(0, color=_COLOURS[3], linewidth=0.6)
        plot.set_yticks(range(len(coefficients)), [coefficient.name for coefficient in coefficients])
        _label_axes(plot, title, "coefficient with 95 % interval", "")
    _save(figure, file)


def _figure(count: int) -> "tuple[Figure, list[Axes]]":
    from matplotlib.figure import Figure  # noqa: PLC0415  an extra

    columns = min(2, max(1, count))
    rows = -(-max(1, count) // columns)
    figure = Figure(figsize=(6 * columns, 4 * rows), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def _label_axes(axes: "Axes", title: str, x_label: str, y_label: str) -> None:
    # Labels may contain untrusted names: a dollar sign must not start a formula.
    axes.set_title(title, parse_math=False)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    for text in axes.get_xticklabels():
        text.set_parse_math(False)
    if axes.get_legend_handles_labels()[1]:
        for text in axes.legend(fontsize="small").get_texts():
            text.set_parse_math(False)


def _save(figure: "Figure", file: Path) -> None:
    """Write the file atomically. The output is deterministic: it has no date, and IDs are hashed with a fixed salt."""
    from matplotlib import rc_context  # noqa: PLC0415  an extra

    kind = file.suffix.lower().removeprefix(".")
    metadata = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}[kind]
    buffer = BytesIO()
    with warnings.catch_warnings(), rc_context({"text.parse_math": False, "svg.hashsalt": "unlost"}):
        warnings.simplefilter("ignore")  # glyphs missing from the font
        figure.savefig(buffer, format=kind, metadata=metadata)
    with atomic_file(file) as output:
        output.write(buffer.getvalue())


def _short_name(text: str) -> str:
    short = text if len(text) <= _MAX_NAME_LENGTH else text[: _MAX_NAME_LENGTH - 1] + "…"
    return escape_unprintable(short)
