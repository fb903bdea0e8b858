"""The files of a report: a page, lines with tabs, objects; all written in one pass, whole or not at all."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Self

from unlost.errors import InputError
from unlost.formats.folders import made
from unlost.formats.output import whole_files
from unlost.recover.report.figures import Figures, figures_of
from unlost.recover.report.objects import resource_object, summary_object
from unlost.recover.report.page import report_page
from unlost.recover.state.ended import Ended
from unlost.recover.state.reading import StateReading
from unlost.recover.summary import entry_of
from unlost.shown.language import LANGUAGES

FOLDER = "report"
"""Of a recovery: where its report is written."""

Write = Callable[[bytes], object]
"""Gets a line."""


@dataclass(frozen=True, slots=True)
class ReportFiles:
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


def write_report(
    state: StateReading,
    files: ReportFiles,
    *,
    lines: Sequence[Write] = (),
    objects: Sequence[Write] = (),
    language: str = LANGUAGES[0],
) -> Figures:
    """Read all resources once: write the files that are wanted, and return the numbers.

    lines, objects: who gets the lines with tabs, and the objects, beside the files. language: of the page; what is for
    programs has none. Raises InputError, OSError.
    """
    with ExitStack() as stack:
        named = files.named()
        if named:
            stack.enter_context(made(named[0].parent))
        opened = dict(zip(named, stack.enter_context(whole_files(named)) if named else (), strict=True))
        for_lines = [*lines, *([opened[files.lines].write] if files.lines else [])]
        for_objects = [*objects, *([opened[files.objects].write] if files.objects else [])]
        told: list[Callable[[Ended], object]] = []
        if for_lines:
            told.append(lambda each: _to_all(for_lines, _line(each)))
        if for_objects:
            told.append(lambda each: _to_all(for_objects, _object(resource_object(each))))
        figures = figures_of(state, lambda each: [tell(each) for tell in told])
        _to_all(for_objects, _object(summary_object(figures)))
        if files.page is not None:
            page = report_page(state, figures, has_files=files.lines is not None, language=language)
            opened[files.page].write(page.encode())
        state.check()
    return figures


def _to_all(writes: Sequence[Write], text: bytes) -> None:
    for write in writes:
        write(text)


def _line(ended: Ended) -> bytes:
    return entry_of(ended).line().encode("utf-8", "surrogateescape") + b"\n"


def _object(found: dict[str, object]) -> bytes:
    return dumps(found).encode() + b"\n"
