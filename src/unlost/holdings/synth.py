"""Made-up indexes: of any size, with the shapes that the papers found, the same bytes everywhere."""

from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Protocol

from unlost import _core
from unlost.errors import InputError, UsageError
from unlost.formats.output import atomic_file
from unlost.formats.problems import Problem, Problems
from unlost.formats.unread import unreadable_error

MAX_SEED = 2**64 - 1
MAX_LINES = 10**12
"""More than any archive has; what is above is a slip of the finger."""

_COMPRESSION_BY_SUFFIX = {".gz": "gzip", ".zst": "zstd"}


class BytesWriter(Protocol):
    """A file opened for writing bytes, or anything like it."""

    def write(self, data: bytes, /) -> object:
        """Take all of the bytes."""
        ...


@dataclass(frozen=True, slots=True)
class SynthIndexOptions:
    """What index to make.

    lines: how many, exactly. seed: another one makes another index of the same shape. urls: a list of addresses, plain,
    gzip or zstd, whose captures are to be made up; column: which one, from 1, of columns separated by tabs.
    largest_host: one host is to have so many keys (pages without query). shuffled: lines in random order.

    With one version of unlost, equal plans make equal bytes on every machine.
    """

    lines: int
    seed: int = 0
    urls: str | PathLike[str] | None = None
    column: int | None = None
    largest_host: int | None = None
    shuffled: bool = False

    def __post_init__(self) -> None:
        """Refuse with UsageError what cannot be made."""
        if not 1 <= self.lines <= MAX_LINES:
            raise UsageError(f"lines: expected 1 to {MAX_LINES}")
        if not 0 <= self.seed <= MAX_SEED:
            raise UsageError(f"seed: expected 0 to {MAX_SEED}")
        if self.urls is None and self.column is not None:
            raise UsageError("column: there is no list of addresses whose column it could be: give urls too")
        if self.column is not None and self.column < 1:
            raise UsageError("column: columns are counted from 1")
        if self.largest_host is not None:
            if self.urls is not None:
                raise UsageError("largest_host: the hosts of a list are as large as they are: leave out one of the two")
            if not 1 <= self.largest_host <= self.lines:
                raise UsageError("largest_host: every key needs a line: expected 1 to the number of lines")


def write_synthetic_index(options: SynthIndexOptions, path: str | PathLike[str], problems: Problems) -> None:
    """Write a made-up index as CDXJ, in gzip if the path ends in `.gz`, in zstd for `.zst`.

    The file appears whole or not at all. Lines of a list that are no addresses are left out and counted in `problems`.
    Raises InputError if the list cannot be read or has no address, OSError if the file cannot be written.
    """
    urls = _read_urls(options, problems)
    with atomic_file(path) as file:
        _write_rows(options, urls, file, _COMPRESSION_BY_SUFFIX.get(Path(path).suffix, "plain"))


def write_synthetic_index_to(options: SynthIndexOptions, file: BytesWriter, problems: Problems) -> None:
    r"""Write a made-up index to a file that is open, not compressed; for the rest see `write_index`.

    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> write_index_to(Plan(lines=3, seed=1), file, Problems())
    >>> file.getvalue().count(b"\n")
    3
    """
    _write_rows(options, _read_urls(options, problems), file, "plain")


def _write_rows(plan: SynthIndexOptions, urls: _core.SynthUrls | None, file: BytesWriter, packing: str) -> None:
    _core.write_synthetic_index(file.write, plan.lines, plan.seed, urls, plan.largest_host, plan.shuffled, packing)


def _read_urls(plan: SynthIndexOptions, problems: Problems) -> _core.SynthUrls | None:
    if plan.urls is None:
        return None
    name = fspath(plan.urls)
    try:
        urls = _core.SynthUrls(plan.urls, plan.column)
    except OSError as error:
        raise unreadable_error(name, error) from error
    for kind, count, number, offset, message in urls.refused:
        problems.add(Problem(kind, name, number, offset, message), count)
    if urls.is_empty:
        raise InputError(f"{name}: there is no address in it: expected one a line, or give the column")
    return urls
