"""Reliability against usefulness of all schemes, drawn as SVG."""

from collections.abc import Sequence
from html import escape
from math import log10

from unlost.refresh.policy import PolicyEstimate
from unlost.refresh.schemes import DOWNLOAD_ALL, SchemeScore, pareto_front, scheme_name, distinct_scores

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 760, 460, 80, 30, 150, 50
_MAX_MISSED = 1.0  # share missed at the top of the scale
_SVG_ATTRIBUTES = (
    'font-family="sans-serif" font-size="11" role="img" aria-label="Reliability against usefulness of all schemes"'
)
_TICKS = (1.0, 0.1, 0.01, 0.001, 0.0001, 0.00001)


def render_schemes_plot(scores: Sequence[SchemeScore], used_cells: int, estimate: PolicyEstimate | None = None) -> str:
    """Return a drawing: usefulness to the right, missed changes downwards on a scale of powers of ten.

    Grey: all schemes; the line: those that none dominates, the named among them with their names; the diamond: what was
    learned with all indicators.
    """
    fewest = min((1 - one.reliability for one in scores if one.missed), default=0.0001)
    floor = min((tick for tick in _TICKS if tick >= fewest / 10), default=_TICKS[-1])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {_SVG_ATTRIBUTES}>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
    ]
    for tick in (tick for tick in _TICKS if tick >= floor):
        y = _y_position(tick, floor)
        label = (
            f"{100 * (1 - tick):.5g} %" if tick > floor else "100 %" if floor < fewest else f"{100 * (1 - tick):.5g} %"
        )
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for percent in range(0, 101, 20):
        x = _x_position(percent / 100)
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{percent} %</text>')
    parts.append(f'<text x="{_LEFT}" y="{_HEIGHT - 12}">usefulness: unchanged pages that are skipped</text>')
    parts.append(f'<text x="{_LEFT - 70}" y="18">reliability: changed pages that are downloaded</text>')
    parts += [_dot(one, floor, 1.6, "#bbb") for one in distinct_scores(scores, used_cells)]
    best = distinct_scores(pareto_front(scores), used_cells)
    line = " ".join(f"{_x_position(one.usefulness):.1f},{_y_position(1 - one.reliability, floor):.1f}" for one in best)
    parts.append(f'<polyline points="{line}" fill="none" stroke="#36c"/>')
    for one in best:
        parts.append(_dot(one, floor, 3, "#36c"))
        name = scheme_name(one.scheme, used_cells)
        if name is not None and one.scheme != DOWNLOAD_ALL:
            x, y = _x_position(one.usefulness) + 6, _y_position(1 - one.reliability, floor) + 4
            parts.append(f'<text x="{x:.1f}" y="{y:.1f}">{escape(name)}</text>')
    if estimate is not None:
        x, y = _x_position(estimate.usefulness), _y_position(1 - estimate.reliability, floor)
        parts.append(f'<path d="M{x:.1f},{y - 6:.1f}l6,6l-6,6l-6,-6z" fill="#c33"/>')
        parts.append(f'<text x="{x + 8:.1f}" y="{y + 4:.1f}" fill="#c33">learned</text>')
    return "\n".join([*parts, "</svg>", ""])


def _x_position(usefulness: float) -> float:
    return _LEFT + usefulness * (_WIDTH - _LEFT - _RIGHT)


def _y_position(missed: float, floor: float) -> float:
    share = (log10(_MAX_MISSED) - log10(max(missed, floor))) / (log10(_MAX_MISSED) - log10(floor))
    return _TOP + share * (_HEIGHT - _TOP - _BOTTOM)


def _dot(one: SchemeScore, floor: float, size: float, colour: str) -> str:
    x, y = _x_position(one.usefulness), _y_position(1 - one.reliability, floor)
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}"/>'
