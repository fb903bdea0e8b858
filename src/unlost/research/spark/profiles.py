"""Builds URI-Key profiles on a Spark cluster.

The counts of a profile are sums, so parts may be divided between any two keys.
"""

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
"""Number of profiles merged at a time. With many more, the core would read merged rows repeatedly."""

_SPREAD = re.compile(rb' "spread": \d+')
"""Matches only the value of a row, because keys contain no spaces."""


@dataclass(frozen=True, slots=True)
class ProfileSplits:
    """Counts splits by the keys of each policy. The source of a row is the index of its policy."""

    policies: Sequence[str]
    rules: str
    suffixes: bytes | None
    section: str
    is_only: bool

    def __call__(self, splits: Iterator[Split], task: int) -> Iterator[PartialRow]:
        """Yield the rows of each policy's profile of the splits, and a report."""
        task_report = TaskReport()
        options = MapOptions(rules=self.rules, urir=True)
        builder = create_profile_counter(self.rules, threads=1)
        for split in splits:
            tally = count_split(split, builder, options.header(), options, is_only=self.is_only)
            task_report.tallies.append((split.source, split.start, split.prefix_bytes, split.prefix_lines, tally))
        numbers = count(task * PLACES_PER_TASK)
        with task_directory() as folder:
            paths = [create_empty_file(Path(folder, policy)) for policy in self.policies]
            plan = [(policy, str(path), b"") for policy, path in zip(self.policies, paths, strict=True)]
            _core.write_profiles(builder, plan, SuffixList(self.suffixes, self.section), False, Progress())
            for source, path in enumerate(paths):
                task_report.samples += sample_keys(path, MAX_TASK_SAMPLES // len(paths) + 1)
                for text in read_line_chunks(path):
                    yield PartialRow(0, source, next(numbers), text)
        yield task_report.to_row()


@dataclass(frozen=True, slots=True)
class MergeProfilePart:
    """Merges the profiles of a part, by policy."""

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield the rows of each policy, and a report."""
        numbers = count()
        for source, group in groupby(rows, lambda row: row.source):
            with task_directory() as folder:
                for text in read_line_chunks(_merge_rows(folder, group)):
                    # The core counts merged profiles; these are parts of a single one.
                    yield PartialRow(part, source, next(numbers), _SPREAD.sub(b' "spread": 1', text))
        yield TaskReport().to_row()


def _merge_rows(folder: Path, rows: Iterator[PartialRow]) -> Path:
    """Merge the sorted rows of all tasks for one policy into a file."""
    names = (Path(folder, str(number)) for number in count())
    paths: list[Path] = []
    for _, group in groupby(rows, lambda row: row.place // PLACES_PER_TASK):
        paths.append(next(names))
        with paths[-1].open("wb") as file:
            file.writelines(row.data for row in group)
    while len(paths) > 1:
        groups = [paths[start : start + _MERGE_FAN_IN] for start in range(0, len(paths), _MERGE_FAN_IN)]
        paths = [_merge_files(group, next(names)) for group in groups]
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
    """Write profiles on the cluster atomically.

    The result equals that of `unlost.mementomap.profile_builder.build_profiles`.

    Args:
        engine: The engine.
        inputs: Input files.
        outputs: Files to write, by policy.
        header: Header of the profiles.
        problems: Collects the invalid lines.
        suffixes: Text of a Public Suffix List for the D policies; None for the bundled one.
        columns: Columns of Parquet files.

    Returns:
        Number of captures counted.
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
