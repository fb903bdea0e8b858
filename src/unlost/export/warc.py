"""Exports the chosen captures of a recovery as one WARC; every record is verified before it is copied."""

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from unlost._core import VERSION
from unlost.errors import InputError, UsageError
from unlost.export.contents import WARC_FOLDER, nothing_readable_error, nothing_recovered_error
from unlost.export.targets import AtomicPath
from unlost.problems import Problem, Problems
from unlost.recover.state.reader import StateReader
from unlost.recover.warc_records import REFERS_TO, RecoveryRecord, parse_metadata
from unlost.warc.records import (
    ForeignRecordError,
    TruncatedRecordError,
    WrittenRecord,
    compress_member,
    encode_value,
    format_sha1,
    format_warcinfo,
    parse_http_head,
)
from unlost.warc.writer import OPEN_SUFFIX, WarcFolder, segment_name, segment_number

BODY_PREFIX_BYTES = 1 << 16
"""Bytes of a body that are kept: titles stand there."""
RecordLocation = tuple[int, int]
"""Where a record is: the number of its file, its offset in bytes."""


class BadRecordError(Exception):
    """A record that is not as it was kept; the message says how. Never seen by users: it is counted as a problem."""


@dataclass(frozen=True, slots=True)
class VerifiedRecord:
    """A record, and the metadata behind it, both whole, with the digests that they should have.

    record: what the metadata tells; its size is that of both. number: its WARC-Record-ID.
    headers, beginning: of the answer; those of a revisit may be none.
    refers_to: of a revisit, the id and the place of the record with its body.
    """

    record: RecoveryRecord
    record_id: str
    headers: tuple[tuple[str, str], ...]
    body_prefix: bytes
    refers_to: tuple[str, RecordLocation] | None


def read_verified(file: int, name: str, offset: int) -> VerifiedRecord:
    """Return the record at an offset of an open file, once all of it was read. Raises BadRecordError.

    name: the final name of the file.
    """
    try:
        kept = _read_record(file, offset, "response", "revisit")
        head = kept.http_head()
        beginning = _verified_prefix(kept, head)
        number = kept.fields["WARC-Record-ID"]
        about = WrittenRecord(file, kept.end())
        if about.record_type != "metadata" or about.fields.get("WARC-Concurrent-To") != number:
            raise BadRecordError("expected metadata about it behind it, found something else")
        block, end = about.block(), about.end()
        record = parse_metadata(block, name, offset, end - offset)
        if record.capture.digest != kept.fields.get("WARC-Payload-Digest"):
            raise BadRecordError("expected the digest that its metadata tells, found another one")
        return VerifiedRecord(record, number, tuple(parse_http_head(head)), beginning, _referred_record(kept))
    except (TruncatedRecordError, ForeignRecordError, ValueError, KeyError):
        raise BadRecordError("expected the record that was kept there, found something else, or damage") from None
    except OSError as error:  # a disk that is damaged itself
        raise BadRecordError(f"cannot be read: {error.strerror}") from None


def referred_location(file: int, offset: int) -> RecordLocation:
    """Return the place that a revisit refers to. Raises BadRecordError."""
    try:
        referred = _referred_record(_read_record(file, offset, "revisit"))
    except (TruncatedRecordError, ForeignRecordError, OSError):
        referred = None
    if referred is None:
        raise BadRecordError("expected the revisit that was kept there, found something else, or damage")
    return referred[1]


def _read_record(file: int, offset: int, *kinds: str) -> WrittenRecord:
    if offset < 0:  # a state may say anything
        raise ForeignRecordError
    kept = WrittenRecord(file, offset)
    if kept.record_type not in kinds:
        raise ForeignRecordError
    return kept


def _verified_prefix(stored: WrittenRecord, head: bytes) -> bytes:
    """Read the rest of a record, and return how its body begins. Raises BadRecordError if it has another digest."""
    payload = hashlib.sha1(usedforsecurity=False)
    block = hashlib.sha1(head + b"\r\n" if head else b"", usedforsecurity=False)
    beginning = bytearray()
    for piece in stored.pieces():
        payload.update(piece)
        block.update(piece)
        beginning += piece[: BODY_PREFIX_BYTES - len(beginning)]
    told = stored.fields.get("WARC-Payload-Digest")
    is_as_told = stored.record_type == "revisit" or format_sha1(payload) == told
    if not is_as_told or format_sha1(block) != stored.fields.get("WARC-Block-Digest"):
        raise BadRecordError("expected the digest that it was kept with, found another one")
    return bytes(beginning)


def _referred_record(stored: WrittenRecord) -> tuple[str, RecordLocation] | None:
    if stored.record_type != "revisit":
        return None
    file, _, offset = stored.fields.get(REFERS_TO, "").partition(" ")
    number = segment_number(file)
    if number is None or not (offset.isascii() and offset.isdecimal()):
        raise ForeignRecordError
    return stored.fields.get("WARC-Refers-To", ""), (number, int(offset))


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
