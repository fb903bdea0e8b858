"""Merges MementoMaps, and compares two of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath

from unlost import _core
from unlost._core import Progress
from unlost.errors import InputError, UsageError
from unlost.index.ukvs import UkvsHeader, UkvsReader, UkvsRow, format_header
from unlost.mementomap.map_file import (
    FORMAT_VERSION,
    add_provenance,
    atomic_map_file,
    capture_range,
    header_rules,
    is_fully_rolled_up,
    oldest_update_date,
    read_map_header,
    with_row_bytes,
)
from unlost.mementomap.readers import InputReport, ProgressCallback, run_with_progress
from unlost.problems import Problems
from unlost.text_lines import MAX_LINE_BYTES


@dataclass(slots=True)
class MapMergeReport(InputReport):
    """Report of `merge_maps`.

    Attributes:
        merged: Number of lines of the result, without its `*` line.
        dropped: Number of exclusions removed because another map holds what they exclude.
    """

    merged: int = 0
    dropped: int = field(default=0)


def merge_maps(
    sources: Sequence[str | PathLike[str]], output: str | PathLike[str], on_progress: ProgressCallback | None = None
) -> MapMergeReport:
    """Write one map that covers every page that any of the maps covers.

    Numbers of URI-Ms are added. The sum of the numbers of URI-Rs is an upper bound, because archives may hold the same
    pages. An exclusion remains only if no other map holds what it excludes. docs/map.md has a table. The map is written
    atomically.

    Raises:
        InputError: A source is not a sorted map, or the maps are incompatible.
        OSError: The output cannot be written.
    """
    if not sources:
        raise UsageError("nothing to merge: expected at least one map")
    names = [fspath(source) for source in sources]
    headers = [read_map_header(name) for name in names]
    header = merge_headers(names, headers)
    inputs = [(name, is_fully_rolled_up(each)) for name, each in zip(names, headers, strict=True)]
    report = MapMergeReport()

    # The file is renamed in this thread, which receives Ctrl-C, so that an interrupted run leaves none.
    with atomic_map_file(output) as path:

        def work(progress: Progress) -> None:
            report.merged, report.dropped, all_stats = _core.merge_maps(
                inputs, len(header.keys), MAX_LINE_BYTES, path, format_header(with_row_bytes(header)), progress
            )
            for name, stats in zip(names, all_stats, strict=True):
                report.add_line_stats(stats, name)

        run_with_progress(work, on_progress)
    return report


def merge_headers(names: Sequence[str], headers: Sequence[UkvsHeader]) -> UkvsHeader:
    """Return the header of the result. Raises InputError if the maps are incompatible."""
    first = headers[0]
    for name, other in zip(names, headers, strict=True):
        if other.keys != first.keys:
            raise InputError(f"{name}: has other fields than {names[0]}: expected keys {', '.join(first.keys)}")
        if header_rules(other) != header_rules(first):
            raise InputError(
                f"{name}: made by other rules ({header_rules(other)}) than {names[0]} ({header_rules(first)}): "
                "build both by the same"
            )
    archives = [str(each.id.get("uri") or each.meta.get("name") or "") for each in headers]
    meta: dict[str, object] = {
        "type": "MementoMap",
        "version": FORMAT_VERSION,
        "rules": header_rules(first),
        "merged": sorted({archive for archive in archives if archive}),
        **({"rolled_up": True} if any(map(is_fully_rolled_up, headers)) else {}),
    }
    header = UkvsHeader(first.context, {}, first.keys, ("frequency",), meta)
    # The result is as old as the oldest map, since later captures of that archive may be missing.
    return add_provenance(header, oldest_update_date(headers), capture_range(headers), [])


@dataclass(frozen=True, slots=True)
class MapDifference:
    """A key whose values differ between two maps; None where a map lacks the key."""

    key: str
    before: str | None
    after: str | None


def diff_maps(before: str | PathLike[str], after: str | PathLike[str], problems: Problems) -> Iterator[MapDifference]:
    """Yield the keys whose rows differ, in byte order, in bounded memory. Headers are not compared.

    Raises:
        InputError: A file cannot be read, is a pipe (files are read twice) or not a map, or its keys are not sorted.
    """
    for path in (before, after):
        read_map_header(path)
    before_rows, after_rows = _sorted_rows(before, problems), _sorted_rows(after, problems)
    old, new = next(before_rows, None), next(after_rows, None)
    while old or new:
        if old is not None and (new is None or old[0] < new[0]):
            yield MapDifference(old[0].decode(), old[1], None)
            old = next(before_rows, None)
        elif new is not None and (old is None or new[0] < old[0]):
            yield MapDifference(new[0].decode(), None, new[1])
            new = next(after_rows, None)
        elif old is not None and new is not None:
            if old[1] != new[1]:
                yield MapDifference(old[0].decode(), old[1], new[1])
            old, new = next(before_rows, None), next(after_rows, None)


def _sorted_rows(path: str | PathLike[str], problems: Problems) -> Iterator[tuple[bytes, str]]:
    previous = b""
    for row in UkvsReader(path, problems):
        key = " ".join(row.keys).encode()
        if key <= previous:
            excerpt = key[:60].decode(errors="replace")
            raise InputError(f"{fspath(path)}: not in order at {excerpt}: build it anew")
        previous = key
        yield key, _row_values(row)


def _row_values(row: UkvsRow) -> str:
    return " ".join(row.values)
