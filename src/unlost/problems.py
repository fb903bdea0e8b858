"""Problems found while reading files: counted by kind, with the first example of each.

Nothing that cannot be read is dropped silently. Also builds the InputError for a file that cannot be read at all.
"""

import re
from dataclasses import dataclass, field
from errno import EACCES, EISDIR, ENOENT, ENOTDIR, EPERM, ESPIPE
from os import PathLike, fspath, strerror
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from unlost.errors import InputError

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


RECOVERY_FOLDER_ADVICE = "give the folder of a recovery, such as lost.example.recovery"
"""What to do where one was wanted."""
_CORE_ERRNO = re.compile(
    r" \(os error (\d+)\)"
)  # how the core ends what the system says: its errors have no number else
_ADVICE = {
    ENOENT: "check the name",
    ENOTDIR: "check the name",
    EISDIR: "name a file",
    EACCES: "change its rights, or ask whoever it belongs to",
    EPERM: "change its rights, or ask whoever it belongs to",
    ESPIPE: "a pipe can be read only once, so write it to a file first",
}


def unreadable_error(path: str | PathLike[str], error: OSError, advice: str | None = None) -> InputError:
    """Return what to raise: the file's name, the system's words without the number that the core puts behind them.

    Then what to do: `advice`, for what a file of that kind is made by, else what there is to say of any file.

    >>> unreadable_error("lost.cdxj", FileNotFoundError("No such file or directory (os error 2)"))
    InputError('lost.cdxj: cannot be read: No such file or directory: check the name')
    """
    told = _CORE_ERRNO.search(str(error))
    words = error.strerror or _CORE_ERRNO.sub("", str(error))
    what_to_do = advice or _ADVICE.get(error.errno or int(told[1] if told else 0))
    return InputError(f"{fspath(path)}: cannot be read: {words}{f': {what_to_do}' if what_to_do else ''}")


def unreadable_error_for_errno(path: str | PathLike[str], errno: int, advice: str | None = None) -> InputError:
    """Return the same for what nobody tried to read since it is known to fail. number: of the system's errors.

    >>> unreadable_error_for_errno("lost.cdxj", EISDIR)
    InputError('lost.cdxj: cannot be read: Is a directory: name a file')
    """
    return unreadable_error(path, OSError(errno, strerror(errno)), advice)


def require_rereadable(path: str | PathLike[str]) -> None:
    """Raise InputError for what can be read only once, such as a pipe: what was looked at would be gone."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return  # whoever reads it says why it cannot be
    if S_ISDIR(mode):
        raise unreadable_error_for_errno(path, EISDIR)
    if not S_ISREG(mode):
        raise InputError(f"{fspath(path)}: not a regular file: it is read more than once, so write it to one first")
