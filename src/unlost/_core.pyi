# The Rust core. Import from the packages that speak for it (`unlost.uri`), where things are explained.

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Final, TypeAlias, final

from unlost.errors import UriError
from unlost.formats.frequency import Frequency

VERSION: Final[str]
MAX_URI_BYTES: Final[int]
POLICIES: Final[tuple[str, ...]]
RULE_SETS: Final[tuple[str, ...]]

def canonical(uri: str | bytes, rules: str = "wayback") -> str: ...
def canonical_many(uris: Iterable[str | bytes], rules: str = "wayback") -> list[str | UriError]: ...
def foreign_scheme(uri: str | bytes) -> str | None: ...
def key(uri: str | bytes, rules: str = "wayback") -> str: ...
def key_many(uris: Iterable[str | bytes], rules: str = "wayback") -> list[str | UriError]: ...
def policy_name(name: str) -> str: ...
def row_key(key: str | bytes, uri: str | bytes, rules: str = "wayback") -> str: ...
def segments(key: str | bytes) -> tuple[list[str], list[str], str | None]: ...
def spellings(key: str | bytes) -> list[str]: ...
def surt(uri: str | bytes, rules: str = "wayback") -> str: ...
def surt_many(uris: Iterable[str | bytes], rules: str = "wayback") -> list[str | UriError]: ...
def unsurt(surt: str | bytes, rules: str = "wayback") -> str: ...
def unsurt_many(surts: Iterable[str | bytes], rules: str = "wayback") -> list[str | UriError]: ...

_List: TypeAlias = tuple[str, str | None, str | None, str | None]

def read_timemap(
    body: bytes,
) -> tuple[
    str | None,
    _List | None,
    str | None,
    list[_List],
    tuple[list[str], list[str], list[bool], list[bool], list[bool]],
    int,
    list[tuple[str, int, int]],
]: ...

@final
class SuffixList:
    def __new__(cls, text: bytes | None = None, section: str = "all") -> SuffixList: ...
    def registered_domain(self, uri: str | bytes) -> str: ...

@final
class KeyPolicies:
    def __new__(
        cls, policies: Sequence[str], rules: str = "wayback", suffixes: SuffixList | None = None
    ) -> KeyPolicies: ...
    @property
    def policies(self) -> list[str]: ...
    def keys(self, uri: str | bytes) -> list[str]: ...
    def keys_many(self, uris: Iterable[str | bytes]) -> list[list[str] | UriError]: ...

@final
class LineReader:
    def __new__(cls, path: str | PathLike[str], limit: int) -> LineReader: ...
    def batch(self, count: int) -> list[tuple[int, int, bytes, bool, bool]]: ...
    @property
    def damage(self) -> str | None: ...
    @property
    def position(self) -> int: ...

@final
class KeyColumn:
    rows: int
    left_out: int
    keys: int
    first_unsorted: int | None
    damage: str | None

def key_column(path: str | PathLike[str], limit: int) -> KeyColumn: ...
def is_compressed(head: bytes) -> bool: ...
def inflated_length(path: str | PathLike[str]) -> int: ...
def jenkins(data: bytes) -> int: ...

@final
class Inflated:
    def __new__(cls, data: bytes) -> Inflated: ...
    def read(self, count: int) -> bytes: ...
    @property
    def damage(self) -> str | None: ...

@final
class WarcBody:
    @staticmethod
    def open(
        path: str | PathLike[str], offset: int, skip: int = 0, start: int = 0, length: int | None = None
    ) -> WarcBody | None: ...
    @property
    def fields(self) -> list[tuple[str, bytes]]: ...
    @property
    def http_head(self) -> bytes | None: ...
    def read(self, count: int) -> bytes: ...
    def problems(self) -> list[tuple[str, int, str]]: ...

@final
class WarcRecord:
    @property
    def offset(self) -> int: ...
    @property
    def skip(self) -> int: ...
    @property
    def length(self) -> int | None: ...
    @property
    def type(self) -> str: ...
    @property
    def uri(self) -> str | None: ...
    @property
    def date(self) -> str | None: ...
    @property
    def is_arc(self) -> bool: ...
    @property
    def content_type(self) -> str | None: ...
    @property
    def digest(self) -> str | None: ...
    @property
    def status(self) -> int | None: ...
    @property
    def mime(self) -> str | None: ...
    @property
    def location(self) -> str | None: ...
    @property
    def refers_to_uri(self) -> str | None: ...
    @property
    def refers_to_date(self) -> str | None: ...
    @property
    def id(self) -> str | None: ...
    @property
    def is_truncated(self) -> bool: ...
    @property
    def is_short(self) -> bool: ...

@final
class WarcScanner:
    def __new__(
        cls,
        path: str | PathLike[str],
        digests: bool = True,
        types: Iterable[str] | None = None,
        start: int = 0,
        length: int | None = None,
        inflated: int | None = None,
    ) -> WarcScanner: ...
    @property
    def position(self) -> int: ...
    def next_batch(self) -> tuple[list[WarcRecord], list[tuple[str, int, str]]] | None: ...

@final
class SynthUrls:
    def __new__(cls, path: str | PathLike[str], column: int | None) -> SynthUrls: ...
    @property
    def is_empty(self) -> bool: ...
    @property
    def refused(self) -> list[tuple[str, int, int, int, str]]: ...

def write_synthetic_index(
    write: Callable[[bytes], object],
    lines: int,
    seed: int,
    urls: SynthUrls | None,
    largest_host: int | None,
    shuffled: bool,
    packing: str,
) -> None: ...

@final
class Answer:
    def __new__(
        cls, key: str, held: bool, matched: str | None = None, frequency: Frequency | str | None = None
    ) -> Answer: ...
    @property
    def key(self) -> str: ...
    @property
    def held(self) -> bool: ...
    @property
    def matched(self) -> str | None: ...
    @property
    def frequency(self) -> Frequency | None: ...
    def __hash__(self) -> int: ...

@final
class MapSource:
    @staticmethod
    def open(path: str | PathLike[str]) -> MapSource: ...
    @staticmethod
    def load(path: str | PathLike[str], limit: int) -> MapSource: ...
    @property
    def header(self) -> bytes: ...
    def rows(self, frequency: int | None, rolled_up: bool) -> MapRows: ...

@final
class MapRows:
    def lookup(self, uri: str | bytes, rules: str) -> Answer: ...
    def lookup_many(
        self, uris: Iterable[str | bytes], rules: str, threads: int | None = None
    ) -> list[Answer | UriError]: ...
    def lookup_keys_many(self, keys: Iterable[str | bytes], threads: int | None = None) -> list[Answer]: ...

LayerFields: TypeAlias = tuple[
    str, str, int, int, tuple[str, str] | None, str | None, tuple[str | None, str | None, str | None]
]

@final
class FilterFile:
    @staticmethod
    def open(path: str | PathLike[str]) -> FilterFile: ...
    @property
    def layers(self) -> list[LayerFields]: ...
    def check(self) -> list[str]: ...
    def lookup(self, uri: str | bytes) -> bool: ...
    def lookup_many(self, uris: Iterable[str | bytes], threads: int | None = None) -> list[bool | UriError]: ...
    def lookup_key(self, key: str | bytes) -> bool: ...
    def lookup_keys_many(self, keys: Iterable[str | bytes], threads: int | None = None) -> list[bool]: ...

Tally: TypeAlias = tuple[int, int, int, int, list[tuple[str, int, int, int, bytes]]]
CompactionCurves: TypeAlias = tuple[tuple[float, float, float, int], tuple[float, float, float, int], list[bytes]]
RowColumns: TypeAlias = tuple[bytes, bytes, bytes, bytes, bytes]

@final
class Progress:
    def __new__(cls) -> Progress: ...
    @property
    def bytes(self) -> int: ...
    @property
    def lines(self) -> int: ...
    def cancel(self) -> None: ...

@final
class MapShape:
    parents: list[int]
    children: list[int]
    rollups: list[int]
    host_levels: int
    lines_in: int
    lines_out: int
    trace: list[tuple[int, int]]

@final
class MapBuilder:
    def __new__(
        cls,
        *,
        rules: str,
        line_limit: int,
        queries: bool = False,
        by_year: bool = False,
        status: Sequence[bytes] = (),
        mime: Sequence[bytes] = (),
        exclude: Sequence[str] = (),
        is_sorted: bool = False,
        threads: int | None = None,
        memory: int | None = None,
        block: int | None = None,
    ) -> MapBuilder: ...
    def add_file(
        self, path: str | PathLike[str], progress: Progress, urls: bool = False, column: int | None = None
    ) -> tuple[Tally, str | None]: ...
    def add_rows(self, rows: list[RowColumns]) -> Tally: ...
    def add_map(
        self, path: str | PathLike[str], fields: int, line_limit: int, exclusions: bool, progress: Progress
    ) -> Tally: ...
    def begin(self, path: str | PathLike[str], headers: bytes, size: int) -> bool: ...
    def end(self, progress: Progress) -> None: ...
    def write(
        self, path: str | PathLike[str], headers: bytes, compaction: CompactionCurves | None, progress: Progress
    ) -> MapShape | None: ...

@final
class FilterBuilder:
    def __new__(
        cls,
        *,
        rules: str,
        queries: bool,
        status: Sequence[bytes],
        mime: Sequence[bytes],
        exclude: Sequence[str],
        line_limit: int,
        threads: int | None = None,
        memory: int | None = None,
        block: int | None = None,
    ) -> FilterBuilder: ...
    def add_file(
        self, path: str | PathLike[str], progress: Progress, urls: bool = False, column: int | None = None
    ) -> tuple[Tally, str | None]: ...
    def add_rows(self, rows: list[RowColumns]) -> Tally: ...
    def add_map(
        self, path: str | PathLike[str], fields: int, line_limit: int, exclusions: bool, progress: Progress
    ) -> Tally: ...
    def write(
        self,
        path: str | PathLike[str],
        bits: int,
        made: str | None,
        chosen: Sequence[str | None],
        base: FilterFile | None,
        progress: Progress,
    ) -> tuple[int, int]: ...

def compact_map(
    source: str | PathLike[str],
    fields: int,
    line_limit: int,
    target: str | PathLike[str],
    headers: bytes,
    compaction: CompactionCurves,
    memory: int | None,
    progress: Progress,
) -> tuple[MapShape, Tally]: ...

@final
class Rollups:
    @property
    def cost(self) -> float: ...
    @property
    def loss(self) -> float: ...
    @property
    def is_all(self) -> bool: ...
    def keys(self) -> list[bytes]: ...
    def write(
        self,
        source: str | PathLike[str],
        fields: int,
        line_limit: int,
        target: str | PathLike[str],
        headers: bytes,
        memory: int | None,
        progress: Progress,
    ) -> MapShape: ...

@final
class MapScale:
    def __new__(
        cls,
        source: str | PathLike[str],
        fields: int,
        line_limit: int,
        *,
        queries: str | PathLike[str] | None,
        weighs: bool,
        depths: tuple[int, int],
        protects: bool,
        forced: Sequence[bytes],
        prior: tuple[float, float, float, float, float],
        memory: int | None,
        progress: Progress,
    ) -> MapScale: ...
    @property
    def keys(self) -> int: ...
    @property
    def wildcards(self) -> int: ...
    @property
    def missed(self) -> int: ...
    @property
    def hit(self) -> int: ...
    @property
    def smallest(self) -> tuple[float, float]: ...
    def tally(self) -> Tally: ...
    def weigh(self, limit: float) -> tuple[float, float]: ...
    def choose(self, limit: float) -> Rollups: ...

def gzip_size(path: str | PathLike[str], level: int, progress: Progress) -> int: ...
def merge_maps(
    sources: Sequence[tuple[str | PathLike[str], bool]],
    fields: int,
    line_limit: int,
    target: str | PathLike[str],
    headers: bytes,
    progress: Progress,
) -> tuple[int, int, list[Tally]]: ...
def write_profiles(
    builder: MapBuilder,
    profiles: list[tuple[str, str, bytes]],
    suffixes: SuffixList,
    as_json: bool,
    progress: Progress,
) -> None: ...
def merge_profiles(sources: list[str], line_limit: int, target: str, headers: bytes, progress: Progress) -> None: ...
def profiles_to_map(
    sources: list[tuple[str, str]],
    line_limit: int,
    target: str,
    headers: bytes,
    progress: Progress,
    memory: int | None = None,
) -> None: ...
def check_profile(
    path: str, policy_name: str, rules: str, suffixes: SuffixList, line_limit: int, progress: Progress
) -> tuple[int, int | None, int, Tally]: ...
