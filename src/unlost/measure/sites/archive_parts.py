"""The archive files that a site consists of: files of their own, or members of a WACZ."""

from dataclasses import dataclass
from pathlib import Path

from unlost._core import WarcBody, WarcScanner
from unlost.errors import ArchiveFileError
from unlost.formats import wacz
from unlost.formats.problems import Problems

_RECORD_TYPES = ("response", "resource", "revisit")


@dataclass(frozen=True, slots=True)
class ArchiveFilePart:
    """One archive file.

    name: how it is called in problems. start, length: in the file, in bytes; all of it if `length` is None.
    inflated: how long it is in truth, if it is deflated.
    """

    path: Path
    name: str
    start: int = 0
    length: int | None = None
    inflated_length: int | None = None

    def open_scanner(self) -> WarcScanner:
        """Return what reads its records, with the digests of bodies. Raises OSError."""
        return WarcScanner(self.path, False, _RECORD_TYPES, self.start, self.length, self.inflated_length, bodies=True)

    def open_record(self, offset: int, skip: int) -> WarcBody:
        """Return the record at an offset. Raises ArchiveFileError, OSError."""
        if self.inflated_length is not None:
            message = "expected a member stored as it is, found a deflated one: take the WARC out of the ZIP to read it"
            raise ArchiveFileError(f"{self.name}: {message}")
        record = WarcBody.open(self.path, offset, skip, self.start, self.length)
        if record is None:
            raise ArchiveFileError(f"{self.name}: expected a record at byte {offset}, found none: it was changed")
        return record


def list_archive_parts(file: Path, problems: Problems) -> list[ArchiveFilePart]:
    """Return the parts of one file: itself, or if it is a ZIP, its members. Raises ArchiveFileError, OSError."""
    with file.open("rb") as opened:
        is_zip = opened.read(2) == b"PK"
    if not is_zip:
        return [ArchiveFilePart(file, str(file))]
    members = wacz.list_wacz_members(file, problems)
    return [
        ArchiveFilePart(file, f"{file}/{each.filename}", each.start, each.length, each.inflated_length)
        for each in members
    ]
