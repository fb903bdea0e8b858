"""Evaluates routing: builds every configuration of every archive, looks up every query, compares with the holdings.

Compacting a map again with smaller weights gives what compacting once would give, so only one map is built from all
keys and each other one from the smallest map that was compacted no further.
"""

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

from unlost._core import KeyPresence, Progress
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
"""What must match for a query to be held: `page`, the URL without its query; `address`, the whole URL.

Policies are judged by whole URLs: URIR and DQry distinguish queries, and would deny held pages if judged by pages."""
_BLOCK_BYTES = 1 << 20
_FREQUENCY = re.compile(rb'"frequency": (\d+)')

WILDCARD_BAND = 128
"""Offset of the bands of wildcard matches; larger than any band of exact matches."""
_PRIOR_WEIGHT = 2.0
"""Weight of the overall mean in the estimate of a band, in pseudo-observations."""

QueryDecisions = tuple[ConfigurationSize, list[bool]]
"""Size of a configuration, and for each query whether the archive would be queried."""
WeightPair = tuple[float, float]
FilePaths = Sequence[str | PathLike[str]]
_POLICIES_PER_PASS = 6  # bounds the memory for keys
_MAX_LOADED_BYTES = 1 << 30  # larger maps are queried on disk
_URL_POLICY = "URIR"
_NO_ROLLUP = (NO_LIMIT, NO_LIMIT)


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Distinct queries, sorted by key.

    Attributes:
        page_keys: Key of the page without query; it may occur several times.
        url_keys: Key of the whole URL; the same as `page_keys` if the ground truth is `page`.
        counts: Number of occurrences.
    """

    page_keys: list[str]
    url_keys: list[str]
    counts: list[int]

    def __len__(self) -> int:
        """Return the number of distinct queries."""
        return len(self.counts)


def read_query_set(
    files: Sequence[str | PathLike[str]], folder: Path, truth: GroundTruth, options: QueryLogOptions | None
) -> tuple[QuerySet, InputReport]:
    """Read query logs once and count their queries by key.

    Args:
        files: Query logs.
        folder: Folder for temporary files.
        truth: Ground truth, which determines the keys.
        options: Options for reading the logs.

    Raises:
        InputError: A log cannot be read or contains no query.
    """
    rules = MapOptions().rules
    counted = folder / "asked"
    if truth == "page":
        report = count_queries(files, counted, rules, options)
        rows = list(read_map_rows(counted))
        page_keys = [key.decode() for key, _ in rows]
        return QuerySet(page_keys, page_keys, [int(frequency) for _, frequency in rows]), report
    builder = create_profile_counter(rules)
    report = add_queries(files, builder, rules, options)
    write_profiles(builder, {"URIR": counted}, ProfileHeader("URIR", rules=rules))
    url_keys, counts = [], []
    for key, frequency in read_profile_rows(counted):
        url_keys.append(key.decode())
        counts.append(parse_profile_frequency(frequency, counted))
    return QuerySet([url_key.partition("?")[0] for url_key in url_keys], url_keys, counts), report


def read_map_rows(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield the rows of a map as key and value, without header and total."""
    with path.open("rb") as file:
        for line in file:
            if not line.startswith((b"!", b"* ")):
                key, _, value = line.partition(b" ")
                yield key, value


def read_profile_rows(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield the rows of a profile as key and value."""
    for block in read_profile_blocks(path):
        for line in block.splitlines():
            key, _, value = line.partition(b" ")
            yield key, value


def read_profile_blocks(path: Path) -> Iterator[bytes]:
    """Yield the rows of a profile in blocks of complete lines."""
    with path.open("rb") as file:
        line = file.readline()
        while line.startswith(b"@"):
            line = file.readline()
        if line:
            yield line
        while block := file.read(_BLOCK_BYTES):
            yield block + file.readline()


def parse_profile_frequency(value: bytes, path: Path) -> int:
    """Return the frequency in the value of a profile row.

    Raises:
        InputError: There is none.
    """
    match = _FREQUENCY.search(value)
    if match is None:
        raise InputError(f"{path}: expected a frequency, found {ascii(value)[2:60]}")
    return int(match[1])


def likelihood_band(captures: int | None, *, is_wildcard: bool) -> int:
    """Return the band of a key by its number of captures. Keys in one band are about equally likely to be held.

    The result is at least 1; band 0 is for queries that are not predicted.

    >>> likelihood_band(1, is_wildcard=False), likelihood_band(1000, is_wildcard=False)
    (2, 11)
    >>> likelihood_band(1000, is_wildcard=True)
    139
    """
    return 1 + (captures or 0).bit_length() + (WILDCARD_BAND if is_wildcard else 0)


def estimate_probabilities(bands: Sequence[int], held: Sequence[bool], counts: Sequence[int]) -> list[float]:
    """Estimate for each query the probability that it is held, by two-fold cross-validation; 0 for band 0.

    Args:
        bands: Results of `likelihood_band`; 0 for queries that are not predicted.
        held: Whether each query is held.
        counts: Number of occurrences of each query.

    >>> estimate_probabilities([0, 2, 2, 2, 2], [False, True, True, False, False], [1] * 5)
    [0.0, 0.5, 0.5, 0.5, 0.5]
    """
    folds: list[dict[int, tuple[float, float]]] = [{}, {}]
    for index, (band, is_held, count) in enumerate(zip(bands, held, counts, strict=True)):
        if band:
            hits, total = folds[index % 2].get(band, (0.0, 0.0))
            folds[index % 2][band] = hits + is_held * count, total + count
    means = [_hit_share(fold) for fold in folds]
    probabilities = []
    for index, band in enumerate(bands):
        other = 1 - index % 2
        hits, total = folds[other].get(band, (0.0, 0.0))
        probabilities.append((hits + _PRIOR_WEIGHT * means[other]) / (total + _PRIOR_WEIGHT) if band else 0.0)
    return probabilities


def _hit_share(fold: dict[int, tuple[float, float]]) -> float:
    total = sum(each[1] for each in fold.values())
    return sum(each[0] for each in fold.values()) / total if total else 0.5


@dataclass(frozen=True, slots=True)
class IndexBuilders:
    """Functions that build maps and profiles from indexes, locally or on a cluster, with identical output."""

    build_map: Callable[[FilePaths, Path], InputReport]
    build_profiles: Callable[[FilePaths, dict[str, Path], ProfileHeader, Problems], int]


LOCAL_BUILDERS = IndexBuilders(build_map, build_profiles)
"""Builders that run on this machine."""


class ConfigurationTrial:
    """Builds the configurations of one archive and looks up all queries in them.

    The index is read once for each kind of key. The folder holds the full map, the profiles, and those compacted maps
    that are still needed as a source.

    Args:
        index: Index files.
        folder: Folder for temporary files.
        queries: Queries to look up.
        with_bands: Compute likelihood bands as well.
        builders: Builders of maps and profiles.

    Attributes:
        bands: With `with_bands`, for each policy and pair of weights the likelihood band of each query.
        report: Report on the lines of the index.
        keys: Number of pages in the index.
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
        """Return for each query whether its page is held."""
        return self._query_map(self._full_map)

    def try_policies(self, policies: Sequence[str]) -> Iterator[tuple[str, QueryDecisions]]:
        """Build the profiles of all policies in one pass; yield the size and decisions of each."""
        outputs = {policy: self._folder / f"{policy}.cdxj" for policy in policies}
        if not policies:
            return
        # Unreadable lines were already counted when the map was built.
        self._builders.build_profiles(self._index, outputs, ProfileHeader(_URL_POLICY), Problems())
        with _background_compression() as compress:
            compressed = {policy: compress(path) for policy, path in outputs.items()}
            for group in _policy_groups(policies):
                # Each URL is parsed once per group of policies; all policies at once would need too much memory.
                keys_by_query = KeyPolicies(group).keys_many(self._queries.url_keys)
                valid = [keys for keys in keys_by_query if not isinstance(keys, UriError)]
                for policy, query_keys in zip(group, zip(*valid, strict=True), strict=True):
                    path = outputs[policy]
                    lines, decisions = self._query_profile(policy, path, query_keys)
                    yield (
                        policy,
                        (ConfigurationSize(lines, path.stat().st_size, compressed[policy].result()), decisions),
                    )
                    path.unlink()

    def _query_profile(self, policy: str, path: Path, query_keys: Sequence[str]) -> tuple[int, list[bool]]:
        """Return the number of keys of a profile, and for each query whether its key is one of them."""
        if len(query_keys) != len(self._queries):
            raise InputError("a question whose key has no key: this is a fault of unlost")
        if self._with_bands:
            distinct = set(query_keys)
            rows = ((key.decode(), value) for key, value in read_profile_rows(path))
            frequencies = {key: parse_profile_frequency(value, path) for key, value in rows if key in distinct}
            self.bands[policy] = [
                likelihood_band(frequencies[key], is_wildcard=False) if key in frequencies else 0 for key in query_keys
            ]
        # The keys of the queries are in memory, not the profile: memory grows with the queries.
        keys = KeyPresence(query_keys)
        return sum(map(keys.scan, read_profile_blocks(path))), keys.seen()

    def try_weights(self, pairs: Sequence[WeightPair]) -> Iterator[tuple[WeightPair, QueryDecisions]]:
        """Build a map for each pair of weights, largest first; yield the size and decisions of each.

        Compacting a compacted map with smaller weights gives the same result as compacting the full map, so each map is
        built from the smallest suitable one. Maps that are no longer needed as a source are deleted.
        """
        pending = sorted(set(pairs), reverse=True)
        maps: dict[WeightPair, Path] = {_NO_ROLLUP: self._full_map}
        for number, weights in enumerate(pending):
            source = maps[_smallest_source(weights, maps)]
            output = source
            if weights != _NO_ROLLUP:
                output = self._folder / f"weights-{number}.ukvs"
                compact_map(source, output, Compaction(*weights))
            maps[weights] = output
            if self._with_bands:
                self.bands[weights] = self._map_bands(output)
            yield weights, self._measure_map(output)
            needed = {_smallest_source(later, maps) for later in pending[number + 1 :]} | {_NO_ROLLUP}
            for unneeded in set(maps) - needed:
                maps.pop(unneeded).unlink()

    def _map_bands(self, path: Path) -> list[int]:
        results = _open_map(path).lookup_key_lines(self._lines)
        return [
            likelihood_band(
                result.frequency.mementos if result.frequency else None,
                is_wildcard=(result.matched or "").endswith("*"),
            )
            if result.held
            else 0
            for result in results
        ]

    def try_filter(self, decisions: QueryDecisions, bits: int) -> QueryDecisions:
        """Return the decisions of a map combined with a filter of all pages."""
        page_filter = self._folder / "made.filter"
        write_page_filter(self._full_map, page_filter, bits)
        return self._with_filter(decisions, page_filter, bits)

    def try_budget(
        self, configuration: RoutingConfiguration, training_queries: Sequence[str | PathLike[str]]
    ) -> QueryDecisions:
        """Build a map within a budget, optionally with a filter; return its size and decisions."""
        if configuration.budget is None:
            raise ValueError(f"{configuration.name} has no budget")
        output, page_filter = self._folder / "budget.ukvs", self._folder / "budget.filter"
        options = BudgetOptions(
            queries=training_queries, with_filter=page_filter if configuration.divides_budget else None
        )
        bits = compact_to_budget(self._full_map, output, configuration.budget, options).filter_bits
        decisions = self._measure_map(output)
        return self._with_filter(decisions, page_filter, bits) if bits else decisions

    def _with_filter(self, decisions: QueryDecisions, page_filter: Path, bits: int) -> QueryDecisions:
        size, map_held = decisions
        filter_held = lookup_keys_in_filter(page_filter, self._queries.page_keys)
        filter_bytes = page_filter.stat().st_size
        return (
            ConfigurationSize(size.lines, size.bytes + filter_bytes, size.compressed + filter_bytes, bits),
            [in_map and in_filter for in_map, in_filter in zip(map_held, filter_held, strict=True)],
        )

    def _measure_map(self, path: Path) -> QueryDecisions:
        # Compression uses another processor core than the look-ups.
        with _background_compression() as compress:
            compressed = compress(path)
            held = self._query_map(path)
            return ConfigurationSize(count_rows(path), path.stat().st_size, compressed.result()), held

    def _query_map(self, path: Path) -> list[bool]:
        return _open_map(path).lookup_key_lines(self._lines).held


def _open_map(path: Path) -> Map:
    """Open a map: in memory, or on disk if it is large."""
    return Map.load(path) if path.stat().st_size <= _MAX_LOADED_BYTES else Map.open(path)


def _smallest_source(weights: WeightPair, maps: dict[WeightPair, Path]) -> WeightPair:
    """Return the weights of the smallest map from which another one can be compacted."""
    suitable = [each for each in maps if each[0] >= weights[0] and each[1] >= weights[1]]
    return min(suitable, key=lambda each: maps[each].stat().st_size)


@contextmanager
def _background_compression() -> Iterator[Callable[[Path], Future[int]]]:
    """Yield a function that measures compressed sizes in a background thread; errors such as Ctrl-C cancel it."""
    progress = Progress()
    executor = ThreadPoolExecutor(1)
    try:
        yield lambda path: executor.submit(compressed_size, path, progress)
    except BaseException:
        progress.cancel()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _policy_groups(policies: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(policies), _POLICIES_PER_PASS):
        yield policies[start : start + _POLICIES_PER_PASS]


def _has_wildcards(path: Path) -> bool:
    """Return whether a map has wildcard keys. A search in its text decides quickly for most maps, which have none."""
    with path.open("rb") as file:
        blocks = iter(lambda: file.read(_BLOCK_BYTES) + file.readline(), b"")
        if not any(b",* " in block or b"/* " in block for block in blocks):
            return False
    return any(key.endswith((b",*", b"/*")) for key, _ in read_map_rows(path))


def count_rows(path: Path) -> int:
    """Return the number of rows of a map or a profile, without header and total."""
    lines = 0
    with path.open("rb") as file:
        line = file.readline()
        while line.startswith((b"!", b"@", b"* ")):
            line = file.readline()
        lines += bool(line)
        while block := file.read(_BLOCK_BYTES):
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
    """Evaluate configurations for a single archive; see `evaluate_archives`."""
    evaluations = evaluate_archives(
        {"": index},
        queries,
        configurations,
        query_options=query_options,
        training_queries=training_queries,
        truth=truth,
    )
    return evaluations[0]


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
    """Build every configuration of each archive, look up all queries, and compare with the holdings.

    Args:
        archives: Index files by archive name.
        queries: Query logs.
        configurations: Configurations to evaluate.
        query_options: Options for reading the logs.
        training_queries: Other query logs, from which budgeted maps learn.
        truth: Ground truth; None for `address` if there are profiles, whose policies distinguish queries, else `page`.
        builders: Builders of maps and profiles.

    Raises:
        InputError: An index or a log cannot be read.
    """
    policies = [each.policy for each in configurations if each.policy is not None]
    ground_truth = truth or ("address" if policies else "page")
    if builders is LOCAL_BUILDERS and (policies or ground_truth == "address"):
        for index in archives.values():
            refuse_pipes(index)  # each is read twice
    with tempfile.TemporaryDirectory(prefix="unlost-evaluate-") as name:
        query_set, report = read_query_set(queries, Path(name), ground_truth, query_options)
        evaluations = []
        for archive, index in archives.items():
            with tempfile.TemporaryDirectory(prefix="archive-", dir=name) as archive_folder:
                with_bands = any(each.min_probability for each in configurations)
                trial = ConfigurationTrial(
                    index, Path(archive_folder), query_set, with_bands=with_bands, builders=builders
                )
                evaluation = _evaluate_configurations(trial, query_set, configurations, training_queries, ground_truth)
            evaluation.archive, evaluation.query_report = archive, report
            evaluations.append(evaluation)
    return evaluations


def _evaluate_configurations(
    trial: ConfigurationTrial,
    query_set: QuerySet,
    configurations: Sequence[RoutingConfiguration],
    training_queries: FilePaths,
    truth: GroundTruth,
) -> ArchiveEvaluation:
    policy_names = [configuration.policy for configuration in configurations if configuration.policy is not None]
    # The URIR policy, which truncates nothing, is the ground truth for whole URLs.
    exact = ["URIR"] if truth == "address" else []
    policies: dict[str, QueryDecisions] = dict(trial.try_policies([*dict.fromkeys([*policy_names, *exact])]))
    if truth == "address":
        size, held = policies["URIR"]
        keys = size.lines
    else:
        keys, held = trial.keys, trial.lookup_pages()
    maps: dict[WeightPair, QueryDecisions] = dict(
        trial.try_weights(
            [configuration.weights for configuration in configurations if _is_weighted_map(configuration)]
        )
    )
    evaluation = ArchiveEvaluation(index_report=trial.report)
    for configuration in configurations:
        if configuration.policy is not None:
            decisions = policies[configuration.policy]
        elif configuration.budget is not None:
            decisions = trial.try_budget(configuration, training_queries)
        else:
            decisions = (
                trial.try_filter(maps[configuration.weights], configuration.bits)
                if configuration.bits
                else maps[configuration.weights]
            )
        size, predicted = decisions
        counts = query_set.counts
        if configuration.min_probability:
            probabilities = estimate_probabilities(
                trial.bands[configuration.policy or configuration.weights], held, counts
            )
            predicted = [
                is_predicted and probability >= configuration.min_probability
                for is_predicted, probability in zip(predicted, probabilities, strict=True)
            ]
        present = list(map(and_, held, predicted))
        # A minimum probability trades recall for precision: only without it, a miss is an error.
        if present != held and not configuration.min_probability:
            false_negative = next(key for key, a, b in zip(query_set.url_keys, held, present, strict=True) if a != b)
            evaluation.false_negatives.append((configuration.name, false_negative))
        evaluation.results.append(
            RoutingResult(
                configuration,
                keys,
                size,
                query_count=sum(counts),
                predicted=sum(compress(counts, predicted)),
                present=sum(compress(counts, present)),
                held=sum(compress(counts, held)),
            )
        )
    return evaluation


def _is_weighted_map(configuration: RoutingConfiguration) -> bool:
    return configuration.policy is None and configuration.budget is None
