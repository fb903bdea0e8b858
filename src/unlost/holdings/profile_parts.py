"""Profiles whose keys tell when and what was captured: by year, by group of media types, or by both.

rows of an index ─► a counter for each part (`2014 html`) ─► a profile of each ─► one, with the parts of every key
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from heapq import merge
from itertools import groupby
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, get_args

from unlost.errors import InputError, UsageError
from unlost.formats.index import read_index_rows
from unlost.formats.media_types import group_of
from unlost.formats.output import atomic_files
from unlost.formats.problems import Problems
from unlost.holdings._profile_header import ProfileHeader
from unlost.holdings.inputs import detect_input_kind, to_row_columns
from unlost.holdings.profile import create_profile_counter, write_profiles
from unlost.holdings.report import InputReport
from unlost.uri import SuffixList

if TYPE_CHECKING:
    # Names of types, which the extension itself does not have.
    from unlost._core import MapBuilder, RowColumns

PartField = Literal["year", "mime"]
PART_FIELDS: tuple[PartField, ...] = get_args(PartField)

UNKNOWN_PART = "-"
"""The year or the group of what does not tell."""

MAX_PROFILE_PARTS = 400
"""Each has a counter of its own. Beyond them, years that are new count as unknown: no archive is that old."""

_BATCH = 5_000  # rows of a part
_COUNTER_MEMORY = 512 << 20  # bytes, for all counters


def build_profiles_by_part(
    inputs: Iterable[str | PathLike[str]],
    outputs: Mapping[str, str | PathLike[str]],
    header: ProfileHeader,
    problems: Problems,
    by: Sequence[PartField],
    *,
    suffixes: SuffixList | None = None,
    allow_partial: bool = False,
    max_bad: float | None = None,
    memory: int | None = None,
) -> int:
    """Count what indexes hold under the keys of each policy, by year, group of media types or both.

    Like `build_profiles`, but each line has `parts` too: `{"2014 html": 3}`, how much of the frequency is of which. by:
    in this order. memory: bytes that counting may take. Returns how many captures there are. Raises InputError for an
    input that is no CDX or CDXJ, UsageError if `by` is empty or has something twice.
    """
    if not by or len(set(by)) != len(by):
        raise UsageError(f"expected one or both of {', '.join(PART_FIELDS)}, each once")
    made = replace(header, others={**header.others, "by": list(by)})
    report = InputReport(problems=problems)
    counters = _PartCounters(header.rules, by, report, memory or _COUNTER_MEMORY)
    paths = list(inputs)
    for path in paths:
        kind = detect_input_kind(path)
        if kind not in ("index", "zipnum"):
            raise InputError(f"{fspath(path)}: has no dates and media types ({kind}): expected a CDX or CDXJ")
        counters.read(fspath(path), problems)
        report.refuse_damage(allow_partial=allow_partial, index=path)
    report.refuse_empty(paths)
    report.refuse_bad(max_bad)
    suffixes = suffixes or SuffixList(section=header.suffixes)
    with TemporaryDirectory(prefix="unlost-parts-") as name, ExitStack() as stack:
        parts: dict[str, dict[str, Path]] = {}
        for number, (part, builder) in enumerate(counters.builders.items()):
            parts[part] = {policy: Path(name, f"{number}-{policy}") for policy in outputs}
            write_profiles(builder, parts[part], header, suffixes=suffixes)
        files = stack.enter_context(atomic_files(list(outputs.values())))
        for (policy, _), file in zip(outputs.items(), files, strict=True):
            file.write(replace(made, policy=policy).to_lines())
            file.writelines(_merge_part_profiles({part: paths[policy] for part, paths in parts.items()}))
    return report.counted


class _PartCounters:
    """A counter for each part that occurs."""

    def __init__(self, rules: str, by: Sequence[PartField], report: InputReport, memory: int) -> None:
        self.builders: dict[str, MapBuilder] = {}
        self._rules = rules
        self._by = by
        self._report = report
        self._memory = max(1 << 20, memory // 64)
        self._batches: dict[str, list[RowColumns]] = {}

    def read(self, name: str, problems: Problems) -> None:
        """Count the rows of one file."""
        for row in read_index_rows(name, problems):
            year = row.timestamp[:4] if row.timestamp[:4].isdecimal() and row.timestamp.isascii() else UNKNOWN_PART
            mime = row.fields.get("mime", "")
            told = {"year": year, "mime": group_of(mime) if mime else UNKNOWN_PART}
            part = " ".join(told[field] for field in self._by)
            if part not in self.builders and len(self.builders) >= MAX_PROFILE_PARTS:
                part = " ".join(UNKNOWN_PART for _ in self._by)
            batch = self._batches.setdefault(part, [])
            batch.append(to_row_columns(row))
            if len(batch) >= _BATCH:
                self._count(part, name)
        for part in list(self._batches):
            self._count(part, name)

    def _count(self, part: str, name: str) -> None:
        if part not in self.builders:
            self.builders[part] = create_profile_counter(self._rules, threads=1, memory=self._memory)
        self._report.add_line_stats(self.builders[part].add_rows(self._batches.pop(part)), name)


def _merge_part_profiles(paths: Mapping[str, Path]) -> Iterator[bytes]:
    """Yield the lines of one profile of many, with how much of each key is of which."""
    sources = [_part_rows(path, part) for part, path in sorted(paths.items())]
    for key, group in groupby(merge(*sources, key=lambda row: row[0]), key=lambda row: row[0]):
        found = [(part, json.loads(rest)) for _, part, rest in group]
        line = {"frequency": sum(each["frequency"] for _, each in found), "spread": 1}
        ports: dict[str, int] = {}
        for _, each in found:
            for port, count in each.get("ports", {}).items():
                ports[port] = ports.get(port, 0) + count
        told = {"ports": dict(sorted(ports.items(), key=lambda pair: int(pair[0])))} if ports else {}
        parts = {part: each["frequency"] for part, each in found}
        yield key + b" " + json.dumps({**line, **told, "parts": parts}).encode() + b"\n"


def _part_rows(path: Path, part: str) -> Iterator[tuple[bytes, str, bytes]]:
    with path.open("rb") as file:
        for line in file:
            if not line.startswith(b"@"):
                key, _, rest = line.partition(b" ")
                yield key, part, rest
