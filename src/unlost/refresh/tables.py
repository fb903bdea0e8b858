"""What a matrix says of date and tag: how often each is there, how often it is wrong, and where both are there."""

from dataclasses import dataclass

from unlost.refresh.matrix import MATRIX_CELLS, DecisionMatrix


@dataclass(frozen=True, slots=True)
class IndicatorQuality:
    """How good an indicator is, of all pairs.

    present: pairs in which it was there at least once. missed: changed pages for which it said the same.
    unnecessary: unchanged ones for which it said changed.
    """

    name: str
    present: int
    missed: int
    unnecessary: int


def measure_indicator(matrix: DecisionMatrix, name: str) -> IndicatorQuality:
    """Return how good the `date` or the `tag` is.

    >>> indicator(Matrix((0, 0, 0, 5, 0, 7, 0, 0, 0), (3, 0, 0, 0, 0, 0, 0, 0, 2)), "date")
    Indicator(name='date', present=15, missed=12, unnecessary=3)
    """
    place = ("date", "tag").index(name)
    states = [cell[place] for cell in MATRIX_CELLS]
    pairs = list(zip(states, matrix.changed, matrix.unchanged, strict=True))
    return IndicatorQuality(
        name,
        sum(changed + unchanged for state, changed, unchanged in pairs if state != "m"),
        sum(changed for state, changed, _ in pairs if state == "s"),
        sum(unchanged for state, _, unchanged in pairs if state == "c"),
    )


def restrict_to_both_present(matrix: DecisionMatrix) -> DecisionMatrix:
    """Return the pairs in which date and tag are there."""
    return matrix.restrict_to([cell for cell in MATRIX_CELLS if "m" not in cell])
