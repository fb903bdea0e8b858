"""Stores captures in the WARC files of a recovery and extracts the links of what is stored."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from unlost.archives.base import FetchedCapture
from unlost.capture import Capture, matches_digest
from unlost.clock import Clock
from unlost.errors import ArchiveFileError, InputError
from unlost.html.archive_toolbar import remove_archive_toolbar
from unlost.html.links import Link, extract_links, find_script_urls
from unlost.quality import PageResponse
from unlost.recovery import warc_records
from unlost.recovery.warc_records import (
    RecoveryRecord,
    check_known_files,
    find_original,
    open_capture,
    read_records_after,
)
from unlost.warc.records import (
    RECORD_END,
    TEXT_COMPRESSION_LEVEL,
    ForeignRecordError,
    Payload,
    compress_member,
    compression_level,
    format_http_head,
    payload_and_block_digests,
)
from unlost.warc.writer import WarcFolder, WarcSegments


class WarcStore:
    """The WARC files of one recovery: a folder with `unlost-00001.warc.gz` and so on, one of which is open at a time.

    docs/recovery-files.md describes the format. Only one thread of one process may store captures at a time; the lock
    of the recovery's database ensures this for processes. Any thread may open stored captures at any time, also before
    `replay_unknown_records`. All errors are InputError; a call that raises has stored nothing.

    Args:
        folder: The folder; `replay_unknown_records` creates it if necessary, its parent must exist. Symbolic links are
            refused, also inside it.
        clock: The source of time.
        software: The software named in the warcinfo record of each file.
        max_bytes: Maximum size of a file. A file with a single capture may be larger.

    Attributes:
        truncated_bytes: Bytes of incomplete records that `replay_unknown_records` removed after a crash.
    """

    def __init__(self, folder: Path, clock: Clock, software: str, *, max_bytes: int = 1 << 30) -> None:
        self.truncated_bytes = 0
        self._folder = WarcFolder(folder)
        self._segments = WarcSegments(self._folder, clock, software, max_bytes)
        self._is_ready = False

    def replay_unknown_records(self, known: Mapping[str, int]) -> Iterator[RecoveryRecord]:
        """Yield every complete record that the database does not know, in order; then remove an incomplete last one.

        Exhaust the iterator before storing anything.

        Args:
            known: For each file, by its final name, the offset at which its last known record ends. Unknown files are
                read from the beginning.

        Raises:
            InputError: A file is missing, shorter than `known`, damaged although complete, or not part of a recovery.
        """
        self.close()
        self._folder.create()
        files = self._folder.list_segments()
        check_known_files(self._folder, [name for name, _ in files], known)
        for name, is_open in files:
            end = known.get(name, 0)
            has_captures = end > 0
            with self._folder.open_to_read(name) as file, self._explain_foreign_file(name):
                for record, end in read_records_after(file, name, end):  # noqa: B007, B020  the last end is wanted
                    if record is not None:
                        has_captures = True
                        yield record
                size = os.fstat(file).st_size
            self._segments.skip_to(name)
            if is_open:
                self.truncated_bytes += self._segments.resume(name, end, has_captures=has_captures)
            elif end < size:
                raise self._damaged_error(name, end)
        self._is_ready = True

    @contextmanager
    def _explain_foreign_file(self, name: str) -> Iterator[None]:
        """Translate ForeignRecordError into an error that names the file."""
        try:
            yield
        except ForeignRecordError:
            message = "not a WARC of this recovery: move it away, and the same command goes on"
            raise ArchiveFileError(f"{self._folder.path / name}: {message}") from None

    def _damaged_error(self, name: str, offset: int) -> InputError:
        return ArchiveFileError(
            f"{self._folder.path / name}: damaged at byte {offset}: put back the whole file, or move it away and "
            "delete state.sqlite: what it had is then asked for again"
        )

    def store(self, fetched: FetchedCapture, listed: Capture | None) -> RecoveryRecord:
        """Store a capture. Its body is read to the end, then rewound.

        Args:
            fetched: The capture with headers and body.
            listed: The capture as in the archive's index.

        Returns:
            The record with its location.

        Raises:
            UriError: No record can have this URL; skip the capture.
            DateError: No record can have this date; skip the capture.
            InputError: The record cannot be written (disk full). The file is unchanged and remains usable.
        """
        body = Payload(fetched.body)
        length = body.length
        capture_fetched = fetched.capture
        head, omitted = format_http_head(
            capture_fetched.status, fetched.headers, length, capture_fetched.mime, capture_fetched.redirect
        )
        digest, block = payload_and_block_digests(head, body.pieces())
        capture = replace(capture_fetched, digest=digest, length=length, revisit=False, revisit_of=None)
        record = self._new_record(capture, listed.digest if listed else None, fetched.source, fetched.truncated)
        record_id = warc_records.record_id(record)
        head_block = warc_records.response_header(record, record_id, block, len(head) + length) + head
        pieces = chain([head_block], body.pieces(), [RECORD_END])
        metadata = warc_records.metadata_record(record, record_id, omitted)
        stored = self._append(record, pieces, len(head_block) + length, compression_level(capture.mime), metadata)
        fetched.body.seek(0)
        return stored

    def store_revisit(self, capture: Capture, original_record: RecoveryRecord) -> RecoveryRecord:
        """Store a capture whose body is known from an index to be that of an existing record.

        Fields that the index lacks are copied from that record.

        Raises:
            ArchiveFileError: The original record no longer exists.
            InputError: As `store`.
        """
        original_capture = original_record.capture
        original = find_original(self._folder, original_record)
        status = original_capture.status if capture.status is None else capture.status
        revisit = replace(
            capture,
            status=status,
            mime=original_capture.mime if capture.mime is None else capture.mime,
            redirect=original_capture.redirect
            if capture.redirect is None and status == original_capture.status
            else capture.redirect,
            digest=original_capture.digest,
            length=original_capture.length,
            revisit=True,
            revisit_of=original_capture.revisit_of or (original_capture.uri, original_capture.datetime),
        )
        record = self._new_record(revisit, capture.digest, original_record.source, original_record.truncated)
        # Without a block, the headers of the original apply (WARC 1.1, section 6.7.2). They are written only if the
        # index differs from the original.
        is_as_before = (status, revisit.mime, revisit.redirect) == (
            original_capture.status,
            original_capture.mime,
            original_capture.redirect,
        )
        head = b"" if is_as_before else format_http_head(status, (), None, revisit.mime, revisit.redirect)[0]
        record_id = warc_records.record_id(record)
        block = warc_records.revisit_header(
            record, record_id, original, payload_and_block_digests(head, ())[1], len(head)
        )
        block += head + RECORD_END
        return self._append(
            record, [block], len(block), TEXT_COMPRESSION_LEVEL, warc_records.metadata_record(record, record_id, 0)
        )

    def _new_record(
        self, capture: Capture, listed_digest: str | None, source: str | None, truncated: str | None
    ) -> RecoveryRecord:
        """Return a record without a location."""
        return RecoveryRecord(capture, listed_digest, source, truncated, self._segments.now(), "", 0, 0)

    def _append(
        self, record: RecoveryRecord, pieces: Iterable[bytes], size: int, level: int, metadata: bytes
    ) -> RecoveryRecord:
        """Append a record and its metadata record; return the record with its location.

        One write has both, so that a metadata record proves that the record before it is complete.
        """
        if not self._is_ready:
            raise RuntimeError("exhaust `replay_unknown_records` before anything is stored")
        members = chain(compress_member(pieces, size, level), compress_member([metadata], len(metadata)))
        file, offset, written = self._segments.append(members, size + len(metadata))
        return replace(record, file=file, offset=offset, size=written)

    def open(self, record: RecoveryRecord) -> FetchedCapture:
        """Return a stored capture; a revisit has the body of the record that it refers to.

        docs/recovery-files.md lists the headers that cannot be stored.

        Raises:
            ArchiveFileError: The record no longer exists or was changed.
            InputError: The file cannot be read.
        """
        return open_capture(self._folder, record)

    def file_size(self, name: str) -> int:
        """Return the size of a file in bytes, by its final name. Raises InputError if it does not exist."""
        with self._folder.open_to_read(name) as file:
            return os.fstat(file).st_size

    def sync(self) -> None:
        """Flush everything stored to disk (fsync)."""
        self._segments.sync()

    def close(self) -> None:
        """Close the open file and give it its final name. The next capture starts a new one."""
        self._segments.close()


_MAX_READ = 32 << 20  # bytes of a body; the link scanner reads no more
_CODING_HEADERS = tuple(
    prefix + name for prefix in ("", "x-archive-orig-") for name in ("content-encoding", "transfer-encoding")
)
_MAX_CLASSIFIED = 512 << 10  # bytes; longer pages are classified by their beginning
_HTML = re.compile(rb"\s*<(!doctype\s+html|html)", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StoredCapture:
    """A stored capture, its links, and its page for classification.

    Attributes:
        record: The record.
        size: Size of the body in bytes.
        links: Links in the body, resolved.
        matches_listed_digest: Whether the body has the digest in the archive's index; None if unknown.
        page: The page to classify, if the body is HTML; otherwise None.
        script_urls: URLs that scripts in the body may request.
    """

    record: RecoveryRecord
    size: int
    links: list[Link]
    matches_listed_digest: bool | None
    page: PageResponse | None
    script_urls: list[str]


def store_capture(warcs: WarcStore, fetched: FetchedCapture, listed: Capture | None) -> StoredCapture:
    """Store a capture and extract its links. Blocks on disk I/O: call it in a thread, one at a time."""
    size = fetched.body.seek(0, os.SEEK_END)
    fetched.body.seek(0)
    record = warcs.store(fetched, listed)
    return _read_stored(record, size, fetched)


def store_revisit(warcs: WarcStore, capture: Capture, original: RecoveryRecord) -> StoredCapture:
    """Store a capture as a revisit of a record and extract the links of that. Blocks as `store_capture`."""
    record = warcs.store_revisit(capture, original)
    return load_stored(warcs, record)


def load_stored(warcs: WarcStore, record: RecoveryRecord) -> StoredCapture:
    """Load a stored record and extract its links."""
    fetched = warcs.open(record)
    with fetched.body:
        size = fetched.body.seek(0, os.SEEK_END)
        return _read_stored(record, size, fetched)


def stored_redirect(record: RecoveryRecord) -> StoredCapture:
    """Return a stored redirect without its content."""
    return StoredCapture(record, 0, [], None, None, [])


def _matches_listed_digest(fetched: FetchedCapture, record: RecoveryRecord) -> bool | None:
    """Return whether the body has the digest in the index, or None if they cannot be compared.

    The index has the digest of the body as sent, with content and transfer codings; stored bodies are decoded.
    """
    listed = record.listed_digest
    if listed is None or record.capture.revisit or any(fetched.header(name) for name in _CODING_HEADERS):
        return None
    # Both are usually SHA-1, so that nothing has to be computed.
    return listed == record.capture.digest or matches_digest(fetched.body, listed)


def _read_stored(record: RecoveryRecord, size: int, fetched: FetchedCapture) -> StoredCapture:
    matches_listed_digest = _matches_listed_digest(fetched, record)
    fetched.body.seek(0)
    body, capture = fetched.body.read(_MAX_READ), fetched.capture
    if capture.migrated:  # the stored body is unchanged; links and text are those of the original page
        body = remove_archive_toolbar(body, fetched.source or capture.urim or "").body
    match = _CHARSET.search(fetched.header("content-type") or "")
    charset = match[1] if match else None
    links = extract_links(body, capture.mime, capture.uri, charset)
    page = None
    is_html = _is_html(capture.mime, body)
    if is_html:
        beginning = body[:_MAX_CLASSIFIED]
        page = PageResponse(
            capture.uri, capture.datetime, capture.status, "text/html", beginning, fetched.headers, charset
        )
    script_urls = find_script_urls(body, capture.mime, capture.uri, is_html=is_html, charset=charset)
    return StoredCapture(record, size, links, matches_listed_digest, page, script_urls)


def _is_html(mime: str | None, body: bytes) -> bool:
    """Return whether a body is HTML, even if its media type is that of an image or a style sheet."""
    return "html" in (mime or "").lower() or _HTML.match(body, 0, 512) is not None
