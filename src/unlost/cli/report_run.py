"""Runs `unlost report`: reads the state once, prints a summary, lists, TSV or JSON, and writes the report files."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

from unlost.cli.messages import command_line, say, say_next
from unlost.cli.output import format_columns, write_lines
from unlost.recover.state.reader import StateReader
from unlost.report.format import escape_unprintable
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

_BUFFER_BYTES = 1 << 16  # bytes per write


class StdoutLines:
    """Buffered lines on standard output. A context manager."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._size = 0

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Write the buffered lines."""
        self._write()

    def add(self, line: bytes) -> None:
        """Add a line, and write the buffer if it is full."""
        self._waiting.append(line.decode("utf-8", "surrogateescape"))
        self._size += len(line)
        if self._size >= _BUFFER_BYTES:
            self._write()

    def _write(self) -> None:
        write_lines(self._waiting)
        self._waiting.clear()
        self._size = 0


def print_summary(figures: RecoveryStats, t: Translations) -> None:
    """Print how much was recovered, by kind and by archive, and why the rest was not."""
    lines = [
        *([escape_unprintable(figures.url)] if figures.url else []),
        report_headline(figures, t),
        *report_remarks(figures, t),
    ]
    if figures.total:
        outcomes = [
            (outcome_text(figures, t, "outcome", each), t.number(count))
            for each, count in figures.count_outcomes()
            if count
        ]
        lines += ["", *format_columns((t("head.outcome"), t("head.files")), outcomes)]
        uses = [
            ("head.pages_row", figures.pages),
            ("head.parts_row", figures.requisites),
            ("head.all_row", [figures.recovered, figures.missing]),
        ]
        rows = [
            (t(label), t.number(back), t.number(lost), t.share(back / (back + lost)))
            for label, (back, lost) in uses
            if back + lost
        ]
        lines += ["", *format_columns(("", t("head.came_back"), t("head.missing"), t("head.share")), rows)]
    if figures.recovered:
        kinds = [
            (t.word("kind", kind), t.number(figures.kinds[kind])) for kind in RESOURCE_KINDS if figures.kinds[kind]
        ]
        lines += ["", *format_columns((t("head.kind"), t("head.came_back")), kinds)]
    if names := figures.archive_ids():
        lines += ["", *_archives(figures, names, t)]
    for title, counts, part in (
        ("head.why_missing", figures.reasons, "reason"),
        ("head.why_rejected", figures.rejected, "verdict"),
        ("head.why_left_out", {why: count for why, count in figures.skipped.items() if why}, "left_out"),
        ("head.why_not_followed", figures.skipped_links, ""),
    ):
        if counts:
            ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
            lines += ["", t(title)]
            for each, count in ordered:
                words = outcome_text(figures, t, part, each) if part else translate_message(each, t) or each
                lines.append(f"{t.number(count):>7}  {escape_unprintable(words)}")
    write_lines([line + "\n" for line in lines])


def _archives(figures: RecoveryStats, names: list[str], t: Translations) -> list[str]:
    heads = [t(f"head.{each}") for each in ("archive", "came_back", "also", "rejected", "requests")]
    rows = [
        (
            escape_unprintable(name) or t("report.unknown"),
            *(t.number(each[name]) for each in (figures.archives, figures.also_listed, figures.rejected_by)),
            t.number(figures.requests_by_archive.get(name, 0)),
        )
        for name in names
    ]
    lines = format_columns(heads, rows)
    ends = [t("head.list"), *(listing_text(figures, name, t) for name in names)]
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
        figures = (
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
        print_summary(figures, report_strings(language))
    if not _is_list(printed) and not figures.total:
        say(f"{recovery}: nothing has come back yet: `unlost recover` goes on", level="note")
    if files.html is not None:
        say(f"the report is in {files.html}", level="info")
    if printed is ReportOutput.SUMMARY and figures.recovered:
        say_next(f"{command_line('export', recovery, '--to', 'SITE')} makes a site of what came back")


def _is_list(printed: ReportOutput) -> bool:
    return printed not in (ReportOutput.SUMMARY, ReportOutput.TSV, ReportOutput.JSON)


def _write_report(state: StateReader, printed: ReportOutput, files: ReportFiles, language: str) -> RecoveryStats:
    """Read all resources once to print, write and count them, and write the page."""
    if printed not in (ReportOutput.TSV, ReportOutput.JSON):
        return write_report(state, files, language=language)
    with StdoutLines() as shown:
        also = [shown.add]
        return write_report(
            state,
            files,
            tsv_writers=also if printed is ReportOutput.TSV else (),
            json_writers=also if printed is ReportOutput.JSON else (),
            language=language,
        )


def _list_lines(state: StateReader, printed: ReportOutput) -> Iterator[bytes]:
    """Yield the lines of a list."""
    for fields in _list_fields(state, printed):
        yield "\t".join(map(escape_field, fields)).encode("utf-8", "surrogateescape") + b"\n"


def _list_fields(state: StateReader, printed: ReportOutput) -> Iterator[tuple[str, ...]]:
    if printed is ReportOutput.MISSING:
        for gap in state.missing_resources():
            yield gap.uri, gap.reason, str(gap.links), gap.source or "-"
    elif printed in (ReportOutput.REJECTED, ReportOutput.DOUBTFUL):
        for copy in state.rejected() if printed is ReportOutput.REJECTED else state.doubtful():
            yield copy.uri, copy.archive or "-", copy.datetime, copy.kind, copy.reason, copy.urim or "-"
    elif printed in (ReportOutput.LISTED, ReportOutput.LEFT_OUT):
        for uri, reason in state.skipped_urls():
            if reason or printed is ReportOutput.LISTED:
                yield uri, reason or "not-linked"
    else:
        for each in state.finished_resources():
            if (chosen := each.chosen) is not None:
                yield chosen.uri, chosen.archive or "-", chosen.datetime, chosen.mime or "-", chosen.urim or "-"
