"""One run of `unlost report`: reads the state once, and prints and writes what was asked for."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from json import dumps
from pathlib import Path
from typing import Self

from unlost.cli.folders import made
from unlost.cli.messages import say
from unlost.cli.reportshown import Lines, print_summary
from unlost.errors import InputError
from unlost.formats.output import whole_files
from unlost.recover.report.figures import Figures, figures_of
from unlost.recover.report.objects import resource_object, summary_object
from unlost.recover.report.page import report_page
from unlost.recover.state.ended import Ended
from unlost.recover.state.reading import StateReading
from unlost.recover.summary import entry_of, plain

FOLDER = "report"
"""Of a recovery: where its report is written."""


Write = Callable[[bytes], object]


class Printed(StrEnum):
    """What goes to standard output."""

    SUMMARY = ""
    TSV = "tsv"
    JSON = "json"
    MISSING = "missing"
    REJECTED = "rejected"
    RECOVERED = "recovered"
    LISTED = "listed"


@dataclass(frozen=True, slots=True)
class Files:
    """Where to write a page, lines with tabs, and objects; None where nobody wants them."""

    page: Path | None = None
    lines: Path | None = None
    objects: Path | None = None

    @classmethod
    def into(cls, folder: Path | None, recovery: Path) -> Self:
        """Return the files of a folder; None for that of a recovery. Raises InputError if one is a link."""
        place = recovery / FOLDER if folder is None else folder
        if folder is None and place.is_symlink():
            raise InputError(f"{place}: a link, which is not followed: remove it, or give another folder by -o")
        files = cls(place / "index.html", place / "summary.tsv", place / "report.json")
        for each in files.named():
            if each.is_symlink():
                raise InputError(f"{each}: a link, which is not followed: remove it, or give another folder by -o")
        return files

    def named(self) -> list[Path]:
        """Return those that are wanted."""
        return [each for each in (self.page, self.lines, self.objects) if each is not None]


def run(recovery: Path, printed: Printed, files: Files) -> None:
    """Print one thing, and write the files, whole or not at all. Raises InputError, OSError."""
    with StateReading(recovery) as state:
        figures = Figures() if _is_list(printed) and not files.named() else _written(state, printed, files)
        if _is_list(printed):
            with Lines() as lines:
                for line in _list(state, printed):
                    lines.add(line)
        state.check()
    if printed is Printed.SUMMARY:
        print_summary(figures)
    if not _is_list(printed) and not figures.total:
        say(f"{recovery}: nothing has come back yet: `unlost recover` goes on", level="note")
    if files.page is not None:
        say(f"the report is in {files.page}", level="info")


def _is_list(printed: Printed) -> bool:
    return printed not in (Printed.SUMMARY, Printed.TSV, Printed.JSON)


def _written(state: StateReading, printed: Printed, files: Files) -> Figures:
    """Read all resources once: print them, write them, count them, and write the page."""
    with ExitStack() as stack:
        named = files.named()
        if named:
            stack.enter_context(made(named[0].parent))
        opened = dict(zip(named, stack.enter_context(whole_files(named)) if named else (), strict=True))
        told: list[Callable[[Ended], object]] = []
        objects: list[Write] = [opened[files.objects].write] if files.objects else []
        lines: list[Write] = [opened[files.lines].write] if files.lines else []
        if printed in (Printed.TSV, Printed.JSON):
            shown = stack.enter_context(Lines())
            (lines if printed is Printed.TSV else objects).append(shown.add)
        if lines:
            told.append(lambda each: _to_all(lines, _line(each)))
        if objects:
            told.append(lambda each: _to_all(objects, _object(resource_object(each))))
        figures = figures_of(state, lambda each: [tell(each) for tell in told])
        _to_all(objects, _object(summary_object(figures)))
        if files.page is not None:
            page = report_page(state, figures, has_files=files.lines is not None)
            opened[files.page].write(page.encode())
        state.check()
    return figures


def _to_all(writes: list[Write], text: bytes) -> None:
    for write in writes:
        write(text)


def _line(ended: Ended) -> bytes:
    return entry_of(ended).line().encode("utf-8", "surrogateescape") + b"\n"


def _object(found: dict[str, object]) -> bytes:
    return dumps(found).encode() + b"\n"


def _list(state: StateReading, printed: Printed) -> Iterator[bytes]:
    """Yield the lines of a list."""
    for fields in _fields(state, printed):
        yield "\t".join(map(plain, fields)).encode("utf-8", "surrogateescape") + b"\n"


def _fields(state: StateReading, printed: Printed) -> Iterator[tuple[str, ...]]:
    if printed is Printed.MISSING:
        for gap in state.missing():
            yield gap.uri, gap.reason, str(gap.links), gap.source or "-"
    elif printed is Printed.REJECTED:
        for copy in state.rejected():
            yield copy.uri, copy.archive or "-", copy.datetime, copy.kind, copy.reason, copy.urim or "-"
    elif printed is Printed.LISTED:
        for uri in state.unwanted():
            yield (uri,)
    else:
        for each in state.ended():
            if (chosen := each.chosen) is not None:
                yield chosen.uri, chosen.archive or "-", chosen.datetime, chosen.mime or "-", chosen.urim or "-"
