"""What `unlost report` prints: a summary for people, lines for programs."""

from types import TracebackType
from typing import Self

from unlost.cli.addresses import write
from unlost.cli.table import aligned
from unlost.recover.report.figures import Figures
from unlost.recover.report.kinds import ORDER
from unlost.recover.report.wording import REASONS, VERDICTS, headline, list_words, remarks
from unlost.shown.words import printable, share

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


def print_summary(figures: Figures) -> None:
    """Print how much came back, by kind and by archive, and why the rest did not."""
    lines = [*([printable(figures.url)] if figures.url else []), headline(figures), *remarks(figures)]
    if figures.total:
        uses = [
            ("pages", figures.pages),
            ("parts of pages", figures.parts),
            ("all", [figures.recovered, figures.missing]),
        ]
        rows = [
            (label, f"{back:,}", f"{lost:,}", share(back / (back + lost)))
            for label, (back, lost) in uses
            if back + lost
        ]
        lines += ["", *aligned(("", "came back", "missing", "share"), rows)]
    if figures.recovered:
        kinds = [(kind, f"{figures.kinds[kind]:,}") for kind in ORDER if figures.kinds[kind]]
        lines += ["", *aligned(("kind", "came back"), kinds)]
    if names := figures.archive_ids():
        lines += ["", *_archives(figures, names)]
    for title, counts, words in (
        ("missing", figures.reasons, REASONS),
        ("rejected copies", figures.rejected, VERDICTS),
        ("links that were not followed", figures.trapped, {}),
    ):
        if counts:
            ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
            lines += ["", f"{title}:"]
            lines += [f"{count:>7,}  {printable(words.get(each, each))}" for each, count in ordered]
    write([line + "\n" for line in lines])


def _archives(figures: Figures, names: list[str]) -> list[str]:
    heads = ("archive", "came back", "lists it, too", "rejected", "requests")
    rows = [
        (
            printable(name) or "unknown",
            *(f"{each[name]:,}" for each in (figures.archives, figures.also, figures.rejected_by)),
            f"{figures.asked.get(name, 0):,}",
        )
        for name in names
    ]
    lines = aligned(heads, rows)
    ends = ["its list of the site", *(list_words(figures, name) for name in names)]
    width = max(map(len, lines))
    return [f"{line.ljust(width)}  {end}" for line, end in zip(lines, ends, strict=True)]
