"""Gathers the statistics of indexes, in one pass and bounded memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from unlost import _core
from unlost.errors import InputError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.ukvs import UkvsHeader
from unlost.holdings.inputs import count_inputs
from unlost.holdings.report import InputReport
from unlost.holdings.rows import InputOptions
from unlost.holdings.statistics.partial import TopHost, TopPage, DomainCounts, DepthCounts, IndexCounts, YearCounts
from unlost.holdings.work import ProgressCallback, run_with_progress

if TYPE_CHECKING:
    from unlost._core import Progress, RowColumns, Tally

STUDY_STATUS, STUDY_MIME, STUDY_EXCLUDE = "200", "text/html", ("robots", "sitemaps")
"""What the second paper's study counts: pages that were there, without what is for machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCountOptions(InputOptions):
    """What is counted, and how.

    memory: how many bytes the URI-Rs of one host may take before they are written to temporary files. Neither it nor
    threads and blocks show in the result. sampled: of how many URI-Rs at least an estimate has the sample, if not of as
    many as usual.
    """

    sampled: int | None = None


def count_index(
    inputs: Sequence[str | PathLike[str]],
    options: IndexCountOptions | None = None,
    on_progress: ProgressCallback | None = None,
) -> tuple[IndexCounts, InputReport]:
    """Return what the inputs hold, in numbers, and what became of their lines.

    Exact if every host's rows stand together, over all inputs, as those of sorted indexes do. Raises UnsortedError as
    soon as one does not, and InputError if an input cannot be read at all.
    """
    return _count(inputs, options or IndexCountOptions(), on_progress, is_estimated=False)


def estimate_index(
    inputs: Sequence[str | PathLike[str]],
    options: IndexCountOptions | None = None,
    on_progress: ProgressCallback | None = None,
) -> tuple[IndexCounts, InputReport]:
    """Return the same of inputs in any order.

    What is counted by row is exact. What is told of URI-Rs, keys and hosts is estimated: their numbers by sketches
    (`errors` has bounds that hold in 95 of 100 cases), the others from a sample of URI-Rs, all of whose rows are seen.
    """
    return _count(inputs, options or IndexCountOptions(), on_progress, is_estimated=True)


def _count(
    inputs: Sequence[str | PathLike[str]],
    wanted: IndexCountOptions,
    watch: ProgressCallback | None,
    *,
    is_estimated: bool,
) -> tuple[IndexCounts, InputReport]:
    counter = _GathererSink(
        _core.StatisticsGatherer(
            rules=wanted.rules,
            line_limit=MAX_LINE_BYTES,
            is_estimated=is_estimated,
            status=wanted.statuses(),
            mime=wanted.media_types(),
            exclude=sorted(wanted.exclude),
            threads=wanted.threads,
            memory=wanted.memory,
            block=wanted.block,
            sampled=wanted.sampled,
        )
    )
    report = InputReport()

    def work(progress: "Progress") -> IndexCounts:
        count_inputs(
            inputs,
            counter,
            report,
            progress,
            kind=wanted.kind,
            column=wanted.column,
            host=wanted.host,
            expected_header=UkvsHeader((), {}, ("surt",), ("frequency",), {}),
            allow_partial=wanted.allow_partial,
            max_bad=wanted.max_bad,
        )
        found = counter.gatherer.finish()
        about_files = {"files": len(inputs), "lines": report.lines, "filtered": report.filtered}
        rows = {**_row_counts(found), **about_files, "problems": dict(report.problems.counts)}
        return IndexCounts(**rows, **(_estimated_fields(found) if is_estimated else _exact_fields(found)))

    return run_with_progress(work, watch), report


def exact_counts(found: dict[str, Any]) -> IndexCounts:
    """Return what the core counted of a part, but for what is known of files only."""
    return IndexCounts(**_row_counts(found), **_exact_fields(found))


class _GathererSink:
    """Feeds the core."""

    def __init__(self, gatherer: "_core.StatisticsGatherer") -> None:
        self.gatherer = gatherer

    def add_file(
        self, path: str, progress: "Progress", urls: bool = False, column: int | None = None
    ) -> "tuple[Tally, str | None]":
        """Count the rows of an index, or the addresses of a list."""
        return self.gatherer.add_file(path, progress, urls, column)

    def add_rows(self, rows: "list[RowColumns]") -> "Tally":
        """Count rows that were read elsewhere."""
        return self.gatherer.add_rows(rows)

    def add_map(self, path: str, fields: int, line_limit: int, exclusions: bool, progress: "Progress") -> "Tally":
        """Refuse a map: it has neither dates nor types."""
        del fields, line_limit, exclusions, progress
        raise InputError(f"{path}: a map, not an index: `unlost map check` says what is in it")


def _row_counts(found: dict[str, Any]) -> dict[str, Any]:
    """Return what was counted by row, with texts for bytes."""
    year_uris, new_uris = dict(found["year_uris"]), dict(found["new_uris"])
    scale = 1 / found.get("sampled", 1)
    captures, classes = dict(found["months"]), dict(found["years"])
    return {
        **{name: found[name] for name in _NUMBER_FIELDS},
        "foreign": dict(sorted(found["schemes"])),
        "first": _date(found["first"]),
        "last": _date(found["last"]),
        "kinds": {(_text(mime), _text(status)): count for mime, status, count in sorted(found["kinds"])},
        "months": {
            str(month): (captures.get(month, 0), round(scale * new_uris.get(month, 0)))
            for month in sorted(captures.keys() | new_uris.keys())
        },
        "years": {
            str(year): YearCounts(round(scale * year_uris.get(year, 0)), tuple(classes.get(year, _NO_CLASSES)))
            for year in sorted(classes.keys() | year_uris.keys())
        },
        "captures_by_uri": {number: round(scale * times) for number, times in found["captures_by_uri"]},
        "path_query": tuple(found["path_query"]),
        "samples": tuple((_date(date), _text(uri)) for date, uri in found["samples"]),
    }


def _exact_fields(found: dict[str, Any]) -> dict[str, Any]:
    """Return what was counted by URI-R, key and host."""
    return {
        **{name: found[name] for name in ("uris", "pages", "hosts")},
        **{name: tuple(found[name]) for name in _DEPTH_FIELDS},
        "domains": {_text(name): DomainCounts(*counts) for name, counts in found["domains"]},
        "ip": DomainCounts(*found["ip"]),
        "levels": {name: DepthCounts(dict(prefixes), dict(children)) for name, prefixes, children in found["levels"]},
        "busy_pages": tuple(TopPage(_text(key), *counts) for key, *counts in found["busy_pages"]),
        "busy_hosts": tuple(TopHost(_text(host), *counts) for host, *counts in found["busy_hosts"]),
    }


def _estimated_fields(found: dict[str, Any]) -> dict[str, Any]:
    """Return what was estimated of URI-Rs, keys and hosts."""
    errors = {name: (low, high) for name in ("uris", "pages", "hosts", "ips") for _, low, high in [found[name]]}
    tops = {name: (0, found[f"{name}_error"]) for name in ("busy_pages", "busy_hosts")}
    return {
        **{name: found[name][0] for name in ("uris", "pages", "hosts")},
        "errors": {**errors, **tops},
        **{name: tuple(found[name]) for name in _DEPTH_FIELDS},
        "sampled": found["sampled"],
        "sampled_pages": found["sampled_pages"],
        "domains": {_text(name): DomainCounts(captures) for name, captures in sorted(found["domains"])},
        "ip": DomainCounts(found["ip_captures"], hosts=found["ips"][0]),
        "estimated_depths": {name: tuple(counts) for name, *counts in found["levels"] if counts[0]},
        "busy_pages": tuple(_top_page_with_host(busy, found["sampled"]) for busy in found["busy_pages"]),
        "busy_hosts": tuple(TopHost(host, low, 0) for host, low, _ in found["busy_hosts"]),
    }


def _top_page_with_host(busy: tuple[str, int, int, int], share: float) -> TopPage:
    """Return a URI-R with what its host has, by the others of it, and their captures, in a sample of this share."""
    key, captures, others, others_captures = busy
    if not others and share < 1:
        return TopPage(key, captures, 0, 0)
    return TopPage(key, captures, captures + round(others_captures / share), 1 + round(others / share))


_DEPTH_FIELDS = ("page_depths", "hosts_by_depth", "pages_by_host_depth")
_NO_CLASSES = (0,) * 6
_NUMBER_FIELDS = ("text_bytes", "captures", "record_bytes", "sized", "odd_dates", "further_kinds")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _date(number: int) -> str:
    return f"{number:014}" if number else ""
