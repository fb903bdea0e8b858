"""Problems found while reading files: counted by kind, with the first example of each.

Nothing unreadable is dropped silently. The module also creates the InputError for a file that cannot be read at all.
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
"""Kinds that mean a damaged file, with an unknown amount of missing data. Any other problem costs one line."""

RECOVERY_FOLDER_ADVICE = "give the folder of a recovery, such as lost.example.recovery"
"""Advice for input that should be a recovery folder."""
_CORE_ERRNO = re.compile(r" \(os error (\d+)\)")  # suffix that Rust adds to messages; the core's OSErrors have no errno
_ADVICE = {
    ENOENT: "check the name",
    ENOTDIR: "check the name",
    EISDIR: "name a file",
    EACCES: "change its rights, or ask whoever it belongs to",
    EPERM: "change its rights, or ask whoever it belongs to",
    ESPIPE: "a pipe can be read only once, so write it to a file first",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a file that could not be read.

    Attributes:
        kind: Error code, such as `bad-date`; each format lists its own.
        file: Name of the file, as given.
        line: Line number, from 1; None in files without lines.
        offset: Offset of the line in the decompressed text, in bytes; for WARCs, of the record in the file as stored.
        message: What was expected, and what was found.
    """

    kind: str
    file: str
    line: int | None
    offset: int
    message: str

    def __str__(self) -> str:
        r"""Return one printable line: the position, then the problem.

        >>> str(Problem("bad-date", "a.cdx", 7, 512, "expected 14 digits, found `x`"))
        'a.cdx:7 (byte 512): bad-date: expected 14 digits, found `x`'
        >>> str(Problem("bad-date", "a.cdx", 7, 512, "expected 14 digits, found `\x1b`"))[-5:]
        '\\x1b`'
        """
        line = "" if self.line is None else f":{self.line}"
        text = f"{self.file}{line} (byte {self.offset}): {self.kind}: {self.message}"
        # Files and their names are untrusted, and a terminal would interpret escape sequences.
        return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


@dataclass(slots=True)
class Problems:
    """Counts problems by kind, and stores the first of each. Its size does not grow with the input.

    >>> problems = Problems()
    >>> problems.add(Problem("bad-date", "a.cdx", 7, 512, "…"))
    >>> problems.add(Problem("bad-date", "a.cdx", 9, 700, "…"))
    >>> problems.counts, problems.total, problems.first["bad-date"].line
    ({'bad-date': 2}, 2, 7)
    """

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, Problem] = field(default_factory=dict)

    def add(self, problem: Problem, times: int = 1) -> None:
        """Count a problem `times` times, and store it if it is the first of its kind."""
        self.counts[problem.kind] = self.counts.get(problem.kind, 0) + times
        self.first.setdefault(problem.kind, problem)

    def add_unreadable(self, file: str, error: Exception) -> None:
        """Count a file that cannot be read and is skipped."""
        self.add(Problem("unreadable", file, None, 0, str(error).removeprefix(f"{file}: ")))

    @property
    def damage(self) -> Problem | None:
        """First problem of a kind in `DAMAGE_KINDS`; None if no file was damaged."""
        return next((self.first[kind] for kind in self.counts if kind in DAMAGE_KINDS), None)

    @property
    def total(self) -> int:
        """Number of problems."""
        return sum(self.counts.values())


def unreadable_error(path: str | PathLike[str], error: OSError, advice: str | None = None) -> InputError:
    """Return the InputError for an unreadable file: its name, the system's message and advice.

    Args:
        path: The file.
        error: The error; the error number that the Rust core appends to messages is removed.
        advice: What to do; by default the general advice for the error.

    >>> unreadable_error("lost.cdxj", FileNotFoundError("No such file or directory (os error 2)"))
    InputError('lost.cdxj: cannot be read: No such file or directory: check the name')
    """
    match = _CORE_ERRNO.search(str(error))
    reason = error.strerror or _CORE_ERRNO.sub("", str(error))
    hint = advice or _ADVICE.get(error.errno or int(match[1] if match else 0))
    return InputError(f"{fspath(path)}: cannot be read: {reason}{f': {hint}' if hint else ''}")


def unreadable_error_for_errno(path: str | PathLike[str], errno: int, advice: str | None = None) -> InputError:
    """Return the InputError of `unreadable_error` for an error number, without trying to read the file.

    >>> unreadable_error_for_errno("lost.cdxj", EISDIR)
    InputError('lost.cdxj: cannot be read: Is a directory: name a file')
    """
    return unreadable_error(path, OSError(errno, strerror(errno)), advice)


def require_rereadable(path: str | PathLike[str]) -> None:
    """Raise InputError for a file that can be read only once, such as a pipe."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return  # reported when it is read
    if S_ISDIR(mode):
        raise unreadable_error_for_errno(path, EISDIR)
    if not S_ISREG(mode):
        raise InputError(f"{fspath(path)}: not a regular file: it is read more than once, so write it to one first")
