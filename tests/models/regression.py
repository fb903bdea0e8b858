"""Python model of least squares and maximum likelihood."""

from collections.abc import Sequence
from math import exp, log


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Solve a linear system by Gaussian elimination with pivoting."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for at in range(size):
        best = max(range(at, size), key=lambda row: abs(rows[row][at]))
        rows[at], rows[best] = rows[best], rows[at]
        for below in range(at + 1, size):
            factor = rows[below][at] / rows[at][at]
            rows[below] = [value - factor * part for value, part in zip(rows[below], rows[at], strict=True)]
    found = [0.0] * size
    for at in reversed(range(size)):
        found[at] = (rows[at][size] - sum(rows[at][j] * found[j] for j in range(at + 1, size))) / rows[at][at]
    return found


def invert(matrix: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the inverse of a symmetric matrix, column by column."""
    size = len(matrix)
    return [solve(matrix, [float(i == j) for i in range(size)]) for j in range(size)]


def least_squares(xs: Sequence[Sequence[float]], ys: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the coefficients with the intercept first, and their standard errors."""
    rows = [[1.0, *row] for row in xs]
    size = len(rows[0])
    matrix = [[sum(row[i] * row[j] for row in rows) for j in range(size)] for i in range(size)]
    found = solve(matrix, [sum(row[i] * y for row, y in zip(rows, ys, strict=True)) for i in range(size)])
    left = sum((y - sum(a * b for a, b in zip(row, found, strict=True))) ** 2 for row, y in zip(rows, ys, strict=True))
    inverse = invert(matrix)
    return found, [(inverse[i][i] * left / (len(rows) - size)) ** 0.5 for i in range(size)]


def most_likely(xs: Sequence[Sequence[float]], ys: Sequence[float]) -> tuple[list[float], list[float], float]:
    """Return the coefficients of the logistic model with the intercept first, their errors, and the deviance."""
    rows = [[1.0, *row] for row in xs]
    size = len(rows[0])
    found = [0.0] * size
    for _ in range(30):
        likely = [1 / (1 + exp(-sum(a * b for a, b in zip(row, found, strict=True)))) for row in rows]
        matrix = [
            [sum(p * (1 - p) * row[i] * row[j] for row, p in zip(rows, likely, strict=True)) for j in range(size)]
            for i in range(size)
        ]
        right = [sum((y - p) * row[i] for row, y, p in zip(rows, ys, likely, strict=True)) for i in range(size)]
        found = [value + step for value, step in zip(found, solve(matrix, right), strict=True)]
    inverse = invert(matrix)
    deviance = -2 * sum(log(p if y else 1 - p) for y, p in zip(ys, likely, strict=True))
    return found, [inverse[i][i] ** 0.5 for i in range(size)], deviance
