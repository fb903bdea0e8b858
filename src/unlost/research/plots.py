"""Plots of measurements as PNG, PDF or SVG, by matplotlib (extra `plots`)."""

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
"""Of files that can be drawn."""

_MAX_NAME_LENGTH = 30  # of a name
_MAX_SITES = 12  # of a watch: what is beyond is left out
_DAY_SECONDS = 86_400.0
_COLOURS = ("#1f5f99", "#c8871a", "#7a9b3f", "#8a8a92", "#d9d9de")


def validate_plot_path(file: Path | None) -> None:
    """Refuse before any work what cannot be drawn. Raises UsageError."""
    if file is None:
        return
    if file.suffix.lower() not in PLOT_SUFFIXES:
        raise UsageError(f"{file}: expected a name that ends in {', '.join(PLOT_SUFFIXES[:-1])} or {PLOT_SUFFIXES[-1]}")
    if find_spec("matplotlib") is None:
        raise UsageError("plots need matplotlib: pip install 'unlost[plots]'; --html and --svg draw without it")


def plot_overlap(figures: "OverlapStats", file: Path) -> None:
    """Draw who holds how much, how few archives would do, copies by year, and likeness against staleness."""
    found = figures.membership
    pairs = [(each.archive, each.live.points) for each in figures.archives if each.live.points]
    figure, places = _figure(4 if pairs else 3)
    order = sorted(range(len(found.archives)), key=lambda place: -found.held_by_archive(place))
    names = [_short_name(found.archives[place]) for place in order]
    places[0].bar(names, [found.held_by_archive(place) for place in order], color=_COLOURS[0], label="held")
    places[0].bar(names, [found.held_only_by(place) for place in order], color=_COLOURS[1], label="held by nobody else")
    _label_axes(places[0], "Pages that archives hold", "", "pages")
    places[0].tick_params(axis="x", rotation=45)
    shares = [100 * each.covered / found.held if found.held else 0.0 for each in figures.covers]
    places[1].plot(range(1, len(shares) + 1), shares, marker="o", color=_COLOURS[0], label="the best set")
    for level in (90, 95, 99):
        places[1].axhline(level, color=_COLOURS[3], linewidth=0.6)
    _label_axes(places[1], "Of what is held, in so many archives", "archives", "%")
    years = sorted(figures.years)
    copies = [sum(count for _, count in figures.years[year].values()) for year in years]
    places[2].bar([int(year) for year in years], copies, color=_COLOURS[0], label="mementos")
    _label_axes(places[2], "Mementos by year", "", "")
    for number, (archive, points) in enumerate(pairs):
        days, alike = zip(*points, strict=True)
        places[3].scatter(days, alike, s=12, alpha=0.6, color=_COLOURS[number % 3], label=_short_name(archive))
    if pairs:
        places[3].set_xscale("symlog", linthresh=1)
        _label_axes(places[3], "Text in common with the live page", "days stale", "share")
    _save(figure, file)


def plot_watch(sites: "Sequence[WatchedSite]", file: Path) -> None:
    """Draw for each site how many resources were in which state at each visit whose date can be believed."""
    figure, places = _figure(min(len(sites), _MAX_SITES))
    for place, site in zip(places, sites, strict=False):
        visits = [each for each in site.survey.visits if each.is_dated]
        if visits:
            days = [(each.time - visits[0].time) / _DAY_SECONDS for each in visits]
            counts = [[each.states[state] for each in visits] for state in STATE_ORDER]
            place.stackplot(days, counts, labels=[state.value for state in STATE_ORDER], colors=_COLOURS)
        _label_axes(place, _short_name(site.url), "days since the first visit", "resources")
    _save(figure, file)


def plot_factors(found: "FactorAnalysis", file: Path) -> None:
    """Draw the coefficients of both models with their intervals."""
    figure, places = _figure(2)
    for place, model, title in zip(
        places, (found.linear, found.logistic), ("Share that came back", "Logarithm of the odds"), strict=True
    ):
        terms = model.coefficients[:0:-1] if model is not None else ()
        for row, each in enumerate(terms):
            place.plot([each.low, each.high], [row, row], color=_COLOURS[3])
            place.plot([each.value], [row], marker="o", color=_COLOURS[0])
        place.axvline(0, color=_COLOURS[3], linewidth=0.6)
        place.set_yticks(range(len(terms)), [each.name for each in terms])
        _label_axes(place, title, "one more adds, with its interval of 95 %", "")
    _save(figure, file)


def _figure(count: int) -> "tuple[Figure, list[Axes]]":
    from matplotlib.figure import Figure  # noqa: PLC0415  an extra

    columns = min(2, max(1, count))
    rows = -(-max(1, count) // columns)
    figure = Figure(figsize=(6 * columns, 4 * rows), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def _label_axes(place: "Axes", title: str, across: str, up: str) -> None:
    # Names are those of others: a dollar sign in one is no formula.
    place.set_title(title, parse_math=False)
    place.set_xlabel(across)
    place.set_ylabel(up)
    for text in place.get_xticklabels():
        text.set_parse_math(False)
    if place.get_legend_handles_labels()[1]:
        for text in place.legend(fontsize="small").get_texts():
            text.set_parse_math(False)


def _save(figure: "Figure", file: Path) -> None:
    """Write the file, whole or not at all; the same numbers give the same bytes."""
    from matplotlib import rc_context  # noqa: PLC0415  an extra

    kind = file.suffix.lower().removeprefix(".")
    untimed = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}[kind]
    drawn = BytesIO()
    with warnings.catch_warnings(), rc_context({"text.parse_math": False, "svg.hashsalt": "unlost"}):
        warnings.simplefilter("ignore")  # letters that no font has
        figure.savefig(drawn, format=kind, metadata=untimed)
    with atomic_file(file) as output:
        output.write(drawn.getvalue())


def _short_name(text: str) -> str:
    short = text if len(text) <= _MAX_NAME_LENGTH else text[: _MAX_NAME_LENGTH - 1] + "…"
    return escape_unprintable(short)
