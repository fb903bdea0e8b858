"""What recoveries tell about the factors: models of those that are known, and why others are not in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unlost.measure.factors.factor import FACTORS
from unlost.measure.factors.models import Model, Moments, linear, logistic, moments
from unlost.measure.factors.reading import COLUMNS, Gathered, Known, gather
from unlost.measure.factors.rows import Rows

LEAST_KNOWN = 0.5
"""The share of resources of which a factor must be known to be in a model: those without it are left out of that."""


@dataclass(frozen=True, slots=True)
class Findings:
    """All that is found.

    total, recovered: resources. known: by column, of how many it is known. left_out: columns that are in no model, and
        why. moments: of the columns of models; None if there are none.
    """

    gathered: Gathered
    total: int
    recovered: int
    known: dict[str, int]
    left_out: dict[str, str]
    moments: Moments | None
    linear: Model | None
    logistic: Model | None


def findings_of(folders: Sequence[Path], known: Known) -> Findings:
    """Return what recoveries tell, in memory that does not grow with them. Raises InputError, OSError."""
    with Rows(len(COLUMNS)) as rows:
        gathered = gather(folders, rows, known)
        chosen, left_out = _chosen(rows)
        found = _moments(rows, chosen)
        # What is the same in all rows of the model explains nothing.
        for at in [at for at in range(len(chosen) - 1) if not found.deviations[at]]:
            left_out[found.names[at]] = "the same for all of these"
        chosen = [column for column in chosen if COLUMNS[column] not in left_out]
        found = _moments(rows, chosen)
        has_columns = len(chosen) > 1
        return Findings(
            gathered,
            rows.count,
            sum(came for _, _, came in gathered.sites),
            dict(zip(COLUMNS, rows.known, strict=True)),
            left_out,
            found if has_columns and found.rows else None,
            linear(found) if has_columns else None,
            logistic(rows, chosen, found) if has_columns else None,
        )


def _moments(rows: Rows, chosen: Sequence[int]) -> Moments:
    return moments(rows, chosen, [COLUMNS[column] for column in chosen])


def _chosen(rows: Rows) -> tuple[list[int], dict[str, str]]:
    """Return the columns that are known of enough resources, and why others are not taken."""
    chosen, left_out = [], {}
    sources = {factor.name: factor.source for factor in FACTORS}
    for column, name in enumerate(COLUMNS):
        if rows.known[column] and rows.known[column] >= LEAST_KNOWN * rows.count:
            chosen.append(column)
        elif not rows.known[column]:
            left_out[name] = f"not known of any of these; it is had from: {sources[name]}"
        else:
            left_out[name] = f"known of {rows.known[column]:,} of {rows.count:,} resources only"
    return chosen, left_out
