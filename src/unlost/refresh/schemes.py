"""Download schemes.

Each of the 512 sets of matrix cells to download, its reliability and usefulness, the Pareto front, and a plot of
them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from math import log10

from unlost.refresh.confidence import ConfidenceInterval, wilson_interval
from unlost.refresh.decision_matrix import MATRIX_CELLS, DecisionMatrix

DOWNLOAD_ALL = (1 << len(MATRIX_CELLS)) - 1
"""The scheme that downloads every page."""


def make_scheme(cells: Iterable[str]) -> int:
    """Return the scheme that downloads these cells: a bit for each, in the order of `CELLS`.

    >>> make_scheme(["cc", "mm"])
    257
    """
    return sum(1 << MATRIX_CELLS.index(cell) for cell in cells)


def scheme_cells(scheme: int) -> list[str]:
    """Return the cells that a scheme downloads."""
    return [cell for at, cell in enumerate(MATRIX_CELLS) if scheme >> at & 1]


_SCHEME_1 = make_scheme(["cc", "cs", "cm", "mc", "ms", "mm"])
_SCHEME_3 = make_scheme(["cc", "cm", "mc", "mm"])
_MISSING_TAG = make_scheme(["sm"])
NAMED_SCHEMES = {
    "always": DOWNLOAD_ALL,
    "Scheme 1": _SCHEME_1,
    "Scheme 2": make_scheme(["cc", "sc", "mc", "cm", "sm", "mm"]),
    "Scheme 3": _SCHEME_3,
    "Scheme 4": _SCHEME_1 | make_scheme(["sc"]),
    "Scheme 1 variant": _SCHEME_1 | _MISSING_TAG,
    "Scheme 3 variant": _SCHEME_3 | _MISSING_TAG,
    "Scheme 4 variant": _SCHEME_1 | make_scheme(["sc"]) | _MISSING_TAG,
    "IgnoresMissing1": make_scheme(["cc", "cm"]),
    "IgnoresMissing2": make_scheme(["cc", "cm", "sm"]),
}
"""The schemes that have names, and what they download. Where cells are empty, others do the same."""
OBVIOUS_SCHEMES = ("Scheme 1", "Scheme 2", "Scheme 3", "Scheme 4")
"""By date, by tag, by both, by either: where one is missing on both visits, by the other."""


@dataclass(frozen=True)
class SchemeScore:
    """What a scheme would have done.

    scheme: the cells that it downloads, a bit for each.
    missed: changed pages that it would not have downloaded. unnecessary: unchanged ones that it would have.
    changed, unchanged: how many there were.
    """

    scheme: int
    missed: int
    unnecessary: int
    changed: int
    unchanged: int

    @property
    def reliability(self) -> float:
        """The share of changed pages that are downloaded; 1 if none changed."""
        return 1 - self.missed / self.changed if self.changed else 1.0

    @property
    def usefulness(self) -> float:
        """The share of unchanged pages that are skipped; 1 if all changed."""
        return 1 - self.unnecessary / self.unchanged if self.unchanged else 1.0

    @cached_property
    def reliability_interval(self) -> ConfidenceInterval:
        """Wilson's interval, as if pages were independent."""
        return wilson_interval(self.changed - self.missed, self.changed)

    @cached_property
    def usefulness_interval(self) -> ConfidenceInterval:
        """The same."""
        return wilson_interval(self.unchanged - self.unnecessary, self.unchanged)

    def dominates(self, other: "SchemeScore") -> bool:
        """Return whether it is at least as good in both, and better in one."""
        return (
            self.missed <= other.missed
            and self.unnecessary <= other.unnecessary
            and (self.missed, self.unnecessary) != (other.missed, other.unnecessary)
        )


def score_scheme(matrix: DecisionMatrix, scheme: int) -> SchemeScore:
    """Return what a scheme would have done."""
    missed = sum(count for at, count in enumerate(matrix.changed) if not scheme >> at & 1)
    unnecessary = sum(count for at, count in enumerate(matrix.unchanged) if scheme >> at & 1)
    return SchemeScore(scheme, missed, unnecessary, matrix.all_changed, matrix.all_unchanged)


def score_all_schemes(matrix: DecisionMatrix) -> list[SchemeScore]:
    """Return what each of the 512 schemes would have done, in their order."""
    return [score_scheme(matrix, scheme) for scheme in range(DOWNLOAD_ALL + 1)]


def pareto_front(scores: Iterable[SchemeScore]) -> list[SchemeScore]:
    """Return the schemes that no other dominates, the most useful first; of those that do the same, all."""
    best: list[SchemeScore] = []
    fewest = None
    for one in sorted(scores, key=lambda one: (one.unnecessary, one.missed, one.scheme)):
        if fewest is None or one.missed < fewest or (best[-1].missed, best[-1].unnecessary) == _errors(one):
            best.append(one)
            fewest = one.missed
    return best


def _errors(one: SchemeScore) -> tuple[int, int]:
    return one.missed, one.unnecessary


def filter_scores(scores: Iterable[SchemeScore], reliability: float, usefulness: float) -> list[SchemeScore]:
    """Return the schemes above both shares."""
    return [one for one in scores if one.reliability > reliability and one.usefulness > usefulness]


def distinct_scores(scores: Iterable[SchemeScore], used_cells: int) -> list[SchemeScore]:
    """Return one scheme for each distinct result: one that has a name, else the one that downloads most.

    used: the cells that hold anything. A cell that is empty so far is better downloaded when it comes.
    """
    found: dict[tuple[int, int], SchemeScore] = {}
    for one in scores:
        held = found.get(_errors(one))
        if held is None or _preference(one, used_cells) > _preference(held, used_cells):
            found[_errors(one)] = one
    return list(found.values())


def _preference(one: SchemeScore, used_cells: int) -> tuple[bool, int]:
    return scheme_name(one.scheme, used_cells) is not None, one.scheme.bit_count()


def scheme_name(scheme: int, used_cells: int = DOWNLOAD_ALL) -> str | None:
    """Return the name of a scheme, or else of one that does the same where cells are used; None if it has none.

    >>> scheme_name(511), scheme_name(make_scheme(["cc", "cm", "mm"]), DOWNLOAD_ALL & ~make_scheme(["mc", "ms"]))
    ('always', 'Scheme 3')
    >>> scheme_name(NAMED_SCHEMES["Scheme 4"], used_cells=0)
    'Scheme 4'
    """
    alike = [name for name, one in NAMED_SCHEMES.items() if one & used_cells == scheme & used_cells]
    return next((name for name in alike if NAMED_SCHEMES[name] == scheme), alike[0] if alike else None)


def find_dominators(one: SchemeScore, scores: Iterable[SchemeScore]) -> Iterator[SchemeScore]:
    """Yield the schemes that dominate one."""
    return (other for other in scores if other.dominates(one))


def choose_scheme(
    scores: Iterable[SchemeScore], target: float, low: dict[int, float] | None = None
) -> SchemeScore | None:
    """Return the most useful scheme whose reliability is surely at least the target; None if no scheme's is.

    low: the lower end of each scheme's reliability, where more is known than Wilson's.
    """
    sure = [
        one
        for one in scores
        if min(one.reliability_interval.low, (low or {}).get(one.scheme, 1.0)) >= target or one.scheme == DOWNLOAD_ALL
    ]
    best = min(sure, key=lambda one: (one.unnecessary, one.missed, -one.scheme.bit_count()), default=None)
    return None if best is None or best.scheme == DOWNLOAD_ALL else best


@dataclass(frozen=True, slots=True)
class PolicyEstimate:
    """What a policy promises, from the part of the log that it was tried on.

    reliability, usefulness: shares. interval: in which the reliability lies with 95 % confidence.
    changed, missed: pairs of the part it was tried on. hosts: of how many hosts.
    """

    reliability: float
    usefulness: float
    interval: ConfidenceInterval
    changed: int
    missed: int
    hosts: int


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
