"""Synthetic indexes and queries of any size, with the distributions found in the papers, reproducible byte for byte."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from unlost import _core
from unlost.atomic import atomic_file
from unlost.errors import InputError, UriError, UsageError
from unlost.mementomap.builder import build_map
from unlost.mementomap.map import Map
from unlost.mementomap.profile_builder import ProfileHeader, build_profiles
from unlost.mementomap.readers import refuse_pipes
from unlost.problems import Problem, Problems, unreadable_error
from unlost.text_lines import read_urls
from unlost.uri import key_many, unsurt, unsurt_many

MAX_SEED = 2**64 - 1
MAX_LINES = 10**12
"""Plausibility limit, which exceeds the index of any archive."""
_COMPRESSION_BY_SUFFIX = {".gz": "gzip", ".zst": "zstd"}

MAX_QUERIES = 10**8
_SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru", "sa", "te", "vi", "zo")
_SUFFIXES = ("com", "org", "net", "info", "de", "fr", "pt", "co.uk")
_BATCH_URLS = 100_000
_MAX_TRIES = 40
"""Attempts to generate URLs that are not in the index, before giving up on an index that contains nearly all of
them.
"""


class BytesWriter(Protocol):
    """A binary file opened for writing, or a similar object."""

    def write(self, data: bytes, /) -> object:
        """Write all bytes."""
        ...


@dataclass(frozen=True, slots=True)
class SynthIndexOptions:
    """Options of a synthetic index. Equal options give equal bytes on every machine with the same version of unlost.

    Attributes:
        lines: Exact number of lines.
        seed: Seed of the random numbers.
        urls: List of URLs, plain, gzip or zstd, to use instead of synthetic ones.
        column: Column of the URLs in a TSV file, from 1.
        largest_host: Number of keys (pages without query) of the largest host.
        shuffled: Write the lines in random order.
    """

    lines: int
    seed: int = 0
    urls: str | PathLike[str] | None = None
    column: int | None = None
    largest_host: int | None = None
    shuffled: bool = False

    def __post_init__(self) -> None:
        """Validate the options.

        Raises:
            UsageError: An option is invalid.
        """
        if not 1 <= self.lines <= MAX_LINES:
            raise UsageError(f"lines: expected 1 to {MAX_LINES}")
        if not 0 <= self.seed <= MAX_SEED:
            raise UsageError(f"seed: expected 0 to {MAX_SEED}")
        if self.urls is None and self.column is not None:
            raise UsageError("column: there is no list of addresses whose column it could be: give urls too")
        if self.column is not None and self.column < 1:
            raise UsageError("column: columns are counted from 1")
        if self.largest_host is not None:
            if self.urls is not None:
                raise UsageError("largest_host: the hosts of a list are as large as they are: leave out one of the two")
            if not 1 <= self.largest_host <= self.lines:
                raise UsageError("largest_host: every key needs a line: expected 1 to the number of lines")


def write_synthetic_index(options: SynthIndexOptions, path: str | PathLike[str], problems: Problems) -> None:
    """Write a synthetic CDXJ index atomically, compressed if the path ends in `.gz` or `.zst`.

    Args:
        options: Options of the index.
        path: File to write.
        problems: Collects the invalid lines of the URL list.

    Raises:
        InputError: The URL list cannot be read or has no URL.
        OSError: The file cannot be written.
    """
    urls = _read_urls(options, problems)
    with atomic_file(path) as file:
        _write_rows(options, urls, file, _COMPRESSION_BY_SUFFIX.get(Path(path).suffix, "plain"))


def write_synthetic_index_to(options: SynthIndexOptions, file: BytesWriter, problems: Problems) -> None:
    r"""Write an uncompressed synthetic CDXJ index to an open file; see `write_synthetic_index`.

    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> write_synthetic_index_to(SynthIndexOptions(lines=3, seed=1), file, Problems())
    >>> file.getvalue().count(b"\n")
    3
    """
    _write_rows(options, _read_urls(options, problems), file, "plain")


def _write_rows(options: SynthIndexOptions, urls: _core.SynthUrls | None, file: BytesWriter, compression: str) -> None:
    _core.write_synthetic_index(
        file.write, options.lines, options.seed, urls, options.largest_host, options.shuffled, compression
    )


def _read_urls(options: SynthIndexOptions, problems: Problems) -> _core.SynthUrls | None:
    if options.urls is None:
        return None
    name = fspath(options.urls)
    try:
        urls = _core.SynthUrls(options.urls, options.column)
    except OSError as error:
        raise unreadable_error(name, error) from error
    for kind, count, number, offset, message in urls.rejected:
        problems.add(Problem(kind, name, number, offset, message), count)
    if urls.is_empty:
        raise InputError(f"{name}: there is no address in it: expected one a line, or give the column")
    return urls


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthQueryOptions:
    """Options of synthetic queries.

    URLs from the two lists that are in the index are skipped, so that the shares are exact.

    Attributes:
        count: Number of queries.
        held: Share of queries for URLs in the index.
        near: Share of queries for pages near held ones (near misses). The remaining queries are unrelated to the index.
        seed: Seed of the random numbers.
        near_urls: List of URLs to use as near misses, such as those omitted from the index; None to generate them.
        unrelated_urls: List of URLs to use as unrelated queries; None to generate them.
    """

    count: int
    held: float = 0.1
    near: float = 0.3
    seed: int = 0
    near_urls: str | PathLike[str] | None = None
    unrelated_urls: str | PathLike[str] | None = None

    def __post_init__(self) -> None:
        """Validate the options.

        Raises:
            UsageError: An option is invalid.
        """
        if not 1 <= self.count <= MAX_QUERIES:
            raise UsageError(f"count: expected 1 to {MAX_QUERIES}")
        if not (0 <= self.held <= 1 and 0 <= self.near <= 1 and self.held + self.near <= 1.000_000_1):
            raise UsageError("held and near: expected shares from 0 to 1 that are at most 1 together")

    def counts(self) -> tuple[int, int, int]:
        """Return the number of held, near and unrelated queries.

        >>> SynthQueryOptions(count=10, held=0.25, near=0.5).counts()
        (2, 5, 3)
        """
        held = round(self.count * self.held)
        near = min(round(self.count * self.near), self.count - held)
        return held, near, self.count - held - near


@dataclass(frozen=True, slots=True)
class SynthQueryCounts:
    """Number of queries of each kind."""

    held: int
    near: int
    unrelated: int


def write_synthetic_queries(
    index: Sequence[str | PathLike[str]], options: SynthQueryOptions, output: Path, problems: Problems
) -> SynthQueryCounts:
    """Write queries, one URL per line in random order, and return their number by kind.

    Output is reproducible for equal inputs with one version of unlost. Held queries are sampled uniformly from the
    whole URLs (URI-Rs) of the index, repeatedly if there are too few. The other queries are for pages without any
    capture in the index, whatever the query string.

    Raises:
        InputError: The index is empty, or a list has too few URLs.
    """
    refuse_pipes(index)  # each is read twice
    counts = options.counts()
    rng = random.Random(options.seed)  # noqa: S311  synthetic data
    with TemporaryDirectory(prefix="unlost-queries-") as name:
        pages, profile = Path(name, "pages.ukvs"), Path(name, "addresses")
        report = build_map(index, pages)
        for kind, count in report.problems.counts.items():
            problems.add(report.problems.first[kind], count)
        build_profiles(index, {"URIR": profile}, ProfileHeader("URIR"), Problems())
        keys = _sample_keys(profile, counts[0] + counts[1], rng)
        if not keys:
            raise InputError(f"{fspath(index[0])}: nothing in it: expected an index")
        holdings = Map.open(pages)
        held = [unsurt(key) for key in _draw(keys, counts[0], rng)]
        if options.near_urls is not None:
            near = _sample_misses(options.near_urls, counts[1], holdings, rng, problems)
        else:
            near = list(
                _generate_misses(lambda: _near_miss_url(rng.choice(keys), rng), counts[1], holdings, "near-miss")
            )
        if options.unrelated_urls is not None:
            unrelated = _sample_misses(options.unrelated_urls, counts[2], holdings, rng, problems)
        else:
            unrelated = list(_generate_misses(lambda: _unrelated_url(rng), counts[2], holdings, "stranger"))
    queries = held + near + unrelated
    rng.shuffle(queries)
    with atomic_file(output) as file:
        file.writelines(f"{query}\n".encode("utf-8", "surrogateescape") for query in queries)
    return SynthQueryCounts(len(held), len(near), len(unrelated))


def _sample_keys(profile: Path, most: int, rng: random.Random) -> list[str]:
    """Return at most `most` keys of a profile, sampled uniformly, in file order."""
    with profile.open("rb") as file:
        count = sum(not line.startswith(b"@") for line in file)
    selected = set(rng.sample(range(count), min(count, max(1, most))))
    with profile.open("rb") as file:
        rows = (line for line in file if not line.startswith(b"@"))
        keys = [row.partition(b" ")[0].decode() for index, row in enumerate(rows) if index in selected]
    urls = unsurt_many(keys)
    # Skip keys whose URL has another key.
    round_trip = key_many([url if isinstance(url, str) else "" for url in urls])
    return [key for key, other in zip(keys, round_trip, strict=True) if key == other]


def _draw(keys: Sequence[str], count: int, rng: random.Random) -> list[str]:
    """Return `count` keys, without repetition as long as possible."""
    drawn: list[str] = []
    while len(drawn) < count:
        drawn += rng.sample(keys, min(len(keys), count - len(drawn)))
    return drawn


def _near_miss_url(key: str, rng: random.Random) -> str:
    """Return a URL near a held one: another page of its folder, or the same page in another folder."""
    page = unsurt(key.partition("?")[0])
    folder, _, file_name = page.rpartition("/")
    name, dot, extension = file_name.rpartition(".") if "." in file_name else (file_name, "", "")
    match rng.randrange(3):
        case 0:
            return f"{folder}/{name or 'page'}{rng.choice('-_')}{rng.randrange(100)}{dot}{extension}"
        case 1:
            return f"{folder}/{_word(rng)}{dot}{extension}"
        case _:
            return f"{folder}/{_word(rng)}/{file_name or 'index.html'}"


def _unrelated_url(rng: random.Random) -> str:
    """Return a URL on a random host with up to three path segments."""
    host = f"{_word(rng)}{_word(rng)}.{rng.choice(_SUFFIXES)}"
    path = "/".join(_word(rng) for _ in range(rng.randrange(4)))
    return f"http://{host}/{path}"


def _word(rng: random.Random) -> str:
    return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randrange(2, 5)))


def _generate_misses(generate: Callable[[], str], count: int, holdings: Map, kind: str) -> Iterator[str]:
    """Yield `count` generated URLs that are not in the index."""
    remaining = count
    tries = _MAX_TRIES
    while remaining and tries:
        urls = [generate() for _ in range(min(remaining, _BATCH_URLS))]
        previous = remaining
        for url, result in zip(urls, holdings.lookup_many(urls), strict=True):
            if not isinstance(result, UriError) and not result.held:
                remaining -= 1
                yield url
        # A batch counts as an attempt if the index holds at least half of its URLs.
        tries -= previous - remaining < len(urls) // 2 + 1
    if remaining:
        raise InputError(f"no {kind} could be made that is not held: the index holds nearly everything that can be")


def _sample_misses(
    url_list: str | PathLike[str], count: int, holdings: Map, rng: random.Random, problems: Problems
) -> list[str]:
    """Return `count` different URLs of a list that are not in the index, sampled uniformly."""
    misses: dict[str, None] = {}
    texts = [line.text for line in read_urls(url_list, problems)]
    for text, result in zip(texts, holdings.lookup_many(texts), strict=True):
        if not isinstance(result, UriError) and not result.held:
            misses[text.decode("utf-8", "surrogateescape")] = None
    if len(misses) < count:
        raise InputError(
            f"{fspath(url_list)}: has {len(misses)} addresses that the index does not hold: expected {count} or more"
        )
    return rng.sample(list(misses), count)
