"""Builds filters from any input, adds layers to them, and compacts layers."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike

from unlost import _core
from unlost._core import Progress
from unlost.atomic import atomic_path
from unlost.errors import DateError, InputError, UsageError
from unlost.index.ukvs import UkvsHeader
from unlost.mementomap.builder import EXCLUDABLE_PAGES
from unlost.mementomap.filter import FILTER_KEY_KINDS, Filter, FilterKeyKind
from unlost.mementomap.map_file import map_update_date
from unlost.mementomap.readers import InputOptions, InputReport, ProgressCallback, count_inputs, run_with_progress
from unlost.text_lines import MAX_LINE_BYTES

MIN_BITS, MAX_BITS, DEFAULT_BITS = 1, 16, 8

_SELECTOR = re.compile(r"[!-+./-~-]+")
"""A value in a comma-separated list of the header: visible ASCII without commas."""

_MAX_SELECTOR_CHARS = 10_000
"""Maximum total length of the selectors. The header has room for 64 KiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions(InputOptions):
    """Rows that go into a filter, and how it is built.

    Attributes:
        bits: Bits of a fingerprint, 1 to 16; None for 8, or for the bits of the filter that is extended or compacted.
        key: `hxpx` for the keys of maps, or `urir` for keys with query strings.
        built_at: Build time, 14 digits in UTC, for the header; None to omit it, so that equal indexes yield equal
            files. A filter of maps is as old as the oldest map with a date.
    """

    bits: int | None = None
    key: FilterKeyKind = "hxpx"
    built_at: str | None = None

    def validate(self) -> None:
        """Raise UsageError for invalid options."""
        if not MIN_BITS <= self.effective_bits() <= MAX_BITS:
            raise UsageError(f"{self.bits} bits: expected {MIN_BITS} to {MAX_BITS}")
        if self.key not in FILTER_KEY_KINDS:
            raise UsageError(f"{self.key}: no kind of keys: expected {' or '.join(FILTER_KEY_KINDS)}")
        if self.built_at is not None:
            _validate_date(self.built_at)
        if unknown := self.exclude - set(EXCLUDABLE_PAGES):
            raise UsageError(f"{min(unknown)}: cannot be left out: expected {' or '.join(EXCLUDABLE_PAGES)}")
        for selector in self.status | self.mime:
            if not _SELECTOR.fullmatch(selector) or selector == "-":
                raise UsageError(f"{selector[:40]!a}: cannot be chosen: expected a status such as 200, or a media type")
        if sum(map(len, self.status | self.mime)) > _MAX_SELECTOR_CHARS:
            raise UsageError(f"statuses and media types of more than {_MAX_SELECTOR_CHARS} characters: choose fewer")

    def effective_bits(self) -> int:
        """Return `bits`, or the default."""
        return DEFAULT_BITS if self.bits is None else self.bits

    def matching(self, other: Filter) -> "FilterOptions":
        """Return a copy with the keys, rules and selection of a filter, and its bits unless they are set."""
        first = other.layers[0]
        return replace(
            self,
            bits=first.bits if self.bits is None else self.bits,
            key=first.key,
            rules=first.rules,
            status=first.status,
            mime=first.mime,
            exclude=first.exclude,
        )


@dataclass(slots=True)
class FilterReport(InputReport):
    """Report of building a filter.

    Attributes:
        keys: Number of keys in the result; of an addition, the new ones.
        bytes: Size of the file.
    """

    keys: int = 0
    bytes: int = 0


def build_filter(
    inputs: Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    options: FilterOptions | None = None,
    on_progress: ProgressCallback | None = None,
) -> FilterReport:
    """Write a filter of the inputs' rows, and return the counts of their lines.

    Inputs may be of any kind that `unlost.mementomap.readers` detects, of any size, sorted or not; maps must not have
    wildcards. The filter is written atomically.

    Raises:
        InputError: An input cannot be read, is damaged (unless that is allowed), is empty or has too many bad lines.
        OSError: The output cannot be written.
    """
    return _build(inputs, output, options or FilterOptions(), None, on_progress)


def add_to_filter(
    path: str | PathLike[str],
    inputs: Sequence[str | PathLike[str]],
    options: FilterOptions | None = None,
    on_progress: ProgressCallback | None = None,
    *,
    output: str | PathLike[str] | None = None,
) -> FilterReport:
    """Append a layer with the new keys of the inputs to a filter, and return the counts of their lines.

    Keys, rules and selection are those of the filter, not of the options. The result replaces the filter, or is written
    to `output`, atomically. Raises as `build_filter`, and InputError if the filter is damaged.
    """
    base = Filter.open(path)
    return _build(
        inputs, path if output is None else output, (options or FilterOptions()).matching(base), base, on_progress
    )


def compact_filter(
    path: str | PathLike[str],
    inputs: Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    options: FilterOptions | None = None,
    on_progress: ProgressCallback | None = None,
) -> FilterReport:
    """Write a filter of the inputs in one layer, with the keys, rules and selection of the filter at `path`.

    The inputs must be everything that the archive holds now, because keys cannot be extracted from a filter. This is
    not checked, but if the report has fewer keys than the filter had, some holdings are missing. `output` may equal
    `path`.
    """
    return _build(inputs, output, (options or FilterOptions()).matching(Filter.open(path)), None, on_progress)


def _validate_date(digits: str) -> None:
    """Raise UsageError for an invalid date of 14 digits."""
    from unlost.dates import to_datetime  # noqa: PLC0415  start-up time

    try:
        to_datetime(digits)
    except DateError as error:
        raise UsageError(str(error)) from error


def create_filter_builder(options: FilterOptions) -> _core.FilterBuilder:
    """Return a key collector of the Rust core with these options."""
    return _core.FilterBuilder(
        rules=options.rules,
        queries=options.key == "urir",
        status=options.statuses(),
        mime=options.media_types(),
        exclude=sorted(options.exclude),
        line_limit=MAX_LINE_BYTES,
        threads=options.threads,
        memory=options.memory,
        block=options.block,
    )


def row_selectors(options: FilterOptions) -> list[str | None]:
    """Return the row selectors for the header."""
    return [",".join(sorted(values)) or None for values in (options.status, options.mime, options.exclude)]


def filter_build_date(options: FilterOptions, maps: Iterable[UkvsHeader]) -> str | None:
    """Return the build date for the header: the oldest of the date in the options and the dates of the input maps."""
    return min(date for date in (options.built_at, *map(map_update_date, maps)) if date) if options.built_at else None


def _build(
    inputs: Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    options: FilterOptions,
    base: Filter | None,
    on_progress: ProgressCallback | None,
) -> FilterReport:
    options.validate()
    report = FilterReport()
    builder = create_filter_builder(options)
    selectors = row_selectors(options)
    map_headers: list[UkvsHeader] = []
    # The file is renamed in this thread, which receives Ctrl-C, and created first, as in `build_map`.
    with atomic_path(output) as path:

        def work(progress: Progress) -> None:
            count_inputs(
                inputs,
                builder,
                report,
                progress,
                kind=options.kind,
                column=options.column,
                host=options.host,
                expected_header=UkvsHeader(keys=("surt",), meta={"rules": options.rules}),
                map_headers=map_headers,
                allow_partial=options.allow_partial,
                max_bad=options.max_bad,
            )
            # For additions, too: an empty layer would make the filter seem up to date.
            report.refuse_empty(inputs)
            report.keys, report.bytes = finish(progress)

        def finish(progress: Progress) -> tuple[int, int]:
            file = base.file if base else None
            try:
                return builder.write(
                    path, options.effective_bits(), filter_build_date(options, map_headers), selectors, file, progress
                )
            except InputError as error:
                # The only file that is read here is the base filter.
                raise InputError(f"{base.path}: {error}" if base else str(error)) from error

        run_with_progress(work, on_progress)
    return report
