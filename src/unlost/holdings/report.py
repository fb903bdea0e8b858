"""What became of the lines that went into a map or a profile."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import TYPE_CHECKING

from unlost.errors import InputError
from unlost.formats.problems import Problem, Problems

if TYPE_CHECKING:
    # Names of types, which the extension itself does not have.
    from unlost._core import MapShape, Tally

LINE_PROBLEM_MESSAGES = {
    "too-long": "a line longer than unlost.formats.lines.MAX_LINE_BYTES was left out",
    "bad-row": "expected a key, a date, and columns or an object",
    "bad-header": "expected ` CDX` and one letter for each column",
    "binary": "expected text, found a NUL byte",
    "bad-frequency": "expected a frequency such as 300+/20-; kept, as unknown",
    "unsorted": "a key that belongs before the one above it, or is the same; put in order",
    "truncated": "the compressed file ends in the middle",
    "corrupt": "the compressed data is damaged",
    "trailing-garbage": "bytes behind the end of the compressed data were left out",
}


@dataclass(slots=True)
class InputReport:
    """Counts of lines, and what could not be read.

    lines: that were read.
    counted: that are holdings.
    foreign: that are no web pages, such as `dns:` rows.
    filtered: that were left out because of the options.
    repaired: whose key column disagreed with their URL, so that the key was made from the URL.
    problems: by kind, with the first of each.
    shape: what the map's tree is like and what compacting did; None if it was not compacted.
    """

    lines: int = 0
    counted: int = 0
    foreign: int = 0
    filtered: int = 0
    repaired: int = field(default=0, kw_only=True)
    problems: Problems = field(default_factory=Problems)
    shape: "MapShape | None" = None

    def add_line_stats(self, tally: "Tally", name: str, damage: str | None = None) -> None:
        """Add what the core counted in one file."""
        lines, counted, foreign, filtered, repaired, problems = tally
        self.lines += lines
        self.counted += counted
        self.foreign += foreign
        self.filtered += filtered
        self.repaired += repaired
        for kind, count, line, offset, example in problems:
            found = ascii(example.decode("utf-8", "replace"))[1:-1][:60]
            message = LINE_PROBLEM_MESSAGES.get(kind, "no key can be made of it")
            self.problems.add(Problem(kind, name, line, offset, f"{message}: `{found}`"), count)
        if damage is not None:
            self.problems.add(Problem(damage, name, lines, 0, LINE_PROBLEM_MESSAGES[damage]))

    @property
    def understood(self) -> int:
        """How many lines were understood, whether they are counted or not."""
        return self.counted + self.foreign + self.filtered

    def refuse_damage(self, *, allow_partial: bool, index: str | PathLike[str] | None = None) -> None:
        """Raise InputError if an input is damaged and that is not allowed.

        index: a CDX or CDXJ file, of which it is checked whether it ends in the middle of a row.
        """
        if allow_partial:
            return
        damage: object = self.problems.damage
        if damage is None and index is not None and self.problems.total:
            from unlost.formats.index import ends_within_row  # noqa: PLC0415  start-up

            if ends_within_row(index):
                damage = f"{fspath(index)}: the file ends in the middle of a row"
        if damage is not None:
            raise InputError(
                f"{damage}: nothing was written: repair the file, or give --allow-partial to use what can be read"
            )

    def refuse_empty(self, inputs: Sequence[str | PathLike[str]]) -> None:
        """Raise InputError if no line of any input was understood."""
        if not self.understood:
            reasons = [str(problem) for problem in self.problems.first.values()]
            reasons += [f"{fspath(name)}: nothing in it" for name in inputs]
            raise InputError(f"{next(iter(reasons), 'no inputs')}: nothing was written")

    def refuse_bad(self, max_bad: float | None) -> None:
        """Raise InputError if a larger share of the lines than `max_bad` was bad."""
        bad = self.problems.total
        if max_bad is not None and bad > max_bad * (self.understood + bad):
            share = f"{bad} of {self.understood + bad} lines are bad, more than {max_bad:g} of them"
            first = next(iter(self.problems.first.values()))
            raise InputError(f"{share}: nothing was written; first: {first}")
