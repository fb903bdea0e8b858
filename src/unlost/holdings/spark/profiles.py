"""Profiles on a cluster.

Captures under a key only ever add up, whoever counted them. So each task counts what it reads under the keys of every
policy at once, and what all of them have of a key is added where the result is cut: between any two keys.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, groupby
from os import PathLike
from pathlib import Path

from unlost import _core
from unlost._core import Progress
from unlost.errors import UsageError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.output import whole_files
from unlost.formats.problems import Problems
from unlost.holdings.build import MapOptions
from unlost.holdings.profile import ProfileHeader, counter
from unlost.holdings.report import Report
from unlost.holdings.spark.counting import count_piece, read_inputs
from unlost.holdings.spark.engine import CutLines, Engine, add_tallies
from unlost.holdings.spark.files import SAMPLES, chunks, empty, folder, samples
from unlost.holdings.spark.pieces import Piece
from unlost.holdings.spark.rows import PLACES, Note, Row
from unlost.uri import SuffixList

_AT_ONCE = 60
"""Profiles that are merged at a time: of many more, the core would read what it merged before again and again."""

_SPREAD = re.compile(rb' "spread": \d+')
"""Keys have no spaces, so that it stands nowhere else."""


@dataclass(frozen=True, slots=True)
class ProfilePieces:
    """Counts pieces under the keys of each policy. A row's source is the place of its policy."""

    policies: Sequence[str]
    rules: str
    suffixes: bytes | None
    section: str
    is_only: bool

    def __call__(self, pieces: Iterator[Piece], task: int) -> Iterator[Row]:
        """Yield the lines of each policy's profile of what is here, and a note."""
        note = Note()
        options = MapOptions(rules=self.rules, urir=True)
        builder = counter(self.rules, threads=1)
        for piece in pieces:
            tally = count_piece(piece, builder, options.header(), options, is_only=self.is_only)
            note.tallies.append((piece.source, piece.start, piece.added, piece.added_lines, tally))
        numbers = count(task * PLACES)
        with folder() as place:
            paths = [empty(Path(place, policy)) for policy in self.policies]
            plan = [(policy, str(path), b"") for policy, path in zip(self.policies, paths, strict=True)]
            _core.write_profiles(builder, plan, SuffixList(self.suffixes, self.section), False, Progress())
            for source, path in enumerate(paths):
                note.samples += samples(path, SAMPLES // len(paths) + 1)
                for text in chunks(path):
                    yield Row(0, source, next(numbers), text)
        yield note.row()


@dataclass(frozen=True, slots=True)
class ProfilePart:
    """Adds up what tasks counted under the keys of one part, policy by policy."""

    def __call__(self, part: int, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the lines of each policy, and a note."""
        numbers = count()
        for source, some in groupby(rows, lambda row: row.source):
            with folder() as place:
                for text in chunks(_merged(place, some)):
                    # The core counts how many profiles it merged; these are of one.
                    yield Row(part, source, next(numbers), _SPREAD.sub(b' "spread": 1', text))
        yield Note().row()


def _merged(place: Path, rows: Iterator[Row]) -> Path:
    """Return a file of the lines of one policy, in order, those of a key added: each task's were in order already."""
    names = (Path(place, str(number)) for number in count())
    paths: list[Path] = []
    for _, some in groupby(rows, lambda row: row.place // PLACES):
        paths.append(next(names))
        with paths[-1].open("wb") as file:
            file.writelines(row.data for row in some)
    while len(paths) > 1:
        few = [paths[start : start + _AT_ONCE] for start in range(0, len(paths), _AT_ONCE)]
        paths = [_merged_few(some, next(names)) for some in few]
    return paths[0]


def _merged_few(paths: Sequence[Path], target: Path) -> Path:
    _core.merge_profiles([str(path) for path in paths], MAX_LINE_BYTES, str(empty(target)), b"", Progress())
    for path in paths:
        path.unlink()
    return target


def build_profiles(
    engine: Engine,
    inputs: Iterable[str | PathLike[str]],
    outputs: Mapping[str, str | PathLike[str]],
    header: ProfileHeader,
    problems: Problems,
    *,
    suffixes: bytes | None = None,
    columns: Mapping[str, str] | None = None,
) -> int:
    """Count what inputs hold under the keys of each policy, as `unlost.holdings.profile.build_profiles` does.

    suffixes: the text of a Public Suffix List, for the D policies; that of unlost if None. columns: of Parquet files.
    Returns how many captures were counted. All files appear, or none.
    """
    policies = list(outputs)
    if not policies:
        raise UsageError("no policies: nothing to count")
    report = Report(problems=problems)
    with whole_files(list(outputs.values())) as opened:
        files = read_inputs(engine, list(inputs), None, columns)
        work = ProfilePieces(policies, header.rules, suffixes, header.suffixes, len(files.names) == 1)
        counted = engine.read(files, work)
        add_tallies(counted.notes, files, report)
        bounds = counted.bounds(engine.parts, engine.at_once, "page")
        stage = engine.merge(counted, CutLines(bounds), len(bounds) + 1, ProfilePart())
        for policy, file in zip(policies, opened, strict=True):
            file.write(replace(header, policy=policy).lines())
        for row in stage.rows():
            opened[row.source].write(row.data)
        counted.forget()
        stage.forget()
    return report.counted
