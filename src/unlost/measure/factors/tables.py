"""What recoveries tell about the factors, as tables for people."""

from math import exp

from unlost.measure.factors.factor import FACTORS, TLDS, TYPES, RecoveryFactor
from unlost.measure.factors.findings import FactorAnalysis
from unlost.measure.factors.models import MIN_DEGREES_OF_FREEDOM, RegressionModel, ColumnMoments
from unlost.measure.intervals import Proportion
from unlost.shown.table import ReportTable
from unlost.shown.words import format_count, format_share

_STRONG_CORRELATION = 0.5  # from which on a correlation of two factors makes their coefficients hard to tell apart


def factors_headline(found: FactorAnalysis) -> str:
    """Return in a sentence how much came back."""
    recoveries = "1 recovery" if len(found.counts.recoveries) == 1 else f"{len(found.counts.recoveries):,} recoveries"
    if not found.total:
        return f"Nothing was looked for in {recoveries}."
    part = format_share(found.recovered / found.total)
    return f"{found.recovered:,} of {format_count(found.total, 'resource')} ({part}) came back in {recoveries}."


def factors_remarks(found: FactorAnalysis) -> list[str]:
    """Return what must be known to read the numbers."""
    lines = []
    if found.moments is not None and found.moments.rows < found.total:
        lines.append(
            f"The models are of {found.moments.rows:,} resources, of which all factors in them are known; "
            f"{found.total - found.moments.rows:,} others are left out."
        )
    if found.linear is None:
        what = (
            "something came back and something did not"
            if found.total > MIN_DEGREES_OF_FREEDOM
            else "there are more resources"
        )
        lines.append(f"There is no model: one can be made when {what}.")
    same = found.linear.same if found.linear else ()
    if same:
        lines.append(f"Left out of the models, since other factors together say the same: {', '.join(same)}.")
    if found.logistic is None and found.linear is not None:
        lines.append("The logistic model could not be fitted.")
    if found.logistic is not None and found.logistic.is_penalised:
        lines.append(
            "Some factors tell perfectly what came back here, so that no odds would be large enough: in the logistic "
            "model large ones are held down, and its intervals are rough."
        )
    if found.moments is not None:
        lines += [
            f"{first} and {second} go together (correlation {value:.2f}): what each does alone is hard to tell."
            for first, second, value in _strong_correlations(found.moments)
        ]
        lines.append(
            "Resources of one site are alike, and the models take them for independent: with few sites, intervals are "
            "too narrow. What goes together need not be a cause."
        )
    return lines


def _strong_correlations(found: ColumnMoments) -> list[tuple[str, str, float]]:
    size = len(found.names) - 1
    return [
        (found.names[i], found.names[j], found.correlations[i][j])
        for i in range(size)
        for j in range(i)
        if abs(found.correlations[i][j]) > _STRONG_CORRELATION
        and "type:" not in found.names[i]
        and "domain:" not in found.names[i]
    ]


def factor_tables(found: FactorAnalysis) -> list[ReportTable]:
    """Return the tables; those without rows are left out."""
    tables = [_recoveries_table(found), _factors_table(found), *(_factor_table(factor, found) for factor in FACTORS)]
    if found.moments is not None:
        tables.append(_correlations_table(found.moments))
    if found.linear is not None:
        tables.append(_linear_table(found.linear))
    if found.logistic is not None:
        tables.append(_logistic_table(found.logistic))
    return [table for table in tables if table.rows]


def _recoveries_table(found: FactorAnalysis) -> ReportTable:
    rows = [
        (folder, f"{total:,}", f"{came:,}", format_share(came / total if total else None))
        for folder, total, came in found.counts.recoveries
    ]
    return ReportTable("Recoveries", ("recovery", "resources", "came back", "share"), rows)


def _factors_table(found: FactorAnalysis) -> ReportTable:
    rows = []
    for factor in FACTORS:
        known = found.known_counts.get(factor.name, found.total)
        why = found.excluded.get(factor.name, "").partition(";")[0]
        rows.append((factor.name, f"{known:,}", why or factor.source))
    note = "Of how many resources each factor is known, and where it is from, or why it is not in the models."
    return ReportTable("The twelve factors", ("factor", "known", "from"), rows, note, frozenset({0, 2}))


def _factor_table(factor: RecoveryFactor, found: FactorAnalysis) -> ReportTable:
    names = {"type": TYPES, "top-level domain": TLDS}.get(factor.name)
    groups = [(name, name) for name in names] if names else [
        (at, _bin_label(factor, at)) for at in range(len(factor.bin_edges))
    ]  # fmt: skip
    rows = []
    for group, label in groups:
        count = Proportion(found.counts.recovered[factor.name, group], found.counts.total[factor.name, group])
        if count.total:
            low, high = count.interval()
            rows.append(
                (label, f"{count.total:,}", format_share(count.value), f"{100 * low:.0f} to {100 * high:.0f} %")
            )
    return ReportTable(f"By {factor.name}", (factor.name, "resources", "came back", "of all"), rows)


def _bin_label(factor: RecoveryFactor, at: int) -> str:
    """Return the words for a group: from one mark to the next."""
    is_power = factor.unit.startswith("powers")
    less = 1 if "of one more" in factor.unit else 0

    def shown(mark: float) -> str:
        return f"{10**mark - less:,.0f}" if is_power else f"{mark:g}"

    low = shown(factor.bin_edges[at])
    if at + 1 == len(factor.bin_edges):
        return f"{low} or more"
    high = factor.bin_edges[at + 1]
    is_one = not is_power and high == factor.bin_edges[at] + 1 and factor.unit != "years"
    return low if is_one else f"{low} to less than {shown(high)}"


def _correlations_table(found: ColumnMoments) -> ReportTable:
    names = found.names
    rows = [(names[i], *(f"{found.correlations[i][j]:.2f}" for j in range(len(names)))) for i in range(len(names))]
    return ReportTable("Correlations", ("", *names), rows, "Pearson's, of the resources in the models.")


def _linear_table(model: RegressionModel) -> ReportTable:
    rows = [
        (each.name, f"{each.value:+.4f}", f"{each.low:+.4f} to {each.high:+.4f}", _format_p_value(each.p))
        for each in model.coefficients
    ]
    note = f"What one more of each adds to the share that comes back, others being equal. R² {model.fit:.3f}."
    return ReportTable(f"Linear model of {model.rows:,} resources", ("factor", "adds", "95 %", "p"), rows, note)


def _logistic_table(model: RegressionModel) -> ReportTable:
    rows = [
        (
            each.name,
            f"{each.value:+.3f}",
            f"{each.low:+.3f} to {each.high:+.3f}",
            _format_odds(each.value),
            _format_p_value(each.p),
        )
        for each in model.coefficients
    ]
    note = (
        "What one more of each adds to the logarithm of the odds of coming back, and by what it multiplies them. "
        f"McFadden's R² {model.fit:.3f}."
    )
    return ReportTable(
        f"Logistic model of {model.rows:,} resources", ("factor", "adds", "95 %", "odds", "p"), rows, note
    )


def _format_odds(value: float) -> str:
    return f"{exp(value):.3g} times" if abs(value) < 50 else ("endless" if value > 0 else "0 times")


def _format_p_value(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"
