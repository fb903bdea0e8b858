"""Linear and logistic regression on rows stored on disk, with confidence intervals.

Pure Python, since some 20 columns need only sums of products and one sweep of a small matrix: no reason for a
dependency on numpy. Rows are stored on disk because the logistic model reads them about ten times.
"""

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
"""A missing value."""
_BLOCK_ROWS = 4096  # rows in memory at a time

SWEEP_TOLERANCE = 1e-7
"""A column is collinear if less than this share of its variance is left after sweeping the columns before it."""
Matrix = list[list[float]]

MIN_DEGREES_OF_FREEDOM = 30
"""Minimum number of rows in excess of the columns. With fewer rows, confidence intervals are meaningless."""
_MAX_PASSES = 40  # over the rows
_CONVERGED = 1e-9  # relative change of the deviance between two passes
_UNBOUNDED_ERROR = 8.0  # standardised standard error above which a coefficient diverges (separation)
_PENALTY_SCALE = 2.5  # prior standard deviation of a standardised coefficient


class ColumnFile:
    """A table of numbers in a temporary file, stored by column. Use it as a context manager.

    Args:
        width: Number of columns.

    Attributes:
        count: Number of rows.
        known: Number of known values in each column.
    """

    def __init__(self, width: int) -> None:
        self.count = 0
        self.known = [0] * width
        self._width = width
        self._file = TemporaryFile()  # noqa: SIM115  closed at the end
        self._buffer: list[Sequence[float]] = []

    def __enter__(self) -> Self:
        """Return the table."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Delete the temporary file."""
        self._file.close()

    def add(self, row: Sequence[float]) -> None:
        """Append a row."""
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

    def blocks(self, selected: Sequence[int]) -> Iterator[list[list[float]]]:
        """Yield blocks of the selected columns. Rows with a missing value in one of them are skipped."""
        if self._buffer:
            self._spill()
        offset = 0
        while True:
            self._file.seek(offset)
            size = int.from_bytes(self._file.read(4))
            if not size:
                return
            columns = []
            for column in selected:
                self._file.seek(offset + 4 + column * size * 8)
                columns.append(array("d", self._file.read(size * 8)))
            offset += 4 + self._width * size * 8
            if any(map(isnan, (value for column in columns for value in column))):
                complete = [row for row in zip(*columns, strict=True) if not any(map(isnan, row))]
                yield [list(column) for column in zip(*complete, strict=True)] if complete else [[] for _ in selected]
            else:
                yield [list(column) for column in columns]


def sweep(matrix: Sequence[Sequence[float]], size: int) -> tuple[Matrix, list[int]]:
    """Sweep the first `size` columns of a symmetric matrix (Goodnight's sweep operator).

    The result has the negative inverse of the swept columns, and the residuals of the others. A system `A x = b` is
    solved by sweeping `A` in `[[A, b], [b', c]]`.

    Returns:
        The swept matrix, and the collinear columns, which were skipped.

    >>> sweep([[2.0, 1.0], [1.0, 5.0]], 1)
    ([[-0.5, 0.5], [0.5, 4.5]], [])
    """
    result = [list(row) for row in matrix]
    diagonal = [row[index] for index, row in enumerate(result)]
    collinear = []
    for pivot in range(size):
        value = result[pivot][pivot]
        if value <= SWEEP_TOLERANCE * diagonal[pivot] or value <= 0:
            collinear.append(pivot)
            continue
        row = [each / value for each in result[pivot]]
        for index, other in enumerate(result):
            if index != pivot:
                factor = other[pivot]
                result[index] = [each - factor * pivot_value for each, pivot_value in zip(other, row, strict=True)]
                result[index][pivot] = factor / value
        result[pivot] = row
        result[pivot][pivot] = -1.0 / value
    return result, collinear


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient with its 95 % confidence interval and p-value. Field names are JSON keys."""

    name: str
    value: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class RegressionModel:
    """A fitted model. Field names are JSON keys.

    Attributes:
        rows: Number of rows.
        coefficients: Coefficients, the intercept first.
        fit: R² of a linear model, McFadden's R² of a logistic one.
        same: Columns omitted because they are collinear with others.
        is_penalised: Whether the coefficients were shrunk because of separation: some columns predict the response
            perfectly.
    """

    rows: int
    coefficients: tuple[Coefficient, ...]
    fit: float
    same: tuple[str, ...] = ()
    is_penalised: bool = False


@dataclass(frozen=True, slots=True)
class ColumnMoments:
    """Means, standard deviations and correlations of columns. The last column is the response."""

    names: tuple[str, ...]
    rows: int
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    correlations: Matrix


def compute_moments(rows: ColumnFile, selected: Sequence[int], names: Sequence[str]) -> ColumnMoments:
    """Compute the moments of the complete rows in two passes. Correlations of a constant column are 0."""
    count, sums = 0, [0.0] * len(selected)
    for block in rows.blocks(selected):
        count += len(block[0])
        sums = [total + sum(column) for total, column in zip(sums, block, strict=True)]
    means = [total / count if count else 0.0 for total in sums]
    products = [[0.0] * len(selected) for _ in selected]
    for block in rows.blocks(selected):
        centred = [[value - mean for value in column] for column, mean in zip(block, means, strict=True)]
        _add_products(products, centred, centred)
    deviations = [sqrt(products[index][index] / count) if count else 0.0 for index in range(len(selected))]
    # A deviation within rounding errors is that of a constant column.
    deviations = [each if each > 1e-12 * (1 + abs(mean)) else 0.0 for each, mean in zip(deviations, means, strict=True)]
    matrix = [
        [
            products[i][j] / (count * deviations[i] * deviations[j]) if deviations[i] and deviations[j] else 0.0
            for j in range(len(selected))
        ]
        for i in range(len(selected))
    ]
    return ColumnMoments(tuple(names), count, tuple(means), tuple(deviations), matrix)


def fit_linear(moments: ColumnMoments) -> RegressionModel | None:
    """Fit the last column by ordinary least squares; None if there are too few rows or the response is constant."""
    size = len(moments.names) - 1
    freedom = moments.rows - size - 1
    if freedom < MIN_DEGREES_OF_FREEDOM or not moments.deviations[-1]:
        return None
    matrix, collinear = sweep(moments.correlations, size)
    scale = moments.deviations[-1]
    unexplained = max(0.0, matrix[size][size])
    variance = unexplained * scale * scale * moments.rows / (freedom + len(collinear))
    quantile = _student_quantile(freedom + len(collinear))
    coefficients, intercept, standardized_means = [], moments.means[-1], {}
    for index in (each for each in range(size) if each not in collinear):
        value = matrix[index][size] * scale / moments.deviations[index]
        error = sqrt(variance * -matrix[index][index] / moments.rows) / moments.deviations[index]
        standardized_means[index] = moments.means[index] / moments.deviations[index]
        intercept -= value * moments.means[index]
        coefficients.append(_coefficient(moments.names[index], value, error, quantile))
    leverage = 1 + sum(
        -matrix[i][j] * standardized_means[i] * standardized_means[j]
        for i in standardized_means
        for j in standardized_means
    )
    intercept_coefficient = _coefficient(
        "intercept", intercept, sqrt(max(0.0, variance * leverage / moments.rows)), quantile
    )
    omitted = tuple(moments.names[index] for index in collinear)
    return RegressionModel(moments.rows, (intercept_coefficient, *coefficients), 1 - unexplained, omitted)


def fit_logistic(rows: ColumnFile, selected: Sequence[int], moments: ColumnMoments) -> RegressionModel | None:
    """Fit the last column, which is 0 or 1, by maximum likelihood; None if `fit_linear` returns None or it diverges.

    On separation, where the maximum likelihood estimate does not exist, coefficients are penalised (ridge). Reads the
    rows about ten times.
    """
    size = len(moments.names) - 1
    if moments.rows - size - 1 < MIN_DEGREES_OF_FREEDOM or not moments.deviations[-1]:
        return None
    _, collinear = sweep(moments.correlations, size)
    independent = [index for index in range(size) if index not in collinear]
    fitter = _LogisticFit(rows, [selected[index] for index in (*independent, size)], moments, independent)
    result = fitter.fit(0.0)
    is_penalised = result is None
    if result is None:
        result = fitter.fit(1 / _PENALTY_SCALE**2)
    if result is None:
        return None
    values, inverse, deviance = result
    rate = moments.means[-1]
    null_deviance = -2 * moments.rows * (rate * log(rate) + (1 - rate) * log1p(-rate))
    slopes = [values[1 + index] / moments.deviations[column] for index, column in enumerate(independent)]
    shift = [1.0, *(-moments.means[column] / moments.deviations[column] for column in independent)]
    variance = sum(inverse[i][j] * shift[i] * shift[j] for i in range(len(shift)) for j in range(len(shift)))
    intercept = sum(value * part for value, part in zip(values, shift, strict=True))
    coefficients = [_coefficient("intercept", intercept, sqrt(max(0.0, variance)), Z95)]
    for index, column in enumerate(independent):
        error = sqrt(max(0.0, inverse[1 + index][1 + index])) / moments.deviations[column]
        coefficients.append(_coefficient(moments.names[column], slopes[index], error, Z95))
    omitted = tuple(moments.names[index] for index in collinear)
    return RegressionModel(moments.rows, tuple(coefficients), 1 - deviance / null_deviance, omitted, is_penalised)


class _LogisticFit:
    """Iteratively reweighted least squares on standardised columns."""

    def __init__(self, rows: ColumnFile, selected: list[int], moments: ColumnMoments, independent: list[int]) -> None:
        self._rows = rows
        self._selected = selected
        self._scales = [(moments.means[index], moments.deviations[index]) for index in independent]

    def fit(self, penalty: float) -> tuple[list[float], Matrix, float] | None:
        """Return coefficients, covariances and deviance; None if the coefficients diverge."""
        size = 1 + len(self._scales)
        values = [0.0] * size
        step = [0.0] * size
        previous = float("inf")
        for _ in range(_MAX_PASSES):
            candidate = [value + change for value, change in zip(values, step, strict=True)]
            information, gradient, deviance = self._evaluate(candidate)
            objective = deviance + penalty * sum(value * value for value in candidate[1:])
            if objective > previous * (1 + 1e-12):  # step halving
                step = [change / 2 for change in step]
                continue
            values = candidate
            for index in range(1, size):
                information[index][index] += penalty
                gradient[index] -= penalty * values[index]
            system = [[*row, part] for row, part in zip(information, gradient, strict=True)]
            solved, collinear = sweep([*system, [*gradient, 0.0]], size)
            if collinear:
                return None
            inverse = [[-value for value in row[:size]] for row in solved[:size]]
            if previous - objective <= _CONVERGED * (1 + objective):
                is_divergent = any(inverse[index][index] > _UNBOUNDED_ERROR * _UNBOUNDED_ERROR for index in range(size))
                return None if is_divergent and not penalty else (values, inverse, deviance)
            step = [solved[index][size] for index in range(size)]
            previous = objective
        return None

    def _evaluate(self, values: list[float]) -> tuple[Matrix, list[float], float]:
        """Return information matrix, gradient and deviance at the given coefficients."""
        size = len(values)
        information = [[0.0] * size for _ in range(size)]
        gradient, deviance = [0.0] * size, 0.0
        for block in self._rows.blocks(self._selected):
            *columns, outcome = block
            scaled = [[1.0] * len(outcome)]
            for column, (mean, deviation) in zip(columns, self._scales, strict=True):
                scaled.append([(value - mean) / deviation for value in column])
            sums = [sum(map(mul, values, row)) for row in zip(*scaled, strict=True)]
            probabilities = [_probability(value) for value in sums]
            deviance += sum(_deviance(value, observed) for value, observed in zip(sums, outcome, strict=True))
            weights = [value * (1 - value) for value in probabilities]
            errors = [observed - value for observed, value in zip(outcome, probabilities, strict=True)]
            weighted = [list(map(mul, column, weights)) for column in scaled]
            _add_products(information, weighted, scaled)
            gradient = [part + sum(map(mul, column, errors)) for part, column in zip(gradient, scaled, strict=True)]
        return information, gradient, deviance


def _add_products(matrix: Matrix, first: list[list[float]], second: list[list[float]]) -> None:
    """Add the cross products of two lists of columns to a symmetric matrix."""
    for i, column in enumerate(first):
        for j in range(i + 1):
            matrix[i][j] += sum(map(mul, column, second[j]))
            matrix[j][i] = matrix[i][j]


def _probability(value: float) -> float:
    return 1 / (1 + exp(-value)) if value > -700 else 0.0


def _deviance(value: float, observed: float) -> float:
    """Return the contribution of a row to the deviance."""
    signed = value if observed else -value
    return 2 * (log1p(exp(-signed)) if signed > -30 else -signed)


def _coefficient(name: str, value: float, error: float, quantile: float) -> Coefficient:
    ratio = abs(value) / error if error else (float("inf") if value else 0.0)
    return Coefficient(name, value, value - quantile * error, value + quantile * error, erfc(ratio / sqrt(2)))


def _student_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t distribution, by the first terms of its series.

    >>> round(_student_quantile(30), 3), round(_student_quantile(10**6), 3)
    (2.042, 1.96)
    """
    z = Z95
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
