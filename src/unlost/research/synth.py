"""Synthetic indexes and queries of any size with the shapes found in the papers, reproducible byte for byte."""

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
from unlost.uri import key_many, unsurt
from unlost.uri import unsurt_many as addresses_of

MAX_SEED = 2**64 - 1
MAX_LINES = 10**12
"""More than any archive has; what is above is a slip of the finger."""
_COMPRESSION_BY_SUFFIX = {".gz": "gzip", ".zst": "zstd"}


class BytesWriter(Protocol):
    """A file opened for writing bytes, or anything like it."""

    def write(self, data: bytes, /) -> object:
        """Take all of the bytes."""
        ...


@dataclass(frozen=True, slots=True)
class SynthIndexOptions:
    """What index to make.

    lines: how many, exactly. seed: another one makes another index of the same shape. urls: a list of addresses, plain,
    gzip or zstd, whose captures are to be made up; column: which one, from 1, of columns separated by tabs.
    largest_host: one host is to have so many keys (pages without query). shuffled: lines in random order.

    With one version of unlost, equal plans make equal bytes on every machine.
    """

    lines: int
    seed: int = 0
    urls: str | PathLike[str] | None = None
    column: int | None = None
    largest_host: int | None = None
    shuffled: bool = False

    def __post_init__(self) -> None:
        """Refuse with UsageError what cannot be made."""
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
    """Write a made-up index as CDXJ, in gzip if the path ends in `.gz`, in zstd for `.zst`.

    The file appears whole or not at all. Lines of a list that are no addresses are left out and counted in `problems`.
    Raises InputError if the list cannot be read or has no address, OSError if the file cannot be written.
    """
    urls = _read_urls(options, problems)
    with atomic_file(path) as file:
        _write_rows(options, urls, file, _COMPRESSION_BY_SUFFIX.get(Path(path).suffix, "plain"))


def write_synthetic_index_to(options: SynthIndexOptions, file: BytesWriter, problems: Problems) -> None:
    r"""Write a made-up index to a file that is open, not compressed; for the rest see `write_index`.

    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> write_synthetic_index_to(SynthIndexOptions(lines=3, seed=1), file, Problems())
    >>> file.getvalue().count(b"\n")
    3
    """
    _write_rows(options, _read_urls(options, problems), file, "plain")


def _write_rows(plan: SynthIndexOptions, urls: _core.SynthUrls | None, file: BytesWriter, packing: str) -> None:
    _core.write_synthetic_index(file.write, plan.lines, plan.seed, urls, plan.largest_host, plan.shuffled, packing)


def _read_urls(plan: SynthIndexOptions, problems: Problems) -> _core.SynthUrls | None:
    if plan.urls is None:
        return None
    name = fspath(plan.urls)
    try:
        urls = _core.SynthUrls(plan.urls, plan.column)
    except OSError as error:
        raise unreadable_error(name, error) from error
    for kind, count, number, offset, message in urls.refused:
        problems.add(Problem(kind, name, number, offset, message), count)
    if urls.is_empty:
        raise InputError(f"{name}: there is no address in it: expected one a line, or give the column")
    return urls


MAX_QUERIES = 10**8
_SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru", "sa", "te", "vi", "zo")
_SUFFIXES = ("com", "org", "net", "info", "de", "fr", "pt", "co.uk")
_BATCH = 100_000
_MAX_TRIES = 40
"""For a near-miss or a stranger that happens to be held another is made; an index that holds all of those is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthQueryOptions:
    """What questions to make up.

    count: how many. held, near: shares of them that are for addresses of the index and for pages beside those; the rest
    are for strangers. seed: another one makes other questions. hidden: a list of addresses that may stand in for
    near-misses, such as the part of a list that was left out of the index; strangers: one of addresses that have
    nothing to do with it. Without them, near-misses and strangers are made up. Of either list, what is held is passed
    over, so that the shares are exact.
    """

    count: int
    held: float = 0.1
    near: float = 0.3
    seed: int = 0
    near_urls: str | PathLike[str] | None = None
    unrelated_urls: str | PathLike[str] | None = None

    def __post_init__(self) -> None:
        """Refuse with UsageError what cannot be made."""
        if not 1 <= self.count <= MAX_QUERIES:
            raise UsageError(f"count: expected 1 to {MAX_QUERIES}")
        if not (0 <= self.held <= 1 and 0 <= self.near <= 1 and self.held + self.near <= 1.000_000_1):
            raise UsageError("held and near: expected shares from 0 to 1 that are at most 1 together")

    def counts(self) -> tuple[int, int, int]:
        """Return how many are held, near and strangers.

        >>> SynthQueryOptions(count=10, held=0.25, near=0.5).counts()
        (2, 5, 3)
        """
        held = round(self.count * self.held)
        near = min(round(self.count * self.near), self.count - held)
        return held, near, self.count - held - near


@dataclass(frozen=True, slots=True)
class SynthQueryCounts:
    """How many questions of each kind there are."""

    held: int
    near: int
    unrelated: int


def write_synthetic_queries(
    index: Sequence[str | PathLike[str]], options: SynthQueryOptions, output: Path, problems: Problems
) -> SynthQueryCounts:
    """Write questions, one address a line, in random order, and return how many there are of each kind.

    The same index, plan and lists make the same bytes with one version of unlost. Held ones are drawn from the whole
    addresses (URI-Rs) of the index, each as likely as any other, and again if there are fewer than asked for. Those
    that are not held are pages of which the index has no capture at all, whatever their query. Raises InputError if
    there is no page in the index, or too few in a list.
    """
    refuse_pipes(index)  # each is read twice
    wanted = options.counts()
    rng = random.Random(options.seed)  # noqa: S311  made-up data, not a secret
    with TemporaryDirectory(prefix="unlost-queries-") as name:
        pages, addresses = Path(name, "pages.ukvs"), Path(name, "addresses")
        report = build_map(index, pages)
        for kind, count in report.problems.counts.items():
            problems.add(report.problems.first[kind], count)
        build_profiles(index, {"URIR": addresses}, ProfileHeader("URIR"), Problems())
        keys = _sample_keys(addresses, wanted[0] + wanted[1], rng)
        if not keys:
            raise InputError(f"{fspath(index[0])}: nothing in it: expected an index")
        holdings = Map.open(pages)
        held = [unsurt(key) for key in _draw(keys, wanted[0], rng)]
        if options.near_urls is not None:
            near = _sample_misses(options.near_urls, wanted[1], holdings, rng, problems)
        else:
            near = list(
                _generate_misses(lambda: _near_miss_url(rng.choice(keys), rng), wanted[1], holdings, "near-miss")
            )
        if options.unrelated_urls is not None:
            strangers = _sample_misses(options.unrelated_urls, wanted[2], holdings, rng, problems)
        else:
            strangers = list(_generate_misses(lambda: _unrelated_url(rng), wanted[2], holdings, "stranger"))
    asked = held + near + strangers
    rng.shuffle(asked)
    with atomic_file(output) as file:
        file.writelines(f"{one}\n".encode("utf-8", "surrogateescape") for one in asked)
    return SynthQueryCounts(len(held), len(near), len(strangers))


def _sample_keys(addresses: Path, most: int, rng: random.Random) -> list[str]:
    """Return at most so many keys of a profile, all of them as likely, in the order of the file."""
    with addresses.open("rb") as file:
        count = sum(not line.startswith(b"@") for line in file)
    chosen = set(rng.sample(range(count), min(count, max(1, most))))
    with addresses.open("rb") as file:
        rows = (line for line in file if not line.startswith(b"@"))
        keys = [row.partition(b" ")[0].decode() for place, row in enumerate(rows) if place in chosen]
    spelled = addresses_of(keys)
    # What does not come back from its own spelling would be another question.
    back = key_many([one if isinstance(one, str) else "" for one in spelled])
    return [key for key, again in zip(keys, back, strict=True) if key == again]


def _draw(keys: Sequence[str], count: int, rng: random.Random) -> list[str]:
    """Return so many of them: each once while there are enough, then again."""
    found: list[str] = []
    while len(found) < count:
        found += rng.sample(keys, min(len(keys), count - len(found)))
    return found


def _near_miss_url(key: str, rng: random.Random) -> str:
    """Return an address beside one that is held: another page of its folder, or one in a folder that nobody knows."""
    page = unsurt(key.partition("?")[0])
    folder, _, last = page.rpartition("/")
    name, dot, ending = last.rpartition(".") if "." in last else (last, "", "")
    match rng.randrange(3):
        case 0:
            return f"{folder}/{name or 'page'}{rng.choice('-_')}{rng.randrange(100)}{dot}{ending}"
        case 1:
            return f"{folder}/{_word(rng)}{dot}{ending}"
        case _:
            return f"{folder}/{_word(rng)}/{last or 'index.html'}"


def _unrelated_url(rng: random.Random) -> str:
    """Return an address of a host that nobody knows, some folders deep."""
    host = f"{_word(rng)}{_word(rng)}.{rng.choice(_SUFFIXES)}"
    path = "/".join(_word(rng) for _ in range(rng.randrange(4)))
    return f"http://{host}/{path}"


def _word(rng: random.Random) -> str:
    return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randrange(2, 5)))


def _generate_misses(make: Callable[[], str], count: int, holdings: Map, what: str) -> Iterator[str]:
    """Yield so many made-up addresses of which the index has no capture."""
    left = count
    tries = _MAX_TRIES
    while left and tries:
        made = [make() for _ in range(min(left, _BATCH))]
        before = left
        for one, answer in zip(made, holdings.lookup_many(made), strict=True):
            if not isinstance(answer, UriError) and not answer.held:
                left -= 1
                yield one
        # Most of a batch is new, or the index is a strange one.
        tries -= before - left < len(made) // 2 + 1
    if left:
        raise InputError(f"no {what} could be made that is not held: the index holds nearly everything that can be")


def _sample_misses(
    listed: str | PathLike[str], count: int, holdings: Map, rng: random.Random, problems: Problems
) -> list[str]:
    """Return so many different addresses of a list that the index does not hold, each as likely as any other."""
    found: dict[str, None] = {}
    texts = [line.text for line in read_urls(listed, problems)]
    for text, answer in zip(texts, holdings.lookup_many(texts), strict=True):
        if not isinstance(answer, UriError) and not answer.held:
            found[text.decode("utf-8", "surrogateescape")] = None
    if len(found) < count:
        raise InputError(
            f"{fspath(listed)}: has {len(found)} addresses that the index does not hold: expected {count} or more"
        )
    return rng.sample(list(found), count)
