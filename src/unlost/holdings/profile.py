"""URI-Key profiles: how much an archive holds, under keys that a policy cuts from addresses.

index ── counter, add ──► what was counted ── write_profiles ──► a profile for each policy
profiles of one policy ── merge_profiles ──► profile          profiles of any ── profiles_to_map ──► map
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import SEEK_END, PathLike, fspath
from pathlib import Path
from typing import BinaryIO

from unlost import _core
from unlost.errors import InputError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.output import atomic_file, atomic_files
from unlost.formats.problems import Problem, Problems
from unlost.formats.ukvs import format_header
from unlost.formats.unread import require_rereadable
from unlost.holdings._profile_header import ProfileHeader, require_same_rules
from unlost.holdings._profile_lookup import ProfileLookupResult, UriKeyProfile
from unlost.holdings._profile_merging import merge_part_lines
from unlost.holdings.build import MapOptions
from unlost.holdings.inputs import count_inputs
from unlost.holdings.map_file import atomic_map_file, with_row_bytes
from unlost.holdings.report import InputReport
from unlost.holdings.work import ProgressCallback, run_with_progress
from unlost.uri import DEFAULT_RULES, SuffixList

__all__ = [
    "PROFILE_PROBLEM_KINDS",
    "ProfileLookupResult",
    "UriKeyProfile",
    "ProfileHeader",
    "ProfileCheckResult",
    "build_profiles",
    "check_profile",
    "create_profile_counter",
    "merge_profiles",
    "profiles_to_map",
    "write_profiles",
]

PROFILE_PROBLEM_KINDS = {
    "too-long": "a line longer than unlost.formats.lines.MAX_LINE_BYTES",
    "bad-row": "expected a key and an object",
    "bad-frequency": "expected a `frequency` of at most 18 digits",
    "bad-spread": "expected a `spread` of at most 18 digits",
    "bad-ports": "expected `ports`, each with its part of the frequency",
    "bad-key": "expected a key that an address can have under the policy",
    "nothing-held": "expected a frequency and a spread of at least 1",
    "unsorted": "expected keys in the order of their bytes",
    "duplicate-key": "expected each key once",
}
"""What can be wrong with the lines of a profile."""


def create_profile_counter(
    rules: str = DEFAULT_RULES, *, threads: int | None = None, memory: int | None = None
) -> _core.MapBuilder:
    """Return what counts pages for `write_profiles`: anything that feeds the builder of a map can feed it.

    threads, memory (bytes): how the work is done; nothing of it shows in the result.
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
    """Count what inputs hold under the keys of each policy, and return how many captures that are.

    inputs: whatever maps are made from too; `unlost.holdings.inputs` tells what they are.

    outputs: where the profile of each policy goes; all of them appear, or none. header: what they say of themselves;
    its policy is replaced by each. problems: lines that could not be read are counted there, and the rest goes on.
    watch: called now and then with the bytes and lines that were read. Rows of what is no web page (`dns:` …) are not
    counted. allow_partial, max_bad: as `count_inputs` has them. Raises InputError if a file cannot be read, is damaged
    (unless that is allowed), or if the inputs are empty.
    """
    progress = progress or _core.Progress()
    builder = create_profile_counter(header.rules, threads=threads, memory=memory)
    report = InputReport(problems=problems)
    map_like = MapOptions(rules=header.rules).header()
    files = list(inputs)

    def work(running: _core.Progress) -> None:
        count_inputs(
            files, builder, report, running, expected_header=map_like, allow_partial=allow_partial, max_bad=max_bad
        )

    run_with_progress(work, on_progress, progress)
    report.refuse_empty(files)
    write_profiles(builder, outputs, header, suffixes=suffixes, as_json=as_json, progress=progress)
    return report.counted


def _add_problems(
    troubles: Iterable[tuple[str, int, int, int, bytes]], name: str, problems: Problems, kinds: Mapping[str, str]
) -> None:
    for kind, count, line, offset, example in troubles:
        found = f"found {ascii(example.decode('utf-8', 'replace'))[:80]}"
        message = f"{kinds[kind]}, {found}" if kind in kinds else found
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
    """Write what a `counter` counted, once: the same counts make the same bytes, and all files appear, or none.

    outputs, header: as for `build_profiles`. suffixes: for the D policies; the list of unlost if none is given.
    as_json: one JSON-LD document each, in place of lines.
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
    """Return a name for an open file that has none yet, or that may be a pipe."""
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
    id: str | None = None,  # noqa: A002  named as in the file
    on_progress: ProgressCallback | None = None,
    progress: _core.Progress | None = None,
) -> None:
    """Write the profiles of one policy as one: frequency and spread of each key added, and parts, if they tell them.

    name, id: what the whole is called; without them, what all profiles are. watch: called now and then with the bytes
    and lines that were read. Raises InputError, and leaves nothing, if
    the policies or rules differ, a file is not sorted or a sum has more than 18 digits.
    """
    from tempfile import TemporaryDirectory  # noqa: PLC0415  start-up

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
    """Write a MementoMap in which every page is held that was counted in one of the profiles, of whatever policies.

    Keys become wildcards where they stand for more than one page; frequencies of one wildcard add. Raises InputError
    as `merge_profiles` does, but for the policies.
    """
    progress = progress or _core.Progress()
    headers = _read_headers(sources)
    rules = require_same_rules(headers)
    everything = list(headers.values())
    common = everything[0] if len(everything) == 1 else ProfileHeader("HxPx")
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
    """What a profile comes to.

    header: what it says about itself. keys: how many there are. frequency: how many URI-Ms they have together; None if
    that has more than 18 digits. spread: of how many profiles at most, under one key. problems: by kinds of `KINDS`.
    """

    header: ProfileHeader
    keys: int
    frequency: int | None
    spread: int
    problems: Problems = field(default_factory=Problems)

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.problems.total == 0 and self.frequency is not None


def check_profile(path: str | PathLike[str], on_progress: ProgressCallback | None = None) -> ProfileCheckResult:
    """Read a profile to its end and return what is wrong with it.

    watch: called now and then with the bytes and lines that were read.

    Raises InputError if it is not a profile at all, or is cut off.
    """
    name = fspath(path)
    require_rereadable(path)
    header = ProfileHeader.read(path)
    suffixes = SuffixList(section=header.suffixes)
    keys, frequency, spread, tally = run_with_progress(
        lambda progress: _core.check_profile(name, header.policy, header.rules, suffixes, MAX_LINE_BYTES, progress),
        on_progress,
    )
    problems = Problems()
    _add_problems(tally[-1], name, problems, PROFILE_PROBLEM_KINDS)
    return ProfileCheckResult(header, keys, frequency, spread, problems)
