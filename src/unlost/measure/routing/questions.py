"""What is asked: once as pages, for maps, and once as whole addresses, for profiles."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal

from unlost.errors import InputError
from unlost.holdings.build import MapOptions
from unlost.holdings.profile import ProfileHeader, create_profile_counter, write_profiles
from unlost.holdings.queries import QueryLogOptions, count_queries, add_queries
from unlost.holdings.report import InputReport

GroundTruth = Literal["page", "address"]
"""When something is held: if its page is, whatever the query; or if the whole address is."""

_BLOCK = 1 << 20  # bytes
_FREQUENCY = re.compile(rb'"frequency": (\d+)')


@dataclass(frozen=True, slots=True)
class QuerySet:
    """What is asked, each once, in the order of the keys.

    pages: the keys of the pages, without queries; one may be there for several addresses. addresses: the whole keys;
    the same as pages where only those count. counts: how often each is asked.
    """

    page_keys: list[str]
    url_keys: list[str]
    counts: list[int]

    def __len__(self) -> int:
        """Return how many are different."""
        return len(self.counts)


def read_query_set(
    files: Sequence[str | PathLike[str]], folder: Path, truth: GroundTruth, options: QueryLogOptions | None
) -> tuple[QuerySet, InputReport]:
    """Count questions by what is held of them; files are read once, in `folder` what is needed meanwhile.

    Raises InputError if one cannot be read at all or has no question.
    """
    rules = MapOptions().rules
    asked = folder / "asked"
    if truth == "page":
        report = count_queries(files, asked, rules, options)
        rows = list(read_map_rows(asked))
        pages = [key.decode() for key, _ in rows]
        return QuerySet(pages, pages, [int(rest) for _, rest in rows]), report
    builder = create_profile_counter(rules)
    report = add_queries(files, builder, rules, options)
    write_profiles(builder, {"URIR": asked}, ProfileHeader("URIR", rules=rules))
    addresses, counts = [], []
    for key, rest in read_profile_rows(asked):
        addresses.append(key.decode())
        counts.append(parse_profile_frequency(rest, asked))
    return QuerySet([one.partition("?")[0] for one in addresses], addresses, counts), report


def read_map_rows(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys of a map with what follows them, but for its total."""
    with path.open("rb") as file:
        for line in file:
            if not line.startswith((b"!", b"* ")):
                key, _, rest = line.partition(b" ")
                yield key, rest


def read_profile_rows(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys of a profile with what follows them."""
    for block in read_profile_blocks(path):
        for line in block.splitlines():
            key, _, rest = line.partition(b" ")
            yield key, rest


def read_profile_blocks(path: Path) -> Iterator[bytes]:
    """Yield the rows of a profile, many whole lines at a time."""
    with path.open("rb") as file:
        line = file.readline()
        while line.startswith(b"@"):
            line = file.readline()
        if line:
            yield line
        while block := file.read(_BLOCK):
            yield block + file.readline()


def parse_profile_frequency(rest: bytes, path: Path) -> int:
    """Return the frequency of a profile's row. Raises InputError if there is none."""
    found = _FREQUENCY.search(rest)
    if found is None:
        raise InputError(f"{path}: expected a frequency, found {ascii(rest)[2:60]}")
    return int(found[1])
