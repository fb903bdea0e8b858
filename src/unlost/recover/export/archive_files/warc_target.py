"""A recovery as one WARC."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from unlost._core import VERSION
from unlost.errors import UsageError
from unlost.formats.problems import Problems
from unlost.formats.warc_writing.fields import encode_value
from unlost.formats.warc_writing.members import compress_member
from unlost.formats.warc_writing.records import format_warcinfo
from unlost.recover.export.archive_files.chosen_copies import ChosenRecords, ExportedRecord
from unlost.recover.export.contents import WARC_FOLDER, nothing_readable_error
from unlost.recover.export.targets.new_place import AtomicPath

WARC_EXTENSION = ".warc.gz"
SOFTWARE = f"unlost/{VERSION}"

RecordProgress = Callable[[int, int], object]
"""Is told how many records were copied, and how many there are."""


@dataclass(slots=True)
class ArchiveFileResult:
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


def write_warc(recovery: Path, to: Path, *, on_progress: RecordProgress | None = None) -> ArchiveFileResult:
    """Write the chosen copies of a recovery as one WARC, and return what is in it.

    Each record has its own gzip member, which is copied as it is kept; behind it stands its metadata. Records that
    chosen revisits refer to are among them; what was rejected, or not chosen, is not. Every record is read and its
    digest compared before it is copied. The same recovery makes the same file, if it has the same name.

    to: must end in `.warc.gz`; gets its name once all is written.

    Raises UsageError for another ending, InputError where something is in the place, where there is no recovery or
    nothing in it that can be copied, OSError where it cannot be written.
    """
    check_output_path(recovery, to, WARC_EXTENSION)
    done = ArchiveFileResult()
    with AtomicPath(to) as place:
        copies = ChosenRecords(recovery, done.problems)
        with place.writing() as file:
            copy_records(copies, file.write, to.name, done, on_progress)
            done.bytes = file.tell()
        place.publish_file()
    return done


def check_output_path(recovery: Path, to: Path, ending: str) -> None:
    """Raise UsageError for a name with another ending, and for a place that belongs to the recovery itself."""
    if not to.name.lower().endswith(ending):
        raise UsageError(f"{to}: expected a name that ends in {ending}")
    if to.parent.resolve() == (recovery / WARC_FOLDER).resolve():
        raise UsageError(f"{to}: that folder belongs to the recovery: give another one")


def copy_records(
    copies: ChosenRecords,
    write: Callable[[bytes], object],
    name: str,
    done: ArchiveFileResult,
    on_progress: RecordProgress | None,
    on_record: Callable[[ExportedRecord], object] | None = None,
) -> None:
    """Write a WARC of that name, and count into `done`. Raises InputError if nothing could be copied."""
    for number, copy in enumerate(copies, 1):
        if not done.copies and not done.originals:
            # Its time is that of the first copy: the same recovery makes the same file.
            first = format_warcinfo(encode_value(name), SOFTWARE, copy.verified.record.recovered)
            write(b"".join(compress_member([first], len(first))))
        for piece in copy.pieces():
            write(piece)
        if copy.order is None:
            done.originals += 1
        else:
            done.copies += 1
        if on_record is not None:
            on_record(copy)
        if on_progress is not None:
            on_progress(number, copies.total)
    if not done.copies:
        raise nothing_readable_error(done.problems)
