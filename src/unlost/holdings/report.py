"""What became of the lines that went into a map or a profile."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unlost.formats.problems import Problem, Problems

if TYPE_CHECKING:
    # Names of types, which the extension itself does not have.
    from unlost._core import MapShape, Tally

MESSAGES = {
    "too-long": "a line longer than unlost.formats.lines.MAX_LINE_BYTES was left out",
    "bad-row": "expected a key, a date, and columns or an object",
    "bad-frequency": "expected a frequency such as 300+/20-; kept, as unknown",
    "unsorted": "a key that belongs before the one above it, or is the same; put in order",
    "truncated": "the compressed file ends in the middle: what came before was counted",
    "corrupt": "the compressed data is damaged: what came before was counted",
    "trailing-garbage": "bytes behind the end of the compressed data were left out",
}


@dataclass(slots=True)
class Report:
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

    def add(self, tally: "Tally", name: str, damage: str | None = None) -> None:
        """Add what the core counted in one file."""
        lines, counted, foreign, filtered, repaired, problems = tally
        self.lines += lines
        self.counted += counted
        self.foreign += foreign
        self.filtered += filtered
        self.repaired += repaired
        for kind, count, line, offset, example in problems:
            found = ascii(example.decode("utf-8", "replace"))[1:-1][:60]
            message = MESSAGES.get(kind, "no key can be made of it")
            self.problems.add(Problem(kind, name, line, offset, f"{message}: `{found}`"), count)
        if damage is not None:
            self.problems.add(Problem(damage, name, lines, 0, MESSAGES[damage]))
