"""Models of numbers, against planted coefficients and slow references."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import exp, log, nan

import pytest

from tests.models.regression import least_squares, most_likely
from unlost.research import (
    MIN_DEGREES_OF_FREEDOM,
    ColumnFile,
    RegressionModel,
    compute_moments,
    fit_linear,
    fit_logistic,
)

PLANTED = (0.3, 0.8, -0.5, 0.02)


def drawn(count: int, seed: int, outcome: Callable[[float, random.Random], float]) -> list[list[float]]:
    """Return rows of three columns of different scales and what came of each, by the planted coefficients."""
    rng = random.Random(seed)  # noqa: S311  not for secrets
    rows = []
    for _ in range(count):
        first = rng.gauss(0, 1)
        row = [first, 0.5 * first + rng.gauss(0, 1), 1000 + 20 * rng.gauss(0, 1)]
        rows.append([*row, outcome(PLANTED[0] + sum(a * b for a, b in zip(PLANTED[1:], row, strict=True)), rng)])
    return rows


def chance(value: float, dice: random.Random) -> float:
    """Return 1 with the probability of a logistic model around what is usual here."""
    return float(dice.random() < 1 / (1 + exp(20 - value)))


def noise(value: float, dice: random.Random) -> float:
    """Return the value with some noise."""
    return value + dice.gauss(0, 0.1)


@contextmanager
def filled_table(rows: Sequence[Sequence[float]]) -> Iterator[ColumnFile]:
    """Give rows."""
    with ColumnFile(len(rows[0])) as found:
        for row in rows:
            found.add(row)
        yield found


def both(rows: Sequence[Sequence[float]]) -> tuple[RegressionModel | None, RegressionModel | None]:
    """Return the linear and the logistic model of rows whose last column is explained."""
    chosen = range(len(rows[0]))
    with filled_table(rows) as found:
        known = compute_moments(found, chosen, [f"x{at}" for at in chosen])
        return fit_linear(known), fit_logistic(found, chosen, known)


def test_linear_model_equals_reference_implementation() -> None:
    """Coefficients and errors are those of Gauss's elimination, and near what was planted; over several blocks."""
    rows = drawn(5_000, 1, noise)
    model, _ = both([[*row[:3], row[3]] for row in rows])
    slow, errors = least_squares([row[:3] for row in rows], [row[3] for row in rows])
    assert model is not None
    assert [each.value for each in model.coefficients] == pytest.approx(slow, rel=1e-6)
    widths = [(each.high - each.low) / 2 / 1.96 for each in model.coefficients]
    assert widths == pytest.approx(errors, rel=2e-3)
    assert [each.value for each in model.coefficients[1:]] == pytest.approx(PLANTED[1:], abs=0.02)


def test_logistic_model_equals_reference_implementation() -> None:
    """Coefficients, errors and fit are those of the obvious iteration, and the planted ones are in the intervals."""
    rows = drawn(3_000, 2, chance)
    _, model = both(rows)
    slow, errors, deviance = most_likely([row[:3] for row in rows], [row[3] for row in rows])
    assert model is not None
    assert not model.is_penalised
    assert [each.value for each in model.coefficients] == pytest.approx(slow, rel=1e-5)
    assert [(each.high - each.low) / 2 / 1.959964 for each in model.coefficients] == pytest.approx(errors, rel=1e-4)
    for each, planted in zip(model.coefficients[1:], PLANTED[1:], strict=True):
        assert each.low < planted < each.high
    rate = sum(row[3] for row in rows) / len(rows)
    nothing = -2 * len(rows) * (rate * log(rate) + (1 - rate) * log(1 - rate))
    assert model.fit == pytest.approx(1 - deviance / nothing, rel=1e-6)


def test_intervals_have_nominal_coverage() -> None:
    """Of many small samples, about 95 in 100 intervals have the planted coefficient in them."""
    held = total = 0
    for seed in range(60):
        model, _ = both(drawn(60, seed, noise))
        assert model is not None
        for each, planted in zip(model.coefficients[1:], PLANTED[1:], strict=True):
            held += each.low <= planted <= each.high
            total += 1
    assert 0.90 <= held / total <= 0.99


def test_collinear_columns_are_omitted_and_named() -> None:
    """A sum of other columns is dropped, and the rest is the model without it."""
    rows = drawn(500, 3, chance)
    twice = [[row[0], row[1], row[0] + 3 * row[1] - 7, *row[2:]] for row in rows]
    for with_it, without in zip(both(twice), both(rows), strict=True):
        assert with_it is not None
        assert without is not None
        assert with_it.same == ("x2",)
        values = [each.value for each in with_it.coefficients]
        assert values == pytest.approx([each.value for each in without.coefficients], rel=1e-5)


def test_perfect_separation_is_penalised_and_reported() -> None:
    """Where a column separates what came back, coefficients stay finite, and the model says that they are penalised."""
    rows = [[float(number % 7), float(number >= 50), float(number >= 50)] for number in range(100)]
    _, model = both(rows)
    assert model is not None
    assert model.is_penalised
    assert 1 < model.coefficients[2].value < 100
    assert model.coefficients[2].low > 0


def test_quasi_separation_is_penalised() -> None:
    """A column of 0 and 1 whose ones all came back has no finite odds, though others did not."""
    rng = random.Random(5)  # noqa: S311  not for secrets
    rows = [[float(number < 40), float(number < 40 or rng.random() < 0.5)] for number in range(200)]
    _, model = both(rows)
    assert model is not None
    assert model.is_penalised
    assert 0 < model.coefficients[1].value < 50


def test_too_few_rows_or_constant_response_give_no_model() -> None:
    """With fewer rows than it takes, or if all came back, there is none."""
    assert both(drawn(MIN_DEGREES_OF_FREEDOM + 3, 6, chance)) == (None, None)
    assert both([[float(number), 1.0] for number in range(100)]) == (None, None)


def test_rows_with_missing_values_are_skipped() -> None:
    """Unknown numbers cost their rows only where the column is chosen."""
    with filled_table([[1.0, nan], [2.0, 5.0], [3.0, nan]]) as rows:
        assert (rows.known, list(rows.blocks([0])), list(rows.blocks([0, 1]))) == (
            [3, 1],
            [[[1.0, 2.0, 3.0]]],
            [[[2.0], [5.0]]],
        )
