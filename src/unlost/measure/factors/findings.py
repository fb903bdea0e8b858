"""What recoveries tell about the factors: models of those that are known, and why others are not in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unlost.measure.factors.factor import FACTORS
from unlost.measure.factors.models import RegressionModel, ColumnMoments, fit_linear, fit_logistic, compute_moments
from unlost.measure.factors.reading import FACTOR_COLUMNS, FactorCounts, ExternalFactorData, read_factor_rows
from unlost.measure.factors.rows import ColumnFile

MIN_KNOWN_SHARE = 0.5
"""The share of resources of which a factor must be known to be in a model: those without it are left out of that."""


@dataclass(frozen=True, slots=True)
class FactorAnalysis:
    """All that is found.

    total, recovered: resources. known: by column, of how many it is known. left_out: columns that are in no model, and
        why. moments: of the columns of models; None if there are none.
    """

    counts: FactorCounts
    total: int
    recovered: int
    known_counts: dict[str, int]
    excluded: dict[str, str]
    moments: ColumnMoments | None
    linear: RegressionModel | None
    logistic: RegressionModel | None


def analyze_factors(folders: Sequence[Path], external: ExternalFactorData) -> FactorAnalysis:
    """Return what recoveries tell, in memory that does not grow with them. Raises InputError, OSError."""
    with ColumnFile(len(FACTOR_COLUMNS)) as rows:
        gathered = read_factor_rows(folders, rows, external)
        chosen, left_out = _select_columns(rows)
        found = _moments(rows, chosen)
        # What is the same in all rows of the model explains nothing.
        for at in [at for at in range(len(chosen) - 1) if not found.deviations[at]]:
            left_out[found.names[at]] = "the same for all of these"
        chosen = [column for column in chosen if FACTOR_COLUMNS[column] not in left_out]
        found = _moments(rows, chosen)
        has_columns = len(chosen) > 1
        return FactorAnalysis(
            gathered,
            rows.count,
            sum(came for _, _, came in gathered.recoveries),
            dict(zip(FACTOR_COLUMNS, rows.known, strict=True)),
            left_out,
            found if has_columns and found.rows else None,
            fit_linear(found) if has_columns else None,
            fit_logistic(rows, chosen, found) if has_columns else None,
        )


def _moments(rows: ColumnFile, chosen: Sequence[int]) -> ColumnMoments:
    return compute_moments(rows, chosen, [FACTOR_COLUMNS[column] for column in chosen])


def _select_columns(rows: ColumnFile) -> tuple[list[int], dict[str, str]]:
    """Return the columns that are known of enough resources, and why others are not taken."""
    chosen, left_out = [], {}
    sources = {factor.name: factor.source for factor in FACTORS}
    for column, name in enumerate(FACTOR_COLUMNS):
        if rows.known[column] and rows.known[column] >= MIN_KNOWN_SHARE * rows.count:
            chosen.append(column)
        elif not rows.known[column]:
            left_out[name] = f"not known of any of these; it is had from: {sources[name]}"
        else:
            left_out[name] = f"known of {rows.known[column]:,} of {rows.count:,} resources only"
    return chosen, left_out
