"""Gathers the statistics of indexes, in one pass and bounded memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from unlost import _core
from unlost.errors import InputError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.ukvs import Header
from unlost.holdings.inputs import Kind, count_inputs
from unlost.holdings.report import Report
from unlost.holdings.statistics.partial import BusyHost, BusyPage, Domain, Level, Partial, Year
from unlost.holdings.work import Watch, watched
from unlost.uri import DEFAULT_RULES

if TYPE_CHECKING:
    from unlost._core import Progress, RowColumns, Tally

STUDY_STATUS, STUDY_MIME, STUDY_EXCLUDE = "200", "text/html", ("robots", "sitemaps")
"""What the second paper's study counts: pages that were there, without what is for machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherOptions:
    """What is counted, and how.

    status, mime: only rows with one of these; an empty set is all. exclude: kinds of pages to leave out, as for maps.
    rules: by which addresses become keys. kind, column, host: what the inputs are, where looking at them does not tell.
    threads, memory, block: how many threads; how many bytes the URI-Rs of one host may take before it is counted in
        parts; how many bytes of text at a time. But for these cuts, none of them shows in the result.
    """

    status: frozenset[str] = frozenset()
    mime: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()
    rules: str = DEFAULT_RULES
    kind: Kind | None = None
    column: int | None = None
    host: str | None = None
    threads: int | None = None
    memory: int | None = None
    block: int | None = None


def gather(
    inputs: Sequence[str | PathLike[str]], options: GatherOptions | None = None, watch: Watch | None = None
) -> tuple[Partial, Report]:
    """Return what the inputs hold, in numbers, and what became of their lines.

    Every host's rows must stand together, over all inputs: those of sorted indexes do. Raises InputError if they do
    not, or if an input cannot be read at all.
    """
    wanted = options or GatherOptions()
    counter = _Counter(
        _core.StatisticsGatherer(
            rules=wanted.rules,
            line_limit=MAX_LINE_BYTES,
            status=[each.encode() for each in sorted(wanted.status)],
            mime=[each.encode() for each in sorted(wanted.mime)],
            exclude=sorted(wanted.exclude),
            threads=wanted.threads,
            memory=wanted.memory,
            block=wanted.block,
        )
    )
    report = Report()

    def work(progress: "Progress") -> Partial:
        count_inputs(
            inputs,
            counter,
            report,
            progress,
            kind=wanted.kind,
            column=wanted.column,
            host=wanted.host,
            map_like=Header((), {}, ("surt",), ("frequency",), {}),
        )
        return _partial(counter.gatherer.finish(), report, counter.files)

    return watched(work, watch), report


class _Counter:
    """Feeds the core, and counts files."""

    def __init__(self, gatherer: "_core.StatisticsGatherer") -> None:
        self.gatherer = gatherer
        self.files = 0

    def add_file(
        self, path: str, progress: "Progress", urls: bool = False, column: int | None = None
    ) -> "tuple[Tally, str | None]":
        """Count the rows of an index, or the addresses of a list."""
        self.files += 1
        return self.gatherer.add_file(path, progress, urls, column)

    def add_rows(self, rows: "list[RowColumns]") -> "Tally":
        """Count rows that were read elsewhere."""
        return self.gatherer.add_rows(rows)

    def add_map(self, path: str, fields: int, line_limit: int, exclusions: bool, progress: "Progress") -> "Tally":
        """Refuse a map: it has neither dates nor types."""
        del fields, line_limit, exclusions, progress
        raise InputError(f"{path}: a map, not an index: `unlost map check` says what is in it")


def _partial(found: dict[str, Any], report: Report, files: int) -> Partial:
    """Return what the core counted, with texts for bytes."""
    return Partial(
        **{name: found[name] for name in _NUMBERS},
        files=files,
        lines=report.lines,
        filtered=report.filtered,
        foreign=dict(sorted(found["schemes"])),
        problems=dict(report.problems.counts),
        first=_date(found["first"]),
        last=_date(found["last"]),
        kinds={(_text(mime), _text(status)): count for mime, status, count in sorted(found["kinds"])},
        months={str(month): (captures, new) for month, captures, new in found["months"]},
        years={str(year): Year(uris, tuple(classes)) for year, uris, classes in found["years"]},
        captures_by_uri=dict(found["captures_by_uri"]),
        **{name: tuple(found[name]) for name in ("path_query", "page_depths", "hosts_by_depth", "pages_by_host_depth")},
        domains={_text(name): Domain(*counts) for name, counts in found["domains"]},
        ip=Domain(*found["ip"]),
        levels={name: Level(dict(prefixes), dict(children)) for name, prefixes, children in found["levels"]},
        busy_pages=tuple(BusyPage(_text(key), *counts) for key, *counts in found["busy_pages"]),
        busy_hosts=tuple(BusyHost(_text(host), *counts) for host, *counts in found["busy_hosts"]),
        samples=tuple((_date(date), _text(uri)) for date, uri in found["samples"]),
    )


_NUMBERS = (
    "text_bytes", "captures", "record_bytes", "sized", "odd_dates", "further_kinds", "uris", "pages", "hosts", "cuts",
)  # fmt: skip


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _date(number: int) -> str:
    return f"{number:014}" if number else ""
