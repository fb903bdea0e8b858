"""`unlost report`: reports what a recovery contains."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from json import dumps
from pathlib import Path
from types import TracebackType
from typing import Self

import click

from unlost.atomic import atomic_file
from unlost.cli import types
from unlost.cli.messages import command_line, say, say_next
from unlost.cli.output import check_output_file, format_columns, format_tables, write_lines
from unlost.cli.problems import EXIT_SKIPPED_INPUT, say_problems
from unlost.comparison.site_readers import open_site
from unlost.errors import UsageError
from unlost.problems import Problems
from unlost.recovery.state.reader import StateReader
from unlost.report.format import LANGUAGES, escape_unprintable
from unlost.report.i18n import Translations
from unlost.report.recovery.serializers import escape_field
from unlost.report.recovery.stats import RESOURCE_KINDS, RecoveryStats
from unlost.report.recovery.text import (
    listing_text,
    outcome_text,
    report_headline,
    report_remarks,
    report_strings,
    translate_message,
)
from unlost.report.recovery.writer import ReportFiles, write_report
from unlost.research.factors import (
    ExternalFactorData,
    analyze_factors,
    factor_tables,
    factors_headline,
    factors_remarks,
    factors_to_json,
    read_host_numbers,
    recovered_hosts,
    render_factors_page,
)
from unlost.research.plots import plot_factors, validate_plot_path

_BUFFER_BYTES = 1 << 16  # bytes per write


class StdoutLines:
    """Buffered lines on standard output. A context manager."""

    def __init__(self) -> None:
        self._buffer: list[str] = []
        self._size = 0

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Write the buffered lines."""
        self._write()

    def add(self, line: bytes) -> None:
        """Add a line, and write the buffer if it is full."""
        self._buffer.append(line.decode("utf-8", "surrogateescape"))
        self._size += len(line)
        if self._size >= _BUFFER_BYTES:
            self._write()

    def _write(self) -> None:
        write_lines(self._buffer)
        self._buffer.clear()
        self._size = 0


def print_summary(stats: RecoveryStats, t: Translations) -> None:
    """Print how much was recovered, by kind and by archive, and why the rest was not."""
    lines = [
        *([escape_unprintable(stats.url)] if stats.url else []),
        report_headline(stats, t),
        *report_remarks(stats, t),
    ]
    if stats.total:
        outcomes = [
            (outcome_text(stats, t, "outcome", each), t.number(count))
            for each, count in stats.count_outcomes()
            if count
        ]
        lines += ["", *format_columns((t("head.outcome"), t("head.files")), outcomes)]
        uses = [
            ("head.pages_row", stats.pages),
            ("head.parts_row", stats.requisites),
            ("head.all_row", [stats.recovered, stats.missing]),
        ]
        rows = [
            (t(label), t.number(back), t.number(lost), t.share(back / (back + lost)))
            for label, (back, lost) in uses
            if back + lost
        ]
        lines += ["", *format_columns(("", t("head.came_back"), t("head.missing"), t("head.share")), rows)]
    if stats.recovered:
        kinds = [(t.word("kind", kind), t.number(stats.kinds[kind])) for kind in RESOURCE_KINDS if stats.kinds[kind]]
        lines += ["", *format_columns((t("head.kind"), t("head.came_back")), kinds)]
    if names := stats.archive_ids():
        lines += ["", *_archives(stats, names, t)]
    for title, counts, part in (
        ("head.why_missing", stats.reasons, "reason"),
        ("head.why_rejected", stats.rejected, "verdict"),
        ("head.why_left_out", {why: count for why, count in stats.skipped.items() if why}, "left_out"),
        ("head.why_not_followed", stats.skipped_links, ""),
    ):
        if counts:
            ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
            lines += ["", t(title)]
            for each, count in ordered:
                words = outcome_text(stats, t, part, each) if part else translate_message(each, t) or each
                lines.append(f"{t.number(count):>7}  {escape_unprintable(words)}")
    write_lines([line + "\n" for line in lines])


def _archives(stats: RecoveryStats, names: list[str], t: Translations) -> list[str]:
    heads = [t(f"head.{each}") for each in ("archive", "came_back", "also", "rejected", "requests")]
    rows = [
        (
            escape_unprintable(name) or t("report.unknown"),
            *(t.number(each[name]) for each in (stats.archives, stats.also_listed, stats.rejected_by)),
            t.number(stats.requests_by_archive.get(name, 0)),
        )
        for name in names
    ]
    lines = format_columns(heads, rows)
    ends = [t("head.list"), *(listing_text(stats, name, t) for name in names)]
    width = max(map(len, lines))
    return [f"{line.ljust(width)}  {end}" for line, end in zip(lines, ends, strict=True)]


class ReportOutput(StrEnum):
    """What is printed to standard output."""

    SUMMARY = ""
    TSV = "tsv"
    JSON = "json"
    MISSING = "missing"
    REJECTED = "rejected"
    DOUBTFUL = "doubtful"
    RECOVERED = "recovered"
    LISTED = "listed"
    LEFT_OUT = "left-out"


def run_report(recovery: Path, printed: ReportOutput, files: ReportFiles, language: str) -> None:
    """Print one kind of output, and write the files atomically.

    Args:
        recovery: Folder of the recovery.
        printed: What to print.
        files: The files to write.
        language: Language of human-readable output.

    Raises:
        InputError: The recovery cannot be read.
        OSError: A file cannot be written.
    """
    with StateReader(recovery) as state:
        stats = (
            RecoveryStats()
            if _is_list(printed) and not files.paths()
            else _write_report(state, printed, files, language)
        )
        if _is_list(printed):
            with StdoutLines() as lines:
                for line in _list_lines(state, printed):
                    lines.add(line)
        state.check_unchanged()
    if printed is ReportOutput.SUMMARY:
        print_summary(stats, report_strings(language))
    if not _is_list(printed) and not stats.total:
        say(f"{recovery}: nothing has been recovered yet: run `unlost recover` again to resume", level="note")
    if files.html is not None:
        say(f"the report is in {files.html}", level="info")
    if printed is ReportOutput.SUMMARY and stats.recovered:
        say_next(f"{command_line('export', recovery, '-o', 'SITE')} writes the recovered site")


def _is_list(printed: ReportOutput) -> bool:
    return printed not in (ReportOutput.SUMMARY, ReportOutput.TSV, ReportOutput.JSON)


def _write_report(state: StateReader, printed: ReportOutput, files: ReportFiles, language: str) -> RecoveryStats:
    """Read all resources once to print, write and count them, and write the page."""
    if printed not in (ReportOutput.TSV, ReportOutput.JSON):
        return write_report(state, files, language=language)
    with StdoutLines() as stdout_lines:
        writers = [stdout_lines.add]
        return write_report(
            state,
            files,
            tsv_writers=writers if printed is ReportOutput.TSV else (),
            json_writers=writers if printed is ReportOutput.JSON else (),
            language=language,
        )


def _list_lines(state: StateReader, printed: ReportOutput) -> Iterator[bytes]:
    """Yield the lines of a list."""
    for fields in _list_fields(state, printed):
        yield "\t".join(map(escape_field, fields)).encode("utf-8", "surrogateescape") + b"\n"


def _list_fields(state: StateReader, printed: ReportOutput) -> Iterator[tuple[str, ...]]:
    if printed is ReportOutput.MISSING:
        for resource in state.missing_resources():
            yield resource.uri, resource.reason, str(resource.links), resource.source or "-"
    elif printed in (ReportOutput.REJECTED, ReportOutput.DOUBTFUL):
        for capture in state.rejected() if printed is ReportOutput.REJECTED else state.doubtful():
            yield (
                capture.uri,
                capture.archive or "-",
                capture.datetime,
                capture.kind,
                capture.reason,
                capture.urim or "-",
            )
    elif printed in (ReportOutput.LISTED, ReportOutput.LEFT_OUT):
        for uri, reason in state.skipped_urls():
            if reason or printed is ReportOutput.LISTED:
                yield uri, reason or "not-linked"
    else:
        for each in state.finished_resources():
            if (chosen := each.chosen) is not None:
                yield chosen.uri, chosen.archive or "-", chosen.datetime, chosen.mime or "-", chosen.urim or "-"


def run_factors(
    recoveries: Sequence[Path],
    ranks: Path | None,
    backlinks: Path | None,
    originals: Sequence[Path],
    html: Path | None,
    plot: Path | None,
    *,
    json: bool,
) -> int:
    """Print how the factors correlate with recovery; return the exit code. Raises UsageError, InputError, OSError."""
    validate_plot_path(plot)
    for each in (html, plot):
        if each is not None:
            check_output_file(each)
    problems = Problems()
    hosts = recovered_hosts(recoveries) if ranks or backlinks else set()
    sizes = {}
    for original in originals:
        sizes.update({name: each.size for name, each in open_site(original).resources.items()})
    external_data = ExternalFactorData(
        read_host_numbers(ranks, hosts, problems) if ranks else {},
        read_host_numbers(backlinks, hosts, problems) if backlinks else {},
        sizes,
    )
    analysis = analyze_factors(recoveries, external_data)
    if html is not None:
        with atomic_file(html) as file:
            file.write(render_factors_page(analysis).encode("utf-8", "backslashreplace"))
    if plot is not None:
        plot_factors(analysis, plot)
    if json:
        write_lines([dumps(factors_to_json(analysis)) + "\n"])
    else:
        lines = [
            factors_headline(analysis),
            *map(escape_unprintable, factors_remarks(analysis)),
            *format_tables(factor_tables(analysis)),
        ]
        write_lines([line + "\n" for line in lines])
    say_problems(problems)
    return EXIT_SKIPPED_INPUT if problems.total else 0


_FILE = types.AnyPath()


@click.command(name="report")
@click.argument("recoveries", type=types.RECOVERY_FOLDER, nargs=-1, required=True, metavar="RECOVERY...")
@click.option(
    "-o", "--output", type=_FILE, metavar="DIR", help="Write the report files to DIR.  [default: RECOVERY/report]"
)
@click.option(
    "--language",
    type=click.Choice(LANGUAGES),
    default=LANGUAGES[0],
    show_default=True,
    help="Language of the HTML page and the printed summary. TSV, JSON, lists and messages are always in English.",
)
@click.option("--html", type=_FILE, metavar="FILE", help="Write the HTML page to FILE, and no other files.")
@click.option("--tsv", is_flag=True, help="Print a tab-separated line for each resource, and write no files.")
@click.option(
    "--json",
    is_flag=True,
    help="Print a JSON object for each resource and one for the summary, one per line, and write no files. With "
    "--factors: print the analysis as JSON.",
)
@click.option(
    "--list",
    type=click.Choice(["missing", "rejected", "doubtful", "recovered", "listed", "left-out"]),
    help="Print a tab-separated line for each resource with this status, and write no files.",
)
@click.option(
    "--factors",
    is_flag=True,
    help="Analyse which factors correlate with recovery, over all RECOVERY folders, and write no report files.",
)
@click.option(
    "--ranks",
    type=types.READABLE_FILE,
    metavar="FILE",
    help="With --factors: read the ranks of hosts from FILE, a host and a number per line.",
)
@click.option(
    "--backlinks",
    type=types.READABLE_FILE,
    metavar="FILE",
    help="With --factors: read the number of external links to hosts from FILE, a host and a number per line.",
)
@click.option(
    "--original",
    type=types.FILE_OR_FOLDER,
    multiple=True,
    metavar="SITE",
    help="With --factors: read resource sizes from an original site (WARC, WACZ or folder). May be repeated.",
)
@click.option(
    "--plot",
    type=_FILE,
    metavar="FILE",
    help="With --factors: plot the analysis to FILE, as PNG, PDF or SVG. Requires unlost[plots].",
)
@click.pass_context
def command(
    ctx: click.Context,
    recoveries: tuple[Path, ...],
    output: Path | None,
    language: str,
    html: Path | None,
    tsv: bool,
    json: bool,
    list: str | None,  # noqa: A002  the option's name
    factors: bool,
    ranks: Path | None,
    backlinks: Path | None,
    original: tuple[Path, ...],
    plot: Path | None,
) -> None:
    """Report which resources a recovery contains, from which archives and dates, and what is missing.

    RECOVERY is a folder created by `unlost recover`, which may still be running. The command prints a summary and
    writes index.html, summary.tsv and report.json to the folder `report` in RECOVERY. It sends no requests.

    The exit code is 5 if some lines of --ranks or --backlinks are invalid; the others are used.

    \b
    Example:
      unlost report lost.example.recovery
      unlost report lost.example.recovery --list missing
    """
    if factors:
        if tsv or list or output is not None:
            raise UsageError("--factors goes with --json and --html, not with --tsv, --list and --output")
        if language != LANGUAGES[0]:
            raise UsageError("--factors is told in English only: leave out --language")

        ctx.exit(run_factors(recoveries, ranks, backlinks, original, html, plot, json=json))
    if ranks or backlinks or original or plot:
        raise UsageError("--ranks, --backlinks, --original and --plot go with --factors only")
    if len(recoveries) > 1:
        raise UsageError("one report is of one recovery: name one, or add --factors for all of them together")
    recovery = recoveries[0]
    if sum((tsv, json, list is not None)) > 1:
        raise UsageError("--tsv, --json and --list say different things: give one of them")
    if output is not None and (tsv or json or list or html):
        raise UsageError("--output is for all files together: leave it out, or --tsv, --json, --list and --html")
    printed = ReportOutput("tsv" if tsv else "json" if json else list or "")
    if html is not None:
        check_output_file(html)
        files = ReportFiles(html=html)
    elif printed is ReportOutput.SUMMARY:
        files = ReportFiles.in_folder(output, recovery)
    else:
        files = ReportFiles()
    run_report(recovery, printed, files, language)
    ctx.exit(0)
