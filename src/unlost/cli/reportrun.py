"""One run of `unlost report`: reads the state once, and prints and writes what was asked for."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from unlost.cli.messages import command_line, say, say_next
from unlost.cli.reportshown import Lines, print_summary
from unlost.recover.report.figures import Figures
from unlost.recover.report.files import ReportFiles, write_report
from unlost.recover.report.retelling import report_strings
from unlost.recover.state.reading import StateReading
from unlost.recover.summary import plain


class Printed(StrEnum):
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


def run(recovery: Path, printed: Printed, files: ReportFiles, language: str) -> None:
    """Print one thing, and write the files, whole or not at all. language: of what people read.

    Raises InputError, OSError.
    """
    with StateReading(recovery) as state:
        figures = Figures() if _is_list(printed) and not files.named() else _written(state, printed, files, language)
        if _is_list(printed):
            with Lines() as lines:
                for line in _list(state, printed):
                    lines.add(line)
        state.check()
    if printed is Printed.SUMMARY:
        print_summary(figures, report_strings(language))
    if not _is_list(printed) and not figures.total:
        say(f"{recovery}: nothing has come back yet: `unlost recover` goes on", level="note")
    if files.page is not None:
        say(f"the report is in {files.page}", level="info")
    if printed is Printed.SUMMARY and figures.recovered:
        say_next(f"{command_line('export', recovery, '--to', 'SITE')} makes a site of what came back")


def _is_list(printed: Printed) -> bool:
    return printed not in (Printed.SUMMARY, Printed.TSV, Printed.JSON)


def _written(state: StateReading, printed: Printed, files: ReportFiles, language: str) -> Figures:
    """Read all resources once: print them, write them, count them, and write the page."""
    if printed not in (Printed.TSV, Printed.JSON):
        return write_report(state, files, language=language)
    with Lines() as shown:
        also = [shown.add]
        return write_report(
            state,
            files,
            lines=also if printed is Printed.TSV else (),
            objects=also if printed is Printed.JSON else (),
            language=language,
        )


def _list(state: StateReading, printed: Printed) -> Iterator[bytes]:
    """Yield the lines of a list."""
    for fields in _fields(state, printed):
        yield "\t".join(map(plain, fields)).encode("utf-8", "surrogateescape") + b"\n"


def _fields(state: StateReading, printed: Printed) -> Iterator[tuple[str, ...]]:
    if printed is Printed.MISSING:
        for gap in state.missing():
            yield gap.uri, gap.reason, str(gap.links), gap.source or "-"
    elif printed in (Printed.REJECTED, Printed.DOUBTFUL):
        for copy in state.rejected() if printed is Printed.REJECTED else state.doubtful():
            yield copy.uri, copy.archive or "-", copy.datetime, copy.kind, copy.reason, copy.urim or "-"
    elif printed in (Printed.LISTED, Printed.LEFT_OUT):
        for uri, reason in state.left_out():
            if reason or printed is Printed.LISTED:
                yield uri, reason or "not-linked"
    else:
        for each in state.ended():
            if (chosen := each.chosen) is not None:
                yield chosen.uri, chosen.archive or "-", chosen.datetime, chosen.mime or "-", chosen.urim or "-"
