"""URI-Key profiles on a Spark cluster."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, groupby
from os import PathLike
from pathlib import Path

from unlost import _core
from unlost._core import Progress
from unlost.atomic import atomic_files
from unlost.errors import UsageError
from unlost.mementomap.builder import MapOptions
from unlost.mementomap.profile_builder import ProfileHeader, create_profile_counter
from unlost.mementomap.readers import InputReport
from unlost.problems import Problems
from unlost.research.spark.engine import LineCutter, SparkEngine, add_line_stats, count_split, read_inputs
from unlost.research.spark.rows import (
    MAX_TASK_SAMPLES,
    PLACES_PER_TASK,
    PartialRow,
    TaskReport,
    create_empty_file,
    read_line_chunks,
    sample_keys,
    task_directory,
)
from unlost.research.spark.splits import Split
from unlost.text_lines import MAX_LINE_BYTES
from unlost.uri import SuffixList

_MERGE_FAN_IN = 60
"""Profiles that are merged at a time: of many more, the core would read what it merged before again and again."""

_SPREAD = re.compile(rb' "spread": \d+')
"""Keys have no spaces, so that it stands nowhere else."""


@dataclass(frozen=True, slots=True)
class ProfileSplits:
    """Counts pieces under the keys of each policy. A row's source is the place of its policy."""

    policies: Sequence[str]
    rules: str
    suffixes: bytes | None
    section: str
    is_only: bool

    def __call__(self, pieces: Iterator[Split], task: int) -> Iterator[PartialRow]:
        """Yield the lines of each policy's profile of what is here, and a note."""
        note = TaskReport()
        options = MapOptions(rules=self.rules, urir=True)
        builder = create_profile_counter(self.rules, threads=1)
        for piece in pieces:
            tally = count_split(piece, builder, options.header(), options, is_only=self.is_only)
            note.tallies.append((piece.source, piece.start, piece.prefix_bytes, piece.prefix_lines, tally))
        numbers = count(task * PLACES_PER_TASK)
        with task_directory() as place:
            paths = [create_empty_file(Path(place, policy)) for policy in self.policies]
            plan = [(policy, str(path), b"") for policy, path in zip(self.policies, paths, strict=True)]
            _core.write_profiles(builder, plan, SuffixList(self.suffixes, self.section), False, Progress())
            for source, path in enumerate(paths):
                note.samples += sample_keys(path, MAX_TASK_SAMPLES // len(paths) + 1)
                for text in read_line_chunks(path):
                    yield PartialRow(0, source, next(numbers), text)
        yield note.to_row()


@dataclass(frozen=True, slots=True)
class MergeProfilePart:
    """Adds up what tasks counted under the keys of one part, policy by policy."""

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield the lines of each policy, and a note."""
        numbers = count()
        for source, some in groupby(rows, lambda row: row.source):
            with task_directory() as place:
                for text in read_line_chunks(_merge_rows(place, some)):
                    # The core counts how many profiles it merged; these are of one.
                    yield PartialRow(part, source, next(numbers), _SPREAD.sub(b' "spread": 1', text))
        yield TaskReport().to_row()


def _merge_rows(place: Path, rows: Iterator[PartialRow]) -> Path:
    """Return a file of the lines of one policy, in order, those of a key added: each task's were in order already."""
    names = (Path(place, str(number)) for number in count())
    paths: list[Path] = []
    for _, some in groupby(rows, lambda row: row.place // PLACES_PER_TASK):
        paths.append(next(names))
        with paths[-1].open("wb") as file:
            file.writelines(row.data for row in some)
    while len(paths) > 1:
        few = [paths[start : start + _MERGE_FAN_IN] for start in range(0, len(paths), _MERGE_FAN_IN)]
        paths = [_merge_files(some, next(names)) for some in few]
    return paths[0]


def _merge_files(paths: Sequence[Path], target: Path) -> Path:
    _core.merge_profiles([str(path) for path in paths], MAX_LINE_BYTES, str(create_empty_file(target)), b"", Progress())
    for path in paths:
        path.unlink()
    return target


def build_profiles(
    engine: SparkEngine,
    inputs: Iterable[str | PathLike[str]],
    outputs: Mapping[str, str | PathLike[str]],
    header: ProfileHeader,
    problems: Problems,
    *,
    suffixes: bytes | None = None,
    columns: Mapping[str, str] | None = None,
) -> int:
    """Count what inputs hold under the keys of each policy, as `unlost.mementomap.profile_builder.build_profiles` does.

    suffixes: the text of a Public Suffix List, for the D policies; that of unlost if None. columns: of Parquet files.
    Returns how many captures were counted. All files appear, or none.
    """
    policies = list(outputs)
    if not policies:
        raise UsageError("no policies: nothing to count")
    report = InputReport(problems=problems)
    with atomic_files(list(outputs.values())) as opened:
        files = read_inputs(engine, list(inputs), None, columns)
        work = ProfileSplits(policies, header.rules, suffixes, header.suffixes, len(files.names) == 1)
        counted = engine.read(files, work)
        add_line_stats(counted.reports, files, report)
        bounds = counted.choose_bounds(engine.parts, engine.parallelism, "page")
        stage = engine.merge(counted, LineCutter(bounds), len(bounds) + 1, MergeProfilePart())
        for policy, file in zip(policies, opened, strict=True):
            file.write(replace(header, policy=policy).to_lines())
        for row in stage.rows():
            opened[row.source].write(row.data)
        counted.release()
        stage.release()
    return report.counted
