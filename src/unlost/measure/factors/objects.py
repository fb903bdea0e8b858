"""What recoveries tell about the factors, as JSON."""

from dataclasses import asdict

from unlost.measure.factors.factor import FACTORS
from unlost.measure.factors.findings import FactorAnalysis
from unlost.measure.factors.models import RegressionModel
from unlost.measure.intervals import Proportion


def factors_to_json(found: FactorAnalysis) -> dict[str, object]:
    """Return all numbers, as JSON has them."""
    return {
        "recoveries": [
            {"folder": folder, "resources": total, "recovered": came} for folder, total, came in found.counts.recoveries
        ],
        "resources": found.total,
        "recovered": found.recovered,
        "factors": [
            {
                "name": factor.name,
                "unit": factor.unit,
                "source": factor.source,
                "known": found.known_counts.get(factor.name, found.total),
                "marks": list(factor.bin_edges),
                "groups": [
                    {"group": group, **Proportion(found.counts.recovered[factor.name, group], count).to_json()}
                    for (name, group), count in sorted(found.counts.total.items(), key=lambda each: str(each[0]))
                    if name == factor.name
                ],
            }
            for factor in FACTORS
        ],
        "left_out": found.excluded,
        "correlations": None
        if found.moments is None
        else {
            "names": list(found.moments.names),
            "rows": found.moments.rows,
            "matrix": found.moments.correlations,
        },
        "linear": _model_to_json(found.linear),
        "logistic": _model_to_json(found.logistic),
    }


def _model_to_json(model: RegressionModel | None) -> dict[str, object] | None:
    return None if model is None else asdict(model)
