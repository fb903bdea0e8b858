"""Statistics of a part of an index, which merge with those of other parts, in any order and grouping.

Parts may be cut anywhere between second-level domains: no host is in two of them then, and nothing is counted twice.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from json import dumps, loads
from typing import Any, TypeVar

from unlost import _core
from unlost.errors import InputError

VERSION = 2
"""Of the form in which parts are kept."""

MOST_KEPT = 100
"""The most archived URI-Rs and hosts that a part remembers."""

SAMPLES = 10
"""Captures that are kept to look at."""

Counts = dict[int, int]
"""How often which number occurred."""


K = TypeVar("K")
V = TypeVar("V")
B = TypeVar("B", "BusyPage", "BusyHost")


@dataclass(frozen=True, slots=True)
class Domain:
    """A top-level domain, or all IP addresses: its captures, URI-Rs, pages, hosts and second-level domains."""

    captures: int = 0
    uris: int = 0
    pages: int = 0
    hosts: int = 0
    children: int = 0

    def plus(self, other: "Domain") -> "Domain":
        """Return both together."""
        mine, more = _values(self), _values(other)
        return Domain(*(a + b for a, b in zip(mine, more, strict=True)))


@dataclass(frozen=True, slots=True)
class Year:
    """Of a year: URI-Rs with captures of it, and captures by class of status: none or odd, then 1xx to 5xx."""

    uris: int
    classes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """A depth of the tree: how many prefixes have how many pages, how many nodes above have how many children."""

    prefixes: Counts = field(default_factory=dict)
    children: Counts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BusyPage:
    """A URI-R with many captures: its key, and captures and URI-Rs of its host, 0 if nothing is known of these."""

    key: str
    captures: int
    host_captures: int
    host_uris: int


@dataclass(frozen=True, slots=True)
class BusyHost:
    """A host with many captures."""

    host: str
    captures: int
    uris: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
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
    years: Mapping[str, Year] = field(default_factory=dict)
    uris: int = 0
    pages: int = 0
    hosts: int = 0
    captures_by_uri: Counts = field(default_factory=dict)
    path_query: tuple[int, ...] = (0,) * 36
    page_depths: tuple[int, ...] = (0,) * 12
    hosts_by_depth: tuple[int, ...] = (0,) * 12
    pages_by_host_depth: tuple[int, ...] = (0,) * 12
    domains: Mapping[str, Domain] = field(default_factory=dict)
    ip: Domain = field(default_factory=Domain)
    levels: Mapping[str, Level] = field(default_factory=dict)
    busy_pages: tuple[BusyPage, ...] = ()
    busy_hosts: tuple[BusyHost, ...] = ()
    samples: tuple[tuple[str, str], ...] = ()
    errors: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    sampled: float = 1.0
    sampled_pages: float = 1.0
    estimated_depths: Mapping[str, tuple[int, int, int, int | None, float, float]] = field(default_factory=dict)

    @property
    def is_estimated(self) -> bool:
        """Whether the index was in no order, so that sketches and a sample had to do."""
        return bool(self.errors)

    def merge(self, other: "Partial") -> "Partial":
        """Return what both parts come to together. Raises InputError for estimates, which do not add up.

        >>> Partial(captures=3, kinds={("a", "b"): 3}).merge(Partial(captures=4, kinds={("a", "b"): 4})).kinds
        {('a', 'b'): 7}
        """
        if self.is_estimated or other.is_estimated:
            raise InputError("estimates do not add up: sort the index, or gather all of it at once")
        dates = [each.first for each in (self, other) if each.first]
        alike: dict[str, Any] = {
            **{name: getattr(self, name) + getattr(other, name) for name in _SUMS},
            **{name: _added(getattr(self, name), getattr(other, name)) for name in _TALLIES},
            **{name: _paired(getattr(self, name), getattr(other, name)) for name in _ROWS},
        }
        return Partial(
            **alike,
            first=min(dates, default=""),
            last=max(self.last, other.last),
            months=_joined(self.months, other.months, lambda a, b: (a[0] + b[0], a[1] + b[1])),
            years=_joined(self.years, other.years, lambda a, b: Year(a.uris + b.uris, _paired(a.classes, b.classes))),
            domains=_joined(self.domains, other.domains, Domain.plus),
            ip=self.ip.plus(other.ip),
            levels=_joined(
                self.levels,
                other.levels,
                lambda a, b: Level(_added(a.prefixes, b.prefixes), _added(a.children, b.children)),
            ),
            busy_pages=_first(self.busy_pages + other.busy_pages),
            busy_hosts=_first(self.busy_hosts + other.busy_hosts),
            samples=tuple(sorted({*self.samples, *other.samples}, key=_lot)[:SAMPLES]),
        )

    def in_order(self) -> "Partial":
        """Return the same with everything in the order of its names, as it is if all was gathered at once."""
        levels = {name: Level(_ordered(each.prefixes), _ordered(each.children)) for name, each in self.levels.items()}
        ordered: dict[str, Any] = {name: _ordered(getattr(self, name)) for name in _ORDERED}
        return replace(self, levels=levels, **ordered)

    def to_json(self) -> str:
        """Return it as one line of JSON, the same for the same numbers."""
        return dumps({"version": VERSION, **{each.name: _plain(getattr(self, each.name)) for each in fields(self)}})

    @staticmethod
    def from_json(text: str) -> "Partial":
        """Return what `to_json` gave. Raises InputError for anything else.

        >>> part = Partial(captures=2, kinds={("text/html", "200"): 2}, ip=Domain(1, 1, 1, 1, 0))
        >>> Partial.from_json(part.to_json()) == part
        True
        """
        try:
            values = loads(text)
            if values.pop("version") != VERSION:
                raise InputError("statistics of another version: gather them anew")
            return Partial(**{name: _READERS.get(name, _same)(value) for name, value in values.items()})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InputError("not statistics of a part of an index: expected what to_json gave") from error


def merged(parts: Iterable[Partial]) -> Partial:
    """Return what all parts come to together."""
    total = Partial()
    for part in parts:
        total = total.merge(part)
    return total


_SUMS = (
    "files", "lines", "text_bytes", "captures", "record_bytes", "sized", "odd_dates", "filtered", "further_kinds",
    "uris", "pages", "hosts",
)  # fmt: skip
_TALLIES = ("foreign", "problems", "kinds", "captures_by_uri")
_ORDERED = ("foreign", "kinds", "months", "years", "captures_by_uri", "domains")
_ROWS = ("path_query", "page_depths", "hosts_by_depth", "pages_by_host_depth")


def _values(domain: Domain) -> tuple[int, ...]:
    return (domain.captures, domain.uris, domain.pages, domain.hosts, domain.children)


def _added(mine: Mapping[K, int], more: Mapping[K, int]) -> dict[K, int]:
    return _joined(mine, more, int.__add__)


def _joined(mine: Mapping[K, V], more: Mapping[K, V], plus: Callable[[V, V], V]) -> dict[K, V]:
    joined = dict(mine)
    for key, value in more.items():
        joined[key] = plus(joined[key], value) if key in joined else value
    return joined


def _paired(mine: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(mine, more, strict=True))


def _first(busy: tuple[B, ...]) -> tuple[B, ...]:
    """Return those with most captures, by name where these are equal: whoever came first makes no difference."""
    return tuple(sorted(busy, key=lambda each: (-each.captures, _name(each)))[:MOST_KEPT])


def _name(busy: BusyPage | BusyHost) -> str:
    return busy.key if isinstance(busy, BusyPage) else busy.host


def _ordered(values: Mapping[Any, V]) -> dict[Any, V]:
    return {key: values[key] for key in sorted(values)}


def _lot(sample: tuple[str, str]) -> tuple[int, tuple[str, str]]:
    """Return what decides which samples are kept: a hash, so that all have the same chance, and parts keep the same."""
    date, uri = sample
    return _core.sample_lot(int(date), uri.encode("utf-8", "surrogatepass")), sample


def _plain(value: object) -> object:
    """Return a value as JSON has it: objects whose names are no texts as lists of pairs, ours as lists."""
    if isinstance(value, Mapping):
        return [[_plain(key), _plain(each)] for key, each in value.items()]
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Domain | Year | Level | BusyPage | BusyHost):
        return [_plain(getattr(value, each.name)) for each in fields(value)]
    return value


def _same(value: Any) -> Any:  # noqa: ANN401  whatever it is
    return value


_READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("foreign", "problems", "captures_by_uri"), dict),
    **dict.fromkeys(_ROWS, tuple),
    "kinds": lambda pairs: {(mime, status): count for (mime, status), count in pairs},
    "months": lambda pairs: {month: (captures, new) for month, (captures, new) in pairs},
    "years": lambda pairs: {year: Year(uris, tuple(classes)) for year, (uris, classes) in pairs},
    "domains": lambda pairs: {name: Domain(*values) for name, values in pairs},
    "ip": lambda values: Domain(*values),
    "levels": lambda pairs: {name: Level(dict(prefixes), dict(children)) for name, (prefixes, children) in pairs},
    "busy_pages": lambda rows: tuple(BusyPage(*row) for row in rows),
    "busy_hosts": lambda rows: tuple(BusyHost(*row) for row in rows),
    "errors": lambda pairs: {name: (low, high) for name, (low, high) in pairs},
    "estimated_depths": lambda pairs: {name: tuple(counts) for name, counts in pairs},
    "samples": lambda rows: tuple((date, uri) for date, uri in rows),
}
