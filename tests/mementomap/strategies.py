"""Strategies for keys, rows and maps with edge cases: byte order around `/`, deep trees, ports, IP addresses.

Keys are canonical by construction and their variants are derived from them, so no normaliser is needed.
"""

import json
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.models.frequency import Frequency
from tests.models.mementomap import Compaction, Lines, domain, folder, host_labels, page, split

# Few of each, so that they collide as siblings and as parent and child. `-`, `.` and `+` sort before `/`, `0` after it;
# `*` and `,` are always escaped in keys.
SEGMENTS = ["a", "b", "a-b", "a.html", "a0", "a+b", "a,b", "%2a", "a%2a", "%25", "%c3%bc", "~", "a)b", "(", "!", "a:1"]
LABELS = ["a", "b", "c", "a-b", "a0", "a%2bb", "a_b", "%2a", "a%2cb", "%21", "xn--bcher-kva"]
TOPS = ["com", "uk", "localhost", "co"]
IP_ADDRESSES = ["4,3,2,1", "4,3,2,10", "1,2,3,4", "[2001:db8::1]"]
LONG = "x" * 5000  # longer than a memory page
QUERIES = ["", "", "", "?q", "?a=1&b=2", "?q=/a/b", "?%2a"]
YEARS = ["1996", "2013", "2014", "2015"]

_segments = st.sampled_from(SEGMENTS)
_paths = st.one_of(
    st.lists(_segments, max_size=3),
    st.lists(st.sampled_from(SEGMENTS[:2]), max_size=12),  # past the limit of 9
    st.builds(lambda n: ["a", f"p{n}"], st.integers(0, 40)),  # past every cut-off of the second depth
    st.builds(lambda n: [f"p{n}"], st.integers(0, 60)),
    st.lists(st.sampled_from(["a", LONG]), max_size=2),
)


def _name(top: str, labels: list[str]) -> str:
    return ",".join([top, *labels])


_names = st.one_of(
    st.builds(_name, st.sampled_from(TOPS), st.lists(st.sampled_from(LABELS), max_size=3)),
    st.builds(_name, st.just("com"), st.lists(st.sampled_from(LABELS[:2]), max_size=10)),  # past the limit of 8
    st.builds(lambda n: f"com,a,s{n}", st.integers(0, 30)),  # past the cut-off
    st.builds(lambda n: f"com,a,b,s{n}", st.integers(0, 20)),
    st.just("com,a"),
)
HOSTS = st.builds(
    lambda host, port: host + port,
    st.one_of(_names, _names, _names, st.sampled_from(IP_ADDRESSES)),
    st.sampled_from(["", "", "", "", ":81", ":8080"]),
)

PAGES = st.builds(lambda host, path: f"{host})/{'/'.join(path)}", HOSTS, _paths)
"""Keys without a query, as in maps."""

KEYS = st.builds(lambda page, query: page + query, PAGES, st.sampled_from(QUERIES))
"""Keys with or without a query."""


@st.composite
def bushes(draw: st.DrawFn) -> list[str]:
    """Draw the keys of a page or host with many children, around the cut-offs at weight 1."""
    labels, segments = host_labels(draw(HOSTS)), draw(st.lists(_segments, max_size=3))
    size = draw(st.sampled_from([2, 4, 6, 8, 10, 25, 30]))
    if segments or ":" in labels[-1] or "," in labels[0] or draw(st.booleans()):
        return [page(labels, [*segments, f"p{n}"]) for n in range(size)]
    return [page([*labels, f"s{n}"], []) for n in range(size)]


@dataclass(frozen=True)
class Row:
    """One index row and its expected key.

    key: None if the row is not a web page. spelling: the content of the key column.
    """

    key: str | None
    spelling: str
    url: str
    timestamp: str
    status: str = "200"
    mime: str = "text/html"

    def cdxj(self) -> bytes:
        """Return the row as a line of CDXJ."""
        fields = {"url": self.url, "mime": self.mime, "status": self.status, "digest": "AB", "length": "9"}
        return f"{self.spelling} {self.timestamp} {json.dumps(fields | {'offset': '7', 'filename': 'a'})}\n".encode()

    def cdx(self) -> bytes:
        """Return the row as a line of CDX with 11 columns."""
        return f"{self.spelling} {self.timestamp} {self.url} {self.mime} {self.status} AB - - 9 7 a\n".encode()


def url(key: str) -> str:
    """Return the URL of a canonical key."""
    host_and_port, _, tail = key.partition(")")
    host, colon, port = host_and_port.rpartition(":")
    if not colon or "]" in port:
        host, colon, port = host_and_port, "", ""
    name = host if host.startswith("[") else ".".join(reversed(host.split(",")))
    return f"http://{name}{colon}{port}{tail}"


def spellings(key: str) -> list[str]:
    """Return the variants of a key that indexes contain, the key itself first."""
    head, _, tail = key.partition(")")
    path, mark, query = tail.partition("?")
    plain = host_labels(head)[0] != head or "," not in head  # otherwise an IPv4 address
    bare = ":" not in head and "[" not in head
    rest = mark + query
    variants = [key, key.upper(), key.replace("%2a", "*"), "-", url(key), url(key).removeprefix("http://")]
    variants.append(f"{head}){'' if path == '/' else path + '/'}{rest}")  # with or without the trailing slash
    variants.append(f"{head}){path.replace('/', '//')}{rest}")  # empty segments
    variants.append(f"http://({head}){tail}")
    if not mark:
        variants.append(key + "?")
    if "[" in head:
        variants.append(key.replace("[", "").replace("]", "") if head.endswith("]") else key)
    elif not plain:
        numbers, colon, port = head.partition(":")
        variants.append(f"{'.'.join(reversed(numbers.split(',')))}{colon}{port}){tail}")
    else:
        name, colon, port = head.partition(":")
        variants += [f"{name},www{colon}{port}){tail}", f"{name},www2{colon}{port}){tail}"]
    if bare and plain:
        variants += [f"{head},){tail}", f"http://({head},){tail}", f"http://({head},www,){tail}"]
    return variants


@st.composite
def _pages(draw: st.DrawFn, keys: st.SearchStrategy[str]) -> Row:
    key = draw(keys)
    timestamp = draw(st.sampled_from(YEARS)) + draw(st.sampled_from(["0101000000", "0611123000", "1231235959"]))
    status = draw(st.sampled_from(["200", "200", "404", "301"]))
    mime = draw(st.sampled_from(["text/html", "text/html", "image/png"]))
    return Row(key, draw(st.sampled_from(spellings(key))), url(key), timestamp, status, mime)


PAGE_ROWS = _pages(KEYS)
"""Rows of pages with any key variant."""

DNS_ROWS = st.builds(
    lambda name, key: Row(None, key, f"dns:{name}", "20140101000000", "200", "text/dns"),
    st.sampled_from(["a.com", "b.a.com"]),
    st.sampled_from(["com,a)/", "dns:a.com"]),
)
"""Rows that are not pages, perhaps with the key of a page."""


def _bush_rows(keys: list[str]) -> list[Row]:
    """Return rows whose key variants and years differ without a draw for each row."""
    return [
        Row(key, spellings(key)[n % len(spellings(key))], url(key), YEARS[n % len(YEARS)] + "0101000000")
        for n, key in enumerate(keys)
    ]


ROWS = st.builds(
    lambda rows, bushes: [row for part in [rows, *bushes] for row in part],
    st.lists(st.one_of(PAGE_ROWS, PAGE_ROWS, PAGE_ROWS, DNS_ROWS), max_size=30),
    st.lists(bushes().map(_bush_rows), max_size=3),
).filter(lambda rows: any(row.key for row in rows))
"""Unsorted indexes with at least one page."""


def captures(rows: list[Row]) -> list[tuple[str, str]]:
    """Return key and timestamp of every page, as counted by the model."""
    return [(row.key, row.timestamp) for row in rows if row.key is not None]


HELD = st.sampled_from(["1", "3", "12", "5+", "7-", "9~", "0+", "/", "4/2", "6~/3+", "/5", "8/1-"])
EXCLUDED = st.sampled_from(["0", "0", "0/20"])


@st.composite
def wildcards(draw: st.DrawFn) -> str:
    """Draw a wildcard that covers a page."""
    labels, segments = split(draw(PAGES))
    if draw(st.booleans()):
        return folder(labels, segments[: draw(st.integers(0, len(segments)))])
    n = draw(st.integers(1, len(labels)))
    return domain(labels[:n])


def _maps(frequencies: st.SearchStrategy[str], years: list[str]) -> st.SearchStrategy[Lines]:
    def build(lines: dict[tuple[str, str], str], bushes: list[list[str]], cycle: list[str]) -> Lines:
        keys = [key for bush in bushes for key in bush]
        generated = {(key, years[n % len(years)]): cycle[n % len(cycle)] for n, key in enumerate(keys)}
        return {place: Frequency.parse(text) for place, text in (generated | lines).items()}

    places = st.tuples(st.one_of(PAGES, PAGES, wildcards()), st.sampled_from(years))
    lines = st.dictionaries(places, frequencies, min_size=1, max_size=20)
    return st.builds(build, lines, st.lists(bushes(), max_size=3), st.lists(frequencies, min_size=1, max_size=9))


MAPS = _maps(st.one_of(HELD, HELD, EXCLUDED), [""])
"""Maps with wildcards, exclusions and all kinds of frequencies, without a total."""

YEARLY_MAPS = _maps(HELD, YEARS)
"""Maps by year, without exclusions."""

WEIGHTS = [float("inf"), 4.0, 2.0, 1.0, 0.5, 0.25, 0.0]

COMPACTIONS = st.builds(Compaction, st.sampled_from(WEIGHTS), st.sampled_from(WEIGHTS))
"""Compactions that differ only in weights."""


def _without_too_deep_rollups(how: Compaction) -> Compaction:
    """Remove forced roll-ups of the last level, which are rejected."""

    def is_deep(key: str) -> bool:
        host, end, path = key[:-2].partition(")")
        if end:
            return path.count("/") + 1 >= max(how.path_depth, 2)
        return (len(host_labels(host)) > 1 and host.count(",") + 1 >= how.host_depth) or how.host_depth == 1

    return replace(how, rollup=tuple(key for key in how.rollup if not is_deep(key)))


CUSTOM_COMPACTIONS = st.builds(
    Compaction,
    st.sampled_from([0.0, 0.25, 1.0]),
    st.sampled_from([0.0, 0.25, 1.0]),
    host_a=st.sampled_from([16.329, 5.0]),
    host_k=st.sampled_from([0.714, 2.0]),
    path_a=st.sampled_from([24.546, 5.0]),
    path_k=st.sampled_from([1.429, 0.0]),
    host_depth=st.integers(1, 10),
    path_depth=st.integers(1, 12),
    rollup=st.lists(wildcards(), max_size=2).map(tuple),
).map(_without_too_deep_rollups)
"""Compactions with any parameters and forced roll-ups."""
