"""A recovery as one WARC."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from unlost._core import VERSION
from unlost.errors import UsageError
from unlost.formats.problems import Problems
from unlost.formats.warc_writing.fields import plain
from unlost.formats.warc_writing.members import packed
from unlost.formats.warc_writing.records import warcinfo
from unlost.recover.export.archive_files.chosen_copies import ChosenCopies, Copy
from unlost.recover.export.contents import WARCS, nothing_readable
from unlost.recover.export.targets.new_place import NewPlace

ENDING = ".warc.gz"
SOFTWARE = f"unlost/{VERSION}"

Progress = Callable[[int, int], object]
"""Is told how many records were copied, and how many there are."""


@dataclass(slots=True)
class ArchiveWritten:
    """What is in an archive file that was written.

    copies: how many of the chosen copies. originals: how many records that were not chosen, and have the body of one
    that was. pages: how many are listed as pages; in a WARC none are. bytes: of the file.
    problems: what could not be copied: see ChosenCopies.
    """

    copies: int = 0
    originals: int = 0
    pages: int = 0
    bytes: int = 0
    problems: Problems = field(default_factory=Problems)


def write_warc(recovery: Path, to: Path, *, on_progress: Progress | None = None) -> ArchiveWritten:
    """Write the chosen copies of a recovery as one WARC, and return what is in it.

    Each record has its own gzip member, which is copied as it is kept; behind it stands its metadata. Records that
    chosen revisits refer to are among them; what was rejected, or not chosen, is not. Every record is read and its
    digest compared before it is copied. The same recovery makes the same file, if it has the same name.

    to: must end in `.warc.gz`; gets its name once all is written.

    Raises UsageError for another ending, InputError where something is in the place, where there is no recovery or
    nothing in it that can be copied, OSError where it cannot be written.
    """
    check_place(recovery, to, ENDING)
    done = ArchiveWritten()
    with NewPlace(to) as place:
        copies = ChosenCopies(recovery, done.problems)
        with place.writing() as file:
            copy_records(copies, file.write, to.name, done, on_progress)
            done.bytes = file.tell()
        place.name_file()
    return done


def check_place(recovery: Path, to: Path, ending: str) -> None:
    """Raise UsageError for a name with another ending, and for a place that belongs to the recovery itself."""
    if not to.name.lower().endswith(ending):
        raise UsageError(f"{to}: expected a name that ends in {ending}")
    if to.parent.resolve() == (recovery / WARCS).resolve():
        raise UsageError(f"{to}: that folder belongs to the recovery: give another one")


def copy_records(
    copies: ChosenCopies,
    write: Callable[[bytes], object],
    name: str,
    done: ArchiveWritten,
    on_progress: Progress | None,
    on_copy: Callable[[Copy], object] | None = None,
) -> None:
    """Write a WARC of that name, and count into `done`. Raises InputError if nothing could be copied."""
    for number, copy in enumerate(copies, 1):
        if not done.copies and not done.originals:
            # Its time is that of the first copy: the same recovery makes the same file.
            first = warcinfo(plain(name), SOFTWARE, copy.found.record.recovered)
            write(b"".join(packed([first], len(first))))
        for piece in copy.pieces():
            write(piece)
        if copy.order is None:
            done.originals += 1
        else:
            done.copies += 1
        if on_copy is not None:
            on_copy(copy)
        if on_progress is not None:
            on_progress(number, copies.total)
    if not done.copies:
        raise nothing_readable(done.problems)
