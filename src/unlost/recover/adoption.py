"""What the WARCs of a recovery hold that its state does not know: it was killed between the two."""

import os
from collections.abc import Iterator, Mapping

from unlost.errors import InputError
from unlost.formats.warc_writing.folder import WarcFolder
from unlost.formats.warc_writing.kept_record import ForeignRecordError, WrittenRecord
from unlost.formats.warc_writing.members import TruncatedRecordError
from unlost.recover.record import RecoveryRecord
from unlost.recover.warc_records import parse_metadata


def check_known_files(folder: WarcFolder, files: list[str], known: Mapping[str, int]) -> None:
    """Raise InputError if a file that the state knows is not there, or not all of what it knows."""
    for name, end in sorted(known.items()):
        if name not in files:
            raise InputError(f"{folder.path / name}: {_data_loss_message(end, 'not there')}")
        with folder.open_to_read(name) as file:
            size = os.fstat(file).st_size
        if size < end:
            raise InputError(f"{folder.path / name}: {_data_loss_message(end, f'{size}')}")


def _data_loss_message(end: int, found: str) -> str:
    return (
        f"expected at least {end} bytes, found {found}: put back the whole file, or delete state.sqlite, and the same "
        "command reads what is here and asks for the rest again"
    )


def read_records_after(file: int, name: str, start: int) -> Iterator[tuple[RecoveryRecord | None, int]]:
    """Yield the whole records behind a byte of a file, each with where it ends; at the beginning first (None, end).

    What is torn ends it: a record counts only with its metadata behind it, since both are written at once. Raises
    ForeignError for what is whole, but was not written here.
    """
    place, size = start, os.fstat(file).st_size
    while place < size:
        try:
            if place == 0:
                end = _end_of_warcinfo(file)
                yield None, end
            else:
                record, end = _record_at(file, name, place)
                yield record, end
        except TruncatedRecordError:
            return
        place = end


def _end_of_warcinfo(file: int) -> int:
    first = WrittenRecord(file, 0)
    if first.record_type != "warcinfo":
        raise ForeignRecordError
    return first.end()


def _record_at(file: int, name: str, offset: int) -> tuple[RecoveryRecord, int]:
    kept = WrittenRecord(file, offset)
    told_of = kept.fields.get("WARC-Record-ID")
    if kept.record_type not in ("response", "revisit"):
        raise ForeignRecordError
    about = WrittenRecord(file, kept.end())
    if about.record_type != "metadata" or about.fields.get("WARC-Concurrent-To") != told_of:
        raise ForeignRecordError
    block, end = about.block(), about.end()
    try:
        return parse_metadata(block, name, offset, end - offset), end
    except ValueError:
        raise ForeignRecordError from None
