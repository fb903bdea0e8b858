"""Counts of an index, in one pass and bounded memory. Counts of parts of an index can be merged in any order.

The Rust core counts in the threads that read the lines. Medians, Gini coefficients and deviations are computed from
histograms, which are exact and small: with a sum of n there are at most √(2n) distinct values. Only an unsorted index
needs estimates, by sketches and a sample of URI-Rs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from json import dumps, loads
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

from unlost import _core
from unlost.errors import InputError
from unlost.index.ukvs import UkvsHeader
from unlost.mementomap.readers import InputOptions, InputReport, ProgressCallback, count_inputs, run_with_progress
from unlost.text_lines import MAX_LINE_BYTES

if TYPE_CHECKING:
    from unlost._core import LineStats, Progress, RowColumns


COUNTS_VERSION = 2
"""Version of the JSON representation."""
MAX_TOP_ENTRIES = 100
"""Number of most archived URI-Rs and hosts in the counts."""
MAX_SAMPLES = 10
"""Number of sample captures in the counts."""
Histogram = dict[int, int]
"""Frequency of each value."""
K = TypeVar("K")
V = TypeVar("V")
B = TypeVar("B", "TopPage", "TopHost")

_SUMMED_FIELDS = (
    "files", "lines", "text_bytes", "captures", "record_bytes", "sized", "odd_dates", "filtered", "further_kinds",
    "uris", "pages", "hosts",
)  # fmt: skip
_MAPPING_FIELDS = ("foreign", "problems", "kinds", "captures_by_uri")
_SORTED_FIELDS = ("foreign", "kinds", "months", "years", "captures_by_uri", "domains")
_VECTOR_FIELDS = ("path_query", "page_depths", "hosts_by_depth", "pages_by_host_depth")

STUDY_STATUS, STUDY_MIME, STUDY_EXCLUDE = "200", "text/html", ("robots", "sitemaps")
"""Filters of the MementoMap paper's study: successful HTML captures without robots.txt and sitemaps."""

_DEPTH_FIELDS = ("page_depths", "hosts_by_depth", "pages_by_host_depth")
_NO_CLASSES = (0,) * 6
_NUMBER_FIELDS = ("text_bytes", "captures", "record_bytes", "sized", "further_kinds")


@dataclass(frozen=True, slots=True)
class DomainCounts:
    """Counts of a top-level domain, or of all IP addresses. `children` are second-level domains."""

    captures: int = 0
    uris: int = 0
    pages: int = 0
    hosts: int = 0
    children: int = 0

    def add(self, other: "DomainCounts") -> "DomainCounts":
        """Return the sums of both."""
        first, second = _domain_values(self), _domain_values(other)
        return DomainCounts(*(a + b for a, b in zip(first, second, strict=True)))


@dataclass(frozen=True, slots=True)
class YearCounts:
    """Counts of a year.

    Attributes:
        uris: URI-Rs with captures of the year.
        classes: Captures by status class: missing or invalid, then 1xx to 5xx.
    """

    uris: int
    classes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DepthCounts:
    """Histograms of a depth of the key tree.

    Attributes:
        prefixes: Number of prefixes by their number of pages.
        children: Number of parent nodes by their number of children.
    """

    prefixes: Histogram = field(default_factory=dict)
    children: Histogram = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopPage:
    """A URI-R with many captures.

    Attributes:
        key: Key of the URI-R.
        host_captures: Captures of its host; 0 if unknown.
        host_uris: URI-Rs of its host; 0 if unknown.
    """

    key: str
    captures: int
    host_captures: int
    host_uris: int


@dataclass(frozen=True, slots=True)
class TopHost:
    """A host with many captures."""

    host: str
    captures: int
    uris: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCounts:
    """Counts of an index or a part of one.

    Field names are the keys of the JSON representation.

    Attributes:
        files: Input files.
        lines: Lines read, including headers.
        text_bytes: Bytes of these lines.
        captures: Rows counted.
        record_bytes: Total size of the records, as far as it is known.
        sized: Captures with a known record size.
        first: Date of the first capture, 14 digits; empty if there is none.
        last: Date of the last capture, 14 digits; empty if there is none.
        odd_dates: Captures whose date cannot be that of a web capture.
        foreign: Rows that are not web pages, by scheme.
        filtered: Rows excluded by the options.
        problems: Lines that cannot be parsed, by kind.
        kinds: Captures by media type and status, verbatim.
        further_kinds: Captures of further media types and statuses, beyond the limit.
        months: For each `YYYYMM` its captures, and the URI-Rs first captured in it.
        years: Counts by year.
        uris: URI-Rs.
        pages: URI-Rs without query (HxPx keys).
        hosts: Hosts.
        captures_by_uri: Number of URI-Rs by their number of captures.
        path_query: Captures by path segments and query parameters, a 6 by 6 matrix; the last row and column are 5 or
            more.
        page_depths: Pages by path depth.
        hosts_by_depth: Hosts by number of labels.
        pages_by_host_depth: Pages by number of host labels.
        domains: Counts by top-level domain.
        ip: Counts of IP addresses.
        levels: Histograms by depth, H2 to H10 and P0 to P11.
        busy_pages: Most archived URI-Rs.
        busy_hosts: Most archived hosts.
        samples: Date and URL of some HTML captures with status 200.
        errors: 95 % intervals of estimated counts; for the most archived URI-Rs and hosts 0 and the maximum undercount.
        sampled: Share of URI-Rs in the sample.
        sampled_pages: Share of pages in the sample.
        estimated_depths: For each depth the prefixes, the keys that reach it, and the parent nodes; then the maximum
            (None if unknown), median and standard deviation of keys per prefix.
    """

    files: int = 0
    lines: int = 0
    text_bytes: int = 0
    captures: int = 0
    record_bytes: int = 0
    sized: int = 0
    first: str = ""
    last: str = ""
    odd_dates: int = 0
    foreign: Mapping[str, int] = field(default_factory=dict)
    filtered: int = 0
    problems: Mapping[str, int] = field(default_factory=dict)
    kinds: Mapping[tuple[str, str], int] = field(default_factory=dict)
    further_kinds: int = 0
    months: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    years: Mapping[str, YearCounts] = field(default_factory=dict)
    uris: int = 0
    pages: int = 0
    hosts: int = 0
    captures_by_uri: Histogram = field(default_factory=dict)
    path_query: tuple[int, ...] = (0,) * 36
    page_depths: tuple[int, ...] = (0,) * 12
    hosts_by_depth: tuple[int, ...] = (0,) * 12
    pages_by_host_depth: tuple[int, ...] = (0,) * 12
    domains: Mapping[str, DomainCounts] = field(default_factory=dict)
    ip: DomainCounts = field(default_factory=DomainCounts)
    levels: Mapping[str, DepthCounts] = field(default_factory=dict)
    busy_pages: tuple[TopPage, ...] = ()
    busy_hosts: tuple[TopHost, ...] = ()
    samples: tuple[tuple[str, str], ...] = ()
    errors: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    sampled: float = 1.0
    sampled_pages: float = 1.0
    estimated_depths: Mapping[str, tuple[int, int, int, int | None, float, float]] = field(default_factory=dict)

    @property
    def is_estimated(self) -> bool:
        """Whether the index was unsorted, so that some counts are estimates."""
        return bool(self.errors)

    def merge(self, other: "IndexCounts") -> "IndexCounts":
        """Return the counts of both parts together.

        Raises:
            InputError: One of them is estimated. Estimates cannot be merged.

        >>> IndexCounts(captures=3, kinds={("a", "b"): 3}).merge(IndexCounts(captures=4, kinds={("a", "b"): 4})).kinds
        {('a', 'b'): 7}
        """
        if self.is_estimated or other.is_estimated:
            raise InputError("estimates do not add up: sort the index, or gather all of it at once")
        dates = [each.first for each in (self, other) if each.first]
        summed: dict[str, Any] = {
            **{name: getattr(self, name) + getattr(other, name) for name in _SUMMED_FIELDS},
            **{name: _add_mappings(getattr(self, name), getattr(other, name)) for name in _MAPPING_FIELDS},
            **{name: _add_vectors(getattr(self, name), getattr(other, name)) for name in _VECTOR_FIELDS},
        }
        return IndexCounts(
            **summed,
            first=min(dates, default=""),
            last=max(self.last, other.last),
            months=_merge_mappings(self.months, other.months, lambda a, b: (a[0] + b[0], a[1] + b[1])),
            years=_merge_mappings(
                self.years, other.years, lambda a, b: YearCounts(a.uris + b.uris, _add_vectors(a.classes, b.classes))
            ),
            domains=_merge_mappings(self.domains, other.domains, DomainCounts.add),
            ip=self.ip.add(other.ip),
            levels=_merge_mappings(
                self.levels,
                other.levels,
                lambda a, b: DepthCounts(_add_mappings(a.prefixes, b.prefixes), _add_mappings(a.children, b.children)),
            ),
            busy_pages=_top_entries(self.busy_pages + other.busy_pages),
            busy_hosts=_top_entries(self.busy_hosts + other.busy_hosts),
            samples=tuple(sorted({*self.samples, *other.samples}, key=_sample_rank)[:MAX_SAMPLES]),
        )

    def sorted_by_name(self) -> "IndexCounts":
        """Return the same counts with sorted mappings, as if all parts had been counted at once."""
        levels = {
            name: DepthCounts(_sorted_mapping(each.prefixes), _sorted_mapping(each.children))
            for name, each in self.levels.items()
        }
        ordered: dict[str, Any] = {name: _sorted_mapping(getattr(self, name)) for name in _SORTED_FIELDS}
        return replace(self, levels=levels, **ordered)

    def to_json(self) -> str:
        """Return one line of JSON, deterministic."""
        return dumps(
            {
                "version": COUNTS_VERSION,
                **{each.name: _to_json_value(getattr(self, each.name)) for each in fields(self)},
            }
        )

    @staticmethod
    def from_json(text: str) -> "IndexCounts":
        """Parse the result of `to_json`.

        Raises:
            InputError: The text is invalid or of another version.

        >>> part = IndexCounts(captures=2, kinds={("text/html", "200"): 2}, ip=DomainCounts(1, 1, 1, 1, 0))
        >>> IndexCounts.from_json(part.to_json()) == part
        True
        """
        try:
            values = loads(text)
            if values.pop("version") != COUNTS_VERSION:
                raise InputError("statistics of another version: gather them anew")
            return IndexCounts(**{name: _READERS.get(name, _identity)(value) for name, value in values.items()})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InputError("not statistics of a part of an index: expected what to_json gave") from error


def merge_counts(parts: Iterable[IndexCounts]) -> IndexCounts:
    """Return the counts of all parts together."""
    total = IndexCounts()
    for part in parts:
        total = total.merge(part)
    return total


def _domain_values(domain: DomainCounts) -> tuple[int, ...]:
    return (domain.captures, domain.uris, domain.pages, domain.hosts, domain.children)


def _add_mappings(first: Mapping[K, int], second: Mapping[K, int]) -> dict[K, int]:
    return _merge_mappings(first, second, int.__add__)


def _merge_mappings(first: Mapping[K, V], second: Mapping[K, V], plus: Callable[[V, V], V]) -> dict[K, V]:
    merged = dict(first)
    for key, value in second.items():
        merged[key] = plus(merged[key], value) if key in merged else value
    return merged


def _add_vectors(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(first, second, strict=True))


def _top_entries(entries: tuple[B, ...]) -> tuple[B, ...]:
    """Return the entries with most captures, ties by name, so that the order of merging does not matter."""
    return tuple(sorted(entries, key=lambda each: (-each.captures, _entry_name(each)))[:MAX_TOP_ENTRIES])


def _entry_name(entry: TopPage | TopHost) -> str:
    return entry.key if isinstance(entry, TopPage) else entry.host


def _sorted_mapping(values: Mapping[Any, V]) -> dict[Any, V]:
    return {key: values[key] for key in sorted(values)}


def _sample_rank(sample: tuple[str, str]) -> tuple[int, tuple[str, str]]:
    """Return the sort key for samples: a hash, so that the selection is uniform and does not depend on the parts."""
    date, uri = sample
    return _core.sample_priority(int(date), uri.encode("utf-8", "surrogatepass")), sample


def _to_json_value(value: object) -> object:
    """Return a JSON value: mappings as lists of pairs, because their keys may be tuples; dataclasses as lists."""
    if isinstance(value, Mapping):
        return [[_to_json_value(key), _to_json_value(each)] for key, each in value.items()]
    if isinstance(value, tuple):
        return [_to_json_value(each) for each in value]
    if isinstance(value, DomainCounts | YearCounts | DepthCounts | TopPage | TopHost):
        return [_to_json_value(getattr(value, each.name)) for each in fields(value)]
    return value


def _identity(value: Any) -> Any:  # noqa: ANN401
    return value


_READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("foreign", "problems", "captures_by_uri"), dict),
    **dict.fromkeys(_VECTOR_FIELDS, tuple),
    "kinds": lambda pairs: {(mime, status): count for (mime, status), count in pairs},
    "months": lambda pairs: {month: (captures, new) for month, (captures, new) in pairs},
    "years": lambda pairs: {year: YearCounts(uris, tuple(classes)) for year, (uris, classes) in pairs},
    "domains": lambda pairs: {name: DomainCounts(*values) for name, values in pairs},
    "ip": lambda values: DomainCounts(*values),
    "levels": lambda pairs: {name: DepthCounts(dict(prefixes), dict(children)) for name, (prefixes, children) in pairs},
    "busy_pages": lambda rows: tuple(TopPage(*row) for row in rows),
    "busy_hosts": lambda rows: tuple(TopHost(*row) for row in rows),
    "errors": lambda pairs: {name: (low, high) for name, (low, high) in pairs},
    "estimated_depths": lambda pairs: {name: tuple(counts) for name, counts in pairs},
    "samples": lambda rows: tuple((date, uri) for date, uri in rows),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCountOptions(InputOptions):
    """Options for counting an index.

    If the URI-Rs of one host exceed `memory` bytes, they are spilled to temporary files. Memory, threads and block size
    do not affect the result.

    Attributes:
        sampled: Minimum number of URI-Rs in the sample of an estimate; None for the default.
    """

    sampled: int | None = None


def count_index(
    inputs: Sequence[str | PathLike[str]],
    options: IndexCountOptions | None = None,
    on_progress: ProgressCallback | None = None,
) -> tuple[IndexCounts, InputReport]:
    """Count sorted index files, in which all rows of a host are adjacent, across all inputs.

    Returns:
        Exact counts, and a report on the lines read.

    Raises:
        UnsortedError: A host occurs in two places.
        InputError: An input cannot be read.
    """
    return _count(inputs, options or IndexCountOptions(), on_progress, is_estimated=False)


def estimate_index(
    inputs: Sequence[str | PathLike[str]],
    options: IndexCountOptions | None = None,
    on_progress: ProgressCallback | None = None,
) -> tuple[IndexCounts, InputReport]:
    """Count index files in any order.

    Counts of rows are exact. Numbers of URI-Rs, keys and hosts are estimated by sketches (`IndexCounts.errors` has the
    95 % intervals), other statistics of them from a sample of URI-Rs with all their rows.

    Returns:
        Counts, and a report on the lines read.

    Raises:
        InputError: An input cannot be read.
    """
    return _count(inputs, options or IndexCountOptions(), on_progress, is_estimated=True)


def _count(
    inputs: Sequence[str | PathLike[str]],
    options: IndexCountOptions,
    on_progress: ProgressCallback | None,
    *,
    is_estimated: bool,
) -> tuple[IndexCounts, InputReport]:
    counter = _CollectorSink(
        _core.StatisticsCollector(
            rules=options.rules,
            line_limit=MAX_LINE_BYTES,
            is_estimated=is_estimated,
            status=options.statuses(),
            mime=options.media_types(),
            exclude=sorted(options.exclude),
            threads=options.threads,
            memory=options.memory,
            block=options.block,
            sampled=options.sampled,
        )
    )
    report = InputReport()

    def work(progress: "Progress") -> IndexCounts:
        count_inputs(
            inputs,
            counter,
            report,
            progress,
            kind=options.kind,
            column=options.column,
            host=options.host,
            expected_header=UkvsHeader((), {}, ("surt",), ("frequency",), {}),
            allow_partial=options.allow_partial,
            max_bad=options.max_bad,
        )
        raw = counter.collector.finish()
        file_counts = {"files": len(inputs), "lines": report.lines, "filtered": report.filtered}
        rows = {**_row_counts(raw), **file_counts, "problems": dict(report.problems.counts)}
        return IndexCounts(**rows, **(_estimated_fields(raw) if is_estimated else _exact_fields(raw)))

    return run_with_progress(work, on_progress), report


def exact_counts(raw: dict[str, Any]) -> IndexCounts:
    """Return the counts of a part from the core's result. Counts of files and problems are not in it."""
    return IndexCounts(**_row_counts(raw), **_exact_fields(raw))


class _CollectorSink:
    """Passes input files to the Rust core."""

    def __init__(self, collector: "_core.StatisticsCollector") -> None:
        self.collector = collector

    def add_file(
        self, path: str, progress: "Progress", urls: bool = False, column: int | None = None
    ) -> "tuple[LineStats, str | None]":
        """Count the rows of an index or the URLs of a list."""
        return self.collector.add_file(path, progress, urls, column)

    def add_rows(self, rows: "list[RowColumns]") -> "LineStats":
        """Count rows parsed in Python."""
        return self.collector.add_rows(rows)

    def add_map(self, path: str, fields: int, line_limit: int, exclusions: bool, progress: "Progress") -> "LineStats":
        """Reject a map: it has neither dates nor media types."""
        del fields, line_limit, exclusions, progress
        raise InputError(f"{path}: a map, not an index: `unlost map check` says what is in it")


def _row_counts(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the row counts from the core's result."""
    year_uris, new_uris = dict(raw["year_uris"]), dict(raw["new_uris"])
    scale = 1 / raw.get("sampled", 1)
    captures, classes = dict(raw["months"]), dict(raw["years"])
    return {
        **{name: raw[name] for name in _NUMBER_FIELDS},
        "odd_dates": raw["invalid_dates"],  # the name in JSON
        "foreign": dict(sorted(raw["schemes"])),
        "first": _date(raw["first"]),
        "last": _date(raw["last"]),
        "kinds": {(_text(mime), _text(status)): count for mime, status, count in sorted(raw["kinds"])},
        "months": {
            str(month): (captures.get(month, 0), round(scale * new_uris.get(month, 0)))
            for month in sorted(captures.keys() | new_uris.keys())
        },
        "years": {
            str(year): YearCounts(round(scale * year_uris.get(year, 0)), tuple(classes.get(year, _NO_CLASSES)))
            for year in sorted(classes.keys() | year_uris.keys())
        },
        "captures_by_uri": {number: round(scale * times) for number, times in raw["captures_by_uri"]},
        "path_query": tuple(raw["path_query"]),
        "samples": tuple((_date(date), _text(uri)) for date, uri in raw["samples"]),
    }


def _exact_fields(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the exact counts of URI-Rs, keys and hosts from the core's result."""
    return {
        **{name: raw[name] for name in ("uris", "pages", "hosts")},
        **{name: tuple(raw[name]) for name in _DEPTH_FIELDS},
        "domains": {_text(name): DomainCounts(*counts) for name, counts in raw["domains"]},
        "ip": DomainCounts(*raw["ip"]),
        "levels": {name: DepthCounts(dict(prefixes), dict(children)) for name, prefixes, children in raw["levels"]},
        "busy_pages": tuple(TopPage(_text(key), *counts) for key, *counts in raw["busy_pages"]),
        "busy_hosts": tuple(TopHost(_text(host), *counts) for host, *counts in raw["busy_hosts"]),
    }


def _estimated_fields(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the estimated counts of URI-Rs, keys and hosts from the core's result."""
    errors = {name: (low, high) for name in ("uris", "pages", "hosts", "ips") for _, low, high in [raw[name]]}
    tops = {name: (0, raw[f"{name}_error"]) for name in ("busy_pages", "busy_hosts")}
    return {
        **{name: raw[name][0] for name in ("uris", "pages", "hosts")},
        "errors": {**errors, **tops},
        **{name: tuple(raw[name]) for name in _DEPTH_FIELDS},
        "sampled": raw["sampled"],
        "sampled_pages": raw["sampled_pages"],
        "domains": {_text(name): DomainCounts(captures) for name, captures in sorted(raw["domains"])},
        "ip": DomainCounts(raw["ip_captures"], hosts=raw["ips"][0]),
        "estimated_depths": {name: tuple(counts) for name, *counts in raw["levels"] if counts[0]},
        "busy_pages": tuple(_top_page_with_host(busy, raw["sampled"]) for busy in raw["busy_pages"]),
        "busy_hosts": tuple(TopHost(host, low, 0) for host, low, _ in raw["busy_hosts"]),
    }


def _top_page_with_host(entry: tuple[str, int, int, int], share: float) -> TopPage:
    """Return a top page with the counts of its host, extrapolated from a sample of this share."""
    key, captures, others, others_captures = entry
    if not others and share < 1:
        return TopPage(key, captures, 0, 0)
    return TopPage(key, captures, captures + round(others_captures / share), 1 + round(others / share))


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _date(number: int) -> str:
    return f"{number:014}" if number else ""
