"""Making each configuration of one archive, and asking it everything.

index ─► keys ─► maps by weights, each from the smallest that was made before ─► answers
     ├─► profiles of all policies, in one pass ─► answers
     └─► budgets, filters ─► answers
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from unlost._core import Progress, SeenKeys
from unlost.errors import InputError, UriError
from unlost.formats.problems import Problems
from unlost.holdings.beside import lookup_keys_in_filter, write_page_filter
from unlost.holdings.budget import BudgetOptions, compact_to_budget, compressed_size
from unlost.holdings.build import build_map
from unlost.holdings.compaction import NO_LIMIT, Compaction, compact_map
from unlost.holdings.map import Map
from unlost.holdings.profile import ProfileHeader, build_profiles
from unlost.holdings.report import InputReport
from unlost.measure.routing.configurations import RoutingConfiguration
from unlost.measure.routing.questions import (
    QuerySet,
    parse_profile_frequency,
    read_map_rows,
    read_profile_blocks,
    read_profile_rows,
)
from unlost.measure.routing.ranking import likelihood_band
from unlost.measure.routing.results import ConfigurationSize
from unlost.uri import KeyPolicies

QueryDecisions = tuple[ConfigurationSize, list[bool]]
"""What a configuration costs, and for each question whether the archive would be asked."""

WeightPair = tuple[float, float]

FilePaths = Sequence[str | PathLike[str]]

_POLICIES_PER_PASS = 6  # policies
_BLOCK = 1 << 20  # bytes
_MAX_LOADED_BYTES = 1 << 30  # bytes
_URL_POLICY = "URIR"
_NO_ROLLUP = (NO_LIMIT, NO_LIMIT)


@dataclass(frozen=True, slots=True)
class IndexBuilders:
    """Who reads indexes, and makes maps and profiles of them: this machine or a cluster, which make the same."""

    build_map: Callable[[FilePaths, Path], InputReport]
    build_profiles: Callable[[FilePaths, dict[str, Path], ProfileHeader, Problems], int]


LOCAL_BUILDERS = IndexBuilders(build_map, build_profiles)
"""This machine."""


class ConfigurationTrial:
    """An archive's index, read as often as there are kinds of keys, and everything that is made of it.

    folder: for what is needed meanwhile: the map of all keys, the profiles, and at most as many compacted maps as are
    still needed. keys: how many pages the index has. report: what became of its lines. ranks: frequencies are looked
    at, too; bands: for each policy and each pair of weights that was made, one of `ranking.band_of` a question.
    """

    def __init__(
        self,
        index: FilePaths,
        folder: Path,
        queries: QuerySet,
        *,
        with_bands: bool = False,
        builders: IndexBuilders = LOCAL_BUILDERS,
    ) -> None:
        self._builders = builders
        self._with_bands = with_bands
        self.bands: dict[str | WeightPair, list[int]] = {}
        self._index = index
        self._folder = folder
        self._queries = queries
        self._lines = "".join(f"{page}\n" for page in queries.page_keys).encode()
        self._full_map = folder / "full.ukvs"
        self.report = builders.build_map(index, self._full_map)
        self.keys = count_rows(self._full_map)
        names = ", ".join(map(str, index))
        if not self.keys:
            raise InputError(f"{names}: nothing in it: expected an index")
        if _has_wildcards(self._full_map):
            raise InputError(f"{names}: has wildcards, so nobody knows which pages are held: give the index itself")

    def lookup_pages(self) -> list[bool]:
        """Return for each question whether its page is held."""
        return self._query_map(self._full_map)

    def try_policies(self, policies: Sequence[str]) -> Iterator[tuple[str, QueryDecisions]]:
        """Make the profiles of policies in one pass, and yield what each costs and says."""
        outputs = {policy: self._folder / f"{policy}.cdxj" for policy in policies}
        if not policies:
            return
        # What cannot be read was counted when the map was made of the same lines.
        self._builders.build_profiles(self._index, outputs, ProfileHeader(_URL_POLICY), Problems())
        with _background_compression() as compress:
            compressed = {policy: compress(path) for policy, path in outputs.items()}
            for some in _policy_groups(policies):
                # An address is taken apart once for several policies; for all of them it would need much memory.
                made = KeyPolicies(some).keys_many(self._queries.url_keys)
                cut = [keys for keys in made if not isinstance(keys, UriError)]
                for policy, asked in zip(some, zip(*cut, strict=True), strict=True):
                    path = outputs[policy]
                    lines, answers = self._query_profile(policy, path, asked)
                    yield policy, (ConfigurationSize(lines, path.stat().st_size, compressed[policy].result()), answers)
                    path.unlink()

    def _query_profile(self, policy: str, path: Path, asked: Sequence[str]) -> tuple[int, list[bool]]:
        """Return how many keys a profile has, and for each question whether its key is one of them."""
        if len(asked) != len(self._queries):
            raise InputError("a question whose key has no key: this is a fault of unlost")
        if self._with_bands:
            wanted = set(asked)
            rows = ((key.decode(), rest) for key, rest in read_profile_rows(path))
            copies = {key: parse_profile_frequency(rest, path) for key, rest in rows if key in wanted}
            self.bands[policy] = [
                likelihood_band(copies[key], is_wildcard=False) if key in copies else 0 for key in asked
            ]
        # Memory grows with what is asked, not with what is held.
        keys = SeenKeys(asked)
        return sum(map(keys.see, read_profile_blocks(path))), keys.seen()

    def try_weights(self, pairs: Sequence[WeightPair]) -> Iterator[tuple[WeightPair, QueryDecisions]]:
        """Make a map for each pair of weights, the largest first, and yield what each costs and says.

        Compacting again with smaller weights gives what compacting once would, so each is made of the smallest that
        will do; those that no other needs any more go.
        """
        waiting = sorted(set(pairs), reverse=True)
        kept: dict[WeightPair, Path] = {_NO_ROLLUP: self._full_map}
        for number, weights in enumerate(waiting):
            source = kept[_smallest_source(weights, kept)]
            made = source
            if weights != _NO_ROLLUP:
                made = self._folder / f"weights-{number}.ukvs"
                compact_map(source, made, Compaction(*weights))
            kept[weights] = made
            if self._with_bands:
                self.bands[weights] = self._map_bands(made)
            yield weights, self._measure_map(made)
            needed = {_smallest_source(later, kept) for later in waiting[number + 1 :]} | {_NO_ROLLUP}
            for useless in set(kept) - needed:
                kept.pop(useless).unlink()

    def _map_bands(self, path: Path) -> list[int]:
        answers = _open_map(path).lookup_key_lines(self._lines)
        return [
            likelihood_band(
                answer.frequency.mementos if answer.frequency else None,
                is_wildcard=(answer.matched or "").endswith("*"),
            )
            if answer.held
            else 0
            for answer in answers
        ]

    def try_filter(self, decisions: QueryDecisions, bits: int) -> QueryDecisions:
        """Return the same with a filter of all pages beside it."""
        beside = self._folder / "made.filter"
        write_page_filter(self._full_map, beside, bits)
        return self._with_filter(decisions, beside, bits)

    def try_budget(
        self, configuration: RoutingConfiguration, training_queries: Sequence[str | PathLike[str]]
    ) -> QueryDecisions:
        """Make a map to a budget, perhaps with a filter, and return what it costs and says."""
        if configuration.budget is None:
            raise ValueError(f"{configuration.name} has no budget")
        made, beside = self._folder / "budget.ukvs", self._folder / "budget.filter"
        options = BudgetOptions(queries=training_queries, with_filter=beside if configuration.divides_budget else None)
        bits = compact_to_budget(self._full_map, made, configuration.budget, options).filter_bits
        said = self._measure_map(made)
        return self._with_filter(said, beside, bits) if bits else said

    def _with_filter(self, said: QueryDecisions, beside: Path, bits: int) -> QueryDecisions:
        size, answers = said
        had = lookup_keys_in_filter(beside, self._queries.page_keys)
        more = beside.stat().st_size
        return (
            ConfigurationSize(size.lines, size.bytes + more, size.compressed + more, bits),
            [both and also for both, also in zip(answers, had, strict=True)],
        )

    def _measure_map(self, path: Path) -> QueryDecisions:
        # The compressor needs one processor, and nothing that the look-ups need.
        with _background_compression() as compress:
            compressed = compress(path)
            answers = self._query_map(path)
            return ConfigurationSize(count_rows(path), path.stat().st_size, compressed.result()), answers

    def _query_map(self, path: Path) -> list[bool]:
        return _open_map(path).lookup_key_lines(self._lines).held


def _open_map(path: Path) -> Map:
    """Return a map to be asked: in memory, unless it is so large that it is better asked where it lies."""
    return Map.load(path) if path.stat().st_size <= _MAX_LOADED_BYTES else Map.open(path)


def _smallest_source(weights: WeightPair, kept: dict[WeightPair, Path]) -> WeightPair:
    """Return of which of the maps that were made another is made: the smallest of those that were cut no more."""
    will_do = [each for each in kept if each[0] >= weights[0] and each[1] >= weights[1]]
    return min(will_do, key=lambda each: kept[each].stat().st_size)


@contextmanager
def _background_compression() -> Iterator[Callable[[Path], Future[int]]]:
    """Give what measures compressed sizes beside everything else; who leaves early, as by Ctrl-C, waits for none."""
    progress = Progress()
    beside = ThreadPoolExecutor(1)
    try:
        yield lambda path: beside.submit(compressed_size, path, progress)
    except BaseException:
        progress.cancel()
        raise
    finally:
        beside.shutdown(cancel_futures=True)


def _policy_groups(policies: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(policies), _POLICIES_PER_PASS):
        yield policies[start : start + _POLICIES_PER_PASS]


def _has_wildcards(path: Path) -> bool:
    """Return whether a map has wildcards: most have none, which their text tells at a glance."""
    with path.open("rb") as file:
        blocks = iter(lambda: file.read(_BLOCK) + file.readline(), b"")
        if not any(b",* " in block or b"/* " in block for block in blocks):
            return False
    return any(key.endswith((b",*", b"/*")) for key, _ in read_map_rows(path))


def count_rows(path: Path) -> int:
    """Return how many rows a map or a profile has, without headers and total."""
    lines = 0
    with path.open("rb") as file:
        line = file.readline()
        while line.startswith((b"!", b"@", b"* ")):
            line = file.readline()
        lines += bool(line)
        while block := file.read(_BLOCK):
            lines += block.count(b"\n")
    return lines
