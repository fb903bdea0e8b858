"""What `unlost report` prints: a summary for people, lines for programs."""

from types import TracebackType
from typing import Self

from unlost.cli.addresses import write
from unlost.cli.table import aligned
from unlost.recover.report.figures import Figures
from unlost.recover.report.kinds import ORDER
from unlost.recover.report.retelling import retold
from unlost.recover.report.wording import headline, list_words, outcome_word, remarks
from unlost.shown.catalogue import Strings
from unlost.shown.words import printable

_BYTES = 1 << 16  # written at once


class Lines:
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
        if self._size >= _BYTES:
            self._write()

    def _write(self) -> None:
        write(self._waiting)
        self._waiting.clear()
        self._size = 0


def print_summary(figures: Figures, t: Strings) -> None:
    """Print how much came back, by kind and by archive, and why the rest did not."""
    lines = [*([printable(figures.url)] if figures.url else []), headline(figures, t), *remarks(figures, t)]
    if figures.total:
        outcomes = [
            (outcome_word(figures, t, "outcome", each), t.number(count)) for each, count in figures.outcomes() if count
        ]
        lines += ["", *aligned((t("head.outcome"), t("head.files")), outcomes)]
        uses = [
            ("head.pages_row", figures.pages),
            ("head.parts_row", figures.parts),
            ("head.all_row", [figures.recovered, figures.missing]),
        ]
        rows = [
            (t(label), t.number(back), t.number(lost), t.share(back / (back + lost)))
            for label, (back, lost) in uses
            if back + lost
        ]
        lines += ["", *aligned(("", t("head.came_back"), t("head.missing"), t("head.share")), rows)]
    if figures.recovered:
        kinds = [(t.word("kind", kind), t.number(figures.kinds[kind])) for kind in ORDER if figures.kinds[kind]]
        lines += ["", *aligned((t("head.kind"), t("head.came_back")), kinds)]
    if names := figures.archive_ids():
        lines += ["", *_archives(figures, names, t)]
    for title, counts, part in (
        ("head.why_missing", figures.reasons, "reason"),
        ("head.why_rejected", figures.rejected, "verdict"),
        ("head.why_left_out", {why: count for why, count in figures.left_out.items() if why}, "left_out"),
        ("head.why_not_followed", figures.trapped, ""),
    ):
        if counts:
            ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
            lines += ["", t(title)]
            for each, count in ordered:
                words = outcome_word(figures, t, part, each) if part else retold(each, t) or each
                lines.append(f"{t.number(count):>7}  {printable(words)}")
    write([line + "\n" for line in lines])


def _archives(figures: Figures, names: list[str], t: Strings) -> list[str]:
    heads = [t(f"head.{each}") for each in ("archive", "came_back", "also", "rejected", "requests")]
    rows = [
        (
            printable(name) or t("report.unknown"),
            *(t.number(each[name]) for each in (figures.archives, figures.also, figures.rejected_by)),
            t.number(figures.asked.get(name, 0)),
        )
        for name in names
    ]
    lines = aligned(heads, rows)
    ends = [t("head.list"), *(list_words(figures, name, t) for name in names)]
    width = max(map(len, lines))
    return [f"{line.ljust(width)}  {end}" for line, end in zip(lines, ends, strict=True)]
