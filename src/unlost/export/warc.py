"""Exports the chosen captures of a recovery as one WARC file. Every record is verified before it is copied."""

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
from unlost.export.formats import ExportOptions, ExportProgress, ExportSummary
from unlost.export.targets import AtomicPath
from unlost.problems import Problem, Problems
from unlost.recovery.state.reader import StateReader
from unlost.recovery.warc_records import REFERS_TO, RecoveryRecord, parse_metadata
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
"""Size of the part of a body that is retained, which contains the title of a page."""
RecordLocation = tuple[int, int]
"""Location of a record: number of its file, and offset in bytes."""


class BadRecordError(Exception):
    """A record is missing or damaged. It is counted as a problem with this message."""


@dataclass(frozen=True, slots=True)
class VerifiedRecord:
    """A verified record with its metadata record.

    Attributes:
        record: The record as described by the metadata; its size is that of both.
        record_id: Its WARC-Record-ID.
        headers: HTTP headers; may be empty for a revisit.
        body_prefix: First bytes of the body; may be empty for a revisit.
        refers_to: For a revisit, WARC-Record-ID and location of the record with the body.
    """

    record: RecoveryRecord
    record_id: str
    headers: tuple[tuple[str, str], ...]
    body_prefix: bytes
    refers_to: tuple[str, RecordLocation] | None


def read_verified(file: int, name: str, offset: int) -> VerifiedRecord:
    """Read and verify the record at an offset of an open file.

    Args:
        file: Descriptor of the file.
        name: Final name of the file.
        offset: Offset of the record.

    Raises:
        BadRecordError: The record is missing or damaged.
    """
    try:
        record_read = _read_record(file, offset, "response", "revisit")
        head = record_read.http_head()
        body_prefix = _verified_prefix(record_read, head)
        record_id = record_read.fields["WARC-Record-ID"]
        metadata = WrittenRecord(file, record_read.end())
        if metadata.record_type != "metadata" or metadata.fields.get("WARC-Concurrent-To") != record_id:
            raise BadRecordError("expected metadata about it behind it, found something else")
        block, end = metadata.block(), metadata.end()
        record = parse_metadata(block, name, offset, end - offset)
        if record.capture.digest != record_read.fields.get("WARC-Payload-Digest"):
            raise BadRecordError("expected the digest that its metadata tells, found another one")
        return VerifiedRecord(
            record, record_id, tuple(parse_http_head(head)), body_prefix, _referred_record(record_read)
        )
    except (TruncatedRecordError, ForeignRecordError, ValueError, KeyError):
        raise BadRecordError("expected the record that was kept there, found something else, or damage") from None
    except OSError as error:  # the disk is defective
        raise BadRecordError(f"cannot be read: {error.strerror}") from None


def referred_location(file: int, offset: int) -> RecordLocation:
    """Return the location that a revisit refers to. Raises BadRecordError."""
    try:
        referred = _referred_record(_read_record(file, offset, "revisit"))
    except (TruncatedRecordError, ForeignRecordError, OSError):
        referred = None
    if referred is None:
        raise BadRecordError("expected the revisit that was kept there, found something else, or damage")
    return referred[1]


def _read_record(file: int, offset: int, *kinds: str) -> WrittenRecord:
    if offset < 0:  # the database is not trusted
        raise ForeignRecordError
    record = WrittenRecord(file, offset)
    if record.record_type not in kinds:
        raise ForeignRecordError
    return record


def _verified_prefix(stored: WrittenRecord, head: bytes) -> bytes:
    """Read the rest of a record, verify its digests, and return the first bytes of its body. Raises BadRecordError."""
    payload = hashlib.sha1(usedforsecurity=False)
    block = hashlib.sha1(head + b"\r\n" if head else b"", usedforsecurity=False)
    prefix = bytearray()
    for piece in stored.pieces():
        payload.update(piece)
        block.update(piece)
        prefix += piece[: BODY_PREFIX_BYTES - len(prefix)]
    payload_digest = stored.fields.get("WARC-Payload-Digest")
    is_payload_intact = stored.record_type == "revisit" or format_sha1(payload) == payload_digest
    if not is_payload_intact or format_sha1(block) != stored.fields.get("WARC-Block-Digest"):
        raise BadRecordError("expected the digest that it was kept with, found another one")
    return bytes(prefix)


def _referred_record(stored: WrittenRecord) -> tuple[str, RecordLocation] | None:
    if stored.record_type != "revisit":
        return None
    file, _, offset = stored.fields.get(REFERS_TO, "").partition(" ")
    file_number = segment_number(file)
    if file_number is None or not (offset.isascii() and offset.isdecimal()):
        raise ForeignRecordError
    return stored.fields.get("WARC-Refers-To", ""), (file_number, int(offset))


_PIECE = 1 << 20  # bytes
_DAMAGED, _WITHOUT_BODY = "damaged-record", "revisit-without-body"


@dataclass(frozen=True, slots=True)
class ExportedRecord:
    """A verified record to be copied.

    Attributes:
        verified: The record.
        order: Position among the chosen captures in order of discovery; None if it was not chosen but has the body of
            one that was.
        is_original: Whether later records refer to it.
    """

    verified: VerifiedRecord
    order: int | None
    is_original: bool
    _file: int

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes of the record and its metadata record. Call it before requesting the next record."""
        offset, remaining = self.verified.record.offset, self.verified.record.size
        while remaining:
            data = os.pread(self._file, min(remaining, _PIECE), offset)
            if not data:
                raise InputError(f"{self.verified.record.file}: became shorter while it was read: export it again")
            yield data
            offset, remaining = offset + len(data), remaining - len(data)


class _ExpectedRecord(NamedTuple):
    """The expected properties of a chosen capture; small, because there may be a million."""

    order: int
    digest: str | None
    datetime: str
    is_revisit: bool


class ChosenRecords:
    """Iterates over the chosen records of a recovery, which may be in progress.

    Args:
        recovery: The folder of the recovery.
        problems: Receives `damaged-record` for each chosen capture that is missing or damaged, and
            `revisit-without-body` for those whose original is. These are left out.

    Attributes:
        total: Number of records to read.
        bytes: Total size of the files that contain them.

    Raises:
        InputError: The folder has no recovery, or nothing was recovered yet.
        OSError: A file cannot be read.
    """

    def __init__(self, recovery: Path, problems: Problems) -> None:
        self._folder = WarcFolder(recovery / WARC_FOLDER)
        self._problems = problems
        self._expected: dict[RecordLocation, _ExpectedRecord | None] = {}
        # WARC-Record-IDs and digests of originals; None until they are read.
        self._originals: dict[RecordLocation, tuple[str, str | None] | None] = {}
        # The database is read before the WARC files, which contain everything that it refers to.
        with StateReader(recovery) as state:
            for order, (_, record) in enumerate(state.records()):
                self._expect(order, record)
        if not self._expected:
            raise nothing_recovered_error(recovery)
        self._expect_originals()
        self.total = len(self._expected)
        self.bytes = sum(self._size(file_number) for file_number in {file_number for file_number, _ in self._expected})

    def _expect(self, order: int, record: RecoveryRecord) -> None:
        file_number = segment_number(record.file.removesuffix(OPEN_SUFFIX))
        if file_number is None:
            self._add_problem(
                record.file, record.offset, "expected the name of a file of the recovery, found another one"
            )
        else:
            capture = record.capture
            expected = _ExpectedRecord(order, capture.digest, capture.datetime, bool(capture.revisit))
            self._expected.setdefault((file_number, record.offset), expected)

    def _expect_originals(self) -> None:
        revisits = sorted(location for location, expected in self._expected.items() if expected and expected.is_revisit)
        for file_number, locations in groupby(revisits, lambda location: location[0]):
            # Errors are reported later, when the records are read.
            try:
                with self._folder.open_to_read(segment_name(file_number)) as file:
                    for _, offset in locations:
                        self._expect_original(file, offset)
            except InputError:
                pass

    def _expect_original(self, file: int, offset: int) -> None:
        try:
            location = referred_location(file, offset)
        except BadRecordError:
            return
        self._expected.setdefault(location, None)
        self._originals[location] = None

    def _size(self, file_number: int) -> int:
        try:
            with self._folder.open_to_read(segment_name(file_number)) as file:
                return os.fstat(file).st_size
        except InputError:
            return 0

    def __iter__(self) -> Iterator[ExportedRecord]:
        """Yield the records in the order of storage, in which originals precede their revisits."""
        for file_number, locations in groupby(sorted(self._expected), lambda location: location[0]):
            remaining = deque(locations)
            try:
                with self._folder.open_to_read(segment_name(file_number)) as file:
                    while remaining:
                        exported = self._read(file, remaining.popleft())
                        if exported is not None:
                            yield exported
            except InputError as error:
                for _, offset in remaining:
                    self._add_problem(segment_name(file_number), offset, str(error))

    def _read(self, file: int, location: RecordLocation) -> ExportedRecord | None:
        file_number, offset = location
        expected = self._expected[location]
        try:
            verified = _check_expected(read_verified(file, segment_name(file_number), offset), expected)
        except BadRecordError as error:
            self._add_problem(segment_name(file_number), offset, str(error))
            return None
        digest = verified.record.capture.digest
        if verified.refers_to is not None:
            original_id, original = verified.refers_to
            if self._originals.get(original) != (original_id, digest):
                self._add_problem(
                    segment_name(file_number), offset, "the record with its body is not whole", _WITHOUT_BODY
                )
                return None
        is_original = location in self._originals
        if is_original:
            self._originals[location] = verified.record_id, digest
        return ExportedRecord(verified, expected and expected.order, is_original, file)

    def _add_problem(self, name: str, offset: int, message: str, kind: str = _DAMAGED) -> None:
        self._problems.add(Problem(kind, str(self._folder.path / name), None, offset, message))


def _check_expected(verified: VerifiedRecord, expected: _ExpectedRecord | None) -> VerifiedRecord:
    """Return a record if it is the expected capture. Raises BadRecordError."""
    capture = verified.record.capture
    if expected is not None and (capture.digest, capture.datetime) != (expected.digest, expected.datetime):
        raise BadRecordError("expected the copy that was chosen, found another one")
    return verified


WARC_EXTENSION = ".warc.gz"
SOFTWARE = f"unlost/{VERSION}"
RecordProgress = Callable[[int, int], object]
"""Receives the numbers of copied records and of all records."""


@dataclass(slots=True)
class ArchiveFileResult(ExportSummary):
    """The result of an export as an archive file.

    Attributes:
        copies: Number of chosen captures.
        originals: Number of records that were not chosen but have the body of one that was.
        pages: Number of pages in the page list; 0 for a WARC.
        bytes: Size of the file.
        problems: Captures that could not be copied, as for `ChosenRecords`.
    """

    copies: int = 0
    originals: int = 0
    pages: int = 0
    bytes: int = 0
    problems: Problems = field(default_factory=Problems)
    start: None = None

    def to_json(self) -> dict[str, object]:
        """Return the figures as JSON values."""
        figures = {"copies": self.copies, "originals": self.originals, "pages": self.pages, "bytes": self.bytes}
        return {**figures, "problems": self.problems.counts}

    def messages(self, output: Path) -> list[tuple[str, str]]:
        """Return messages about what was written."""
        copies = f"{self.copies:,} cop{'y' if self.copies == 1 else 'ies'}"
        return [("info", f"{copies}, {self.bytes:,} bytes, in {output}")]

    def next_step(self, output: Path) -> str:
        """Return how to replay the file."""
        is_wacz = output.name.lower().endswith(".wacz")
        return f"{'open it at https://replayweb.page/, or ' if is_wacz else ''}add it to a collection of pywb"


def export_warc(recovery: Path, output: Path, _options: ExportOptions, progress: ExportProgress) -> ArchiveFileResult:
    """Write a WARC, as an `Exporter`."""
    return write_warc(recovery, output, on_progress=record_progress(progress))


def record_progress(progress: ExportProgress) -> RecordProgress:
    """Return a function that reports each copied record to an `ExportProgress`."""

    def on_record(done: int, total: int) -> None:
        if done == 1:
            progress.on_total(total)
        progress.on_file()

    return on_record


def write_warc(recovery: Path, to: Path, *, on_progress: RecordProgress | None = None) -> ArchiveFileResult:
    """Write the chosen captures of a recovery as one WARC.

    Each record is copied with its gzip member, followed by its metadata record. Records that chosen revisits refer to
    are included; rejected and other captures are not. The digest of every record is verified before it is copied. The
    same recovery yields the same file if it has the same name.

    Args:
        recovery: The folder of the recovery.
        to: Path of the file, which must end in `.warc.gz`. It appears when it is complete.
        on_progress: Receives the numbers of copied records and of all records.

    Raises:
        UsageError: `to` has another extension or is inside the recovery.
        InputError: `to` exists, or the folder has no recovery or nothing in it can be copied.
        OSError: The file cannot be written.
    """
    check_output_path(recovery, to, WARC_EXTENSION)
    result = ArchiveFileResult()
    with AtomicPath(to) as output:
        records = ChosenRecords(recovery, result.problems)
        with output.writing() as file:
            copy_records(records, file.write, to.name, result, on_progress)
            result.bytes = file.tell()
        output.publish_file()
    return result


def check_output_path(recovery: Path, to: Path, extension: str) -> None:
    """Raise UsageError for a name with another extension, or a path inside the folder of WARC files."""
    if not to.name.lower().endswith(extension):
        raise UsageError(f"{to}: expected a name that ends in {extension}")
    if to.parent.resolve() == (recovery / WARC_FOLDER).resolve():
        raise UsageError(f"{to}: that folder belongs to the recovery: give another one")


def copy_records(
    records: ChosenRecords,
    write: Callable[[bytes], object],
    name: str,
    result: ArchiveFileResult,
    on_progress: RecordProgress | None,
    on_record: Callable[[ExportedRecord], object] | None = None,
) -> None:
    """Write a WARC file and update `result`. Raises InputError if nothing could be copied."""
    for count, record in enumerate(records, 1):
        if not result.copies and not result.originals:
            # Dated like the first capture, so that the file is reproducible.
            first = format_warcinfo(encode_value(name), SOFTWARE, record.verified.record.recovered)
            write(b"".join(compress_member([first], len(first))))
        for piece in record.pieces():
            write(piece)
        if record.order is None:
            result.originals += 1
        else:
            result.copies += 1
        if on_record is not None:
            on_record(record)
        if on_progress is not None:
            on_progress(count, records.total)
    if not result.copies:
        raise nothing_readable_error(result.problems)
