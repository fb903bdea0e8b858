"""What `unlost report` prints: a summary for people, lines for programs."""

from types import TracebackType
from typing import Self

from unlost.cli.addresses import write_lines
from unlost.cli.table import format_columns
from unlost.recover.report.figures import RecoveryStats
from unlost.recover.report.kinds import RESOURCE_KINDS
from unlost.recover.report.retelling import translate_message
from unlost.recover.report.wording import report_headline, listing_text, outcome_text, report_remarks
from unlost.shown.catalogue import Translations
from unlost.shown.words import escape_unprintable

_BUFFER_BYTES = 1 << 16  # written at once


class StdoutLines:
    """Standard output, to which many lines are written, some at a time. Use it as a context manager."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._size = 0

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Write what is left."""
        self._write()

    def add(self, line: bytes) -> None:
        """Write a line, now or soon."""
        self._waiting.append(line.decode("utf-8", "surrogateescape"))
        self._size += len(line)
        if self._size >= _BUFFER_BYTES:
            self._write()

    def _write(self) -> None:
        write_lines(self._waiting)
        self._waiting.clear()
        self._size = 0


def print_summary(figures: RecoveryStats, t: Translations) -> None:
    """Print how much came back, by kind and by archive, and why the rest did not."""
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
