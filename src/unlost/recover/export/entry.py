"""One resource that is to become a file, and many of them, kept out of memory."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from unlost.formats.capture import Capture
from unlost.recover.record import RecoveryRecord


@dataclass(frozen=True, slots=True)
class ContentEntry:
    """A resource.

    name: as `naming` has it. record: of the copy that was chosen. mime: its true type; None if nobody knows.
    """

    name: str
    record: RecoveryRecord
    mime: str | None


class ContentSpool:
    """Entries in a temporary file, which take no memory; in their order. Use it as a context manager.

    Raises OSError where the disk of temporary files is full.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile("w+", encoding="utf-8", errors="surrogatepass", newline="\n")  # noqa: SIM115
        self._count = 0

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Forget all."""
        self._file.close()

    def __len__(self) -> int:
        """Return how many there are."""
        return self._count

    def add(self, entry: ContentEntry) -> None:
        """Keep one more."""
        record, capture = entry.record, entry.record.capture
        of_capture = (
            capture.uri, None, capture.datetime, capture.status, capture.mime, capture.digest, capture.length,
            capture.redirect, capture.archive, capture.urim, capture.migrated, capture.revisit, capture.revisit_of,
        )  # fmt: skip
        of_record = (
            record.listed_digest, record.source, record.truncated, record.recovered, record.file, record.offset,
            record.size,
        )  # fmt: skip
        self._file.write(json.dumps((entry.name, of_capture, of_record, entry.mime)) + "\n")
        self._count += 1

    def __iter__(self) -> Iterator[ContentEntry]:
        """Yield all of them; nothing may be added meanwhile."""
        self._file.seek(0)
        for line in self._file:
            name, of_capture, of_record, mime = json.loads(line)
            of_capture[-1] = None if of_capture[-1] is None else tuple(of_capture[-1])
            capture = Capture(*of_capture)
            yield ContentEntry(name, RecoveryRecord(capture, *of_record), mime)
