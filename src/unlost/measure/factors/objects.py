"""What recoveries tell about the factors, as JSON."""

from dataclasses import asdict

from unlost.measure.factors.factor import FACTORS
from unlost.measure.factors.findings import Findings
from unlost.measure.factors.models import Model
from unlost.measure.intervals import Share


def factors_object(found: Findings) -> dict[str, object]:
    """Return all numbers, as JSON has them."""
    return {
        "recoveries": [
            {"folder": folder, "resources": total, "recovered": came} for folder, total, came in found.gathered.sites
        ],
        "resources": found.total,
        "recovered": found.recovered,
        "factors": [
            {
                "name": factor.name,
                "unit": factor.unit,
                "source": factor.source,
                "known": found.known.get(factor.name, found.total),
                "marks": list(factor.marks),
                "groups": [
                    {"group": group, **Share(found.gathered.came[factor.name, group], count).members()}
                    for (name, group), count in sorted(found.gathered.all.items(), key=lambda each: str(each[0]))
                    if name == factor.name
                ],
            }
            for factor in FACTORS
        ],
        "left_out": found.left_out,
        "correlations": None
        if found.moments is None
        else {
            "names": list(found.moments.names),
            "rows": found.moments.rows,
            "matrix": found.moments.correlations,
        },
        "linear": _model(found.linear),
        "logistic": _model(found.logistic),
    }


def _model(model: Model | None) -> dict[str, object] | None:
    return None if model is None else asdict(model)
