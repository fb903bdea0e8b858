"""The files of a report: a page, lines with tabs, objects; all written in one pass, whole or not at all."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Self

from unlost.errors import InputError
from unlost.formats.folders import ensure_directory
from unlost.formats.output import atomic_files
from unlost.recover.report.figures import RecoveryStats, collect_stats
from unlost.recover.report.objects import resource_json, summary_json
from unlost.recover.report.page import render_report_page
from unlost.recover.state.ended import FinishedResource
from unlost.recover.state.reading import StateReader
from unlost.recover.summary import summary_row
from unlost.shown.language import LANGUAGES

REPORT_FOLDER = "report"
"""Of a recovery: where its report is written."""

LineWriter = Callable[[bytes], object]
"""Gets a line."""


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Where to write a page, lines with tabs, and objects; None where nobody wants them."""

    html: Path | None = None
    tsv: Path | None = None
    json: Path | None = None

    @classmethod
    def in_folder(cls, folder: Path | None, recovery: Path) -> Self:
        """Return the files of a folder; None for that of a recovery. Raises InputError if one is a link."""
        place = recovery / REPORT_FOLDER if folder is None else folder
        if folder is None and place.is_symlink():
            raise InputError(f"{place}: a link, which is not followed: remove it, or give another folder by -o")
        files = cls(place / "index.html", place / "summary.tsv", place / "report.json")
        for each in files.paths():
            if each.is_symlink():
                raise InputError(f"{each}: a link, which is not followed: remove it, or give another folder by -o")
        return files

    def paths(self) -> list[Path]:
        """Return those that are wanted."""
        return [each for each in (self.html, self.tsv, self.json) if each is not None]


def write_report(
    state: StateReader,
    files: ReportFiles,
    *,
    tsv_writers: Sequence[LineWriter] = (),
    json_writers: Sequence[LineWriter] = (),
    language: str = LANGUAGES[0],
) -> RecoveryStats:
    """Read all resources once: write the files that are wanted, and return the numbers.

    lines, objects: who gets the lines with tabs, and the objects, beside the files. language: of the page; what is for
    programs has none. Raises InputError, OSError.
    """
    with ExitStack() as stack:
        named = files.paths()
        if named:
            stack.enter_context(ensure_directory(named[0].parent))
        opened = dict(zip(named, stack.enter_context(atomic_files(named)) if named else (), strict=True))
        for_lines = [*tsv_writers, *([opened[files.tsv].write] if files.tsv else [])]
        for_objects = [*json_writers, *([opened[files.json].write] if files.json else [])]
        told: list[Callable[[FinishedResource], object]] = []
        if for_lines:
            told.append(lambda each: _write_all(for_lines, _tsv_line(each)))
        if for_objects:
            told.append(lambda each: _write_all(for_objects, _json_line(resource_json(each))))
        figures = collect_stats(state, lambda each: [tell(each) for tell in told])
        _write_all(for_objects, _json_line(summary_json(figures)))
        if files.html is not None:
            page = render_report_page(state, figures, has_files=files.tsv is not None, language=language)
            opened[files.html].write(page.encode())
        state.check_unchanged()
    return figures


def _write_all(writes: Sequence[LineWriter], text: bytes) -> None:
    for write in writes:
        write(text)


def _tsv_line(ended: FinishedResource) -> bytes:
    return summary_row(ended).to_tsv().encode("utf-8", "surrogateescape") + b"\n"


def _json_line(found: dict[str, object]) -> bytes:
    return dumps(found).encode() + b"\n"
