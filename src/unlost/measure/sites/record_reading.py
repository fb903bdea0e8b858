"""From the records of archive files to resources: what counts, what does not and why, and what revisits stand for."""

import re
from array import array
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from unlost import dates
from unlost._core import WarcRecord
from unlost.errors import DateError, ForeignSchemeError, UriError
from unlost.formats.digests import normalize_digest
from unlost.formats.problems import Problem, Problems
from unlost.measure.resource import NO_DATE
from unlost.measure.sites.archive_parts import ArchiveFilePart
from unlost.measure.sites.table import ResourceTable
from unlost.uri.naming import page_names

_SHA1_LENGTH = 37  # of `sha1:` and 32 letters, which is how nearly all are written

_DAMAGE_KINDS = ("bad-checksum", "corrupt-gzip", "corrupt-zstd")  # of a member, of which all may be wrong, or nothing
_USUAL_DATE = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ")


class _PendingRevisit(NamedTuple):
    """A copy whose body is to be found elsewhere."""

    name: str
    uri: str
    datetime: int
    mime: str | None
    original: tuple[str, int] | None
    payload: int


class WarcSiteReader:
    """Reads archive files, one after the other, into a table.

    left_out: how many records are no resources, by the reason. problems: what could not be read.
    """

    def __init__(self, *, ignore_case: bool = False) -> None:
        self.table = ResourceTable()
        self.skipped: Counter[str] = Counter()
        self.problems = Problems()
        self._ignore_case = ignore_case
        self._payloads = array("q")  # of the rows: what their headers say of their bytes, hashed; 0 if nothing
        self._names = array("q")  # of the rows, hashed
        self._revisits: list[_PendingRevisit] = []

    def read(self, part: ArchiveFilePart, number: int, on_read: Callable[[int], object] | None = None) -> None:
        """Read one file, which is so many parts behind the first. on_read: gets how far it was read, in bytes.

        Raises OSError.
        """
        scanner = part.open_scanner()
        last: list[WarcRecord] = []  # what is wrong with it may come with the next batch
        while (batch := scanner.next_batch()) is not None:
            records, found = last + batch[0], batch[1]
            last = records[-1:]
            for kind, offset, message in found:
                self.problems.add(Problem(kind, part.name, None, offset, message))
            damaged = {offset for kind, offset, _ in found if kind in _DAMAGE_KINDS}
            self._add_records(records[:-1], damaged, part, number)
            if damaged and last and last[0].offset in damaged:
                self._add_records(last, damaged, part, number)
                last = []
            if on_read is not None:
                on_read(scanner.position)
        self._add_records(last, set(), part, number)
        self.skipped.update(scanner.passed())

    def _add_records(self, records: list[WarcRecord], damaged: set[int], part: ArchiveFilePart, number: int) -> None:
        """Take records, but for those of members that are not as they were written."""
        if damaged:
            whole = [record for record in records if record.offset not in damaged]
            self.skipped["cut"] += len(records) - len(whole)
            records = whole
        names = page_names([record.uri or "" for record in records], ignore_case=self._ignore_case)
        for record, name in zip(records, names, strict=True):
            self._add_record(record, name, part, number)

    def resolve_revisits(self) -> None:
        """Find the bodies of revisits, in all that was read: the record that each names, else one of its digest."""
        if not self._revisits:
            return
        table = self.table
        named = {(name, table.datetime(row)): row for row, name in enumerate(self._names)}
        same = {payload: row for row, payload in enumerate(self._payloads) if payload}
        originals = page_names(
            (each.original[0] if each.original else "" for each in self._revisits), ignore_case=self._ignore_case
        )
        for revisit, original in zip(self._revisits, originals, strict=True):
            row = None
            if revisit.original is not None and isinstance(original, str):
                row = named.get((hash(original), revisit.original[1]))
            if row is None and revisit.payload:
                row = same.get(revisit.payload)
            if row is None:
                self.skipped["revisit-without-body"] += 1
            else:
                self._resolve_revisit(revisit, row)
        self._revisits = []

    def _add_record(self, record: WarcRecord, name: str | UriError, part: ArchiveFilePart, number: int) -> None:
        if isinstance(name, UriError):
            self._skip_url(record, name, part)
            return
        kind, status = record.type, record.status
        reason = skip_reason(status) if kind != "resource" else None
        if kind == "revisit" and status in (None, 304):
            reason = None  # what it stands for has a status
        if reason is not None:
            self.skipped[reason] += 1
            return
        moment = self._parse_date(record, part)
        if kind == "revisit":
            self._add_revisit(record, name, moment)
            return
        body = record.body
        if body is None or body[2] or record.is_short or record.is_truncated:
            self.skipped["cut"] += 1
            return
        changed = record.last_modified
        modified = NO_DATE if changed is None else _http_number(changed)
        place = (number, record.offset, record.skip)
        self.table.add(name, record.uri or "", moment, modified, record.mime, body[0], body[1], None, place)
        self._payloads.append(_payload_number(record.digest))
        self._names.append(hash(name))

    def _skip_url(self, record: WarcRecord, error: UriError, part: ArchiveFilePart) -> None:
        if isinstance(error, ForeignSchemeError):
            self.skipped["foreign-scheme"] += 1
            return
        self.skipped["no-address"] += 1
        kind = "no-uri" if record.uri is None else "bad-uri"
        self.problems.add(Problem(kind, part.name, None, record.offset, str(error)))

    def _parse_date(self, record: WarcRecord, part: ArchiveFilePart) -> int:
        date = record.date or ""
        try:
            return int(dates.pad(date)) if record.is_arc else _iso_number(date)
        except DateError as error:
            self.problems.add(Problem("bad-date", part.name, None, record.offset, str(error)))
            return NO_DATE

    def _add_revisit(self, record: WarcRecord, name: str, moment: int) -> None:
        original = None
        if record.refers_to_uri and record.refers_to_date:
            with suppress(DateError):
                original = (record.refers_to_uri, _iso_number(record.refers_to_date))
        payload = _payload_number(record.digest)
        revisit = _PendingRevisit(name, record.uri or "", moment, record.mime, original, payload)
        row = self.table.row_of(name)
        if original is None and row is not None and payload and self._payloads[row] == payload:
            self._resolve_revisit(revisit, row)  # the same page as before, as most of them are
        else:
            self._revisits.append(revisit)

    def _resolve_revisit(self, revisit: _PendingRevisit, row: int) -> None:
        self.table.add_revisit(row, revisit.name, revisit.uri, revisit.datetime, revisit.mime)
        self._payloads.append(self._payloads[row])
        self._names.append(hash(revisit.name))


def _iso_number(text: str) -> int:
    """Return the date of a record as a number of 14 digits. Raises DateError."""
    if _USUAL_DATE.fullmatch(text):  # the time is one, so only the day is to be looked at
        return _day_number(text[:10]) + int(text[11:13] + text[14:16] + text[17:19])
    return int(dates.from_iso(text))


@lru_cache(maxsize=64)
def _day_number(text: str) -> int:
    return int(dates.from_iso(text))


@lru_cache(maxsize=1024)
def _http_number(text: str) -> int:
    """Return an HTTP date as a number of 14 digits; `NONE` if it is none, since servers write anything."""
    try:
        return int(dates.from_http(text))
    except DateError:
        return NO_DATE


def skip_reason(status: int | None) -> str | None:
    """Return why an answer of this status is no resource; None if it is one.

    >>> [reason_against(status) for status in (200, 204, 301, 304, 404, 503, None, 100)]
    [None, 'no-body', 'redirect', 'not-modified', 'error', 'error', 'no-status', 'no-status']
    """
    if status is None or not 200 <= status < 600:
        return "no-status"
    if status < 300:
        return "no-body" if status in (204, 205) else None
    if status < 400:
        return "not-modified" if status == 304 else "redirect"
    return "error"


def _payload_number(digest: str | None) -> int:
    """Return a number for a digest in whatever spelling; 0 if there is none."""
    if not digest:
        return 0
    if len(digest) == _SHA1_LENGTH and digest.startswith("sha1:"):
        return hash(digest.upper())
    return hash(normalize_digest(digest).upper())
