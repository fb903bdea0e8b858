"""Builds filters from any input, adds layers to them, and joins layers."""

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
"""What can stand between commas in a header."""

_MAX_SELECTOR_CHARS = 10_000
"""Characters: a header has room for 64 KiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions(InputOptions):
    """What goes into a filter, and how it is made: which rows, and this.

    bits: of a fingerprint, 1 to 16; None for 8, or for as many as the filter has that is added to or compacted.
    key: `hxpx`, the keys of maps, or `urir`, with queries.
    made: when it is, 14 digits in UTC, for the header; nothing is said if it is None, so that the same index makes the
        same file on every day. A filter of maps is as old as the oldest of them that says when it was made.
    """

    bits: int | None = None
    key: FilterKeyKind = "hxpx"
    built_at: str | None = None

    def validate(self) -> None:
        """Raise UsageError for what no filter can be made by."""
        if not MIN_BITS <= self.effective_bits() <= MAX_BITS:
            raise UsageError(f"{self.bits} bits: expected {MIN_BITS} to {MAX_BITS}")
        if self.key not in FILTER_KEY_KINDS:
            raise UsageError(f"{self.key}: no kind of keys: expected {' or '.join(FILTER_KEY_KINDS)}")
        if self.built_at is not None:
            _validate_date(self.built_at)
        if unknown := self.exclude - set(EXCLUDABLE_PAGES):
            raise UsageError(f"{min(unknown)}: cannot be left out: expected {' or '.join(EXCLUDABLE_PAGES)}")
        for wanted in self.status | self.mime:
            if not _SELECTOR.fullmatch(wanted) or wanted == "-":
                raise UsageError(f"{wanted[:40]!a}: cannot be chosen: expected a status such as 200, or a media type")
        if sum(map(len, self.status | self.mime)) > _MAX_SELECTOR_CHARS:
            raise UsageError(f"statuses and media types of more than {_MAX_SELECTOR_CHARS} characters: choose fewer")

    def effective_bits(self) -> int:
        """Return how many bits a fingerprint has."""
        return DEFAULT_BITS if self.bits is None else self.bits

    def matching(self, other: Filter) -> "FilterOptions":
        """Return the same with a filter's own keys, rules and choice of rows, and its bits if none are given."""
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
    """What became of the lines, and what was made of them.

    keys: how many there are in what was made; of what was added, those that were not there before.
    bytes: how large the file is.
    """

    keys: int = 0
    bytes: int = 0


def build_filter(
    inputs: Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    options: FilterOptions | None = None,
    on_progress: ProgressCallback | None = None,
) -> FilterReport:
    """Write a filter of what the inputs hold, and return what became of their lines.

    Inputs may be of any kind that `unlost.mementomap.readers` knows, sorted or not, of any size; maps only without
    wildcards. The filter appears under its name once it is whole. Raises InputError for an input that cannot be read,
    is damaged (unless that is allowed), is empty or has too many bad lines; OSError for an output that cannot be
    written. Nothing is written then.
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
    """Chain a layer of what is new in the inputs to a filter, and return what became of their lines.

    Keys, rules and choice of rows are the filter's own, whatever the options say. The longer filter takes the place of
    the old one, or appears as `output`, once it is whole. Raises InputError as `build_filter` does, and if
    the filter is damaged.
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
    """Write the filter of the inputs in one layer, made as the one at `path` was, whose place it may take.

    The inputs must be all that the archive holds now: keys cannot be read out of a filter. Whether they are is not
    checked, but if the report has fewer keys than the filter had, something that was held is not any more.
    """
    return _build(inputs, output, (options or FilterOptions()).matching(Filter.open(path)), None, on_progress)


def _validate_date(digits: str) -> None:
    """Raise UsageError if it is no date of 14 digits."""
    from unlost.dates import to_datetime  # noqa: PLC0415  start-up, and seldom given

    try:
        to_datetime(digits)
    except DateError as error:
        raise UsageError(str(error)) from error


def create_filter_builder(options: FilterOptions) -> _core.FilterBuilder:
    """Return what takes keys as the options have it."""
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
    """Return which rows are taken, as the header says it."""
    return [",".join(sorted(each)) or None for each in (options.status, options.mime, options.exclude)]


def filter_build_date(options: FilterOptions, maps: Iterable[UkvsHeader]) -> str | None:
    """Return the date for the header of a filter: no later than those of the maps that it is made of."""
    return min(date for date in (options.built_at, *map(map_update_date, maps)) if date) if options.built_at else None


def _build(
    inputs: Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    wanted: FilterOptions,
    base: Filter | None,
    watch: ProgressCallback | None,
) -> FilterReport:
    wanted.validate()
    report = FilterReport()
    builder = create_filter_builder(wanted)
    chosen = row_selectors(wanted)
    maps: list[UkvsHeader] = []
    # The file gets its name in this thread, which sees Ctrl-C, and is there from the beginning, as `build_map` has it.
    with atomic_path(output) as aside:

        def work(progress: Progress) -> None:
            count_inputs(
                inputs,
                builder,
                report,
                progress,
                kind=wanted.kind,
                column=wanted.column,
                host=wanted.host,
                expected_header=UkvsHeader(keys=("surt",), meta={"rules": wanted.rules}),
                map_headers=maps,
                allow_partial=wanted.allow_partial,
                max_bad=wanted.max_bad,
            )
            # Also where keys are added: a layer of nothing would make the filter look up to date.
            report.refuse_empty(inputs)
            report.keys, report.bytes = finish(progress)

        def finish(progress: Progress) -> tuple[int, int]:
            file = base.file if base else None
            try:
                return builder.write(
                    aside, wanted.effective_bits(), filter_build_date(wanted, maps), chosen, file, progress
                )
            except InputError as error:
                # The only thing that is read here.
                raise InputError(f"{base.path}: {error}" if base else str(error)) from error

        run_with_progress(work, watch)
    return report
