"""Profiles on a cluster."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from unlost import _core
from unlost._core import Progress
from unlost.errors import UsageError
from unlost.formats.output import whole_files
from unlost.formats.problems import Problems
from unlost.holdings.build import MapOptions
from unlost.holdings.profile import ProfileHeader, counter
from unlost.holdings.report import Report
from unlost.holdings.spark.counting import read_inputs
from unlost.holdings.spark.engine import CutLines, Engine, add_tallies
from unlost.holdings.spark.files import chunks, empty, folder
from unlost.holdings.spark.maps import CountPieces
from unlost.holdings.spark.rows import Note, Row
from unlost.uri import SuffixList

_ACROSS = "H1P0"
"""The only policy whose keys are wider than a second-level domain: its parts have keys in common."""


@dataclass(frozen=True, slots=True)
class ProfilePart:
    """Counts one part under the keys of each policy. A row's source is the place of its policy."""

    policies: Sequence[str]
    rules: str
    suffixes: bytes | None
    section: str

    def __call__(self, part: int, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the lines of each policy's profile."""
        builder = counter(self.rules, threads=1)
        for row in rows:
            builder.add_counts(row.data, 1)
        with folder() as place:
            paths = [empty(Path(place, policy)) for policy in self.policies]
            plan = [(policy, str(path), b"") for policy, path in zip(self.policies, paths, strict=True)]
            _core.write_profiles(builder, plan, SuffixList(self.suffixes, self.section), False, Progress())
            number = 0
            for source, path in enumerate(paths):
                for text in chunks(path):
                    yield Row(part, source, number, text)
                    number += 1
        yield Note().row()


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
        options = MapOptions(rules=header.rules, urir=True)
        files = read_inputs(engine, list(inputs), None, columns)
        counted = engine.read(files, CountPieces(options, len(files.names) == 1))
        add_tallies(counted.notes, files, report)
        bounds = counted.bounds(engine.parts, engine.at_once, "domain")
        work = ProfilePart(policies, header.rules, suffixes, header.suffixes)
        stage = engine.merge(counted, CutLines(bounds), len(bounds) + 1, work)
        across = counter(header.rules)
        for policy, file in zip(policies, opened, strict=True):
            file.write(replace(header, policy=policy).lines())
        for row in stage.rows():
            if policies[row.source] == _ACROSS:
                across.add_counts(_counts(row.data), 1)
            else:
                opened[row.source].write(row.data)
        if _ACROSS in policies:
            with folder() as place:
                path = empty(Path(place, _ACROSS))
                _core.write_profiles(across, [(_ACROSS, str(path), b"")], SuffixList(), False, Progress())
                opened[policies.index(_ACROSS)].writelines(chunks(path))
        counted.forget()
        stage.forget()
    return report.counted


def _counts(lines: bytes) -> bytes:
    """Return the lines of a profile as counted keys."""
    counts = []
    for line in lines.splitlines():
        key, _, values = line.partition(b' {"frequency": ')
        counts.append(key + b" " + values.partition(b",")[0] + b"\n")
    return b"".join(counts)
