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
from unlost.holdings.beside import filter_holds, write_filter
from unlost.holdings.budget import BudgetOptions, compact_to_budget, published_size
from unlost.holdings.build import build_map
from unlost.holdings.compaction import NO_LIMIT, Compaction, compact_map
from unlost.holdings.map import Map
from unlost.holdings.profile import ProfileHeader, build_profiles
from unlost.holdings.report import Report
from unlost.measure.routing.configurations import Configuration
from unlost.measure.routing.questions import Questions, frequency_of, map_rows, profile_blocks, profile_rows
from unlost.measure.routing.ranking import band_of
from unlost.measure.routing.results import Size
from unlost.uri import KeyPolicies

Said = tuple[Size, list[bool]]
"""What a configuration costs, and for each question whether the archive would be asked."""

Weights = tuple[float, float]

Files = Sequence[str | PathLike[str]]

_GROUP = 6  # policies
_BLOCK = 1 << 20  # bytes
_IN_MEMORY = 1 << 30  # bytes
_EXACT = "URIR"
_UNCUT = (NO_LIMIT, NO_LIMIT)


@dataclass(frozen=True, slots=True)
class Makers:
    """Who reads indexes, and makes maps and profiles of them: this machine or a cluster, which make the same."""

    build_map: Callable[[Files, Path], Report]
    build_profiles: Callable[[Files, dict[str, Path], ProfileHeader, Problems], int]


HERE = Makers(build_map, build_profiles)
"""This machine."""


class Trial:
    """An archive's index, read as often as there are kinds of keys, and everything that is made of it.

    folder: for what is needed meanwhile: the map of all keys, the profiles, and at most as many compacted maps as are
    still needed. keys: how many pages the index has. report: what became of its lines. ranks: frequencies are looked
    at, too; bands: for each policy and each pair of weights that was made, one of `ranking.band_of` a question.
    """

    def __init__(
        self, index: Files, folder: Path, questions: Questions, *, ranks: bool = False, makers: Makers = HERE
    ) -> None:
        self._makers = makers
        self._ranks = ranks
        self.bands: dict[str | Weights, list[int]] = {}
        self._index = index
        self._folder = folder
        self._questions = questions
        self._lines = "".join(f"{page}\n" for page in questions.pages).encode()
        self._full = folder / "full.ukvs"
        self.report = makers.build_map(index, self._full)
        self.keys = count_lines(self._full)
        names = ", ".join(map(str, index))
        if not self.keys:
            raise InputError(f"{names}: nothing in it: expected an index")
        if _has_wildcards(self._full):
            raise InputError(f"{names}: has wildcards, so nobody knows which pages are held: give the index itself")

    def held_pages(self) -> list[bool]:
        """Return for each question whether its page is held."""
        return self._asked(self._full)

    def of_policies(self, policies: Sequence[str]) -> Iterator[tuple[str, Said]]:
        """Make the profiles of policies in one pass, and yield what each costs and says."""
        outputs = {policy: self._folder / f"{policy}.cdxj" for policy in policies}
        if not policies:
            return
        # What cannot be read was counted when the map was made of the same lines.
        self._makers.build_profiles(self._index, outputs, ProfileHeader(_EXACT), Problems())
        with _compressing() as compress:
            compressed = {policy: compress(path) for policy, path in outputs.items()}
            for some in _groups(policies):
                # An address is taken apart once for several policies; for all of them it would need much memory.
                made = KeyPolicies(some).keys_many(self._questions.addresses)
                cut = [keys for keys in made if not isinstance(keys, UriError)]
                for policy, asked in zip(some, zip(*cut, strict=True), strict=True):
                    path = outputs[policy]
                    lines, answers = self._profiled(policy, path, asked)
                    yield policy, (Size(lines, path.stat().st_size, compressed[policy].result()), answers)
                    path.unlink()

    def _profiled(self, policy: str, path: Path, asked: Sequence[str]) -> tuple[int, list[bool]]:
        """Return how many keys a profile has, and for each question whether its key is one of them."""
        if len(asked) != len(self._questions):
            raise InputError("a question whose key has no key: this is a fault of unlost")
        if self._ranks:
            wanted = set(asked)
            rows = ((key.decode(), rest) for key, rest in profile_rows(path))
            copies = {key: frequency_of(rest, path) for key, rest in rows if key in wanted}
            self.bands[policy] = [band_of(copies[key], is_wild=False) if key in copies else 0 for key in asked]
        # Memory grows with what is asked, not with what is held.
        keys = SeenKeys(asked)
        return sum(map(keys.see, profile_blocks(path))), keys.seen()

    def of_weights(self, wanted: Sequence[Weights]) -> Iterator[tuple[Weights, Said]]:
        """Make a map for each pair of weights, the largest first, and yield what each costs and says.

        Compacting again with smaller weights gives what compacting once would, so each is made of the smallest that
        will do; those that no other needs any more go.
        """
        waiting = sorted(set(wanted), reverse=True)
        kept: dict[Weights, Path] = {_UNCUT: self._full}
        for number, weights in enumerate(waiting):
            source = kept[_source(weights, kept)]
            made = source
            if weights != _UNCUT:
                made = self._folder / f"weights-{number}.ukvs"
                compact_map(source, made, Compaction(*weights))
            kept[weights] = made
            if self._ranks:
                self.bands[weights] = self._banded(made)
            yield weights, self._said(made)
            needed = {_source(later, kept) for later in waiting[number + 1 :]} | {_UNCUT}
            for useless in set(kept) - needed:
                kept.pop(useless).unlink()

    def _banded(self, path: Path) -> list[int]:
        answers = _opened(path).lookup_key_lines(self._lines)
        return [
            band_of(
                answer.frequency.mementos if answer.frequency else None, is_wild=(answer.matched or "").endswith("*")
            )
            if answer.held
            else 0
            for answer in answers
        ]

    def of_filter(self, said: Said, bits: int) -> Said:
        """Return the same with a filter of all pages beside it."""
        beside = self._folder / "made.filter"
        write_filter(self._full, beside, bits)
        return self._filtered(said, beside, bits)

    def of_budget(self, one: Configuration, learned: Sequence[str | PathLike[str]]) -> Said:
        """Make a map to a budget, perhaps with a filter, and return what it costs and says."""
        if one.budget is None:
            raise ValueError(f"{one.name} has no budget")
        made, beside = self._folder / "budget.ukvs", self._folder / "budget.filter"
        options = BudgetOptions(queries=learned, with_filter=beside if one.divides else None)
        bits = compact_to_budget(self._full, made, one.budget, options).bits
        said = self._said(made)
        return self._filtered(said, beside, bits) if bits else said

    def _filtered(self, said: Said, beside: Path, bits: int) -> Said:
        size, answers = said
        had = filter_holds(beside, self._questions.pages)
        more = beside.stat().st_size
        return (
            Size(size.lines, size.bytes + more, size.compressed + more, bits),
            [both and also for both, also in zip(answers, had, strict=True)],
        )

    def _said(self, path: Path) -> Said:
        # The compressor needs one processor, and nothing that the look-ups need.
        with _compressing() as compress:
            compressed = compress(path)
            answers = self._asked(path)
            return Size(count_lines(path), path.stat().st_size, compressed.result()), answers

    def _asked(self, path: Path) -> list[bool]:
        return _opened(path).lookup_key_lines(self._lines).held


def _opened(path: Path) -> Map:
    """Return a map to be asked: in memory, unless it is so large that it is better asked where it lies."""
    return Map.load(path) if path.stat().st_size <= _IN_MEMORY else Map.open(path)


def _source(weights: Weights, kept: dict[Weights, Path]) -> Weights:
    """Return of which of the maps that were made another is made: the smallest of those that were cut no more."""
    will_do = [each for each in kept if each[0] >= weights[0] and each[1] >= weights[1]]
    return min(will_do, key=lambda each: kept[each].stat().st_size)


@contextmanager
def _compressing() -> Iterator[Callable[[Path], Future[int]]]:
    """Give what measures compressed sizes beside everything else; who leaves early, as by Ctrl-C, waits for none."""
    progress = Progress()
    beside = ThreadPoolExecutor(1)
    try:
        yield lambda path: beside.submit(published_size, path, progress)
    except BaseException:
        progress.cancel()
        raise
    finally:
        beside.shutdown(cancel_futures=True)


def _groups(policies: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(policies), _GROUP):
        yield policies[start : start + _GROUP]


def _has_wildcards(path: Path) -> bool:
    """Return whether a map has wildcards: most have none, which their text tells at a glance."""
    with path.open("rb") as file:
        blocks = iter(lambda: file.read(_BLOCK) + file.readline(), b"")
        if not any(b",* " in block or b"/* " in block for block in blocks):
            return False
    return any(key.endswith((b",*", b"/*")) for key, _ in map_rows(path))


def count_lines(path: Path) -> int:
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
