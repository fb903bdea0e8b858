"""Adds exclusions to a MementoMap: pages that were requested and not found, until they expire.

Steps: sort the keys of the log; drop those that the index holds; select those that a wildcard of the map covers;
combine them to subtrees; merge them with the rows of the map.

The expiry date is stored in the row, and look-ups have no clock: the result of a look-up depends on the file alone, and
programs that know nothing of expiry read such maps. Expired rows are removed when the map is written again. The current
date is a parameter.
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

_PLACEHOLDER_PAGE = "-"  # an arbitrary page name: only a wildcard that covers the whole folder covers it

DEFAULT_EXPIRY_DAYS = 30
"""Days until an exclusion expires. Most archives recrawl pages that seldom change at least monthly."""
DEFAULT_MIN_PAGES = 3
"""Number of missed pages from which their whole folder is excluded. One or two may be typing errors."""
_BATCH = 20_000  # keys looked up at a time
_REPORT_LINES = 10_000  # lines between two progress reports
_DAMAGE_KINDS = ("truncated", "corrupt", "cut-line")


class MapKeyIndex:
    """A memory-mapped sorted map, for look-ups by key prefix. Close it, or use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self._map = Map.open(path)
        with path.open("rb") as file:
            self._text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._text.close()

    def contains(self, pages: Sequence[str]) -> list[bool]:
        """Return for each normalized key whether the map holds it."""
        return [result.held for result in self._map.lookup_keys_many(pages)]

    def contains_below(self, folder: str) -> bool:
        """Return whether the map has a key with a prefix such as `com,a)/b/`, or a wildcard that covers the folder."""
        return self._has_prefix(folder.encode()) or self.contains([folder + _PLACEHOLDER_PAGE])[0]

    def contradicts(self, exclusion: str) -> bool:
        """Return whether an exclusion is wrong: its page, or a page under its wildcard, is held."""
        if exclusion.endswith("/*"):
            return self.contains_below(exclusion[:-1])
        if exclusion.endswith(",*"):
            # Pages of the host itself, or of its subdomains.
            return self.contains_below(f"{exclusion[:-2]})/") or self._has_prefix(exclusion[:-1].encode())
        return self.contains([exclusion])[0]

    def _has_prefix(self, prefix: bytes) -> bool:
        low = self._lower_bound(prefix)
        return self._text[low : low + len(prefix)] == prefix

    def _lower_bound(self, prefix: bytes) -> int:
        """Return the offset of the first line that does not sort before a prefix."""
        low, high = 0, len(self._text)
        while low < high:
            middle = self._text.rfind(b"\n", low, (low + high) // 2) + 1 or low
            end = self._text.find(b"\n", middle) + 1
            if self._text[middle:end] < prefix:
                low = end
            else:
                high = middle
        return low


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionOptions:
    """How exclusions are learned.

    Attributes:
        today: Current date, for expiry.
        expires: Expiry date of new exclusions, or the number of days until it. With days, misses that are older than
            that are ignored, too.
        pages: Number of missed pages from which their whole folder is excluded.
        archive: As in `MissLogOptions`.
        kind: As in `MissLogOptions`.
        column: As in `MissLogOptions`.
        host: As in `MissLogOptions`.
        replay: As in `MissLogOptions`.
        memory: Maximum bytes of keys that are sorted in memory; does not affect the result.
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
        """Return the first day on which new exclusions are no longer valid. Raises UsageError for an invalid date."""
        try:
            day = self.today + timedelta(days=self.expires) if isinstance(self.expires, int) else self.expires
        except OverflowError:
            raise UsageError(f"{self.expires} days: there is no such day") from None
        if day <= self.today:
            raise UsageError(f"{day}: exclusions would have expired by {self.today}: expected a later day")
        return day

    def log_options(self, rules: str) -> MissLogOptions:
        """Return the options for reading logs."""
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
    """Counts of learned exclusions. Pages are counted by distinct key.

    Attributes:
        read: Log lines read, as in `MissLogReader.read_count`.
        unsaid: Log lines that say nothing about holdings, as in `MissLogReader.inconclusive_count`.
        old: Misses that are too old, as in `MissLogReader.outdated_count`.
        missed: Pages that were missed and never found in the same logs.
        queries: Pages missed only with a query string, which are not excluded without an index: keys of maps have no
            query string, and the page may be held with another one.
        held: Missed pages that the index holds, or that have a row of their own in the map.
        denied: Missed pages that the map already denies.
        added: New exclusions of single pages.
        wildcards: New exclusions of subtrees.
        renewed: Exclusions whose expiry was extended.
        expired: Exclusions removed because they expired.
        outweighed: Exclusions removed because the index or a hit contradicts them.
        problems: Problems by kind.
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
    """Write a map that also excludes pages that were requested and not found, until the exclusions expire.

    A page that has a row of its own in the map, or was found as well as missed, is never excluded. Subtrees are
    excluded only with an index, and never if it holds something in them. Expired exclusions, and those that the index
    or a hit contradicts, are removed, even without misses. Exclusions without an expiry date are unchanged. The map is
    written atomically.

    Args:
        source: The map.
        output: The new map.
        options: How exclusions are learned.
        misses: Logs of upstream responses, access logs or URL lists.
        index: Indexes of everything that the archive holds.
        on_progress: Called periodically with bytes and lines read.

    Raises:
        InputError: The source is not a sorted map with one key field, or a log or index cannot be read.
        OSError: The output cannot be written.
    """
    name = fspath(source)
    header = read_map_header(name)
    if header.keys != ("surt",):
        fields = ascii(", ".join(header.keys))[1:-1][:60]
        raise InputError(f"{name}: has the key fields {fields}: exclusions go with maps that have surt alone")
    expires = options.expiry_date()
    report = ExclusionReport()
    requests = MissLogReader(tuple(misses), options.log_options(header_rules(header)), report.problems)
    with ExitStack() as stack:
        path = stack.enter_context(atomic_map_file(output))
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="unlost-")))
        hits, missed, held_path, pruned = (
            folder / part for part in ("hits.ukvs", "missed", "held.ukvs", "pruned.ukvs")
        )
        _separate_hits_and_misses(
            requests,
            UkvsHeader(keys=header.keys, meta={"rules": header_rules(header)}),
            hits,
            missed,
            options,
            on_progress,
        )
        report.read, report.unsaid, report.old = (
            requests.read_count,
            requests.inconclusive_count,
            requests.outdated_count,
        )
        # Hits and index become one map, so that one look-up covers both.
        build_report = build_map(
            [hits, *index], held_path, MapOptions(rules=header_rules(header), allow_empty=True), on_progress
        )
        for kind, count in build_report.problems.counts.items():
            report.problems.add(build_report.problems.first[kind], count)
        held_index = stack.enter_context(MapKeyIndex(held_path))
        _write_valid_rows(name, header, pruned, held_index, options.today, report)
        pages = _pages_to_exclude(missed, held_index, Map.open(pruned), report, has_index=bool(index))
        keys = (
            _collapse_to_wildcards(pages, folder / "pages", held_index, options)
            if index
            else (page for page, _ in pages)
        )
        sorted_keys = sort_lines((f"{key}\n".encode() for key in keys), options.memory)
        with path.open("wb", buffering=1 << 20) as file:
            file.write(format_header(with_row_bytes(header)))
            _merge_exclusions(pruned, (line.rstrip() for line in sorted_keys), expires, file, report)
    return report


def _separate_hits_and_misses(
    requests: MissLogReader,
    header: UkvsHeader,
    hits: Path,
    missed: Path,
    options: ExclusionOptions,
    on_progress: ProgressCallback | None,
) -> None:
    """Write the pages that were found as a map, and the other pages as lines with the marks of their misses."""

    def lines() -> Iterator[bytes]:
        for number, request in enumerate(requests):
            if on_progress is not None and number % _REPORT_LINES == 0:
                on_progress(0, number)
            yield f"{request.key}\t{_outcome_mark(request)}\n".encode()

    with hits.open("wb") as hit_file, missed.open("wb") as missed_file:
        hit_file.write(format_header(header))
        for key, group in groupby(sort_lines(lines(), options.memory), lambda line: line.partition(b"\t")[0]):
            marks = b"".join(line[len(key) + 1 : -1] for line in group)
            if b"h" in marks:
                hit_file.write(key + b" 1\n")
            else:
                missed_file.write(key + b"\t" + marks + b"\n")


def _outcome_mark(request: LoggedRequest) -> str:
    """Return `h` for a hit, `q` for a miss with a query string, `m` for another miss."""
    return "h" if request.held else "q" if request.has_query else "m"


def _write_valid_rows(
    name: str, header: UkvsHeader, output: Path, held_index: MapKeyIndex, today: date, report: ExclusionReport
) -> None:
    """Copy the rows of a map that are still valid. Raises InputError if they are not sorted."""
    previous = b""
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
            if key <= previous:
                raise InputError(
                    f"{name}: line {line.number}: its key belongs before the one above it, or is the same: "
                    "`unlost map build` puts rows in order"
                )
            previous = key
            day = line_expiry_date(text)
            if day is not None and day <= today:
                report.expired += 1
            elif day is not None and held_index.contradicts(key.decode("utf-8", "replace")):
                report.outweighed += 1
            else:
                file.write(text + b"\n")
    for kind, count in problems.counts.items():
        if kind in _DAMAGE_KINDS:
            raise InputError(f"{name}: the compressed file is damaged ({kind}): a part of a map is no map")
        report.problems.add(problems.first[kind], count)
    declared, actual = header.meta.get(ROW_BYTES_FIELD), end - (start or 0)
    if isinstance(declared, int) and declared != actual:
        raise InputError(f"{name}: {_core.wrong_row_bytes(declared, actual)}")


def _pages_to_exclude(
    missed: Path, held_index: MapKeyIndex, holdings: Map, report: ExclusionReport, *, has_index: bool
) -> Iterator[tuple[str, str]]:
    """Yield missed pages to exclude, each with the row that matches it now: a wildcard, or its own exclusion.

    Keys of maps have no query string: a miss of `/a?b=1` would deny `/a?b=2`, and only an index shows whether that is
    held.
    """
    with missed.open("rb") as lines:
        while batch := list(islice(lines, _BATCH)):
            report.missed += len(batch)
            parsed = [line.decode().rstrip().split("\t") for line in batch]
            pages = [page for page, marks in parsed if has_index or "m" in marks]
            report.queries += len(batch) - len(pages)
            results = holdings.lookup_keys_many(pages)
            for page, result, is_held in zip(pages, results, held_index.contains(pages), strict=True):
                matched = result.matched or ""
                if is_held or (result.held and not matched.endswith("*")):
                    report.held += 1
                elif result.held:
                    yield page, matched
                else:
                    report.denied += 1
                    if matched == page:
                        yield page, matched


def _collapse_to_wildcards(
    pages: Iterable[tuple[str, str]], page_file: Path, held_index: MapKeyIndex, options: ExclusionOptions
) -> Iterator[str]:
    """Yield a wildcard for each subtree with enough misses and no holdings, and the remaining pages."""

    def folder_lines() -> Iterator[bytes]:
        with page_file.open("wb") as file:
            for page, matched in pages:
                file.write(f"{page}\t{matched}\n".encode())
                yield from (f"{folder}\t{page}\n".encode() for folder in _excludable_folders(page, matched))

    empty_folders = set()
    for folder, misses in groupby(sort_lines(folder_lines(), options.memory), lambda line: line.partition(b"\t")[0]):
        is_enough = next(islice(misses, options.pages - 1, None), None) is not None
        if is_enough and not held_index.contains_below(folder.decode()):
            empty_folders.add(folder.decode())
    with page_file.open("rb") as file:
        for line in file:
            page, matched = line.decode().rstrip().split("\t")
            shallowest = next(
                (folder for folder in _excludable_folders(page, matched) if folder in empty_folders), None
            )
            yield page if shallowest is None else f"{shallowest}*"


def _excludable_folders(page: str, matched: str) -> Iterator[str]:
    """Yield the folders of a page, the shallowest first, whose wildcards would match before the row that matches now.

    So none of them has a row of its own, and no more specific row is overruled.

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
    """Write rows and new exclusions in byte order."""
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
                # Missed again: extend the expiry. An exclusion without expiry is unchanged.
                day = line_expiry_date(row)
                if day is not None and day < expires:
                    report.renewed += 1
                    row = format_exclusion(key, expires)  # noqa: PLW2901
                added = next(additions, None)
            output.write(row)
    add(None)
