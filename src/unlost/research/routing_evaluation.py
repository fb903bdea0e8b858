"""Evaluates routing: builds every configuration of every archive, looks up every query, compares with what is held."""

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress
from operator import and_
from os import PathLike
from pathlib import Path
from typing import Literal

from unlost._core import Progress, SeenKeys
from unlost.errors import InputError, UriError
from unlost.mementomap.budget import (
    BudgetOptions,
    compact_to_budget,
    compressed_size,
    lookup_keys_in_filter,
    write_page_filter,
)
from unlost.mementomap.builder import MapOptions, build_map
from unlost.mementomap.compact import NO_LIMIT, Compaction, compact_map
from unlost.mementomap.map import Map
from unlost.mementomap.profile_builder import ProfileHeader, build_profiles, create_profile_counter, write_profiles
from unlost.mementomap.query_logs import QueryLogOptions, add_queries, count_queries
from unlost.mementomap.readers import InputReport, refuse_pipes
from unlost.problems import Problems
from unlost.research.routing_results import ArchiveEvaluation, ConfigurationSize, RoutingConfiguration, RoutingResult
from unlost.uri import KeyPolicies

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


WILDCARD_BAND = 128
"""Added to the band of what only a wildcard, or a shortened key, stands for; there are fewer bands of copies."""
_PRIOR_WEIGHT = 2.0
"""Answers that the mean over all bands counts for, in a band of which little is known."""


def likelihood_band(copies: int | None, *, is_wildcard: bool) -> int:
    """Return a number for keys that are about as likely: never 0, which is for what is not predicted.

    >>> likelihood_band(1, is_wildcard=False), likelihood_band(1000, is_wildcard=False), likelihood_band(1000, is_wildcard=True)
    (2, 11, 139)
    """
    return 1 + (copies or 0).bit_length() + (WILDCARD_BAND if is_wildcard else 0)


def estimate_probabilities(bands: Sequence[int], held: Sequence[bool], counts: Sequence[int]) -> list[float]:
    """Return for each question how likely it is held, by what the other half of the questions teaches; 0 for band 0.

    bands: by `band_of`, 0 where nothing is predicted. counts: how often each is asked.

    >>> estimate_probabilities([0, 2, 2, 2, 2], [False, True, True, False, False], [1] * 5)
    [0.0, 0.5, 0.5, 0.5, 0.5]
    """
    halves: list[dict[int, tuple[float, float]]] = [{}, {}]
    for place, (band, is_held, count) in enumerate(zip(bands, held, counts, strict=True)):
        if band:
            hits, total = halves[place % 2].get(band, (0.0, 0.0))
            halves[place % 2][band] = hits + is_held * count, total + count
    means = [_hit_share(half) for half in halves]
    found = []
    for place, band in enumerate(bands):
        other = 1 - place % 2
        hits, total = halves[other].get(band, (0.0, 0.0))
        found.append((hits + _PRIOR_WEIGHT * means[other]) / (total + _PRIOR_WEIGHT) if band else 0.0)
    return found


def _hit_share(half: dict[int, tuple[float, float]]) -> float:
    total = sum(each[1] for each in half.values())
    return sum(each[0] for each in half.values()) / total if total else 0.5


QueryDecisions = tuple[ConfigurationSize, list[bool]]
"""What a configuration costs, and for each question whether the archive would be asked."""
WeightPair = tuple[float, float]
FilePaths = Sequence[str | PathLike[str]]
_POLICIES_PER_PASS = 6  # policies
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


def evaluate_index(
    index: FilePaths,
    queries: FilePaths,
    configurations: Sequence[RoutingConfiguration],
    *,
    query_options: QueryLogOptions | None = None,
    training_queries: FilePaths = (),
    truth: GroundTruth | None = None,
) -> ArchiveEvaluation:
    """Build every configuration from an index, ask it all questions, and compare with what the index holds.

    For the rest see `evaluate_archives`.
    """
    found = evaluate_archives(
        {"": index},
        queries,
        configurations,
        query_options=query_options,
        training_queries=training_queries,
        truth=truth,
    )
    return found[0]


def evaluate_archives(
    archives: Mapping[str, FilePaths],
    queries: FilePaths,
    configurations: Sequence[RoutingConfiguration],
    *,
    query_options: QueryLogOptions | None = None,
    training_queries: FilePaths = (),
    truth: GroundTruth | None = None,
    builders: IndexBuilders = LOCAL_BUILDERS,
) -> list[ArchiveEvaluation]:
    """Do the same for several archives, each with its own index, and the same questions.

    learned: files of other questions, for budgets to learn from. truth: a page is held if its key, without its query,
    is one of the index; an address, if all of it is. Policies tell queries apart, so that with them it is addresses if
    nothing is said. makers: who reads indexes. Raises InputError if index or questions cannot be read at all.
    """
    policies = [one.policy for one in configurations if one.policy is not None]
    what = truth or ("address" if policies else "page")
    if builders is LOCAL_BUILDERS and (policies or what == "address"):
        for index in archives.values():
            refuse_pipes(index)  # each is read twice
    with tempfile.TemporaryDirectory(prefix="unlost-evaluate-") as name:
        questions, report = read_query_set(queries, Path(name), what, query_options)
        found = []
        for archive, index in archives.items():
            with tempfile.TemporaryDirectory(prefix="archive-", dir=name) as place:
                ranks = any(each.min_probability for each in configurations)
                made = ConfigurationTrial(index, Path(place), questions, with_bands=ranks, builders=builders)
                one = _evaluate_configurations(made, questions, configurations, training_queries, what)
            one.archive, one.query_report = archive, report
            found.append(one)
    return found


def _evaluate_configurations(
    made: ConfigurationTrial,
    questions: QuerySet,
    tried: Sequence[RoutingConfiguration],
    learned: FilePaths,
    truth: GroundTruth,
) -> ArchiveEvaluation:
    wanted = [one.policy for one in tried if one.policy is not None]
    # Whole addresses are told by the policy that cuts nothing, whether it is asked for or not.
    exact = ["URIR"] if truth == "address" else []
    policies: dict[str, QueryDecisions] = dict(made.try_policies([*dict.fromkeys([*wanted, *exact])]))
    if truth == "address":
        size, held = policies["URIR"]
        keys = size.lines
    else:
        keys, held = made.keys, made.lookup_pages()
    maps: dict[WeightPair, QueryDecisions] = dict(
        made.try_weights([one.weights for one in tried if _is_weighted_map(one)])
    )
    found = ArchiveEvaluation(index_report=made.report)
    for one in tried:
        if one.policy is not None:
            said = policies[one.policy]
        elif one.budget is not None:
            said = made.try_budget(one, learned)
        else:
            said = made.try_filter(maps[one.weights], one.bits) if one.bits else maps[one.weights]
        size, predicted = said
        counts = questions.counts
        if one.min_probability:
            likely = estimate_probabilities(made.bands[one.policy or one.weights], held, counts)
            predicted = [yes and p >= one.min_probability for yes, p in zip(predicted, likely, strict=True)]
        both = list(map(and_, held, predicted))
        # Whoever asks for a probability has given some recall away.
        if both != held and not one.min_probability:
            denied = next(key for key, a, b in zip(questions.url_keys, held, both, strict=True) if a != b)
            found.false_negatives.append((one.name, denied))
        found.results.append(
            RoutingResult(
                one,
                keys,
                size,
                query_count=sum(counts),
                predicted=sum(compress(counts, predicted)),
                present=sum(compress(counts, both)),
                held=sum(compress(counts, held)),
            )
        )
    return found


def _is_weighted_map(one: RoutingConfiguration) -> bool:
    return one.policy is None and one.budget is None
