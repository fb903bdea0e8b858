"""What the WARCs of a recovery hold that its state does not know: it was killed between the two."""

import os
from collections.abc import Iterator, Mapping

from unlost.errors import InputError
from unlost.formats.warc_writing.folder import WarcFolder
from unlost.formats.warc_writing.kept_record import ForeignError, KeptRecord
from unlost.formats.warc_writing.members import TornError
from unlost.recover.record import Record
from unlost.recover.warc_records import record_of


def check_known(folder: WarcFolder, files: list[str], known: Mapping[str, int]) -> None:
    """Raise InputError if a file that the state knows is not there, or not all of what it knows."""
    for name, end in sorted(known.items()):
        if name not in files:
            raise InputError(f"{folder.path / name}: {_lost(end, 'not there')}")
        with folder.reading(name) as file:
            size = os.fstat(file).st_size
        if size < end:
            raise InputError(f"{folder.path / name}: {_lost(end, f'{size}')}")


def _lost(end: int, found: str) -> str:
    return (
        f"expected at least {end} bytes, found {found}: put back the whole file, or delete state.sqlite, and the same "
        "command reads what is here and asks for the rest again"
    )


def records_behind(file: int, name: str, start: int) -> Iterator[tuple[Record | None, int]]:
    """Yield the whole records behind a byte of a file, each with where it ends; at the beginning first (None, end).

    What is torn ends it: a record counts only with its metadata behind it, since both are written at once. Raises
    ForeignError for what is whole, but was not written here.
    """
    place, size = start, os.fstat(file).st_size
    while place < size:
        try:
            if place == 0:
                end = _after_warcinfo(file)
                yield None, end
            else:
                record, end = _record_at(file, name, place)
                yield record, end
        except TornError:
            return
        place = end


def _after_warcinfo(file: int) -> int:
    first = KeptRecord(file, 0)
    if first.kind != "warcinfo":
        raise ForeignError
    return first.end()


def _record_at(file: int, name: str, offset: int) -> tuple[Record, int]:
    kept = KeptRecord(file, offset)
    told_of = kept.fields.get("WARC-Record-ID")
    if kept.kind not in ("response", "revisit"):
        raise ForeignError
    about = KeptRecord(file, kept.end())
    if about.kind != "metadata" or about.fields.get("WARC-Concurrent-To") != told_of:
        raise ForeignError
    block, end = about.block(), about.end()
    try:
        return record_of(block, name, offset, end - offset), end
    except ValueError:
        raise ForeignError from None
