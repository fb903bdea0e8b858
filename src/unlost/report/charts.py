"""Line and bar charts as self-contained SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from unlost.report.format import escape_unprintable

_PLOT_WIDTH, _PLOT_HEIGHT = 560, 240
_LEFT, _TOP, _RIGHT, _BOTTOM = 78, 16, 24, 46
_LONG_NAME = 22  # length of a name above which a legend has two columns instead of three
_FONT = 'font-family="system-ui, sans-serif" font-size="12"'
COLOURS = ("#1f5f99", "#c8871a", "#5c7d2c", "#8a3b00", "#6a4c93", "#55555e")
"""Line colours in order; distinguishable with colour vision deficiency, and on white and black."""

STYLE = """
figure { margin: 1.5rem 0; }
figure svg { max-width: 100%; height: auto; }
figure text { fill: var(--ink); }
.axis { stroke: var(--line); } .grid { stroke: color-mix(in srgb, var(--line) 30%, var(--paper)); }
.bar { fill: var(--dark); }
.figures { display: flex; flex-wrap: wrap; gap: .5rem 2.5rem; margin: 1rem 0; padding: 0; list-style: none; }
.figures b { display: block; font-size: 2rem; font-weight: 600; line-height: 1.1; }
"""
"""CSS of pages with charts, and with a few large figures above them."""


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """One line of a chart.

    Attributes:
        name: Its name in the legend.
        points: Its points, in order.
        is_dashed: Whether the line is dashed.
    """

    name: str
    points: Sequence[tuple[float, float]]
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class ChartAxis:
    """An axis.

    Attributes:
        label: Its label.
        log: Whether it is logarithmic; then values that are not positive are omitted.
        is_share: Whether values are shares from 0 to 1, which are labelled in percent.
    """

    label: str
    log: bool = False
    is_share: bool = False

    def limits(self, values: Sequence[float]) -> tuple[float, float]:
        """Return the ends of the axis in scaled values."""
        if self.log:
            low, high = floor(log10(min(values))), ceil(log10(max(values)))
            return low, max(high, low + 1)
        if self.is_share:
            return 0.0, 1.0
        return min(0.0, *values), max(0.0, *values) or 1.0

    def scale(self, value: float) -> float:
        """Return a value on the scale of the axis."""
        return log10(value) if self.log else value

    def ticks(self, low: float, high: float) -> list[tuple[float, str]]:
        """Return the positions of ticks in scaled values, with their labels."""
        if self.log:
            step = max(1, ceil((high - low) / 6))
            return [(power, format_short(10.0**power)) for power in range(int(low), int(high) + 1, step)]
        if self.is_share:
            return [(share / 100, f"{share} %") for share in (0, 25, 50, 75, 100)]
        width = _round_step((high - low) / 5)
        first = ceil(low / width)
        return [(each * width, format_short(each * width)) for each in range(first, int(high / width) + 1)]


def format_short(value: float) -> str:
    """Return a number with an SI prefix.

    >>> format_short(1500), format_short(2_000_000), format_short(0.25), format_short(12)
    ('1.5 k', '2 M', '0.25', '12')
    """
    for size, prefix in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            return f"{value / size:g}{prefix}"
    return f"{value:g}"


def line_chart(title: str, series: Sequence[ChartSeries], x: ChartAxis, y: ChartAxis) -> str:
    """Return a line chart; empty without any points. The same points yield the same bytes."""
    lines = [(each, _plottable(each.points, x, y)) for each in series]
    lines = [(each, points) for each, points in lines if points]
    if not lines:
        return ""
    columns, rows = zip(*(point for _, points in lines for point in points), strict=True)
    frame = _Frame(x, y, x.limits(columns), y.limits(rows))
    shapes = frame.axes()
    for number, (each, points) in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        positions = [frame.at(*point) for point in points]
        dash = ' stroke-dasharray="6 4"' if each.is_dashed else ""
        if len(positions) == 1:
            shapes.append(f'<circle cx="{positions[0][0]}" cy="{positions[0][1]}" r="4" fill="{colour}"/>')
        line = " ".join(f"{left},{top}" for left, top in positions)
        shapes.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2.5"{dash}/>')
    names = [each.name for each, _ in lines]
    return _svg(title, shapes, _legend(names), _legend_columns(names))


def bar_chart(title: str, bars: Sequence[tuple[str, float]], y: ChartAxis) -> str:
    """Return a bar chart; empty without any bars. With many bars, some names are omitted."""
    bars = [(name, value) for name, value in bars if not y.log or value > 0]
    if not bars:
        return ""
    x = ChartAxis("")
    low, high = y.limits([value for _, value in bars])
    frame = _Frame(x, y, (0.0, float(len(bars))), (low, high))
    shapes = frame.axes(with_x=False)
    skip = max(1, ceil(len(bars) / 14))
    for index, (name, value) in enumerate(bars):
        left, top = frame.at(index + 0.1, value)
        right, _ = frame.at(index + 0.9, value)
        height = max(0.5, _TOP + _PLOT_HEIGHT - top)
        label = escape(escape_unprintable(name))
        shapes.append(
            f'<rect class="bar" x="{left}" y="{_TOP + _PLOT_HEIGHT - height:.1f}" width="{max(1.0, right - left):.1f}" '
            f'height="{height:.1f}" fill="{COLOURS[0]}"><title>{label}: {value:,g}</title></rect>'
        )
        if index % skip == 0:
            middle = (left + right) / 2
            shapes.append(
                f'<text x="{middle:.1f}" y="{_TOP + _PLOT_HEIGHT + 18}" text-anchor="middle" {_FONT}>{label}</text>'
            )
    return _svg(title, shapes, [])


@dataclass(frozen=True, slots=True)
class _Frame:
    x: ChartAxis
    y: ChartAxis
    columns: tuple[float, float]
    rows: tuple[float, float]

    def at(self, column: float, row: float) -> tuple[float, float]:
        """Return the position of a point in the picture."""
        return self._left(self.x.scale(column)), self._top(self.y.scale(row))

    def _left(self, position: float) -> float:
        low, high = self.columns
        return round(_LEFT + _PLOT_WIDTH * (position - low) / (high - low), 1)

    def _top(self, position: float) -> float:
        low, high = self.rows
        return round(_TOP + _PLOT_HEIGHT * (1 - (position - low) / (high - low)), 1)

    def axes(self, *, with_x: bool = True) -> list[str]:
        """Return lines, ticks and labels of both axes."""
        bottom, right = _TOP + _PLOT_HEIGHT, _LEFT + _PLOT_WIDTH
        shapes = []
        for position, text in self.y.ticks(*self.rows):
            top = self._top(position)
            shapes.append(f'<path class="grid" d="M{_LEFT} {top}H{right}" stroke="#d5d5da"/>')
            shapes.append(f'<text x="{_LEFT - 6}" y="{top + 4:.1f}" text-anchor="end" {_FONT}>{text}</text>')
        if with_x:
            for position, text in self.x.ticks(*self.columns):
                shapes.append(
                    f'<text x="{self._left(position)}" y="{bottom + 18}" text-anchor="middle" {_FONT}>{text}</text>'
                )
        shapes.append(f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#77777f"/>')
        middle = _TOP + _PLOT_HEIGHT / 2
        shapes.append(
            f'<text x="{_LEFT + _PLOT_WIDTH / 2}" y="{bottom + 38}" text-anchor="middle" {_FONT}>{escape(self.x.label)}'
            "</text>"
            f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle" {_FONT}>{escape(self.y.label)}'
            "</text>"
        )
        return shapes


def _plottable(points: Sequence[tuple[float, float]], x: ChartAxis, y: ChartAxis) -> list[tuple[float, float]]:
    return [(a, b) for a, b in points if (a > 0 or not x.log) and (b > 0 or not y.log)]


def _round_step(step: float) -> float:
    """Return the next larger number that is 1, 2 or 5 times a power of ten."""
    power = 10.0 ** floor(log10(step))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step * 0.999)


def _legend(names: Sequence[str]) -> list[str]:
    if len(names) < 2:
        return []
    shapes = []
    columns = _legend_columns(names)
    for number, name in enumerate(names):
        row, column = divmod(number, columns)
        left, top = _LEFT + column * (_PLOT_WIDTH // columns), _TOP + _PLOT_HEIGHT + _BOTTOM + 14 + row * 20
        colour = COLOURS[number % len(COLOURS)]
        shapes.append(
            f'<path d="M{left} {top - 4}h22" stroke="{colour}" stroke-width="4"/>'
            f'<text x="{left + 28}" y="{top}" {_FONT}>{escape(escape_unprintable(name))}</text>'
        )
    return shapes


def _legend_columns(names: Sequence[str]) -> int:
    """Return the number of columns of the legend: three, or two if a name is long."""
    return 2 if any(len(name) > _LONG_NAME for name in names) else 3


def _svg(title: str, shapes: Sequence[str], legend: Sequence[str], columns: int = 3) -> str:
    width = _LEFT + _PLOT_WIDTH + _RIGHT
    height = _TOP + _PLOT_HEIGHT + _BOTTOM + 20 * ceil(len(legend) / columns)
    text = escape(title)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="{text}"><title>{text}</title>{"".join(shapes)}{"".join(legend)}</svg>'
    )
