"""Download schemes: the 512 sets of matrix cells to download, their quality, the Pareto front, and a plot."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from math import log10

from unlost.refresh.confidence import ConfidenceInterval, wilson_confidence
from unlost.refresh.decision_matrix import MATRIX_CELLS, DecisionMatrix

DOWNLOAD_ALL = (1 << len(MATRIX_CELLS)) - 1
"""The scheme that downloads every page."""

OBVIOUS_SCHEMES = ("Scheme 1", "Scheme 2", "Scheme 3", "Scheme 4")
"""Download if the date, the ETag, both, or either of them changed. If one is missing, the other decides."""
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 760, 460, 80, 30, 150, 50
_MAX_MISSED = 1.0  # fraction of missed changes at the top of the scale
_SVG_ATTRIBUTES = (
    'font-family="sans-serif" font-size="11" role="img" aria-label="Reliability against usefulness of all schemes"'
)
_TICKS = (1.0, 0.1, 0.01, 0.001, 0.0001, 0.00001)


def make_scheme(cells: Iterable[str]) -> int:
    """Return the scheme that downloads these cells: a bit mask in the order of `MATRIX_CELLS`.

    >>> make_scheme(["cc", "mm"])
    257
    """
    return sum(1 << MATRIX_CELLS.index(cell) for cell in cells)


def scheme_cells(scheme: int) -> list[str]:
    """Return the cells that a scheme downloads."""
    return [cell for bit, cell in enumerate(MATRIX_CELLS) if scheme >> bit & 1]


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
"""The schemes with names. Schemes that differ only in empty cells are equivalent."""


@dataclass(frozen=True)
class SchemeScore:
    """Result of applying a scheme to a matrix.

    Attributes:
        scheme: Bit mask of the cells to download.
        missed: Number of changed pages that it skips.
        unnecessary: Number of unchanged pages that it downloads.
        changed: Number of changed pages.
        unchanged: Number of unchanged pages.
    """

    scheme: int
    missed: int
    unnecessary: int
    changed: int
    unchanged: int

    @property
    def reliability(self) -> float:
        """Fraction of changed pages that are downloaded; 1 if none changed."""
        return 1 - self.missed / self.changed if self.changed else 1.0

    @property
    def usefulness(self) -> float:
        """Fraction of unchanged pages that are skipped; 1 if all changed."""
        return 1 - self.unnecessary / self.unchanged if self.unchanged else 1.0

    @cached_property
    def reliability_interval(self) -> ConfidenceInterval:
        """Wilson's interval, with pages as independent cases."""
        return wilson_confidence(self.changed - self.missed, self.changed)

    @cached_property
    def usefulness_interval(self) -> ConfidenceInterval:
        """Wilson's interval, with pages as independent cases."""
        return wilson_confidence(self.unchanged - self.unnecessary, self.unchanged)

    def dominates(self, other: "SchemeScore") -> bool:
        """Return whether it is at least as good in both respects, and better in one."""
        return (
            self.missed <= other.missed
            and self.unnecessary <= other.unnecessary
            and (self.missed, self.unnecessary) != (other.missed, other.unnecessary)
        )


def score_scheme(matrix: DecisionMatrix, scheme: int) -> SchemeScore:
    """Return the result of applying a scheme to a matrix."""
    missed = sum(count for bit, count in enumerate(matrix.changed) if not scheme >> bit & 1)
    unnecessary = sum(count for bit, count in enumerate(matrix.unchanged) if scheme >> bit & 1)
    return SchemeScore(scheme, missed, unnecessary, matrix.all_changed, matrix.all_unchanged)


def score_all_schemes(matrix: DecisionMatrix) -> list[SchemeScore]:
    """Return the results of all 512 schemes, in their order."""
    return [score_scheme(matrix, scheme) for scheme in range(DOWNLOAD_ALL + 1)]


def undominated_schemes(scores: Iterable[SchemeScore]) -> list[SchemeScore]:
    """Return the scores that no other dominates, the most useful first, including equal ones."""
    front: list[SchemeScore] = []
    min_missed = None
    for score in sorted(scores, key=lambda score: (score.unnecessary, score.missed, score.scheme)):
        if min_missed is None or score.missed < min_missed or _errors(front[-1]) == _errors(score):
            front.append(score)
            min_missed = score.missed
    return front


def _errors(score: SchemeScore) -> tuple[int, int]:
    return score.missed, score.unnecessary


def filter_scores(scores: Iterable[SchemeScore], reliability: float, usefulness: float) -> list[SchemeScore]:
    """Return the scores above both limits."""
    return [score for score in scores if score.reliability > reliability and score.usefulness > usefulness]


def distinct_scores(scores: Iterable[SchemeScore], used_cells: int) -> list[SchemeScore]:
    """Return one score of each set of equal ones: a scheme with a name, else the one that downloads most cells.

    Args:
        scores: The scores.
        used_cells: Bit mask of the cells that are not empty. It is safer to download the others.
    """
    best_by_errors: dict[tuple[int, int], SchemeScore] = {}
    for score in scores:
        best = best_by_errors.get(_errors(score))
        if best is None or _preference(score, used_cells) > _preference(best, used_cells):
            best_by_errors[_errors(score)] = score
    return list(best_by_errors.values())


def _preference(score: SchemeScore, used_cells: int) -> tuple[bool, int]:
    return scheme_name(score.scheme, used_cells) is not None, score.scheme.bit_count()


def scheme_name(scheme: int, used_cells: int = DOWNLOAD_ALL) -> str | None:
    """Return the name of a scheme, or of an equivalent one on these cells; None if there is none.

    >>> scheme_name(511), scheme_name(make_scheme(["cc", "cm", "mm"]), DOWNLOAD_ALL & ~make_scheme(["mc", "ms"]))
    ('always', 'Scheme 3')
    >>> scheme_name(NAMED_SCHEMES["Scheme 4"], used_cells=0)
    'Scheme 4'
    """
    equivalent = [name for name, mask in NAMED_SCHEMES.items() if mask & used_cells == scheme & used_cells]
    return next((name for name in equivalent if NAMED_SCHEMES[name] == scheme), equivalent[0] if equivalent else None)


def find_dominators(score: SchemeScore, scores: Iterable[SchemeScore]) -> Iterator[SchemeScore]:
    """Yield the scores that dominate a score."""
    return (other for other in scores if other.dominates(score))


def choose_scheme(
    scores: Iterable[SchemeScore], target: float, low: dict[int, float] | None = None
) -> SchemeScore | None:
    """Return the most useful scheme whose reliability is at least the target with 97.5 % confidence; None without one.

    Args:
        scores: The scores.
        target: Required reliability.
        low: Lower bounds of the reliability by scheme, where better ones than Wilson's are known.
    """
    sufficient = [
        score
        for score in scores
        if min(score.reliability_interval.low, (low or {}).get(score.scheme, 1.0)) >= target
        or score.scheme == DOWNLOAD_ALL
    ]
    best = min(sufficient, key=lambda score: (score.unnecessary, score.missed, -score.scheme.bit_count()), default=None)
    return None if best is None or best.scheme == DOWNLOAD_ALL else best


@dataclass(frozen=True, slots=True)
class PolicyEstimate:
    """Estimated quality of a policy, by cross-validation.

    Attributes:
        reliability: Fraction of changed pages that are downloaded.
        usefulness: Fraction of unchanged pages that are skipped.
        interval: 95 % confidence interval of the reliability.
        changed: Number of changed pairs in the evaluation.
        missed: Number of these that were skipped.
        hosts: Number of hosts in the evaluation.
    """

    reliability: float
    usefulness: float
    interval: ConfidenceInterval
    changed: int
    missed: int
    hosts: int


def render_schemes_plot(scores: Sequence[SchemeScore], used_cells: int, estimate: PolicyEstimate | None = None) -> str:
    """Return a scatter plot as SVG: usefulness against reliability, on a logarithmic scale of missed changes.

    Grey points are the schemes, the line is their Pareto front, and the diamond is the learned policy.
    """
    min_missed = min((1 - score.reliability for score in scores if score.missed), default=0.0001)
    floor = min((tick for tick in _TICKS if tick >= min_missed / 10), default=_TICKS[-1])
    elements = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {_SVG_ATTRIBUTES}>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
    ]
    for tick in (tick for tick in _TICKS if tick >= floor):
        y = _y_position(tick, floor)
        label = "100 %" if tick <= floor < min_missed else f"{100 * (1 - tick):.5g} %"
        elements.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        elements.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for percent in range(0, 101, 20):
        x = _x_position(percent / 100)
        elements.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{percent} %</text>')
    elements.append(f'<text x="{_LEFT}" y="{_HEIGHT - 12}">usefulness: unchanged pages that are skipped</text>')
    elements.append(f'<text x="{_LEFT - 70}" y="18">reliability: changed pages that are downloaded</text>')
    elements += [_dot(score, floor, 1.6, "#bbb") for score in distinct_scores(scores, used_cells)]
    front = distinct_scores(undominated_schemes(scores), used_cells)
    points = " ".join(
        f"{_x_position(score.usefulness):.1f},{_y_position(1 - score.reliability, floor):.1f}" for score in front
    )
    elements.append(f'<polyline points="{points}" fill="none" stroke="#36c"/>')
    for score in front:
        elements.append(_dot(score, floor, 3, "#36c"))
        name = scheme_name(score.scheme, used_cells)
        if name is not None and score.scheme != DOWNLOAD_ALL:
            x, y = _x_position(score.usefulness) + 6, _y_position(1 - score.reliability, floor) + 4
            elements.append(f'<text x="{x:.1f}" y="{y:.1f}">{escape(name)}</text>')
    if estimate is not None:
        x, y = _x_position(estimate.usefulness), _y_position(1 - estimate.reliability, floor)
        elements.append(f'<path d="M{x:.1f},{y - 6:.1f}l6,6l-6,6l-6,-6z" fill="#c33"/>')
        elements.append(f'<text x="{x + 8:.1f}" y="{y + 4:.1f}" fill="#c33">learned</text>')
    return "\n".join([*elements, "</svg>", ""])


def _x_position(usefulness: float) -> float:
    return _LEFT + usefulness * (_WIDTH - _LEFT - _RIGHT)


def _y_position(missed: float, floor: float) -> float:
    share = (log10(_MAX_MISSED) - log10(max(missed, floor))) / (log10(_MAX_MISSED) - log10(floor))
    return _TOP + share * (_HEIGHT - _TOP - _BOTTOM)


def _dot(score: SchemeScore, floor: float, size: float, colour: str) -> str:
    x, y = _x_position(score.usefulness), _y_position(1 - score.reliability, floor)
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}"/>'
