"""How well maps and filters route: which questions they send to an archive, and which of those it could answer."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path

from unlost.errors import InputError
from unlost.holdings.beside import filter_holds, write_filter
from unlost.holdings.budget import Budget, BudgetOptions, compact_to_budget, published_size
from unlost.holdings.build import MapOptions, build_map
from unlost.holdings.compaction import NO_LIMIT, Compaction, compact_map
from unlost.holdings.map import Map
from unlost.holdings.queries import QueryOptions, count_queries
from unlost.holdings.report import Report
from unlost.measure.intervals import Share


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is tried: a map by weights or to a budget, a filter beside it.

    weights: of hosts and paths; infinite rolls nothing up. budget: in their place. bits: of the filter for each key; 0
    for none. divides: the budget's bytes are divided between map and filter.
    """

    name: str
    weights: tuple[float, float] = (NO_LIMIT, NO_LIMIT)
    budget: Budget | None = None
    bits: int = 0
    divides: bool = False


def configurations(
    weights: Sequence[tuple[float, float]] = (),
    bits: Sequence[int] = (),
    budgets: Sequence[Budget] = (),
    *,
    with_filter: bool = False,
) -> list[Configuration]:
    """Return what to try: the map as it is, one for each pair of weights, filters beside a map of hosts, budgets.

    >>> [one.name for one in configurations([(4, 1)], [8], [Budget.parse("9KB")])]
    ['all keys', 'weights 4,1', 'hosts + 8 bits', 'budget 9000 bytes']
    """
    return [
        Configuration("all keys"),
        *(Configuration(f"weights {host:g},{path:g}", (host, path)) for host, path in weights),
        *(Configuration(f"hosts + {one} bits", (NO_LIMIT, 0.0), bits=one) for one in bits),
        *(
            Configuration(
                f"budget {one.size} {one.unit}{' + filter' if with_filter else ''}", budget=one, divides=with_filter
            )
            for one in budgets
        ),
    ]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one configuration.

    keys: of the index, which are the baseline. lines: of the map, total and headers not counted. bytes, compressed: of
    map and filter together; a filter does not compress. cost: lines of the map for each key of the baseline.
    predicted: questions for which the archive would be asked. present: those of them that it holds.
    """

    configuration: Configuration
    keys: int
    lines: int
    bytes: int
    compressed: int
    bits: int
    questions: int
    predicted: int
    present: int
    held: int

    @property
    def cost(self) -> float:
        """Relative cost, as the papers have it."""
        return self.lines / self.keys if self.keys else 0.0

    @property
    def precision(self) -> Share:
        """How many of the predicted are present."""
        return Share(self.present, self.predicted)

    @property
    def recall(self) -> Share:
        """How many of the present were predicted: all, or something is broken."""
        return Share(self.present, self.held)

    @property
    def accuracy(self) -> Share:
        """How many questions were answered rightly, either way."""
        wrong = (self.predicted - self.present) + (self.held - self.present)
        return Share(self.questions - wrong, self.questions)


@dataclass(slots=True)
class Evaluation:
    """All results, what became of the lines of index and questions, and what was missed.

    missed: the configuration and the key of each question that was denied although the page is held; at most one for
    each configuration.
    """

    results: list[Result] = field(default_factory=list)
    index: Report = field(default_factory=Report)
    questions: Report = field(default_factory=Report)
    missed: list[tuple[str, str]] = field(default_factory=list)


def evaluate(
    index: Sequence[str | PathLike[str]],
    queries: Sequence[str | PathLike[str]],
    tried: Sequence[Configuration],
    *,
    query_options: QueryOptions | None = None,
    learned: Sequence[str | PathLike[str]] = (),
) -> Evaluation:
    """Build every configuration from the index, ask it all questions, and compare with what the index holds.

    learned: files of other questions, for budgets to learn from. A page is held if its key, without its query, is one
    of the index. Raises InputError if index or questions cannot be read at all.
    """
    found = Evaluation()
    with tempfile.TemporaryDirectory(prefix="unlost-evaluate-") as name:
        folder = Path(name)
        full, asked = folder / "full.ukvs", folder / "asked.ukvs"
        found.index = build_map(index, full)
        found.questions = count_queries(queries, asked, MapOptions().rules, query_options)
        questions = list(_rows(asked))
        keys = [key for key, _ in questions]
        baseline, wildcards = _count_lines(full)
        if not baseline:
            raise InputError(f"{fspath(index[0])}: nothing in it: expected an index")
        if wildcards:
            maps = ", ".join(fspath(one) for one in index)
            raise InputError(f"{maps}: has wildcards, so nobody knows which pages are held: give the index itself")
        truth = [answer.held for answer in Map.load(full).lookup_keys_many(keys)]
        for one in tried:
            sizes, predicted = _try(one, full, folder, keys, learned)
            counts = [count for _, count in questions]
            present = sum(n for n, held, said in zip(counts, truth, predicted, strict=True) if held and said)
            missed = next((k for k, held, said in zip(keys, truth, predicted, strict=True) if held and not said), None)
            if missed is not None:
                found.missed.append((one.name, missed))
            found.results.append(
                Result(
                    one,
                    baseline,
                    *sizes,
                    questions=sum(counts),
                    predicted=sum(n for n, said in zip(counts, predicted, strict=True) if said),
                    present=present,
                    held=sum(n for n, held in zip(counts, truth, strict=True) if held),
                )
            )
    return found


def _try(
    one: Configuration, full: Path, folder: Path, keys: Sequence[str], learned: Sequence[str | PathLike[str]]
) -> tuple[tuple[int, int, int, int], list[bool]]:
    """Return lines, bytes, compressed bytes and filter bits of a configuration, and its answers."""
    made, beside = folder / "made.ukvs", folder / "made.filter"
    bits = one.bits
    if one.budget is not None:
        options = BudgetOptions(queries=learned, with_filter=beside if one.divides else None)
        bits = compact_to_budget(full, made, one.budget, options).bits
    else:
        compact_map(full, made, Compaction(*one.weights))
        if bits:
            write_filter(full, beside, bits)
    answers = [answer.held for answer in Map.load(made).lookup_keys_many(keys)]
    plain, packed = made.stat().st_size, published_size(made)
    if bits:
        answers = [both and also for both, also in zip(answers, filter_holds(beside, keys), strict=True)]
        plain, packed = plain + beside.stat().st_size, packed + beside.stat().st_size
    return (_count_lines(made)[0], plain, packed, bits), answers


def _rows(path: Path) -> Iterator[tuple[str, int]]:
    """Yield keys and counts of a map of questions, but for its total."""
    for line in _lines(path):
        key, _, count = line.decode().rpartition(" ")
        yield key, int(count)


def _count_lines(path: Path) -> tuple[int, int]:
    """Return how many lines a map has, but for its total, and how many of them are wildcards."""
    lines = wildcards = 0
    for line in _lines(path):
        lines += 1
        wildcards += line.partition(b" ")[0].endswith((b",*", b"/*"))
    return lines, wildcards


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from (line for line in file if not line.startswith((b"!", b"* ")))
