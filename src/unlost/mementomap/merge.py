"""Merges MementoMaps, and lists the differences of two."""

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
    """What merging came to.

    merged: lines of the result, without its total.
    dropped: exclusions that another map's holdings outweigh.
    """

    merged: int = 0
    dropped: int = field(default=0)


def merge_maps(
    sources: Sequence[str | PathLike[str]], output: str | PathLike[str], on_progress: ProgressCallback | None = None
) -> MapMergeReport:
    """Write one map that covers every page that any of the maps covers.

    Copies add up; pages add up to an upper bound, since archives may hold the same; an exclusion stays only where no
    other map holds what it excludes. docs/map.md has a table. The map appears under its name once it is whole. Raises
    InputError if a source is no sorted map, or if they do not go together; OSError if the output cannot be written.
    """
    if not sources:
        raise UsageError("nothing to merge: expected at least one map")
    names = [fspath(source) for source in sources]
    headers = [read_map_header(name) for name in names]
    header = merge_headers(names, headers)
    opened = [(name, is_fully_rolled_up(each)) for name, each in zip(names, headers, strict=True)]
    report = MapMergeReport()

    # The file gets its name in this thread, which sees Ctrl-C: none appears behind an interruption.
    with atomic_map_file(output) as aside:

        def work(progress: Progress) -> None:
            report.merged, report.dropped, tallies = _core.merge_maps(
                opened, len(header.keys), MAX_LINE_BYTES, aside, format_header(with_row_bytes(header)), progress
            )
            for name, tally in zip(names, tallies, strict=True):
                report.add_line_stats(tally, name)

        run_with_progress(work, on_progress)
    return report


def merge_headers(names: Sequence[str], headers: Sequence[UkvsHeader]) -> UkvsHeader:
    """Return the header of the result. Raises InputError if maps do not go together."""
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
    # The result is as old as the oldest map: what an archive captured since then may be missing.
    return add_provenance(header, oldest_update_date(headers), capture_range(headers), [])


@dataclass(frozen=True, slots=True)
class MapDifference:
    """One key whose frequency is not the same in two maps; None where a map does not have it."""

    key: str
    before: str | None
    after: str | None


def diff_maps(before: str | PathLike[str], after: str | PathLike[str], problems: Problems) -> Iterator[MapDifference]:
    """Yield the keys whose lines differ, in the order of their bytes, in bounded memory.

    Headers are not compared. Raises InputError if a file cannot be read, or only once, as a pipe; if it is no map, or
    its keys are not in order.
    """
    for path in (before, after):
        read_map_header(path)
    left, right = _sorted_rows(before, problems), _sorted_rows(after, problems)
    old, new = next(left, None), next(right, None)
    while old or new:
        if old is not None and (new is None or old[0] < new[0]):
            yield MapDifference(old[0].decode(), old[1], None)
            old = next(left, None)
        elif new is not None and (old is None or new[0] < old[0]):
            yield MapDifference(new[0].decode(), None, new[1])
            new = next(right, None)
        elif old is not None and new is not None:
            if old[1] != new[1]:
                yield MapDifference(old[0].decode(), old[1], new[1])
            old, new = next(left, None), next(right, None)


def _sorted_rows(path: str | PathLike[str], problems: Problems) -> Iterator[tuple[bytes, str]]:
    last = b""
    for row in UkvsReader(path, problems):
        key = " ".join(row.keys).encode()
        if key <= last:
            found = key[:60].decode(errors="replace")
            raise InputError(f"{fspath(path)}: not in order at {found}: build it anew")
        last = key
        yield key, _row_values(row)


def _row_values(row: UkvsRow) -> str:
    return " ".join(row.values)
