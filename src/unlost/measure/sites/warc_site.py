"""A site in archive files: WARC, ARC, WACZ, any number of them together."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from unlost._core import WarcBody
from unlost.errors import ArchiveFileError
from unlost.formats.problems import Problems
from unlost.measure.resource import Body, Resource, Resources
from unlost.measure.sites.archive_parts import Part, parts_of
from unlost.measure.sites.record_reading import RecordReading
from unlost.measure.sites.table import Table
from unlost.measure.sites.unpacked import FAR, Unpacked

_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([^\s;,\"']+)", re.IGNORECASE)
_TYPE = re.compile(rb"\ncontent-type[ \t]*:([^\n]*)", re.IGNORECASE)


class WarcSite:
    """A site that was read from archive files: a `Site`."""

    def __init__(
        self,
        table: Table,
        parts: Sequence[Part],
        left_out: Mapping[str, int],
        problems: Problems,
        listed: frozenset[str] = frozenset(),
        requests: int | None = None,
    ) -> None:
        """Take a table whose parts are these."""
        self.resources: Resources = table
        self.listed = listed
        self.requests = requests
        self.left_out = left_out
        self.problems = problems
        self._table = table
        self._parts = parts
        self._unpacked = Unpacked()

    def body(self, resource: Resource, most: int) -> Body:
        """Return the body of one of its resources, at most so many bytes. Raises ArchiveFileError, OSError."""
        number, offset, skip = self._table.place(resource.place)
        part = self._parts[number]
        far = self._unpacked.record(part, offset, skip) if skip > FAR and part.inflated is None else None
        record = far or part.record(offset, skip)
        content, is_cut, is_broken = record.read_undone(most)
        if is_broken and not is_cut:
            raise ArchiveFileError(f"{part.name}: the record at byte {offset} was changed: read it anew")
        return Body(content, _charset(record), is_cut)


def read_parts(
    files: Sequence[Path], *, ignore_case: bool, on_read: Callable[[int], object] | None
) -> tuple[RecordReading, list[Part]]:
    """Read all records of archive files; revisits are not settled yet. Raises ArchiveFileError, OSError."""
    reading = RecordReading(ignore_case=ignore_case)
    parts: list[Part] = []
    before = 0
    for file in files:
        for part in parts_of(file, reading.problems):
            reading.read(part, len(parts), _behind(on_read, before))
            parts.append(part)
        before += file.stat().st_size
    return reading, parts


def read_warcs(
    files: Sequence[Path], *, ignore_case: bool = False, on_read: Callable[[int], object] | None = None
) -> WarcSite:
    """Return the site that archive files hold together. Raises ArchiveFileError, OSError."""
    reading, parts = read_parts(files, ignore_case=ignore_case, on_read=on_read)
    reading.settle()
    return WarcSite(reading.table, parts, dict(reading.left_out), reading.problems)


def _behind(on_read: Callable[[int], object] | None, before: int) -> Callable[[int], object] | None:
    return None if on_read is None else lambda count: on_read(before + count)


def _charset(record: WarcBody) -> str | None:
    """Return what the type of a record's payload says that it is written in."""
    head = record.http_head
    if head is not None:
        found = _TYPE.search(head)
        value = found[1] if found else b""
    else:
        value = next((value for name, value in record.fields if name.lower() == "content-type"), b"")
    charset = _CHARSET.search(value)
    return charset[1].decode("ascii", "replace") if charset else None
