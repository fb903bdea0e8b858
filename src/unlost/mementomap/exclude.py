"""Adds exclusions to a MementoMap: pages that were requested and not found, until they expire.

log -> sorted keys -> not held by the index -> held by a wildcard of the map -> subtrees, pages -> the map with them
"""

import mmap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import groupby, islice
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Self

from unlost import _core
from unlost.errors import InputError, UsageError
from unlost.index.external_sort import SORT_RUN_BYTES, sort_lines
from unlost.index.ukvs import ROW_BYTES_FIELD, UkvsHeader, format_header
from unlost.mementomap.builder import MapOptions, build_map
from unlost.mementomap.map import Map
from unlost.mementomap.map_file import (
    atomic_map_file,
    format_exclusion,
    header_rules,
    line_expiry_date,
    read_map_header,
    with_row_bytes,
    without_row_bytes,
)
from unlost.mementomap.query_logs import LoggedRequest, MissLogKind, MissLogOptions, MissLogReader
from unlost.mementomap.readers import ProgressCallback
from unlost.problems import Problems
from unlost.text_lines import read_lines

_PLACEHOLDER_PAGE = "-"  # a page that stands for any: what holds all of a folder holds it


class MapKeyIndex:
    """A sorted, plain map in its file. Close it, or use it in a `with` block."""

    def __init__(self, path: Path) -> None:
        self._map = Map.open(path)
        with path.open("rb") as file:
            self._text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let the file go."""
        self._text.close()

    def contains(self, pages: Sequence[str]) -> list[bool]:
        """Return for each normal key of a page whether it is held."""
        return [answer.held for answer in self._map.lookup_keys_many(pages)]

    def contains_below(self, folder: str) -> bool:
        """Return whether anything is held whose key begins with `com,a)/b/`, or a wildcard holds all of that."""
        return self._has_prefix(folder.encode()) or self.contains([folder + _PLACEHOLDER_PAGE])[0]

    def contradicts(self, exclusion: str) -> bool:
        """Return whether they say otherwise than an exclusion: they hold its page, or something below its wildcard."""
        if exclusion.endswith("/*"):
            return self.contains_below(exclusion[:-1])
        if exclusion.endswith(",*"):
            # Pages of the host itself, and of those below it.
            return self.contains_below(f"{exclusion[:-2]})/") or self._has_prefix(exclusion[:-1].encode())
        return self.contains([exclusion])[0]

    def _has_prefix(self, prefix: bytes) -> bool:
        low = self._lower_bound(prefix)
        return self._text[low : low + len(prefix)] == prefix

    def _lower_bound(self, prefix: bytes) -> int:
        """Return where the first line begins that does not come before a prefix."""
        low, high = 0, len(self._text)
        while low < high:
            middle = self._text.rfind(b"\n", low, (low + high) // 2) + 1 or low
            end = self._text.find(b"\n", middle) + 1
            if self._text[middle:end] < prefix:
                low = end
            else:
                high = middle
        return low


DEFAULT_EXPIRY_DAYS = 30
"""For how long an exclusion is believed: a crawl a month is what most archives promise for what changes seldom."""
DEFAULT_MIN_PAGES = 3
"""So many pages of a folder must have been missed before all of it is excluded: one or two may be typing errors."""
_BATCH = 20_000  # keys that are looked up at a time
_REPORT_LINES = 10_000  # lines between two reports
_DAMAGE_KINDS = ("truncated", "corrupt", "cut-line")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionOptions:
    """How exclusions are learned.

    today: the day, for what has expired and what will; there is no clock here.
    expires: the first day on which they are not believed any more, or in how many days that is. As days, misses that
        are older than that are not believed either.
    pages: how many pages of a folder must have been missed before it is excluded as a whole.
    archive, kind, column, host, replay: how the log is read, as `unlost.mementomap.query_logs` has them.
    memory: bytes of keys that are sorted at a time; it does not show in the result.
    """

    today: date
    expires: date | int = DEFAULT_EXPIRY_DAYS
    pages: int = DEFAULT_MIN_PAGES
    archive: str | None = None
    kind: MissLogKind | None = None
    column: int | None = None
    host: str | None = None
    replay: bool = False
    memory: int = SORT_RUN_BYTES

    def expiry_date(self) -> date:
        """Return the first day on which exclusions are not believed any more. Raises UsageError if that is no day."""
        try:
            day = self.today + timedelta(days=self.expires) if isinstance(self.expires, int) else self.expires
        except OverflowError:
            raise UsageError(f"{self.expires} days: there is no such day") from None
        if day <= self.today:
            raise UsageError(f"{day}: exclusions would have expired by {self.today}: expected a later day")
        return day

    def log_options(self, rules: str) -> MissLogOptions:
        """Return how the log is read."""
        since = None
        if isinstance(self.expires, int):
            since = date.fromordinal(max(1, self.today.toordinal() - self.expires))
        return MissLogOptions(
            rules=rules,
            archive=self.archive,
            since=since,
            kind=self.kind,
            column=self.column,
            host=self.host,
            replay=self.replay,
        )


@dataclass(slots=True)
class ExclusionReport:
    """What was learned. Pages are different keys.

    read, unsaid, old: lines of the logs, as `unlost.mementomap.query_logs` counts them.
    missed: pages that were missed, and never found in the same logs.
    queries: pages that were missed only with a query, which says nothing about others; with an index, it does.
    held: missed pages that the index or a row of their own holds.
    denied: missed pages that the map says no to already.
    added, wildcards: exclusions of single pages and of subtrees that are new.
    renewed: exclusions that will expire later than before.
    expired, outweighed: exclusions that are gone: their time was over; the index, or a hit, says otherwise.
    problems: by kind, with the first of each.
    """

    read: int = 0
    unsaid: int = 0
    old: int = 0
    missed: int = 0
    queries: int = 0
    held: int = 0
    denied: int = 0
    added: int = 0
    wildcards: int = 0
    renewed: int = 0
    expired: int = 0
    outweighed: int = 0
    problems: Problems = field(default_factory=Problems)


def exclude_map(
    source: str | PathLike[str],
    output: str | PathLike[str],
    options: ExclusionOptions,
    misses: Sequence[str | PathLike[str]] = (),
    index: Sequence[str | PathLike[str]] = (),
    on_progress: ProgressCallback | None = None,
) -> ExclusionReport:
    """Write a map that also says no to what was asked for and not found, until that expires.

    misses: logs of upstream answers, access logs, lists of addresses. index: all that the archive holds; only with it
    are subtrees excluded, and what it holds never is. A page that has a row of its own in the map, or was found as
    well as missed, is never excluded; without an index the log is believed in everything else. What has expired goes,
    also without misses, and so does what the index or a hit outweighs. Exclusions without expiry stay as they are.

    The map appears under its name once it is whole. Raises InputError if the source is no sorted map of one key field,
    or a log or an index cannot be read at all; OSError if the output cannot be written.
    """
    name = fspath(source)
    header = read_map_header(name)
    if header.keys != ("surt",):
        found = ascii(", ".join(header.keys))[1:-1][:60]
        raise InputError(f"{name}: has the key fields {found}: exclusions go with maps that have surt alone")
    expires = options.expiry_date()
    report = ExclusionReport()
    told = MissLogReader(tuple(misses), options.log_options(header_rules(header)), report.problems)
    with ExitStack() as stack:
        aside = stack.enter_context(atomic_map_file(output))
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="unlost-")))
        hits, missed, held_map, pruned = (folder / part for part in ("hits.ukvs", "missed", "held.ukvs", "pruned.ukvs"))
        _separate_hits_and_misses(
            told, UkvsHeader(keys=header.keys, meta={"rules": header_rules(header)}), hits, missed, options, on_progress
        )
        report.read, report.unsaid, report.old = told.read_count, told.inconclusive_count, told.outdated_count
        # Both are what a map is made of: one look-up answers for them.
        built = build_map(
            [hits, *index], held_map, MapOptions(rules=header_rules(header), allow_empty=True), on_progress
        )
        for kind, count in built.problems.counts.items():
            report.problems.add(built.problems.first[kind], count)
        held = stack.enter_context(MapKeyIndex(held_map))
        _write_valid_rows(name, header, pruned, held, options.today, report)
        pages = _pages_to_exclude(missed, held, Map.open(pruned), report, has_index=bool(index))
        keys = _collapse_to_wildcards(pages, folder / "pages", held, options) if index else (page for page, _ in pages)
        in_order = sort_lines((f"{key}\n".encode() for key in keys), options.memory)
        with aside.open("wb", buffering=1 << 20) as file:
            file.write(format_header(with_row_bytes(header)))
            _merge_exclusions(pruned, (line.rstrip() for line in in_order), expires, file, report)
    return report


def _separate_hits_and_misses(
    told: MissLogReader,
    header: UkvsHeader,
    hits: Path,
    missed: Path,
    options: ExclusionOptions,
    watch: ProgressCallback | None,
) -> None:
    """Write the pages that were found as a map, and those that never were, with how they were asked for, as lines."""

    def lines() -> Iterator[bytes]:
        for number, asked in enumerate(told):
            if watch is not None and number % _REPORT_LINES == 0:
                watch(0, number)
            yield f"{asked.key}\t{_outcome_mark(asked)}\n".encode()

    with hits.open("wb") as held_file, missed.open("wb") as missed_file:
        held_file.write(format_header(header))
        for key, group in groupby(sort_lines(lines(), options.memory), lambda line: line.partition(b"\t")[0]):
            marks = b"".join(line[len(key) + 1 : -1] for line in group)
            if b"h" in marks:
                held_file.write(key + b" 1\n")
            else:
                missed_file.write(key + b"\t" + marks + b"\n")


def _outcome_mark(asked: LoggedRequest) -> str:
    return "h" if asked.held else "q" if asked.has_query else "m"


def _write_valid_rows(
    name: str, header: UkvsHeader, output: Path, held: MapKeyIndex, today: date, report: ExclusionReport
) -> None:
    """Write the rows of a map that are still believed, each as it stands. Raises InputError if they are not sorted."""
    last = b""
    start, end = None, 0
    problems = Problems()
    with output.open("wb", buffering=1 << 20) as file:
        file.write(format_header(without_row_bytes(header)))
        for line in read_lines(name, problems):
            text = (line.text.removeprefix(b"\xef\xbb\xbf") if line.number == 1 else line.text).strip()
            if not text or text.startswith(b"!"):
                continue
            start = line.offset if start is None else start
            end = line.offset + len(line.text) + 1
            key = text.split(None, 1)[0]
            if key <= last:
                raise InputError(
                    f"{name}: line {line.number}: its key belongs before the one above it, or is the same: "
                    "`unlost map build` puts rows in order"
                )
            last = key
            day = line_expiry_date(text)
            if day is not None and day <= today:
                report.expired += 1
            elif day is not None and held.contradicts(key.decode("utf-8", "replace")):
                report.outweighed += 1
            else:
                file.write(text + b"\n")
    for kind, count in problems.counts.items():
        if kind in _DAMAGE_KINDS:
            raise InputError(f"{name}: the compressed file is damaged ({kind}): a part of a map is no map")
        report.problems.add(problems.first[kind], count)
    declared, found = header.meta.get(ROW_BYTES_FIELD), end - (start or 0)
    if isinstance(declared, int) and declared != found:
        raise InputError(f"{name}: {_core.wrong_row_bytes(declared, found)}")


def _pages_to_exclude(
    missed: Path, held: MapKeyIndex, holdings: Map, report: ExclusionReport, *, has_index: bool
) -> Iterator[tuple[str, str]]:
    """Yield missed pages to exclude, each with the row that answers for it now: a wildcard, or an exclusion of its own.

    Keys of maps have no queries: a miss of `/a?b=1` would deny `/a?b=2`. Only an index knows that it does not.
    """
    with missed.open("rb") as lines:
        while batch := list(islice(lines, _BATCH)):
            report.missed += len(batch)
            split = [line.decode().rstrip().split("\t") for line in batch]
            pages = [page for page, marks in split if has_index or "m" in marks]
            report.queries += len(batch) - len(pages)
            answers = holdings.lookup_keys_many(pages)
            for page, answer, is_held in zip(pages, answers, held.contains(pages), strict=True):
                matched = answer.matched or ""
                if is_held or (answer.held and not matched.endswith("*")):
                    report.held += 1
                elif answer.held:
                    yield page, matched
                else:
                    report.denied += 1
                    if matched == page:
                        yield page, matched


def _collapse_to_wildcards(
    pages: Iterable[tuple[str, str]], aside: Path, held: MapKeyIndex, options: ExclusionOptions
) -> Iterator[str]:
    """Yield a wildcard for each subtree of which enough was missed and nothing is held, and the other pages."""

    def places() -> Iterator[bytes]:
        with aside.open("wb") as file:
            for page, matched in pages:
                file.write(f"{page}\t{matched}\n".encode())
                yield from (f"{folder}\t{page}\n".encode() for folder in _excludable_folders(page, matched))

    empty = set()
    for folder, below in groupby(sort_lines(places(), options.memory), lambda line: line.partition(b"\t")[0]):
        is_enough = next(islice(below, options.pages - 1, None), None) is not None
        if is_enough and not held.contains_below(folder.decode()):
            empty.add(folder.decode())
    with aside.open("rb") as file:
        for line in file:
            page, matched = line.decode().rstrip().split("\t")
            shallowest = next((folder for folder in _excludable_folders(page, matched) if folder in empty), None)
            yield page if shallowest is None else f"{shallowest}*"


def _excludable_folders(page: str, matched: str) -> Iterator[str]:
    """Yield the folders of a page, the shallowest first, whose wildcard would answer before the row that does now.

    So none of them has a row of its own, and none that answers more closely is overruled.

    >>> list(_excludable_folders("com,a)/b/c/d", "com,*")), list(_excludable_folders("com,a)/b/c/d", "com,a)/b/*"))
    (['com,a)/', 'com,a)/b/', 'com,a)/b/c/'], ['com,a)/b/c/'])
    """
    if matched in (page, f"{page}/*"):
        return
    end = len(matched) - 1 if ")/" in matched and page.startswith(matched[:-1]) else page.index(")")
    while (end := page.find("/", end) + 1) and end < len(page):
        yield page[:end]


def _merge_exclusions(
    pruned: Path, additions: Iterator[bytes], expires: date, output: BinaryIO, report: ExclusionReport
) -> None:
    """Write rows and new exclusions, in the order of their bytes."""
    added = next(additions, None)

    def add(until: bytes | None) -> None:
        nonlocal added
        while added is not None and (until is None or added < until):
            output.write(format_exclusion(added, expires))
            report.wildcards += added.endswith(b"*")
            report.added += not added.endswith(b"*")
            added = next(additions, None)

    with pruned.open("rb") as rows:
        for row in rows:
            if row.startswith(b"!"):
                continue
            key = row.split(None, 1)[0]
            add(key)
            if added == key:
                # Missed once more. What was excluded for good stays so.
                day = line_expiry_date(row)
                if day is not None and day < expires:
                    report.renewed += 1
                    row = format_exclusion(key, expires)  # noqa: PLW2901
                added = next(additions, None)
            output.write(row)
    add(None)
