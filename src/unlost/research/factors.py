"""Twelve factors that may explain whether a resource is recovered: extraction from recoveries, models, report.

Recovered and missing resources are judged by the same evidence. The type and age of a capture are known only for what
was recovered, so as factors they would explain it perfectly, and wrongly; the type is therefore derived from the URL.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import exp, isnan, log10
from pathlib import Path
from urllib.parse import urlsplit

from unlost.dates import to_datetime
from unlost.errors import DateError, InputError
from unlost.problems import Problem, Problems
from unlost.recovery.state.queries import LinkedResource
from unlost.recovery.state.reader import StateReader
from unlost.report.format import ReportTable, format_count, format_share
from unlost.report.html_templates import make_template_environment
from unlost.research.regression import (
    MIN_DEGREES_OF_FREEDOM,
    UNKNOWN_VALUE,
    ColumnFile,
    ColumnMoments,
    RegressionModel,
    compute_moments,
    fit_linear,
    fit_logistic,
)
from unlost.statistics import Proportion
from unlost.text_lines import read_lines
from unlost.uri.names import path_depth

_POWER_EDGES = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
_COUNT_EDGES = (0.0, log10(2), *(log10(10**power + 1) for power in range(1, 8)))  # 0, 1 to 9, 10 to 99 and so on

NUMERIC_FACTORS = 10
"""Number of numeric factors, which come first in `FACTORS`."""
TYPES = ("page", "image", "document", "other")
TLDS = ("com", "org", "net", "edu", "gov", "country", "other")
_IMAGES = frozenset({"gif", "jpg", "jpeg", "png", "bmp", "ico", "svg", "webp", "tif", "tiff"})
_DOCUMENTS = frozenset(
    {"pdf", "ps", "eps", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "rtf", "odt", "ods", "odp", "txt"}
)
_PAGES = frozenset({"", "htm", "html", "shtml", "xhtml", "php", "php3", "asp", "aspx", "jsp", "cgi", "pl", "cfm"})
_MAX_EXTENSION_LENGTH = 5  # characters: a longer suffix is not a file extension
_COUNTRY_CODE_LENGTH = 2  # characters

_MAX_LINE_LENGTH = 400  # bytes; the rest of a line is ignored

_YEAR_DAYS = 365.25

MIN_KNOWN_SHARE = 0.5
"""Minimum share of resources with a known value for a factor to be part of the models, which need complete rows."""

_STRONG_CORRELATION = 0.5  # above, the coefficients of two factors are hard to tell apart (multicollinearity)


@dataclass(frozen=True, slots=True)
class RecoveryFactor:
    """A factor.

    Attributes:
        name: Display name.
        unit: Unit of its value in the models; empty for a categorical factor.
        source: Description of where the value comes from.
        bin_edges: Lower bounds of the bins in which resources are counted; empty for a categorical factor.
    """

    name: str
    unit: str
    source: str
    bin_edges: tuple[float, ...] = ()


FACTORS = (
    RecoveryFactor("external links", "powers of ten, of one more", "--backlinks, by host", _COUNT_EDGES),
    RecoveryFactor("internal links", "powers of ten, of one more", "links of recovered captures",
           (0.0, log10(2), log10(3), log10(5), log10(9), log10(33), log10(1001))),
    RecoveryFactor("rank", "powers of ten", "--ranks, by host; 1 is the best", _POWER_EDGES),
    RecoveryFactor("hops", "links", "shortest path from the start URL", (0, 1, 2, 3, 4, 5, 10)),
    RecoveryFactor("path depth", "segments", "URL", (0, 1, 2, 3, 4, 5, 10)),
    RecoveryFactor("query parameters", "parameters", "URL", (0, 1, 2, 3, 4, 10)),
    RecoveryFactor("age", "years", "from the oldest capture that links to it to the newest capture of the site",
           (0, 1, 2, 3, 5, 10, 20)),
    RecoveryFactor("birth rate", "share", "share of the URLs listed in a year that no earlier year had; mean over all "
                                          "years but the first, by site", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75)),
    RecoveryFactor("site size", "powers of ten", "requested resources, by site", _POWER_EDGES),
    RecoveryFactor("resource size", "powers of ten, of one more byte", "--original, because the size of a missing "
                                                                       "resource is unknown", _COUNT_EDGES),
    RecoveryFactor("type", "", "estimated from the URL and its use, because the type of a missing resource is "
                               "unknown"),
    RecoveryFactor("top-level domain", "", "URL"),
)  # fmt: skip
"""All factors. The last two are categorical."""


@dataclass(frozen=True, slots=True)
class UrlFeatures:
    """Features of a URL.

    Attributes:
        parameters: Number of query parameters.
        kind: One of `TYPES`.
        tld: One of `TLDS`.
        host: Host name; empty for an invalid URL.
    """

    parameters: int
    kind: str
    tld: str
    host: str


def extract_url_features(uri: str, use: str) -> UrlFeatures:
    """Return the features of a URL. Never raises.

    Args:
        uri: The URL.
        use: How pages link to it, such as `page` or `requisite`.

    >>> extract_url_features("http://www.lost.example/a/b/c.GIF?x=1&y", "requisite")
    UrlFeatures(parameters=2, kind='image', tld='other', host='www.lost.example')
    >>> extract_url_features("http://lost.co.uk/a/", "page")
    UrlFeatures(parameters=0, kind='page', tld='country', host='lost.co.uk')
    """
    try:
        parts = urlsplit(uri)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return UrlFeatures(0, "other", "other", "")
    name, dot, extension = parts.path.rpartition("/")[2].rpartition(".")
    extension = extension.lower() if dot and name and len(extension) <= _MAX_EXTENSION_LENGTH else ""
    parameters = sum(bool(each) for each in parts.query.replace(";", "&").split("&"))
    return UrlFeatures(parameters, _kind(extension, use), _tld(host), host)


def _kind(extension: str, use: str) -> str:
    if extension in _IMAGES:
        return "image"
    if extension in _DOCUMENTS:
        return "document"
    return "page" if extension in _PAGES and use != "requisite" else "other"


def _tld(host: str) -> str:
    label = host.rpartition(".")[2].lower()
    if label in TLDS[:5]:
        return label
    return "country" if len(label) == _COUNTRY_CODE_LENGTH and label.isalpha() else "other"


def log10_or_unknown(value: float | None, offset: float = 0.0) -> float:
    """Return log10 of `value + offset`; `UNKNOWN_VALUE` if the value is None or the sum is not positive."""
    return log10(value + offset) if value is not None and value + offset > 0 else UNKNOWN_VALUE


def read_host_numbers(file: Path, hosts: Collection[str], problems: Problems) -> dict[str, float]:
    """Read a number for each host, such as its rank, from a text file.

    A host without a line of its own gets the number of its longest parent domain in the file. Empty lines, lines that
    begin with `#` and a first line with column names are ignored; other invalid lines are added to `problems`.

    Args:
        file: A host and a number in each line, in either order, separated by a comma, a tab or spaces, such as
            `1,example.com`. Further columns are ignored.
        hosts: Hosts to look up.
        problems: Collects the invalid lines.

    Raises:
        InputError: The file has no lines.
        OSError: The file cannot be read.
    """
    domains = {parent for host in hosts for parent in _parent_domains(host)}
    numbers: dict[str, float] = {}
    count = 0
    for line in read_lines(file, problems):
        text = line.text[:_MAX_LINE_LENGTH].decode("utf-8", "replace").removeprefix("\ufeff").strip()
        if not text or text.startswith("#"):
            continue
        count += 1
        pair = _parse_host_number(text)
        if pair is None:
            if count > 1:
                problems.add(Problem("no-number", str(file), line.number, line.offset, "expected a host and a number"))
        elif pair[0] in domains:
            numbers.setdefault(*pair)
    if not count:
        raise InputError(f"{file}: nothing in it: expected a host and a number in each line")
    return {
        host: numbers[parent] for host in hosts for parent in reversed(list(_parent_domains(host))) if parent in numbers
    }


def _parse_host_number(text: str) -> tuple[str, float] | None:
    fields = text.replace(",", " ").replace("\t", " ").split()[:2]
    for host, number in (fields, fields[::-1]) if len(fields) > 1 else ():
        try:
            value = float(number)
        except ValueError:
            continue
        # Excludes `nan`, `inf` and absurd values.
        if 0 <= value < 1e15 and not _is_number(host):
            return host.lower().rstrip("."), value
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parent_domains(host: str) -> list[str]:
    """Return a host and its parent domains, longest first, without the top-level domain."""
    labels = host.lower().rstrip(".").split(".")
    return [".".join(labels[at:]) for at in range(len(labels))][: max(1, len(labels) - 1)]


FACTOR_COLUMNS = (
    *(factor.name for factor in FACTORS[:NUMERIC_FACTORS]),
    *(f"type: {kind}" for kind in TYPES[1:]),
    *(f"domain: {tld}" for tld in TLDS[1:]),
    "came back",
)
"""Columns of the rows: numeric factors, indicator variables, and last the response variable.

The indicators are those of each type but `page` and each domain but `com`, the reference categories.
"""


@dataclass(slots=True)
class FactorCounts:
    """Resources counted while reading the rows.

    Attributes:
        recoveries: For each recovery its folder, its resources, and how many of them were recovered.
        recovered: Recovered resources by factor name and bin; a bin is an index into `RecoveryFactor.bin_edges`, or the
            category.
        total: All resources by factor name and bin.
    """

    recoveries: list[tuple[str, int, int]] = field(default_factory=list)
    recovered: Counter[tuple[str, int | str]] = field(default_factory=Counter)
    total: Counter[tuple[str, int | str]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class ExternalFactorData:
    """Data that recoveries do not contain.

    Attributes:
        ranks: Rank by host.
        backlinks: Number of backlinks by host.
        sizes: Size in bytes of original resources, by resource name.
    """

    ranks: Mapping[str, float] = field(default_factory=dict)
    backlinks: Mapping[str, float] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def recovered_hosts(folders: Sequence[Path]) -> set[str]:
    """Return the hosts of all resources that the recoveries searched for.

    Raises:
        InputError: A folder is not a recovery.
        OSError: A recovery cannot be read.
    """
    hosts: set[str] = set()
    for folder in folders:
        with StateReader(folder) as state:
            hosts |= {extract_url_features(each.uri, each.link_kind).host for each in state.linked_resources()}
    return hosts - {""}


def read_factor_rows(folders: Sequence[Path], rows: ColumnFile, external: ExternalFactorData) -> FactorCounts:
    """Append a row for each resource of the recoveries and return the counts.

    Raises:
        InputError: A folder is not a recovery, or is given twice.
        OSError: A recovery cannot be read.
    """
    counts = FactorCounts()
    resolved = {folder.resolve() for folder in folders}
    if len(resolved) < len(folders):
        raise InputError("a recovery is named twice: name each once")
    for folder in folders:
        with StateReader(folder) as state:
            _add_site(folder, state, rows, external, counts)
    return counts


def _add_site(
    folder: Path, state: StateReader, rows: ColumnFile, external: ExternalFactorData, factor_counts: FactorCounts
) -> None:
    counts = state.counts()
    size = counts.get("recovered", 0) + counts.get("missing", 0)
    new_by_year = state.captures_by_year()[1:]
    birth_rate = sum(new / count for count, new in new_by_year) / len(new_by_year) if new_by_year else UNKNOWN_VALUE
    last = state.last_capture_datetime()
    recovered = total = 0
    for resource in state.linked_resources():
        features = extract_url_features(resource.uri, resource.link_kind)
        values = (
            log10_or_unknown(external.backlinks.get(features.host), 1),
            log10_or_unknown(resource.links, 1),
            log10_or_unknown(external.ranks.get(features.host)),
            float(resource.hops),
            float(path_depth(resource.name)),
            float(features.parameters),
            _years_between(resource.since, last),
            birth_rate,
            log10_or_unknown(size),
            log10_or_unknown(external.sizes.get(resource.name), 1),
        )
        _add_resource(resource, features, values, rows, factor_counts)
        total += 1
        recovered += resource.is_recovered
    factor_counts.recoveries.append((str(folder), total, recovered))


def _add_resource(
    resource: LinkedResource, features: UrlFeatures, values: Sequence[float], rows: ColumnFile, counts: FactorCounts
) -> None:
    types = (float(features.kind == kind) for kind in TYPES[1:])
    domains = (float(features.tld == tld) for tld in TLDS[1:])
    rows.add((*values, *types, *domains, float(resource.is_recovered)))
    groups: list[tuple[str, int | str]] = [("type", features.kind), ("top-level domain", features.tld)]
    for factor, value in zip(FACTORS, values, strict=False):
        if not isnan(value):
            groups.append((factor.name, max(0, bisect_right(factor.bin_edges, value + 1e-9) - 1)))
    counts.total.update(groups)
    if resource.is_recovered:
        counts.recovered.update(groups)


def _years_between(first: str | None, last: str | None) -> float:
    try:
        days = (to_datetime(last) - to_datetime(first)).days if first and last else None
    except (DateError, TypeError):
        return UNKNOWN_VALUE
    return UNKNOWN_VALUE if days is None else max(0, days) / _YEAR_DAYS


@dataclass(frozen=True, slots=True)
class FactorAnalysis:
    """Result of the analysis.

    Attributes:
        counts: Resources by factor and bin.
        total: Number of resources.
        recovered: Number of recovered resources.
        known_counts: Number of known values by column.
        excluded: Columns excluded from the models, with the reason.
        moments: Moments of the columns in the models; None if there are none.
        linear: Linear model; None if it cannot be fitted.
        logistic: Logistic model; None if it cannot be fitted.
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
    """Analyse recoveries. Rows are stored on disk, so memory does not grow with their number.

    Raises:
        InputError: A folder is not a recovery.
        OSError: A recovery cannot be read, or temporary files cannot be written.
    """
    with ColumnFile(len(FACTOR_COLUMNS)) as rows:
        counts = read_factor_rows(folders, rows, external)
        selected, excluded = _select_columns(rows)
        moments = _moments(rows, selected)
        # A column that is constant in all complete rows explains nothing.
        for at in [at for at in range(len(selected) - 1) if not moments.deviations[at]]:
            excluded[moments.names[at]] = "constant"
        selected = [column for column in selected if FACTOR_COLUMNS[column] not in excluded]
        moments = _moments(rows, selected)
        has_columns = len(selected) > 1
        return FactorAnalysis(
            counts,
            rows.count,
            sum(recovered for _, _, recovered in counts.recoveries),
            dict(zip(FACTOR_COLUMNS, rows.known, strict=True)),
            excluded,
            moments if has_columns and moments.rows else None,
            fit_linear(moments) if has_columns else None,
            fit_logistic(rows, selected, moments) if has_columns else None,
        )


def _moments(rows: ColumnFile, selected: Sequence[int]) -> ColumnMoments:
    return compute_moments(rows, selected, [FACTOR_COLUMNS[column] for column in selected])


def _select_columns(rows: ColumnFile) -> tuple[list[int], dict[str, str]]:
    """Return the columns with enough known values, and the reason for each excluded column."""
    selected, excluded = [], {}
    sources = {factor.name: factor.source for factor in FACTORS}
    for column, name in enumerate(FACTOR_COLUMNS):
        if rows.known[column] and rows.known[column] >= MIN_KNOWN_SHARE * rows.count:
            selected.append(column)
        elif not rows.known[column]:
            excluded[name] = f"unknown for all resources; source: {sources[name]}"
        else:
            excluded[name] = f"known for only {rows.known[column]:,} of {rows.count:,} resources"
    return selected, excluded


def factors_headline(analysis: FactorAnalysis) -> str:
    """Return a sentence with the share of recovered resources."""
    recoveries = (
        "1 recovery" if len(analysis.counts.recoveries) == 1 else f"{len(analysis.counts.recoveries):,} recoveries"
    )
    if not analysis.total:
        return f"No resources in {recoveries}."
    share = format_share(analysis.recovered / analysis.total)
    return f"{analysis.recovered:,} of {format_count(analysis.total, 'resource')} ({share}) recovered in {recoveries}."


def factors_remarks(analysis: FactorAnalysis) -> list[str]:
    """Return the caveats for interpreting the numbers."""
    lines = []
    if analysis.moments is not None and analysis.moments.rows < analysis.total:
        lines.append(
            f"The models use the {analysis.moments.rows:,} resources for which all their factors are known; "
            f"{analysis.total - analysis.moments.rows:,} others are excluded."
        )
    if analysis.linear is None:
        condition = (
            "some resources are recovered and some are missing"
            if analysis.total > MIN_DEGREES_OF_FREEDOM
            else "there are more resources"
        )
        lines.append(f"There is no model. A model can be fitted if {condition}.")
    collinear = analysis.linear.same if analysis.linear else ()
    if collinear:
        lines.append(f"Excluded from the models because of collinearity with other factors: {', '.join(collinear)}.")
    if analysis.logistic is None and analysis.linear is not None:
        lines.append("The logistic model could not be fitted.")
    if analysis.logistic is not None and analysis.logistic.is_penalised:
        lines.append(
            "Some factors predict the outcome perfectly (separation). The odds of the logistic model are limited by a "
            "prior, and its intervals are approximate."
        )
    if analysis.moments is not None:
        lines += [
            f"{first} and {second} are correlated ({value:.2f}): their separate effects are uncertain."
            for first, second, value in _strong_correlations(analysis.moments)
        ]
        lines.append(
            "Resources of one site are correlated, but the models treat them as independent: with few sites, the "
            "intervals are too narrow. Correlation does not imply causation."
        )
    return lines


def _strong_correlations(moments: ColumnMoments) -> list[tuple[str, str, float]]:
    size = len(moments.names) - 1
    return [
        (moments.names[i], moments.names[j], moments.correlations[i][j])
        for i in range(size)
        for j in range(i)
        if abs(moments.correlations[i][j]) > _STRONG_CORRELATION
        and "type:" not in moments.names[i]
        and "domain:" not in moments.names[i]
    ]


def factor_tables(analysis: FactorAnalysis) -> list[ReportTable]:
    """Return the non-empty tables."""
    tables = [
        _recoveries_table(analysis),
        _factors_table(analysis),
        *(_factor_table(factor, analysis) for factor in FACTORS),
    ]
    if analysis.moments is not None:
        tables.append(_correlations_table(analysis.moments))
    if analysis.linear is not None:
        tables.append(_linear_table(analysis.linear))
    if analysis.logistic is not None:
        tables.append(_logistic_table(analysis.logistic))
    return [table for table in tables if table.rows]


def _recoveries_table(analysis: FactorAnalysis) -> ReportTable:
    rows = [
        (folder, f"{total:,}", f"{recovered:,}", format_share(recovered / total if total else None))
        for folder, total, recovered in analysis.counts.recoveries
    ]
    return ReportTable("Recoveries", ("recovery", "resources", "recovered", "share"), rows)


def _factors_table(analysis: FactorAnalysis) -> ReportTable:
    rows = []
    for factor in FACTORS:
        known = analysis.known_counts.get(factor.name, analysis.total)
        reason = analysis.excluded.get(factor.name, "").partition(";")[0]
        rows.append((factor.name, f"{known:,}", reason or factor.source))
    note = "Number of resources for which each factor is known, and its source, or why the models exclude it."
    return ReportTable("The twelve factors", ("factor", "known", "source"), rows, note, frozenset({0, 2}))


def _factor_table(factor: RecoveryFactor, analysis: FactorAnalysis) -> ReportTable:
    names = {"type": TYPES, "top-level domain": TLDS}.get(factor.name)
    groups = [(name, name) for name in names] if names else [
        (at, _bin_label(factor, at)) for at in range(len(factor.bin_edges))
    ]  # fmt: skip
    rows = []
    for group, label in groups:
        count = Proportion(analysis.counts.recovered[factor.name, group], analysis.counts.total[factor.name, group])
        if count.total:
            low, high = count.interval()
            rows.append(
                (label, f"{count.total:,}", format_share(count.value), f"{100 * low:.0f} to {100 * high:.0f} %")
            )
    return ReportTable(f"By {factor.name}", (factor.name, "resources", "recovered", "95 % interval"), rows)


def _bin_label(factor: RecoveryFactor, index: int) -> str:
    is_power = factor.unit.startswith("powers")
    offset = 1 if "of one more" in factor.unit else 0

    def format_edge(edge: float) -> str:
        return f"{10**edge - offset:,.0f}" if is_power else f"{edge:g}"

    low = format_edge(factor.bin_edges[index])
    if index + 1 == len(factor.bin_edges):
        return f"{low} or more"
    high = factor.bin_edges[index + 1]
    is_single_value = not is_power and high == factor.bin_edges[index] + 1 and factor.unit != "years"
    return low if is_single_value else f"{low} to less than {format_edge(high)}"


def _correlations_table(moments: ColumnMoments) -> ReportTable:
    names = ["recovered" if name == FACTOR_COLUMNS[-1] else name for name in moments.names]
    rows = [(names[i], *(f"{moments.correlations[i][j]:.2f}" for j in range(len(names)))) for i in range(len(names))]
    return ReportTable("Correlations", ("", *names), rows, "Pearson correlation over the resources in the models.")


def _linear_table(model: RegressionModel) -> ReportTable:
    rows = [
        (each.name, f"{each.value:+.4f}", f"{each.low:+.4f} to {each.high:+.4f}", _format_p_value(each.p))
        for each in model.coefficients
    ]
    note = f"Effect of one unit of each factor on the recovered share, other factors being equal. R² {model.fit:.3f}."
    heads = ("factor", "coefficient", "95 % interval", "p")
    return ReportTable(f"Linear model of {model.rows:,} resources", heads, rows, note)


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
        "Effect of one unit of each factor on the logarithm of the odds of recovery, and the odds ratio. "
        f"McFadden's R² {model.fit:.3f}."
    )
    heads = ("factor", "coefficient", "95 % interval", "odds ratio", "p")
    return ReportTable(f"Logistic model of {model.rows:,} resources", heads, rows, note)


def _format_odds(value: float) -> str:
    return f"{exp(value):.3g}" if abs(value) < 50 else ("inf" if value > 0 else "0")


def _format_p_value(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def factors_to_json(analysis: FactorAnalysis) -> dict[str, object]:
    """Return the JSON document."""
    return {
        "recoveries": [
            {"folder": folder, "resources": total, "recovered": recovered}
            for folder, total, recovered in analysis.counts.recoveries
        ],
        "resources": analysis.total,
        "recovered": analysis.recovered,
        "factors": [
            {
                "name": factor.name,
                "unit": factor.unit,
                "source": factor.source,
                "known": analysis.known_counts.get(factor.name, analysis.total),
                "marks": list(factor.bin_edges),
                "groups": [
                    {"group": group, **Proportion(analysis.counts.recovered[factor.name, group], count).to_json()}
                    for (name, group), count in sorted(analysis.counts.total.items(), key=lambda each: str(each[0]))
                    if name == factor.name
                ],
            }
            for factor in FACTORS
        ],
        "left_out": analysis.excluded,
        "correlations": None
        if analysis.moments is None
        else {
            "names": list(analysis.moments.names),
            "rows": analysis.moments.rows,
            "matrix": analysis.moments.correlations,
        },
        "linear": _model_to_json(analysis.linear),
        "logistic": _model_to_json(analysis.logistic),
    }


def _model_to_json(model: RegressionModel | None) -> dict[str, object] | None:
    return None if model is None else asdict(model)


def render_factors_page(analysis: FactorAnalysis) -> str:
    """Return the report as a self-contained, deterministic HTML page. All values are escaped."""
    return (
        make_template_environment("unlost.research")
        .get_template("factors.html")
        .render(headline=factors_headline(analysis), remarks=factors_remarks(analysis), tables=factor_tables(analysis))
    )
