"""WACZ files: captures of all WARCs in the ZIP file, and single records, without unpacking to disk."""

import struct
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import SEEK_END, PathLike
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from unlost._core import WarcBody, WarcScanner
from unlost.capture import Capture
from unlost.errors import ArchiveFileError
from unlost.problems import Problem, Problems
from unlost.warc.reader import CAPTURE_RECORD_TYPES, CaptureReader, StoredRecord, wrap_record

_WACZ_ARCHIVE_FOLDER = "archive/"
_ARCHIVE_SUFFIXES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz")

# The ZIP's central directory is held in memory. The largest collections published as one WACZ have some thousand WARCs.
_MAX_MEMBERS = 100_000
_MAX_DIRECTORY_BYTES = 16 << 20  # `_MAX_MEMBERS` members with names of a hundred bytes
# Structures of the ZIP format (APPNOTE.TXT), of which only the fields that are needed are unpacked.
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, length of the name, length of the extra field
_DIRECTORY_END = struct.Struct("<12xI6x")  # size of the central directory
_DIRECTORY_END_64 = struct.Struct("<40xQ8x")  # the same in ZIP64
_LOCATOR_64_BYTES = 20
_MAX_COMMENT_BYTES = (1 << 16) - 1  # its length has 16 bits
_ENCRYPTED = 1  # bit 0 of the general purpose flags


def read_wacz_captures(
    path: str | PathLike[str],
    problems: Problems,
    *,
    record_types: Iterable[str] = CAPTURE_RECORD_TYPES,
    compute_digests: bool = True,
    type_counts: Counter[str] | None = None,
    on_read: Callable[[int], object] | None = None,
) -> Iterator[Capture]:
    """Yield the captures of every WARC in a WACZ, in the order of the ZIP's directory.

    `filename` is without `archive/`, as in the indexes of WACZ files; offsets are relative to the WARC. Nothing is
    unpacked to disk, and only the ZIP's directory is held in memory. Unreadable members (encrypted, with an unknown
    compression or an unsafe name) are problems of kind `bad-member`. Arguments are those of
    `unlost.warc.reader.read_warc_captures`.

    Raises:
        ArchiveFileError: The file is not a ZIP file, or is crafted to exhaust memory.
        OSError: The file cannot be read.

    >>> list(read_wacz_captures("no.wacz", Problems()))
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'no.wacz'
    """
    types = list(record_types)
    for member in list_wacz_members(path, problems):
        scanned_types = types if type_counts is None else None
        scanner = WarcScanner(path, compute_digests, scanned_types, member.start, member.length, member.inflated_length)
        name, filename = f"{path}/{member.filename}", member.filename.removeprefix(_WACZ_ARCHIVE_FOLDER)
        yield from CaptureReader(scanner, name, filename, problems, types, type_counts, on_read)


@dataclass(frozen=True, slots=True)
class WaczArchiveFile:
    """An archive file in a WACZ.

    Attributes:
        filename: Name in the ZIP.
        start: Offset of its data in the ZIP.
        length: Stored size in bytes.
        inflated_length: Size after decompression if it is deflated; None if it is stored.
    """

    filename: str
    start: int
    length: int
    inflated_length: int | None


def list_wacz_members(path: str | PathLike[str], problems: Problems) -> list[WaczArchiveFile]:
    """Return the archive files in a WACZ, in the order of its directory; unreadable ones are `bad-member` problems.

    Raises ArchiveFileError and OSError as `read_wacz_captures` does.
    """
    archive_files = []
    with Path(path).open("rb") as file:
        for member in _read_members(file, str(path)):
            try:
                start = _data_offset(file, member)
            except _MemberError as error:
                name = f"{path}/{member.filename}"
                problems.add(Problem("bad-member", name, None, member.header_offset, str(error)))
                continue
            inflated = member.file_size if member.compress_type == zipfile.ZIP_DEFLATED else None
            archive_files.append(WaczArchiveFile(member.filename, start, member.compress_size, inflated))
    return archive_files


def check_wacz_directory(path: str | PathLike[str]) -> None:
    """Raise ArchiveFileError if a file is not a valid WACZ, OSError if it cannot be read."""
    with Path(path).open("rb") as file:
        _read_members(file, str(path))


def open_wacz_record(path: str | PathLike[str], filename: str, offset: int, skip: int = 0) -> StoredRecord:
    """Open a record of a WARC in a WACZ.

    The WARC must be stored uncompressed in the ZIP, as the WACZ specification demands: an offset in a deflated member
    cannot be found without reading everything before it.

    Args:
        path: The WACZ.
        filename: Name of the WARC, as in captures.
        offset: Offset in the WARC, as in captures.
        skip: As in `unlost.warc.reader.open_warc_record`.

    Raises:
        ArchiveFileError: The WARC is missing, deflated or unreadable, or has no record at the offset.
        OSError: The file cannot be read.

    >>> open_wacz_record("no.wacz", "a.warc.gz", 0)
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'no.wacz'
    """
    with Path(path).open("rb") as file:
        member_name = _WACZ_ARCHIVE_FOLDER + filename
        member = next((each for each in _read_members(file, str(path)) if each.filename == member_name), None)
        if member is None:
            raise ArchiveFileError(f"{path}: expected a member {ascii(member_name)[:100]}, found none")
        name = f"{path}/{member_name}"
        try:
            start = _data_offset(file, member)
        except _MemberError as error:
            raise ArchiveFileError(f"{name}: {error}") from None
    if member.compress_type != zipfile.ZIP_STORED:
        raise ArchiveFileError(
            f"{name}: expected a member stored as it is, found a deflated one: take the WARC out of the ZIP to read it"
        )
    return wrap_record(WarcBody.open(path, offset, skip, start, member.compress_size), name, offset)


class _MemberError(Exception):
    """A member cannot be read; the message says why. Internal."""


def _read_members(file: BinaryIO, name: str) -> list[zipfile.ZipInfo]:
    """Return the archive files of a ZIP. Raises ArchiveFileError for overlapping members, which only ZIP bombs have."""
    if _directory_bytes(file) > _MAX_DIRECTORY_BYTES:
        raise ArchiveFileError(
            f"{name}: expected a directory of at most {_MAX_DIRECTORY_BYTES} bytes, found a larger one"
        )
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, UnicodeDecodeError) as error:
        raise ArchiveFileError(f"{name}: expected a WACZ, which is a ZIP file: {error}") from None
    if len(members) > _MAX_MEMBERS:
        raise ArchiveFileError(f"{name}: expected at most {_MAX_MEMBERS} members, found {len(members)}")
    end = 0
    for member in sorted(members, key=lambda member: member.header_offset):
        if member.header_offset < end:
            raise ArchiveFileError(f"{name}: expected members side by side, found overlapping ones")
        end = member.header_offset + _LOCAL_HEADER.size + member.compress_size
    return [member for member in members if _is_archive_member(member)]


def _directory_bytes(file: BinaryIO) -> int:
    """Return the declared size of the ZIP's directory, which is read completely; 0 if there is none."""
    size = file.seek(0, SEEK_END)
    file.seek(max(size - _DIRECTORY_END.size - _MAX_COMMENT_BYTES - _LOCATOR_64_BYTES - _DIRECTORY_END_64.size, 0))
    tail = file.read()
    lengths = [0]
    # A comment may contain the signature, too; the largest size counts, whichever record is used.
    end = tail.find(b"PK\5\6")
    while end >= 0:
        if end + _DIRECTORY_END.size <= len(tail):
            lengths += _DIRECTORY_END.unpack_from(tail, end)
        large = end - _LOCATOR_64_BYTES - _DIRECTORY_END_64.size
        if large >= 0 and tail[large:].startswith(b"PK\6\6"):
            lengths += _DIRECTORY_END_64.unpack_from(tail, large)
        end = tail.find(b"PK\5\6", end + 1)
    # A size beyond that of the file is the ZIP64 placeholder (0xFFFFFFFF), or the file is not a ZIP.
    return max(length for length in lengths if length <= size)


def _is_archive_member(member: zipfile.ZipInfo) -> bool:
    return _WACZ_ARCHIVE_FOLDER in member.filename and member.filename.lower().endswith(_ARCHIVE_SUFFIXES)


def _data_offset(file: BinaryIO, member: zipfile.ZipInfo) -> int:
    """Return the offset of a member's data, after the local header, which has a variable length."""
    path = PurePosixPath(member.filename)
    if not member.filename.startswith(_WACZ_ARCHIVE_FOLDER) or ".." in path.parts or "\\" in member.filename:
        raise _MemberError("expected a name below `archive/`, found one that leads elsewhere")
    if member.flag_bits & _ENCRYPTED:
        raise _MemberError("expected a readable member, found an encrypted one")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _MemberError(f"expected a stored or deflated member, found compression {member.compress_type}")
    if not 0 <= member.header_offset < 1 << 63:
        raise _MemberError("expected a member of the ZIP, found a place that no file has")
    file.seek(member.header_offset)
    header = file.read(_LOCAL_HEADER.size)
    if len(header) < _LOCAL_HEADER.size or header[:4] != b"PK\x03\x04":
        raise _MemberError("expected a member of the ZIP, found something else")
    _, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)
    return member.header_offset + _LOCAL_HEADER.size + int(name_bytes) + int(extra_bytes)
