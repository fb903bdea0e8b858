"""Linear and logistic regression on rows stored on disk, with confidence intervals."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import erfc, exp, isnan, log, log1p, sqrt
from operator import mul
from tempfile import TemporaryFile
from types import TracebackType
from typing import Self

from unlost.statistics import Z95

UNKNOWN_VALUE = float("nan")
"""Stands for a number that nobody knows."""
_BLOCK_ROWS = 4096  # of a block: what is in memory


class ColumnFile:
    """Rows of so many numbers. Use it as a context manager.

    known: how many rows know the number of each column. count: of all rows.
    """

    def __init__(self, width: int) -> None:
        self.count = 0
        self.known = [0] * width
        self._width = width
        self._file = TemporaryFile()  # noqa: SIM115  closed at the end
        self._buffer: list[Sequence[float]] = []

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Give the disk back."""
        self._file.close()

    def add(self, row: Sequence[float]) -> None:
        """Add one row."""
        self._buffer.append(row)
        self.count += 1
        for column, value in enumerate(row):
            self.known[column] += not isnan(value)
        if len(self._buffer) == _BLOCK_ROWS:
            self._spill()

    def _spill(self) -> None:
        self._file.seek(0, 2)
        self._file.write(len(self._buffer).to_bytes(4))
        for column in zip(*self._buffer, strict=True):
            self._file.write(array("d", column).tobytes())
        self._buffer.clear()

    def blocks(self, chosen: Sequence[int]) -> Iterator[list[list[float]]]:
        """Yield some rows at a time, as the chosen columns; rows in which one of them is not known are left out."""
        if self._buffer:
            self._spill()
        place = 0
        while True:
            self._file.seek(place)
            size = int.from_bytes(self._file.read(4))
            if not size:
                return
            columns = []
            for column in chosen:
                self._file.seek(place + 4 + column * size * 8)
                columns.append(array("d", self._file.read(size * 8)))
            place += 4 + self._width * size * 8
            if any(map(isnan, (value for column in columns for value in column))):
                whole = [row for row in zip(*columns, strict=True) if not any(map(isnan, row))]
                yield [list(column) for column in zip(*whole, strict=True)] if whole else [[] for _ in chosen]
            else:
                yield [list(column) for column in columns]


SWEEP_TOLERANCE = 1e-7
"""A column of which less than this share is not in the columns before it says the same as they do."""
Matrix = list[list[float]]


def sweep(matrix: Sequence[Sequence[float]], size: int) -> tuple[Matrix, list[int]]:
    """Return a symmetric matrix with its first `size` columns swept, and those that were not: they say nothing new.

    Of the columns that were swept, the result has the negative inverse; of the others behind them, what is left of them
    when the swept ones are taken into account. So a system `A x = b` is solved by sweeping `A` in `[[A, b], [b', c]]`.

    >>> sweep([[2.0, 1.0], [1.0, 5.0]], 1)
    ([[-0.5, 0.5], [0.5, 4.5]], [])
    """
    found = [list(row) for row in matrix]
    whole = [row[at] for at, row in enumerate(found)]
    left = []
    for pivot in range(size):
        value = found[pivot][pivot]
        if value <= SWEEP_TOLERANCE * whole[pivot] or value <= 0:
            left.append(pivot)
            continue
        row = [each / value for each in found[pivot]]
        for at, line in enumerate(found):
            if at != pivot:
                factor = line[pivot]
                found[at] = [each - factor * part for each, part in zip(line, row, strict=True)]
                found[at][pivot] = factor / value
        found[pivot] = row
        found[pivot][pivot] = -1.0 / value
    return found, left


MIN_DEGREES_OF_FREEDOM = 30
"""How many more rows than columns a model needs: with less, intervals mean nothing."""
_MAX_PASSES = 40
_CONVERGED = 1e-9  # of the deviance, between two passes
_UNBOUNDED_ERROR = 8.0  # an error of a coefficient, for a deviation of its column: a sign that nothing bounds it
_PENALTY_SCALE = 2.5  # how large coefficients may be where nothing else bounds them, for a deviation of their column


@dataclass(frozen=True, slots=True)
class Coefficient:
    """What a column adds, others being equal. low, high: between them 95 times in 100. p: if there were no effect."""

    name: str
    value: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class RegressionModel:
    """A model that was fitted.

    rows: how many it is of. coefficients: the intercept first. fit: R² of a linear model, McFadden's of a logistic one.
    same: columns that were left out since others together say the same.
    is_penalised: whether some columns tell perfectly what came back, so that large coefficients had to be held down.
    """

    rows: int
    coefficients: tuple[Coefficient, ...]
    fit: float
    same: tuple[str, ...] = ()
    is_penalised: bool = False


@dataclass(frozen=True, slots=True)
class ColumnMoments:
    """Means, deviations and correlations of columns, the last of which is what is to be explained."""

    names: tuple[str, ...]
    rows: int
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    correlations: Matrix


def compute_moments(rows: ColumnFile, chosen: Sequence[int], names: Sequence[str]) -> ColumnMoments:
    """Return them, in two passes. Correlations of a column that is always the same are 0."""
    count, sums = 0, [0.0] * len(chosen)
    for block in rows.blocks(chosen):
        count += len(block[0])
        sums = [total + sum(column) for total, column in zip(sums, block, strict=True)]
    means = [total / count if count else 0.0 for total in sums]
    products = [[0.0] * len(chosen) for _ in chosen]
    for block in rows.blocks(chosen):
        centred = [[value - mean for value in column] for column, mean in zip(block, means, strict=True)]
        _add_products(products, centred, centred)
    deviations = [sqrt(products[at][at] / count) if count else 0.0 for at in range(len(chosen))]
    # What rounding leaves of a column that is always the same is no deviation.
    deviations = [each if each > 1e-12 * (1 + abs(mean)) else 0.0 for each, mean in zip(deviations, means, strict=True)]
    matrix = [
        [
            products[i][j] / (count * deviations[i] * deviations[j]) if deviations[i] and deviations[j] else 0.0
            for j in range(len(chosen))
        ]
        for i in range(len(chosen))
    ]
    return ColumnMoments(tuple(names), count, tuple(means), tuple(deviations), matrix)


def fit_linear(found: ColumnMoments) -> RegressionModel | None:
    """Return the model by least squares of the last column; None if there are too few rows, or nothing to explain."""
    size = len(found.names) - 1
    freedom = found.rows - size - 1
    if freedom < MIN_DEGREES_OF_FREEDOM or not found.deviations[-1]:
        return None
    matrix, left = sweep(found.correlations, size)
    scale = found.deviations[-1]
    unexplained = max(0.0, matrix[size][size])
    variance = unexplained * scale * scale * found.rows / (freedom + len(left))
    far = _student_quantile(freedom + len(left))
    coefficients, intercept, inverse = [], found.means[-1], {}
    for at in (each for each in range(size) if each not in left):
        value = matrix[at][size] * scale / found.deviations[at]
        error = sqrt(variance * -matrix[at][at] / found.rows) / found.deviations[at]
        inverse[at] = found.means[at] / found.deviations[at]
        intercept -= value * found.means[at]
        coefficients.append(_coefficient(found.names[at], value, error, far))
    spread = 1 + sum(-matrix[i][j] * inverse[i] * inverse[j] for i in inverse for j in inverse)
    first = _coefficient("intercept", intercept, sqrt(max(0.0, variance * spread / found.rows)), far)
    same = tuple(found.names[at] for at in left)
    return RegressionModel(found.rows, (first, *coefficients), 1 - unexplained, same)


def fit_logistic(rows: ColumnFile, chosen: Sequence[int], found: ColumnMoments) -> RegressionModel | None:
    """Return the model by maximum likelihood of the last column, which is 0 or 1; None as `linear` does.

    Where columns tell perfectly what came back, no coefficient would be large enough: then large ones are minded, and
    the model says so. Goes through the rows some ten times.
    """
    size = len(found.names) - 1
    if found.rows - size - 1 < MIN_DEGREES_OF_FREEDOM or not found.deviations[-1]:
        return None
    _, left = sweep(found.correlations, size)
    kept = [at for at in range(size) if at not in left]
    fitting = _LogisticFit(rows, [chosen[at] for at in (*kept, size)], found, kept)
    fitted = fitting.fit(0.0)
    is_penalised = fitted is None
    if fitted is None:
        fitted = fitting.fit(1 / _PENALTY_SCALE**2)
    if fitted is None:
        return None
    values, inverse, deviance = fitted
    rate = found.means[-1]
    nothing = -2 * found.rows * (rate * log(rate) + (1 - rate) * log1p(-rate))
    slopes = [values[1 + at] / found.deviations[place] for at, place in enumerate(kept)]
    shift = [1.0, *(-found.means[place] / found.deviations[place] for place in kept)]
    spread = sum(inverse[i][j] * shift[i] * shift[j] for i in range(len(shift)) for j in range(len(shift)))
    intercept = sum(value * part for value, part in zip(values, shift, strict=True))
    coefficients = [_coefficient("intercept", intercept, sqrt(max(0.0, spread)), Z95)]
    for at, place in enumerate(kept):
        error = sqrt(max(0.0, inverse[1 + at][1 + at])) / found.deviations[place]
        coefficients.append(_coefficient(found.names[place], slopes[at], error, Z95))
    same = tuple(found.names[at] for at in left)
    return RegressionModel(found.rows, tuple(coefficients), 1 - deviance / nothing, same, is_penalised)


class _LogisticFit:
    """Weighted least squares, again and again, on columns with mean 0 and deviation 1."""

    def __init__(self, rows: ColumnFile, chosen: list[int], found: ColumnMoments, kept: list[int]) -> None:
        self._rows = rows
        self._chosen = chosen
        self._scales = [(found.means[at], found.deviations[at]) for at in kept]

    def fit(self, penalty: float) -> tuple[list[float], Matrix, float] | None:
        """Return coefficients, their covariances and the deviance; None if nothing bounds them."""
        size = 1 + len(self._scales)
        values = [0.0] * size
        step = [0.0] * size
        before = float("inf")
        for _ in range(_MAX_PASSES):
            tried = [value + change for value, change in zip(values, step, strict=True)]
            information, gradient, deviance = self._pass(tried)
            minded = deviance + penalty * sum(value * value for value in tried[1:])
            if minded > before * (1 + 1e-12):  # too far: half of the way
                step = [change / 2 for change in step]
                continue
            values = tried
            for at in range(1, size):
                information[at][at] += penalty
                gradient[at] -= penalty * values[at]
            whole = [[*row, part] for row, part in zip(information, gradient, strict=True)]
            solved, left = sweep([*whole, [*gradient, 0.0]], size)
            if left:
                return None
            inverse = [[-value for value in row[:size]] for row in solved[:size]]
            if before - minded <= _CONVERGED * (1 + minded):
                is_wild = any(inverse[at][at] > _UNBOUNDED_ERROR * _UNBOUNDED_ERROR for at in range(size))
                return None if is_wild and not penalty else (values, inverse, deviance)
            step = [solved[at][size] for at in range(size)]
            before = minded
        return None

    def _pass(self, values: list[float]) -> tuple[Matrix, list[float], float]:
        """Return information, gradient and deviance at some coefficients."""
        size = len(values)
        information = [[0.0] * size for _ in range(size)]
        gradient, deviance = [0.0] * size, 0.0
        for block in self._rows.blocks(self._chosen):
            *columns, outcome = block
            scaled = [[1.0] * len(outcome)]
            for column, (mean, deviation) in zip(columns, self._scales, strict=True):
                scaled.append([(value - mean) / deviation for value in column])
            sums = [sum(map(mul, values, row)) for row in zip(*scaled, strict=True)]
            likely = [_probability(each) for each in sums]
            deviance += sum(_deviance(each, came) for each, came in zip(sums, outcome, strict=True))
            weights = [each * (1 - each) for each in likely]
            errors = [came - each for came, each in zip(outcome, likely, strict=True)]
            weighted = [list(map(mul, column, weights)) for column in scaled]
            _add_products(information, weighted, scaled)
            gradient = [part + sum(map(mul, column, errors)) for part, column in zip(gradient, scaled, strict=True)]
        return information, gradient, deviance


def _add_products(matrix: Matrix, first: list[list[float]], second: list[list[float]]) -> None:
    """Add the products of columns with columns; the result is symmetric."""
    for i, column in enumerate(first):
        for j in range(i + 1):
            matrix[i][j] += sum(map(mul, column, second[j]))
            matrix[j][i] = matrix[i][j]


def _probability(value: float) -> float:
    return 1 / (1 + exp(-value)) if value > -700 else 0.0


def _deviance(value: float, came: float) -> float:
    """Return what a row adds to the deviance."""
    signed = value if came else -value
    return 2 * (log1p(exp(-signed)) if signed > -30 else -signed)


def _coefficient(name: str, value: float, error: float, far: float) -> Coefficient:
    ratio = abs(value) / error if error else (float("inf") if value else 0.0)
    return Coefficient(name, value, value - far * error, value + far * error, erfc(ratio / sqrt(2)))


def _student_quantile(freedom: int) -> float:
    """Return how many errors of a coefficient to both sides hold 95 %: Student's, by the first terms of its series.

    >>> round(_student_quantile(30), 3), round(_student_quantile(10**6), 3)
    (2.042, 1.96)
    """
    z = Z95
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
