"""Normal equations of a few columns, solved by sweeping, which also tells columns that say nothing new."""

from collections.abc import Sequence

SWEEP_TOLERANCE = 1e-7
"""A column of which less than this share is not in the columns before it says the same as they do."""

Matrix = list[list[float]]


def sweep(matrix: Sequence[Sequence[float]], size: int) -> tuple[Matrix, list[int]]:
    """Return a symmetric matrix with its first `size` columns swept, and those that were not: they say nothing new.

    Of the columns that were swept, the result has the negative inverse; of the others behind them, what is left of them
    when the swept ones are taken into account. So a system `A x = b` is solved by sweeping `A` in `[[A, b], [b', c]]`.

    >>> swept([[2.0, 1.0], [1.0, 5.0]], 1)
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
