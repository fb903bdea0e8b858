"""A site in archive files: WARC, ARC, WACZ, any number of them together."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from unlost._core import WarcBody
from unlost.errors import ArchiveFileError
from unlost.formats.problems import Problems
from unlost.measure.resource import ResourceBody, SiteResource, SiteResources
from unlost.measure.sites.archive_parts import ArchiveFilePart, list_archive_parts
from unlost.measure.sites.record_reading import WarcSiteReader
from unlost.measure.sites.table import ResourceTable
from unlost.measure.sites.unpacked import FAR_OFFSET, InflatedMemberCache

_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([^\s;,\"']+)", re.IGNORECASE)
_TYPE = re.compile(rb"\ncontent-type[ \t]*:([^\n]*)", re.IGNORECASE)


class WarcSite:
    """A site that was read from archive files: a `Site`."""

    def __init__(
        self,
        table: ResourceTable,
        parts: Sequence[ArchiveFilePart],
        skipped: Mapping[str, int],
        problems: Problems,
        listed: frozenset[str] = frozenset(),
        requests: int | None = None,
    ) -> None:
        """Take a table whose parts are these."""
        self.resources: SiteResources = table
        self.listed = listed
        self.requests = requests
        self.skipped = skipped
        self.problems = problems
        self._table = table
        self._parts = parts
        self._unpacked = InflatedMemberCache()

    def read_body(self, resource: SiteResource, max_bytes: int) -> ResourceBody:
        """Return the body of one of its resources, at most so many bytes. Raises ArchiveFileError, OSError."""
        number, offset, skip = self._table.locate(resource.place)
        part = self._parts[number]
        far = (
            self._unpacked.open_record(part, offset, skip)
            if skip > FAR_OFFSET and part.inflated_length is None
            else None
        )
        record = far or part.open_record(offset, skip)
        content, is_cut, is_broken = record.read_undone(max_bytes)
        if is_broken and not is_cut:
            raise ArchiveFileError(f"{part.name}: the record at byte {offset} was changed: read it anew")
        return ResourceBody(content, _record_charset(record), is_cut)


def read_parts(
    files: Sequence[Path], *, ignore_case: bool, on_read: Callable[[int], object] | None
) -> tuple[WarcSiteReader, list[ArchiveFilePart]]:
    """Read all records of archive files; revisits are not settled yet. Raises ArchiveFileError, OSError."""
    reading = WarcSiteReader(ignore_case=ignore_case)
    parts: list[ArchiveFilePart] = []
    before = 0
    for file in files:
        for part in list_archive_parts(file, reading.problems):
            reading.read(part, len(parts), _offset_progress(on_read, before))
            parts.append(part)
        before += file.stat().st_size
    return reading, parts


def read_warcs(
    files: Sequence[Path], *, ignore_case: bool = False, on_read: Callable[[int], object] | None = None
) -> WarcSite:
    """Return the site that archive files hold together. Raises ArchiveFileError, OSError."""
    reading, parts = read_parts(files, ignore_case=ignore_case, on_read=on_read)
    reading.resolve_revisits()
    return WarcSite(reading.table, parts, dict(reading.skipped), reading.problems)


def _offset_progress(on_read: Callable[[int], object] | None, before: int) -> Callable[[int], object] | None:
    return None if on_read is None else lambda count: on_read(before + count)


def _record_charset(record: WarcBody) -> str | None:
    """Return what the type of a record's payload says that it is written in."""
    head = record.http_head
    if head is not None:
        found = _TYPE.search(head)
        value = found[1] if found else b""
    else:
        value = next((value for name, value in record.fields if name.lower() == "content-type"), b"")
    charset = _CHARSET.search(value)
    return charset[1].decode("ascii", "replace") if charset else None
