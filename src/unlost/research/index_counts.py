"""Counts an index in one pass and bounded memory; counts of parts of an index merge in any order."""

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
    from unlost._core import Progress, RowColumns, Tally


COUNTS_VERSION = 2
"""Of the form in which parts are kept."""
MAX_TOP_ENTRIES = 100
"""The most archived URI-Rs and hosts that a part remembers."""
MAX_SAMPLES = 10
"""Captures that are kept to look at."""
Histogram = dict[int, int]
"""How often which number occurred."""
K = TypeVar("K")
V = TypeVar("V")
B = TypeVar("B", "TopPage", "TopHost")


@dataclass(frozen=True, slots=True)
class DomainCounts:
    """A top-level domain, or all IP addresses: its captures, URI-Rs, pages, hosts and second-level domains."""

    captures: int = 0
    uris: int = 0
    pages: int = 0
    hosts: int = 0
    children: int = 0

    def add(self, other: "DomainCounts") -> "DomainCounts":
        """Return both together."""
        mine, more = _domain_values(self), _domain_values(other)
        return DomainCounts(*(a + b for a, b in zip(mine, more, strict=True)))


@dataclass(frozen=True, slots=True)
class YearCounts:
    """Of a year: URI-Rs with captures of it, and captures by class of status: none or odd, then 1xx to 5xx."""

    uris: int
    classes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DepthCounts:
    """A depth of the tree: how many prefixes have how many pages, how many nodes above have how many children."""

    prefixes: Histogram = field(default_factory=dict)
    children: Histogram = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopPage:
    """A URI-R with many captures: its key, and captures and URI-Rs of its host, 0 if nothing is known of these."""

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
    """What was counted in a part of an index.

    lines, text_bytes: all that was read, headers and all. files: how many.
    captures: rows that were counted. record_bytes, sized: bytes of records, and of how many captures they are known.
    first, last: dates of captures, 14 digits; empty if there are none.
    odd_dates: captures without a date that the web could have. foreign: rows that are no web pages, by scheme.
    filtered: rows that the options left out. problems: lines that could not be read, by kind.
    kinds: captures by media type and status, as they stand. further_kinds: captures of types beyond the most that are
        remembered.
    months: by `YYYYMM`, captures and URI-Rs whose first capture it is. years: by year.
    uris, pages, hosts: URI-Rs; the same without queries; hosts.
    captures_by_uri: URI-Rs by how many captures they have.
    path_query: captures by segments and parameters, 6 by 6, five and more together.
    page_depths: pages by depth of their path. hosts_by_depth, pages_by_host_depth: by labels of the host.
    domains, ip: top-level domains by name, and IP addresses. levels: by name, H2 to H10 and P0 to P11.
    busy_pages, busy_hosts: the most archived. samples: date and address of some captures with status 200 and HTML.
    errors: of what is estimated, between which numbers it lies, in 95 of 100 cases; of the most archived, by how much
        their numbers may be too low. sampled, sampled_pages: the shares of URI-Rs and of pages that the others are
        scaled up from.
    estimated_depths: of each depth, prefixes, keys that reach it, and nodes above with children; then the most keys of
        a prefix, if that can be told, their median and their deviation.
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
        """Whether the index was in no order, so that sketches and a sample had to do."""
        return bool(self.errors)

    def merge(self, other: "IndexCounts") -> "IndexCounts":
        """Return what both parts come to together. Raises InputError for estimates, which do not add up.

        >>> IndexCounts(captures=3, kinds={("a", "b"): 3}).merge(IndexCounts(captures=4, kinds={("a", "b"): 4})).kinds
        {('a', 'b'): 7}
        """
        if self.is_estimated or other.is_estimated:
            raise InputError("estimates do not add up: sort the index, or gather all of it at once")
        dates = [each.first for each in (self, other) if each.first]
        alike: dict[str, Any] = {
            **{name: getattr(self, name) + getattr(other, name) for name in _SUMMED_FIELDS},
            **{name: _add_mappings(getattr(self, name), getattr(other, name)) for name in _MAPPING_FIELDS},
            **{name: _add_vectors(getattr(self, name), getattr(other, name)) for name in _VECTOR_FIELDS},
        }
        return IndexCounts(
            **alike,
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
        """Return the same with everything in the order of its names, as it is if all was gathered at once."""
        levels = {
            name: DepthCounts(_sorted_mapping(each.prefixes), _sorted_mapping(each.children))
            for name, each in self.levels.items()
        }
        ordered: dict[str, Any] = {name: _sorted_mapping(getattr(self, name)) for name in _SORTED_FIELDS}
        return replace(self, levels=levels, **ordered)

    def to_json(self) -> str:
        """Return it as one line of JSON, the same for the same numbers."""
        return dumps(
            {
                "version": COUNTS_VERSION,
                **{each.name: _to_json_value(getattr(self, each.name)) for each in fields(self)},
            }
        )

    @staticmethod
    def from_json(text: str) -> "IndexCounts":
        """Return what `to_json` gave. Raises InputError for anything else.

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
    """Return what all parts come to together."""
    total = IndexCounts()
    for part in parts:
        total = total.merge(part)
    return total


_SUMMED_FIELDS = (
    "files", "lines", "text_bytes", "captures", "record_bytes", "sized", "odd_dates", "filtered", "further_kinds",
    "uris", "pages", "hosts",
)  # fmt: skip
_MAPPING_FIELDS = ("foreign", "problems", "kinds", "captures_by_uri")
_SORTED_FIELDS = ("foreign", "kinds", "months", "years", "captures_by_uri", "domains")
_VECTOR_FIELDS = ("path_query", "page_depths", "hosts_by_depth", "pages_by_host_depth")


def _domain_values(domain: DomainCounts) -> tuple[int, ...]:
    return (domain.captures, domain.uris, domain.pages, domain.hosts, domain.children)


def _add_mappings(mine: Mapping[K, int], more: Mapping[K, int]) -> dict[K, int]:
    return _merge_mappings(mine, more, int.__add__)


def _merge_mappings(mine: Mapping[K, V], more: Mapping[K, V], plus: Callable[[V, V], V]) -> dict[K, V]:
    joined = dict(mine)
    for key, value in more.items():
        joined[key] = plus(joined[key], value) if key in joined else value
    return joined


def _add_vectors(mine: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(mine, more, strict=True))


def _top_entries(busy: tuple[B, ...]) -> tuple[B, ...]:
    """Return those with most captures, by name where these are equal: whoever came first makes no difference."""
    return tuple(sorted(busy, key=lambda each: (-each.captures, _entry_name(each)))[:MAX_TOP_ENTRIES])


def _entry_name(busy: TopPage | TopHost) -> str:
    return busy.key if isinstance(busy, TopPage) else busy.host


def _sorted_mapping(values: Mapping[Any, V]) -> dict[Any, V]:
    return {key: values[key] for key in sorted(values)}


def _sample_rank(sample: tuple[str, str]) -> tuple[int, tuple[str, str]]:
    """Return what decides which samples are kept: a hash, so that all have the same chance, and parts keep the same."""
    date, uri = sample
    return _core.sample_lot(int(date), uri.encode("utf-8", "surrogatepass")), sample


def _to_json_value(value: object) -> object:
    """Return a value as JSON has it: objects whose names are no texts as lists of pairs, ours as lists."""
    if isinstance(value, Mapping):
        return [[_to_json_value(key), _to_json_value(each)] for key, each in value.items()]
    if isinstance(value, tuple):
        return [_to_json_value(each) for each in value]
    if isinstance(value, DomainCounts | YearCounts | DepthCounts | TopPage | TopHost):
        return [_to_json_value(getattr(value, each.name)) for each in fields(value)]
    return value


def _identity(value: Any) -> Any:  # noqa: ANN401  whatever it is
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


STUDY_STATUS, STUDY_MIME, STUDY_EXCLUDE = "200", "text/html", ("robots", "sitemaps")
"""What the second paper's study counts: pages that were there, without what is for machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCountOptions(InputOptions):
    """What is counted, and how.

    memory: how many bytes the URI-Rs of one host may take before they are written to temporary files. Neither it nor
    threads and blocks show in the result. sampled: of how many URI-Rs at least an estimate has the sample, if not of as
    many as usual.
    """

    sampled: int | None = None


def count_index(
    inputs: Sequence[str | PathLike[str]],
    options: IndexCountOptions | None = None,
    on_progress: ProgressCallback | None = None,
) -> tuple[IndexCounts, InputReport]:
    """Return what the inputs hold, in numbers, and what became of their lines.

    Exact if every host's rows stand together, over all inputs, as those of sorted indexes do. Raises UnsortedError as
    soon as one does not, and InputError if an input cannot be read at all.
    """
    return _count(inputs, options or IndexCountOptions(), on_progress, is_estimated=False)


def estimate_index(
    inputs: Sequence[str | PathLike[str]],
    options: IndexCountOptions | None = None,
    on_progress: ProgressCallback | None = None,
) -> tuple[IndexCounts, InputReport]:
    """Return the same of inputs in any order.

    What is counted by row is exact. What is told of URI-Rs, keys and hosts is estimated: their numbers by sketches
    (`errors` has bounds that hold in 95 of 100 cases), the others from a sample of URI-Rs, all of whose rows are seen.
    """
    return _count(inputs, options or IndexCountOptions(), on_progress, is_estimated=True)


def _count(
    inputs: Sequence[str | PathLike[str]],
    wanted: IndexCountOptions,
    watch: ProgressCallback | None,
    *,
    is_estimated: bool,
) -> tuple[IndexCounts, InputReport]:
    counter = _GathererSink(
        _core.StatisticsGatherer(
            rules=wanted.rules,
            line_limit=MAX_LINE_BYTES,
            is_estimated=is_estimated,
            status=wanted.statuses(),
            mime=wanted.media_types(),
            exclude=sorted(wanted.exclude),
            threads=wanted.threads,
            memory=wanted.memory,
            block=wanted.block,
            sampled=wanted.sampled,
        )
    )
    report = InputReport()

    def work(progress: "Progress") -> IndexCounts:
        count_inputs(
            inputs,
            counter,
            report,
            progress,
            kind=wanted.kind,
            column=wanted.column,
            host=wanted.host,
            expected_header=UkvsHeader((), {}, ("surt",), ("frequency",), {}),
            allow_partial=wanted.allow_partial,
            max_bad=wanted.max_bad,
        )
        found = counter.gatherer.finish()
        about_files = {"files": len(inputs), "lines": report.lines, "filtered": report.filtered}
        rows = {**_row_counts(found), **about_files, "problems": dict(report.problems.counts)}
        return IndexCounts(**rows, **(_estimated_fields(found) if is_estimated else _exact_fields(found)))

    return run_with_progress(work, watch), report


def exact_counts(found: dict[str, Any]) -> IndexCounts:
    """Return what the core counted of a part, but for what is known of files only."""
    return IndexCounts(**_row_counts(found), **_exact_fields(found))


class _GathererSink:
    """Feeds the core."""

    def __init__(self, gatherer: "_core.StatisticsGatherer") -> None:
        self.gatherer = gatherer

    def add_file(
        self, path: str, progress: "Progress", urls: bool = False, column: int | None = None
    ) -> "tuple[Tally, str | None]":
        """Count the rows of an index, or the addresses of a list."""
        return self.gatherer.add_file(path, progress, urls, column)

    def add_rows(self, rows: "list[RowColumns]") -> "Tally":
        """Count rows that were read elsewhere."""
        return self.gatherer.add_rows(rows)

    def add_map(self, path: str, fields: int, line_limit: int, exclusions: bool, progress: "Progress") -> "Tally":
        """Refuse a map: it has neither dates nor types."""
        del fields, line_limit, exclusions, progress
        raise InputError(f"{path}: a map, not an index: `unlost map check` says what is in it")


def _row_counts(found: dict[str, Any]) -> dict[str, Any]:
    """Return what was counted by row, with texts for bytes."""
    year_uris, new_uris = dict(found["year_uris"]), dict(found["new_uris"])
    scale = 1 / found.get("sampled", 1)
    captures, classes = dict(found["months"]), dict(found["years"])
    return {
        **{name: found[name] for name in _NUMBER_FIELDS},
        "foreign": dict(sorted(found["schemes"])),
        "first": _date(found["first"]),
        "last": _date(found["last"]),
        "kinds": {(_text(mime), _text(status)): count for mime, status, count in sorted(found["kinds"])},
        "months": {
            str(month): (captures.get(month, 0), round(scale * new_uris.get(month, 0)))
            for month in sorted(captures.keys() | new_uris.keys())
        },
        "years": {
            str(year): YearCounts(round(scale * year_uris.get(year, 0)), tuple(classes.get(year, _NO_CLASSES)))
            for year in sorted(classes.keys() | year_uris.keys())
        },
        "captures_by_uri": {number: round(scale * times) for number, times in found["captures_by_uri"]},
        "path_query": tuple(found["path_query"]),
        "samples": tuple((_date(date), _text(uri)) for date, uri in found["samples"]),
    }


def _exact_fields(found: dict[str, Any]) -> dict[str, Any]:
    """Return what was counted by URI-R, key and host."""
    return {
        **{name: found[name] for name in ("uris", "pages", "hosts")},
        **{name: tuple(found[name]) for name in _DEPTH_FIELDS},
        "domains": {_text(name): DomainCounts(*counts) for name, counts in found["domains"]},
        "ip": DomainCounts(*found["ip"]),
        "levels": {name: DepthCounts(dict(prefixes), dict(children)) for name, prefixes, children in found["levels"]},
        "busy_pages": tuple(TopPage(_text(key), *counts) for key, *counts in found["busy_pages"]),
        "busy_hosts": tuple(TopHost(_text(host), *counts) for host, *counts in found["busy_hosts"]),
    }


def _estimated_fields(found: dict[str, Any]) -> dict[str, Any]:
    """Return what was estimated of URI-Rs, keys and hosts."""
    errors = {name: (low, high) for name in ("uris", "pages", "hosts", "ips") for _, low, high in [found[name]]}
    tops = {name: (0, found[f"{name}_error"]) for name in ("busy_pages", "busy_hosts")}
    return {
        **{name: found[name][0] for name in ("uris", "pages", "hosts")},
        "errors": {**errors, **tops},
        **{name: tuple(found[name]) for name in _DEPTH_FIELDS},
        "sampled": found["sampled"],
        "sampled_pages": found["sampled_pages"],
        "domains": {_text(name): DomainCounts(captures) for name, captures in sorted(found["domains"])},
        "ip": DomainCounts(found["ip_captures"], hosts=found["ips"][0]),
        "estimated_depths": {name: tuple(counts) for name, *counts in found["levels"] if counts[0]},
        "busy_pages": tuple(_top_page_with_host(busy, found["sampled"]) for busy in found["busy_pages"]),
        "busy_hosts": tuple(TopHost(host, low, 0) for host, low, _ in found["busy_hosts"]),
    }


def _top_page_with_host(busy: tuple[str, int, int, int], share: float) -> TopPage:
    """Return a URI-R with what its host has, by the others of it, and their captures, in a sample of this share."""
    key, captures, others, others_captures = busy
    if not others and share < 1:
        return TopPage(key, captures, 0, 0)
    return TopPage(key, captures, captures + round(others_captures / share), 1 + round(others / share))


_DEPTH_FIELDS = ("page_depths", "hosts_by_depth", "pages_by_host_depth")
_NO_CLASSES = (0,) * 6
_NUMBER_FIELDS = ("text_bytes", "captures", "record_bytes", "sized", "odd_dates", "further_kinds")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _date(number: int) -> str:
    return f"{number:014}" if number else ""
