"""From the records of a scanner to captures."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from unlost import dates, uri
from unlost._core import WarcRecord, WarcScanner
from unlost.errors import DateError, ForeignSchemeError, UriError
from unlost.formats.capture import Capture
from unlost.formats.digests import normalize_digest
from unlost.formats.problems import Problem, Problems

# Records that are about the file, and need no address.
_TYPES_WITHOUT_URL = {"warcinfo"}


@dataclass(frozen=True, slots=True)
class CaptureReader:
    """The captures of one archive file.

    scanner: what reads it.
    file: its name in problems.
    filename: its name in captures.
    problems: where problems go.
    wanted: the types of records that are captures.
    tally: gets how many records there are of each type; the scanner must give them all.
    on_read: is told how far the file was read, in bytes from its beginning.
    """

    scanner: WarcScanner
    file: str
    filename: str
    problems: Problems
    record_types: Collection[str]
    type_counts: Counter[str] | None = None
    on_read: Callable[[int], object] | None = None

    def __iter__(self) -> Iterator[Capture]:
        """Yield them in the order of the file."""
        while (batch := self.scanner.next_batch()) is not None:
            records, found = batch
            if self.on_read is not None:
                self.on_read(self.scanner.position)
            for kind, offset, message in found:
                self._report(kind, offset, message)
            if self.type_counts is not None:
                self.type_counts.update(record.type for record in records)
                records = [record for record in records if record.type in self.record_types]
            for record, key in zip(records, uri.key_many(record.uri or "" for record in records), strict=True):
                capture = self._capture(record, key)
                if capture:
                    yield capture

    def _report(self, kind: str, offset: int, message: str) -> None:
        self.problems.add(Problem(kind, self.file, None, offset, message))

    def _capture(self, record: WarcRecord, key: str | UriError) -> Capture | None:
        if record.uri is None and record.type not in _TYPES_WITHOUT_URL:
            self._report("no-uri", record.offset, f"expected a WARC-Target-URI in a {record.type} record, found none")
            return None
        moment = self._parse_date(record, record.date or "")
        if moment is None:
            return None
        if record.uri and isinstance(key, UriError) and not isinstance(key, ForeignSchemeError):
            self._report("bad-uri", record.offset, str(key))
        is_redirect = record.status is not None and 300 <= record.status < 400
        return Capture(
            uri=record.uri or "",
            key=None if isinstance(key, UriError) else key,
            datetime=moment,
            status=record.status,
            mime=record.mime,
            digest=normalize_digest(record.digest) if record.digest else None,
            length=record.length,
            redirect=record.location or None if is_redirect else None,
            revisit=record.type == "revisit",
            revisit_of=self._revisit_of(record),
            filename=self.filename,
            offset=record.offset,
            skip=record.skip or None,
        )

    def _parse_date(self, record: WarcRecord, text: str) -> str | None:
        try:
            return dates.pad(text) if record.is_arc else dates.from_iso(text)
        except DateError as error:
            self._report("bad-date", record.offset, str(error))
            return None

    def _revisit_of(self, record: WarcRecord) -> tuple[str, str] | None:
        if not record.refers_to_uri or not record.refers_to_date:
            return None
        moment = self._parse_date(record, record.refers_to_date)
        return None if moment is None else (record.refers_to_uri, moment)
