"""What could not be read: counted by kind, with the first example of each, so that nothing is dropped silently."""

from dataclasses import dataclass, field

DAMAGE_KINDS = frozenset(
    {
        "bad-block",
        "bad-checksum",
        "bad-gzip",
        "bad-member",
        "corrupt",
        "corrupt-gzip",
        "corrupt-member",
        "corrupt-zstd",
        "cut-line",
        "garbage",
        "short-block",
        "short-header",
        "trailing-garbage",
        "truncated",
        "truncated-gzip",
        "truncated-zstd",
        "unreadable",
    }
)
"""The kinds of problems that mean a file is damaged: how much is missing is unknown. The others cost one line."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing in a file that could not be read.

    kind: a word for counting, such as `bad-date`; each format lists its own.
    file: the file's name as it was given.
    line: which line, from 1; None in files that have no lines.
    offset: where the line or record begins, in bytes from the start of the decompressed text; in WARCs, where the
        record begins in the file as it is stored.
    message: what was expected and what was found.
    """

    kind: str
    file: str
    line: int | None
    offset: int
    message: str

    def __str__(self) -> str:
        r"""Return it as one printable line: where, then what.

        >>> str(Problem("bad-date", "a.cdx", 7, 512, "expected 14 digits, found `x`"))
        'a.cdx:7 (byte 512): bad-date: expected 14 digits, found `x`'
        >>> str(Problem("bad-date", "a.cdx", 7, 512, "expected 14 digits, found `\x1b`"))[-5:]
        '\\x1b`'
        """
        line = "" if self.line is None else f":{self.line}"
        text = f"{self.file}{line} (byte {self.offset}): {self.kind}: {self.message}"
        # Files and their names are untrusted, and whoever prints this may be a terminal.
        return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


@dataclass(slots=True)
class Problems:
    """A tally of problems: how many of each kind, and the first of each. Its size does not grow with the input.

    >>> problems = Problems()
    >>> problems.add(Problem("bad-date", "a.cdx", 7, 512, "…"))
    >>> problems.add(Problem("bad-date", "a.cdx", 9, 700, "…"))
    >>> problems.counts, problems.total, problems.first["bad-date"].line
    ({'bad-date': 2}, 2, 7)
    """

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, Problem] = field(default_factory=dict)

    def add(self, problem: Problem, times: int = 1) -> None:
        """Count it, once or as often as it occurred, and keep it if it is the first of its kind."""
        self.counts[problem.kind] = self.counts.get(problem.kind, 0) + times
        self.first.setdefault(problem.kind, problem)

    def add_unreadable(self, file: str, error: Exception) -> None:
        """Count a file that cannot be read at all, and is skipped."""
        self.add(Problem("unreadable", file, None, 0, str(error).removeprefix(f"{file}: ")))

    @property
    def damage(self) -> Problem | None:
        """The first sign that a file is damaged, by the kinds of `DAMAGE`; None without any."""
        return next((self.first[kind] for kind in self.counts if kind in DAMAGE_KINDS), None)

    @property
    def total(self) -> int:
        """How many there were."""
        return sum(self.counts.values())
