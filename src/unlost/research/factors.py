"""Twelve factors of whether a resource is recovered: read from recoveries, modelled, and reported."""

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
from unlost.recover.state.queries import LinkedResource
from unlost.recover.state.reader import StateReader
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


@dataclass(frozen=True, slots=True)
class RecoveryFactor:
    """One factor.

    name: in words, as people read it. unit: what its number is in a model. source: where that is from. marks: the lower
        ends of the groups in which resources are counted, in the number's own unit; none for one of words.
    """

    name: str
    unit: str
    source: str
    bin_edges: tuple[float, ...] = ()


_POWER_EDGES = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
_COUNT_EDGES = (0.0, log10(2), *(log10(10**power + 1) for power in range(1, 8)))  # none, 1 to 9, 10 to 99, and so on
FACTORS = (
    RecoveryFactor("external links", "powers of ten, of one more", "the file of --backlinks, by host", _COUNT_EDGES),
    RecoveryFactor("internal links", "powers of ten, of one more", "copies that came back, whose links were followed",
           (0.0, log10(2), log10(3), log10(5), log10(9), log10(33), log10(1001))),
    RecoveryFactor("rank", "powers of ten", "the file of --ranks, by host; 1 is the best", _POWER_EDGES),
    RecoveryFactor("hops", "links", "the shortest way from where the recovery began", (0, 1, 2, 3, 4, 5, 10)),
    RecoveryFactor("path depth", "segments", "the address", (0, 1, 2, 3, 4, 5, 10)),
    RecoveryFactor("query parameters", "parameters", "the address", (0, 1, 2, 3, 4, 10)),
    RecoveryFactor("age", "years", "from the oldest copy that links to it to the newest copy of the site",
           (0, 1, 2, 3, 5, 10, 20)),
    RecoveryFactor("birth rate", "share", "of what archives list of a year, what no year before had; the mean of "
                                          "all years but "
           "the first, by site", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75)),
    RecoveryFactor("site size", "powers of ten", "resources that were looked for, by site", _POWER_EDGES),
    RecoveryFactor("resource size", "powers of ten, of one more byte", "the site of --original: nobody else knows "
                                                                       "the size of "
           "what is missing", _COUNT_EDGES),
    RecoveryFactor("type", "", "what the address and its use make likely, since nobody knows the type of what is "
                               "missing"),
    RecoveryFactor("top-level domain", "", "the address"),
)  # fmt: skip
"""All of them. Those of words are the last two."""
NUMERIC_FACTORS = 10
"""How many have numbers."""
TYPES = ("page", "image", "document", "other")
TLDS = ("com", "org", "net", "edu", "gov", "country", "other")
_IMAGES = frozenset({"gif", "jpg", "jpeg", "png", "bmp", "ico", "svg", "webp", "tif", "tiff"})
_DOCUMENTS = frozenset(
    {"pdf", "ps", "eps", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "rtf", "odt", "ods", "odp", "txt"}
)
_PAGES = frozenset({"", "htm", "html", "shtml", "xhtml", "php", "php3", "asp", "aspx", "jsp", "cgi", "pl", "cfm"})
_MAX_EXTENSION_LENGTH = 5  # letters: what is longer is no ending
_COUNTRY_CODE_LENGTH = 2  # letters


@dataclass(frozen=True, slots=True)
class UrlFeatures:
    """What an address says. parameters: of its query. kind, tld: of `TYPES` and `TLDS`."""

    parameters: int
    kind: str
    tld: str
    host: str


def extract_url_features(uri: str, use: str) -> UrlFeatures:
    """Return what an address says, and how pages use it. Never raises.

    >>> parts_of("http://www.lost.example/a/b/c.GIF?x=1&y", "requisite")
    Parts(parameters=2, kind='image', tld='other', host='www.lost.example')
    >>> parts_of("http://lost.co.uk/a/", "page")
    Parts(parameters=0, kind='page', tld='country', host='lost.co.uk')
    """
    try:
        found = urlsplit(uri)
        host = (found.hostname or "").rstrip(".")
    except ValueError:
        return UrlFeatures(0, "other", "other", "")
    name, dot, ending = found.path.rpartition("/")[2].rpartition(".")
    ending = ending.lower() if dot and name and len(ending) <= _MAX_EXTENSION_LENGTH else ""
    parameters = sum(bool(each) for each in found.query.replace(";", "&").split("&"))
    return UrlFeatures(parameters, _kind(ending, use), _tld(host), host)


def _kind(ending: str, use: str) -> str:
    if ending in _IMAGES:
        return "image"
    if ending in _DOCUMENTS:
        return "document"
    return "page" if ending in _PAGES and use != "requisite" else "other"


def _tld(host: str) -> str:
    label = host.rpartition(".")[2].lower()
    if label in TLDS[:5]:
        return label
    return "country" if len(label) == _COUNTRY_CODE_LENGTH and label.isalpha() else "other"


def log10_or_unknown(value: float | None, offset: float = 0.0) -> float:
    """Return a number as a power of ten; unknown for none, and for what has no power."""
    return log10(value + offset) if value is not None and value + offset > 0 else UNKNOWN_VALUE


_MAX_LINE_LENGTH = 400  # of a line


def read_host_numbers(file: Path, hosts: Collection[str], problems: Problems) -> dict[str, float]:
    """Return the numbers of those hosts that a file knows, as it has them or their domains.

    file: a line for each, a host and a number in either order, with a comma, a tab or spaces between them, such as
        `1,example.com`; more columns are passed over, and so are lines that begin with `#` and a first line of names.
    hosts: whose numbers are wanted; a host without a line has the number of the longest domain that it belongs to.
    Other lines are counted in `problems`. Raises InputError, OSError.
    """
    wanted = {parent for host in hosts for parent in _parent_domains(host)}
    found: dict[str, float] = {}
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
        elif pair[0] in wanted:
            found.setdefault(*pair)
    if not count:
        raise InputError(f"{file}: nothing in it: expected a host and a number in each line")
    return {
        host: found[parent] for host in hosts for parent in reversed(list(_parent_domains(host))) if parent in found
    }


def _parse_host_number(text: str) -> tuple[str, float] | None:
    fields = text.replace(",", " ").replace("\t", " ").split()[:2]
    for host, number in (fields, fields[::-1]) if len(fields) > 1 else ():
        try:
            value = float(number)
        except ValueError:
            continue
        # Not `nan`, nor what is more than anybody counts.
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
    """Return a host and the domains that it belongs to, longest first."""
    labels = host.lower().rstrip(".").split(".")
    return [".".join(labels[at:]) for at in range(len(labels))][: max(1, len(labels) - 1)]


FACTOR_COLUMNS = (
    *(factor.name for factor in FACTORS[:NUMERIC_FACTORS]),
    *(f"type: {kind}" for kind in TYPES[1:]),
    *(f"domain: {tld}" for tld in TLDS[1:]),
    "came back",
)
"""The columns of rows: factors with numbers, one of 0 and 1 for each type but pages and for each domain but com, and
last what is to be explained."""
_YEAR_DAYS = 365.25  # days


@dataclass(slots=True)
class FactorCounts:
    """What was read, beside the rows.

    sites: folder, resources, and how many of them came back. came, all: by factor and group, how many came back, and
        of how many; the group of a number is the place of its mark.
    """

    recoveries: list[tuple[str, int, int]] = field(default_factory=list)
    recovered: Counter[tuple[str, int | str]] = field(default_factory=Counter)
    total: Counter[tuple[str, int | str]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class ExternalFactorData:
    """What others know. ranks, backlinks: by host. sizes: bytes of originals by the names of resources."""

    ranks: Mapping[str, float] = field(default_factory=dict)
    backlinks: Mapping[str, float] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def recovered_hosts(folders: Sequence[Path]) -> set[str]:
    """Return the hosts whose resources recoveries looked for. Raises InputError, OSError."""
    found: set[str] = set()
    for folder in folders:
        with StateReader(folder) as state:
            found |= {extract_url_features(each.uri, each.link_kind).host for each in state.linked_resources()}
    return found - {""}


def read_factor_rows(folders: Sequence[Path], rows: ColumnFile, external: ExternalFactorData) -> FactorCounts:
    """Put every resource of recoveries into rows; return what else there is to say. Raises InputError, OSError."""
    gathered = FactorCounts()
    places = {folder.resolve() for folder in folders}
    if len(places) < len(folders):
        raise InputError("a recovery is named twice: name each once")
    for folder in folders:
        with StateReader(folder) as state:
            _add_site(folder, state, rows, external, gathered)
    return gathered


def _add_site(
    folder: Path, state: StateReader, rows: ColumnFile, known: ExternalFactorData, gathered: FactorCounts
) -> None:
    counts = state.counts()
    size = counts.get("recovered", 0) + counts.get("missing", 0)
    born = state.captures_by_year()[1:]
    birth_rate = sum(new / count for count, new in born) / len(born) if born else UNKNOWN_VALUE
    last = state.last_capture_datetime()
    came = total = 0
    for each in state.linked_resources():
        parts = extract_url_features(each.uri, each.link_kind)
        numbers = (
            log10_or_unknown(known.backlinks.get(parts.host), 1),
            log10_or_unknown(each.links, 1),
            log10_or_unknown(known.ranks.get(parts.host)),
            float(each.hops),
            float(path_depth(each.name)),
            float(parts.parameters),
            _years_between(each.since, last),
            birth_rate,
            log10_or_unknown(size),
            log10_or_unknown(known.sizes.get(each.name), 1),
        )
        _add_resource(each, parts, numbers, rows, gathered)
        total += 1
        came += each.is_recovered
    gathered.recoveries.append((str(folder), total, came))


def _add_resource(
    each: LinkedResource, parts: UrlFeatures, numbers: Sequence[float], rows: ColumnFile, gathered: FactorCounts
) -> None:
    types = (float(parts.kind == kind) for kind in TYPES[1:])
    domains = (float(parts.tld == tld) for tld in TLDS[1:])
    rows.add((*numbers, *types, *domains, float(each.is_recovered)))
    groups: list[tuple[str, int | str]] = [("type", parts.kind), ("top-level domain", parts.tld)]
    for factor, value in zip(FACTORS, numbers, strict=False):
        if not isnan(value):
            groups.append((factor.name, max(0, bisect_right(factor.bin_edges, value + 1e-9) - 1)))
    gathered.total.update(groups)
    if each.is_recovered:
        gathered.recovered.update(groups)


def _years_between(first: str | None, last: str | None) -> float:
    try:
        days = (to_datetime(last) - to_datetime(first)).days if first and last else None
    except (DateError, TypeError):
        return UNKNOWN_VALUE
    return UNKNOWN_VALUE if days is None else max(0, days) / _YEAR_DAYS


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


def render_factors_page(found: FactorAnalysis) -> str:
    """Return the page: HTML with everything in it, the same for the same findings. Everything in it is escaped."""
    return (
        make_template_environment("unlost.research")
        .get_template("factors.html")
        .render(headline=factors_headline(found), remarks=factors_remarks(found), tables=factor_tables(found))
    )
