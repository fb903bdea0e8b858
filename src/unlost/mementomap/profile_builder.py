"""Builds, merges, validates and converts URI-Key profiles.

`build_profiles` counts inputs and writes a profile for each policy; `merge_profiles` merges profiles of one policy;
`profiles_to_map` converts profiles of any policies to a MementoMap. In a profile with parts, each key also has counts
by year or media type.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import groupby
from os import SEEK_END, PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, BinaryIO, Literal, get_args

from unlost import _core
from unlost.atomic import atomic_file, atomic_files
from unlost.errors import InputError, UsageError
from unlost.index.reader import read_index_rows
from unlost.index.ukvs import format_header
from unlost.media_types import group_of
from unlost.mementomap.builder import MapOptions
from unlost.mementomap.map_file import atomic_map_file, with_row_bytes
from unlost.mementomap.profile import ProfileHeader, ProfileLookupResult, UriKeyProfile, require_same_rules
from unlost.mementomap.readers import (
    InputReport,
    ProgressCallback,
    count_inputs,
    detect_input_kind,
    run_with_progress,
    to_row_columns,
)
from unlost.problems import Problem, Problems, require_rereadable
from unlost.text_lines import MAX_LINE_BYTES, read_lines
from unlost.uri import DEFAULT_RULES, SuffixList

if TYPE_CHECKING:
    from unlost._core import MapBuilder, RowColumns

__all__ = [
    "PROFILE_PROBLEM_KINDS",
    "ProfileCheckResult",
    "ProfileHeader",
    "ProfileLookupResult",
    "UriKeyProfile",
    "build_profiles",
    "check_profile",
    "create_profile_counter",
    "merge_profiles",
    "profiles_to_map",
    "write_profiles",
]
PROFILE_PROBLEM_KINDS = {
    "too-long": "a line longer than unlost.text_lines.MAX_LINE_BYTES",
    "bad-row": "expected a key and an object",
    "bad-frequency": "expected a `frequency` of at most 18 digits",
    "bad-spread": "expected a `spread` of at most 18 digits",
    "bad-ports": "expected `ports`, each with its part of the frequency",
    "bad-key": "expected a key that an address can have under the policy",
    "nothing-held": "expected a frequency and a spread of at least 1",
    "unsorted": "expected keys in the order of their bytes",
    "duplicate-key": "expected each key once",
}
"""Kinds of problems with the lines of a profile."""
_MAX_SUM = 10**18
"""Limit for sums: 18 digits, as for frequencies."""

PartField = Literal["year", "mime"]
PART_FIELDS: tuple[PartField, ...] = get_args(PartField)
UNKNOWN_PART = "-"
"""Year or media type group of a capture without one."""
MAX_PROFILE_PARTS = 400
"""Maximum number of parts, each of which has a counter. Further years count as unknown: dates of damaged rows, since no
archive is that old."""
_BATCH_ROWS = 5_000  # of a part
_COUNTER_MEMORY = 512 << 20  # bytes, for all counters together


def create_profile_counter(
    rules: str = DEFAULT_RULES, *, threads: int | None = None, memory: int | None = None
) -> _core.MapBuilder:
    """Return a counter for `write_profiles`, which accepts rows as the map builder does.

    Args:
        rules: Rule set of the keys.
        threads: Maximum number of threads; does not affect the result.
        memory: Maximum bytes of entries in memory; does not affect the result.
    """
    return _core.MapBuilder(rules=rules, line_limit=MAX_LINE_BYTES, queries=True, threads=threads, memory=memory)


def build_profiles(
    inputs: Iterable[str | PathLike[str]],
    outputs: Mapping[str, str | PathLike[str]],
    header: ProfileHeader,
    problems: Problems,
    *,
    suffixes: SuffixList | None = None,
    as_json: bool = False,
    allow_partial: bool = False,
    max_bad: float | None = None,
    threads: int | None = None,
    memory: int | None = None,
    progress: _core.Progress | None = None,
    on_progress: ProgressCallback | None = None,
) -> int:
    """Count the captures of inputs under the keys of each policy, and return their total number.

    Rows that are not web pages (`dns:` …) are not counted.

    Args:
        inputs: Inputs of any kind that `unlost.mementomap.readers` detects.
        outputs: Output file of each policy; all are written, or none.
        header: Header of the profiles. Its policy is replaced by that of each profile.
        problems: Collects the lines that could not be read.
        suffixes: Public Suffix List for the D policies; the bundled one by default.
        as_json: Write JSON-LD documents instead of lines.
        allow_partial: As in `count_inputs`.
        max_bad: As in `count_inputs`.
        threads: Maximum number of threads.
        memory: Maximum bytes of entries in memory.
        progress: Progress object of the Rust core.
        on_progress: Called periodically with bytes and lines read.

    Raises:
        InputError: A file cannot be read or is damaged (unless that is allowed), or the inputs are empty.
    """
    progress = progress or _core.Progress()
    builder = create_profile_counter(header.rules, threads=threads, memory=memory)
    report = InputReport(problems=problems)
    expected_header = MapOptions(rules=header.rules).header()
    files = list(inputs)

    def work(running: _core.Progress) -> None:
        count_inputs(
            files,
            builder,
            report,
            running,
            expected_header=expected_header,
            allow_partial=allow_partial,
            max_bad=max_bad,
        )

    run_with_progress(work, on_progress, progress)
    report.refuse_empty(files)
    write_profiles(builder, outputs, header, suffixes=suffixes, as_json=as_json, progress=progress)
    return report.counted


def _add_problems(
    core_problems: Iterable[tuple[str, int, int, int, bytes]], name: str, problems: Problems, kinds: Mapping[str, str]
) -> None:
    for kind, count, line, offset, example in core_problems:
        excerpt = f"found {ascii(example.decode('utf-8', 'replace'))[:80]}"
        message = f"{kinds[kind]}, {excerpt}" if kind in kinds else excerpt
        problems.add(Problem(kind, name, line, offset, message), count)


def write_profiles(
    builder: _core.MapBuilder,
    outputs: Mapping[str, str | PathLike[str]],
    header: ProfileHeader,
    *,
    suffixes: SuffixList | None = None,
    as_json: bool = False,
    progress: _core.Progress | None = None,
) -> None:
    """Write the counts of a counter, which can be done once. All files are written, or none.

    Equal counts yield equal bytes. Arguments are those of `build_profiles`.
    """
    progress = progress or _core.Progress()
    suffixes = suffixes or SuffixList(section=header.suffixes)
    headers = {policy: replace(header, policy=policy) for policy in outputs}
    with atomic_files(list(outputs.values())) as files:
        heads = [each.to_json_prefix() if as_json else each.to_lines() for each in headers.values()]
        plan = [
            (policy, _descriptor_path(file), head) for policy, file, head in zip(outputs, files, heads, strict=True)
        ]
        run_with_progress(lambda _: _core.write_profiles(builder, plan, suffixes, as_json, progress), progress=progress)
        if as_json:
            for file in files:
                if file.seekable():
                    file.seek(0, SEEK_END)
                file.write(b"\n}}\n")


def _descriptor_path(file: BinaryIO) -> str:
    """Return a path for an open file that has no name yet, or that may be a pipe."""
    return f"/dev/fd/{file.fileno()}"


def _read_headers(sources: Sequence[str | PathLike[str]]) -> dict[str, ProfileHeader]:
    if not sources:
        raise InputError("no profiles: nothing to do")
    for path in sources:
        require_rereadable(path)
    return {fspath(path): ProfileHeader.read(path) for path in sources}


def merge_profiles(
    sources: Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    *,
    name: str | None = None,
    id: str | None = None,  # noqa: A002  the name in the file
    on_progress: ProgressCallback | None = None,
    progress: _core.Progress | None = None,
) -> None:
    """Merge profiles of one policy: frequencies, spreads and parts are added by key.

    Args:
        sources: The profiles.
        output: The result; not written if an error occurs.
        name: Name of the result; that of all profiles by default.
        id: ID of the result; that of all profiles by default.
        on_progress: Called periodically with bytes and lines read.
        progress: Progress object of the Rust core.

    Raises:
        InputError: Policies or rules differ, a file is not sorted, or a sum has more than 18 digits.
    """
    progress = progress or _core.Progress()
    headers = _read_headers(sources)
    header = ProfileHeader.merge(headers, name, id)
    head = header.to_lines()
    paths = [fspath(path) for path in sources]

    def merge(target: str) -> None:
        run_with_progress(
            lambda _: _core.merge_profiles(paths, MAX_LINE_BYTES, target, head, progress), on_progress, progress
        )

    with atomic_file(output) as file, TemporaryDirectory(prefix="unlost-merge-") as folder:
        if header.by:
            without_parts = Path(folder, "merged")
            without_parts.touch()
            merge(str(without_parts))
            file.writelines(merge_part_lines(without_parts, paths))
        else:
            merge(_descriptor_path(file))


def merge_part_lines(merged: Path, sources: Sequence[str]) -> Iterator[bytes]:
    """Yield the lines of a merged profile, with the parts of its sources added by key.

    The merge of the profiles without parts has found all other errors. Raises InputError for invalid parts.
    """
    part_groups = groupby(merge(*(_read_parts(name) for name in sources), key=_row_key), key=_row_key)
    with merged.open("rb") as file:
        for line in file:
            if line.startswith(b"@"):
                yield line
                continue
            key, _, members = line.partition(b" ")
            _, group = next(part_groups, (key, iter(())))
            total: dict[str, int] = {}
            for _, parts in group:
                for part, count in parts.items():
                    total[part] = total.get(part, 0) + count
            if max(total.values(), default=0) >= _MAX_SUM:
                raise InputError(f"the parts under {ascii(key.decode(errors='replace'))[:80]} have more than 18 digits")
            values = {**json.loads(members), "parts": dict(sorted(total.items()))}
            yield key + b" " + json.dumps(values).encode() + b"\n"


def _row_key(row: tuple[bytes, Mapping[str, int]]) -> bytes:
    return row[0]


def _read_parts(name: str) -> Iterator[tuple[bytes, Mapping[str, int]]]:
    """Yield the keys of a profile with their parts."""
    for line in read_lines(name, Problems()):
        key, _, members = line.text.partition(b" ")
        if not line.text.strip() or line.text.startswith((b"@", b"\xef\xbb\xbf@")):
            continue
        try:
            parts = json.loads(members)["parts"]
            is_sound = all(type(count) is int and 0 <= count < _MAX_SUM for count in parts.values())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            is_sound = False
        if not is_sound:
            raise InputError(f'{name}: line {line.number}: expected parts with their counts, {{"2014": 3}}')
        yield key, parts


def profiles_to_map(
    sources: Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    *,
    name: str | None = None,
    id: str | None = None,  # noqa: A002  named as in the file
    memory: int | None = None,
    on_progress: ProgressCallback | None = None,
    progress: _core.Progress | None = None,
) -> None:
    """Write a MementoMap that covers every page counted in any of the profiles, whose policies may differ.

    Keys that cover more than one page become wildcards; frequencies of equal wildcards are added. Raises InputError as
    `merge_profiles` does, except for different policies.
    """
    progress = progress or _core.Progress()
    headers = _read_headers(sources)
    rules = require_same_rules(headers)
    all_headers = list(headers.values())
    common = all_headers[0] if len(all_headers) == 1 else ProfileHeader("HxPx")
    header = MapOptions(rules=rules, name=name or common.name, id=id or common.id).header()
    head = format_header(with_row_bytes(header))
    plan = [(fspath(path), headers[fspath(path)].policy) for path in sources]
    with atomic_map_file(output) as file:
        target = str(file)
        run_with_progress(
            lambda _: _core.profiles_to_map(plan, MAX_LINE_BYTES, target, head, progress, memory), on_progress, progress
        )


@dataclass(frozen=True, slots=True)
class ProfileCheckResult:
    """Result of validating a profile.

    Attributes:
        header: The header.
        keys: Number of keys.
        frequency: Total number of URI-Ms; None if it has more than 18 digits.
        spread: Maximum spread of a key.
        problems: Problems by the kinds of `PROFILE_PROBLEM_KINDS`.
    """

    header: ProfileHeader
    keys: int
    frequency: int | None
    spread: int
    problems: Problems = field(default_factory=Problems)

    @property
    def is_sound(self) -> bool:
        """Whether there are no problems."""
        return self.problems.total == 0 and self.frequency is not None


def check_profile(path: str | PathLike[str], on_progress: ProgressCallback | None = None) -> ProfileCheckResult:
    """Read a profile to its end and return its problems.

    Args:
        path: The profile.
        on_progress: Called periodically with bytes and lines read.

    Raises:
        InputError: The file is not a profile, or is truncated.
    """
    name = fspath(path)
    require_rereadable(path)
    header = ProfileHeader.read(path)
    suffixes = SuffixList(section=header.suffixes)
    keys, frequency, spread, stats = run_with_progress(
        lambda progress: _core.check_profile(name, header.policy, header.rules, suffixes, MAX_LINE_BYTES, progress),
        on_progress,
    )
    problems = Problems()
    _add_problems(stats[-1], name, problems, PROFILE_PROBLEM_KINDS)
    return ProfileCheckResult(header, keys, frequency, spread, problems)


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
    """Count the captures of indexes under the keys of each policy, by year, group of media types or both.

    Like `build_profiles`, but each line also has `parts`, such as `{"2014 html": 3}`: the frequency of each part.

    Args:
        inputs: CDX or CDXJ files.
        outputs: Output file of each policy.
        header: Header of the profiles.
        problems: Collects the lines that could not be read.
        by: Fields of the parts, in order.
        suffixes: As in `build_profiles`.
        allow_partial: As in `build_profiles`.
        max_bad: As in `build_profiles`.
        memory: Maximum bytes for counting.

    Returns:
        The number of captures.

    Raises:
        InputError: An input is not a CDX or CDXJ.
        UsageError: `by` is empty or has duplicates.
    """
    if not by or len(set(by)) != len(by):
        raise UsageError(f"expected one or both of {', '.join(PART_FIELDS)}, each once")
    part_header = replace(header, others={**header.others, "by": list(by)})
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
            file.write(replace(part_header, policy=policy).to_lines())
            file.writelines(_merge_part_profiles({part: paths[policy] for part, paths in parts.items()}))
    return report.counted


class _PartCounters:
    """One counter for each part, which is created with the first row of the part."""

    def __init__(self, rules: str, by: Sequence[PartField], report: InputReport, memory: int) -> None:
        self.builders: dict[str, MapBuilder] = {}
        self._rules = rules
        self._by = by
        self._report = report
        self._memory = max(1 << 20, memory // 64)  # of each counter
        self._batches: dict[str, list[RowColumns]] = {}

    def read(self, name: str, problems: Problems) -> None:
        """Count the rows of one file."""
        for row in read_index_rows(name, problems):
            year = row.timestamp[:4] if row.timestamp[:4].isdecimal() and row.timestamp.isascii() else UNKNOWN_PART
            mime = row.fields.get("mime", "")
            values = {"year": year, "mime": group_of(mime) if mime else UNKNOWN_PART}
            part = " ".join(values[field] for field in self._by)
            if part not in self.builders and len(self.builders) >= MAX_PROFILE_PARTS:
                part = " ".join(UNKNOWN_PART for _ in self._by)
            batch = self._batches.setdefault(part, [])
            batch.append(to_row_columns(row))
            if len(batch) >= _BATCH_ROWS:
                self._count(part, name)
        for part in list(self._batches):
            self._count(part, name)

    def _count(self, part: str, name: str) -> None:
        if part not in self.builders:
            self.builders[part] = create_profile_counter(self._rules, threads=1, memory=self._memory)
        self._report.add_line_stats(self.builders[part].add_rows(self._batches.pop(part)), name)


def _merge_part_profiles(paths: Mapping[str, Path]) -> Iterator[bytes]:
    """Yield the lines of one profile, merged from those of its parts."""
    sources = [_part_rows(path, part) for part, path in sorted(paths.items())]
    for key, group in groupby(merge(*sources, key=lambda row: row[0]), key=lambda row: row[0]):
        part_values = [(part, json.loads(members)) for _, part, members in group]
        line = {"frequency": sum(values["frequency"] for _, values in part_values), "spread": 1}
        ports: dict[str, int] = {}
        for _, values in part_values:
            for port, count in values.get("ports", {}).items():
                ports[port] = ports.get(port, 0) + count
        port_member = {"ports": dict(sorted(ports.items(), key=lambda pair: int(pair[0])))} if ports else {}
        parts = {part: values["frequency"] for part, values in part_values}
        yield key + b" " + json.dumps({**line, **port_member, "parts": parts}).encode() + b"\n"


def _part_rows(path: Path, part: str) -> Iterator[tuple[bytes, str, bytes]]:
    with path.open("rb") as file:
        for line in file:
            if not line.startswith(b"@"):
                key, _, members = line.partition(b" ")
                yield key, part, members
