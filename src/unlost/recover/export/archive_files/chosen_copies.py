"""The records that an archive file of a recovery is made of: the copies that were chosen, and what they refer to."""

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from unlost.errors import InputError
from unlost.formats.problems import Problem, Problems
from unlost.formats.warc_writing.folder import OPEN_SUFFIX, WarcFolder, segment_name, segment_number
from unlost.recover.export.archive_files.whole_records import (
    BadRecordError,
    RecordLocation,
    VerifiedRecord,
    read_verified,
    referred_location,
)
from unlost.recover.export.contents import WARC_FOLDER, nothing_recovered_error
from unlost.recover.record import RecoveryRecord
from unlost.recover.state.reading import StateReader

_PIECE = 1 << 20  # bytes
_DAMAGED, _WITHOUT_BODY = "damaged-record", "revisit-without-body"


@dataclass(frozen=True, slots=True)
class ExportedRecord:
    """A record to be copied, which was read and is whole.

    found: the record. order: which of the chosen copies it is, as their resources were found; None if it was not chosen
    and is here for the body that others refer to. is_original: whether others, which come later, refer to it.
    """

    verified: VerifiedRecord
    order: int | None
    is_original: bool
    _file: int

    def pieces(self) -> Iterator[bytes]:
        """Yield its bytes, with those of its metadata, as they are kept. Ask before the next copy is asked for."""
        place, left = self.verified.record.offset, self.verified.record.size
        while left:
            data = os.pread(self._file, min(left, _PIECE), place)
            if not data:
                raise InputError(f"{self.verified.record.file}: became shorter while it was read: export it again")
            yield data
            place, left = place + len(data), left - len(data)


class _ExpectedRecord(NamedTuple):
    """What must be known of a chosen copy: there may be a million."""

    order: int
    digest: str | None
    datetime: str
    is_revisit: bool


class ChosenRecords:
    """What a recovery has chosen so far; it may be going on meanwhile.

    problems: gets `damaged-record` for each chosen copy that is not as it was kept, or whose file is gone, and
        `revisit-without-body` where that is so of what it refers to. These are left out.
    total: how many records there are to be read.
    bytes: of the files that they are in, which is more than they have.

    Raises InputError for what is no recovery, or has nothing; OSError where it cannot be read.
    """

    def __init__(self, recovery: Path, problems: Problems) -> None:
        self._folder = WarcFolder(recovery / WARC_FOLDER)
        self._problems = problems
        self._expected: dict[RecordLocation, _ExpectedRecord | None] = {}
        self._originals: dict[
            RecordLocation, tuple[str, str | None] | None
        ] = {}  # their ids and digests, once they were read
        # First the state, then the files: what it knows is in them.
        with StateReader(recovery) as state:
            for order, (_, record) in enumerate(state.records()):
                self._expect(order, record)
        if not self._expected:
            raise nothing_recovered_error(recovery)
        self._expect_originals()
        self.total = len(self._expected)
        self.bytes = sum(self._size(number) for number in {number for number, _ in self._expected})

    def _expect(self, order: int, record: RecoveryRecord) -> None:
        number = segment_number(record.file.removesuffix(OPEN_SUFFIX))
        if number is None:
            self._add_problem(
                record.file, record.offset, "expected the name of a file of the recovery, found another one"
            )
        else:
            capture = record.capture
            wanted = _ExpectedRecord(order, capture.digest, capture.datetime, bool(capture.revisit))
            self._expected.setdefault((number, record.offset), wanted)

    def _expect_originals(self) -> None:
        revisits = sorted(place for place, wanted in self._expected.items() if wanted and wanted.is_revisit)
        for number, places in groupby(revisits, lambda place: place[0]):
            # What cannot be read now cannot be read later either, and is told then.
            try:
                with self._folder.open_to_read(segment_name(number)) as file:
                    for _, offset in places:
                        self._expect_original(file, offset)
            except InputError:
                pass

    def _expect_original(self, file: int, offset: int) -> None:
        try:
            place = referred_location(file, offset)
        except BadRecordError:
            return
        self._expected.setdefault(place, None)
        self._originals[place] = None

    def _size(self, number: int) -> int:
        try:
            with self._folder.open_to_read(segment_name(number)) as file:
                return os.fstat(file).st_size
        except InputError:
            return 0

    def __iter__(self) -> Iterator[ExportedRecord]:
        """Yield them in the order in which they are kept: so whatever is referred to comes first."""
        for number, places in groupby(sorted(self._expected), lambda place: place[0]):
            left = deque(places)
            try:
                with self._folder.open_to_read(segment_name(number)) as file:
                    while left:
                        copy = self._read(file, left.popleft())
                        if copy is not None:
                            yield copy
            except InputError as error:
                for _, offset in left:
                    self._add_problem(segment_name(number), offset, str(error))

    def _read(self, file: int, place: RecordLocation) -> ExportedRecord | None:
        number, offset = place
        wanted = self._expected[place]
        try:
            found = _check_expected(read_verified(file, segment_name(number), offset), wanted)
        except BadRecordError as error:
            self._add_problem(segment_name(number), offset, str(error))
            return None
        digest = found.record.capture.digest
        if found.refers_to is not None:
            told, original = found.refers_to
            if self._originals.get(original) != (told, digest):
                self._add_problem(segment_name(number), offset, "the record with its body is not whole", _WITHOUT_BODY)
                return None
        is_original = place in self._originals
        if is_original:
            self._originals[place] = found.record_id, digest
        return ExportedRecord(found, wanted and wanted.order, is_original, file)

    def _add_problem(self, name: str, offset: int, message: str, kind: str = _DAMAGED) -> None:
        self._problems.add(Problem(kind, str(self._folder.path / name), None, offset, message))


def _check_expected(found: VerifiedRecord, wanted: _ExpectedRecord | None) -> VerifiedRecord:
    """Return a record if it is the copy that was chosen. Raises BadRecordError."""
    capture = found.record.capture
    if wanted is not None and (capture.digest, capture.datetime) != (wanted.digest, wanted.datetime):
        raise BadRecordError("expected the copy that was chosen, found another one")
    return found
