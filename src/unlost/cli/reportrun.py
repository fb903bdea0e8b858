"""One run of `unlost report`: reads the state once, and prints and writes what was asked for."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from unlost.cli.messages import command_line, say, say_next
from unlost.cli.reportshown import StdoutLines, print_summary
from unlost.recover.report.figures import RecoveryStats
from unlost.recover.report.files import ReportFiles, write_report
from unlost.recover.report.retelling import report_strings
from unlost.recover.state.reading import StateReader
from unlost.recover.summary import escape_unprintable


class ReportOutput(StrEnum):
    """What goes to standard output."""

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
    """Print one thing, and write the files, whole or not at all. language: of what people read.

    Raises InputError, OSError.
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
    """Read all resources once: print them, write them, count them, and write the page."""
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
        yield "\t".join(map(escape_unprintable, fields)).encode("utf-8", "surrogateescape") + b"\n"


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
