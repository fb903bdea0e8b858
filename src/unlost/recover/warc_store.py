"""Stores captures in the WARCs of a recovery and extracts the links of what is stored."""

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
from unlost.recover import warc_records
from unlost.recover.warc_records import (
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
    """The WARCs of one recovery: a folder with `unlost-00001.warc.gz`, …; one is open at a time.

    docs/recovery-files.md says what is in them. Copies are stored by one thread at a time, of one process: the lock of
    the recovery's state sees to that. They may be opened by any thread, at any time, also before `adopt`.

    folder: is made by `adopt` if it is not there; its parent must be. A link is refused, and so is one in it.
    software: who writes, for the first record of each file.
    max_bytes: how large a file may grow; one that has a single copy may be larger.
    cut: how many bytes `adopt` cut off, torn by a kill or a loss of power.

    Everything it raises is an InputError; a call that raises has kept nothing.
    """

    def __init__(self, folder: Path, clock: Clock, software: str, *, max_bytes: int = 1 << 30) -> None:
        self.truncated_bytes = 0
        self._folder = WarcFolder(folder)
        self._volumes = WarcSegments(self._folder, clock, software, max_bytes)
        self._is_ready = False

    def replay_unknown_records(self, known: Mapping[str, int]) -> Iterator[RecoveryRecord]:
        """Yield every whole record that the state does not know, in order; then cut off what is torn at the end.

        known: for each file, by its final name, up to which byte the state knows its records: offset and size of its
            last one together. Files that the state does not know at all are read from their beginning.

        Exhaust it before anything is stored. Raises InputError for a file that is missing, shorter than what is known
        of it, damaged although it was ended, or not of a recovery.
        """
        self.close()
        self._folder.create()
        files = self._folder.list_segments()
        check_known_files(self._folder, [name for name, _ in files], known)
        for name, is_open in files:
            end = known.get(name, 0)
            has_copies = end > 0
            with self._folder.open_to_read(name) as file, self._explain_foreign_file(name):
                for record, end in read_records_after(file, name, end):  # noqa: B007, B020  the last end is wanted
                    if record is not None:
                        has_copies = True
                        yield record
                size = os.fstat(file).st_size
            self._volumes.skip_to(name)
            if is_open:
                self.truncated_bytes += self._volumes.resume(name, end, has_captures=has_copies)
            elif end < size:
                raise self._damaged_error(name, end)
        self._is_ready = True

    @contextmanager
    def _explain_foreign_file(self, name: str) -> Iterator[None]:
        """Say which file was not written here."""
        try:
            yield
        except ForeignRecordError:
            message = "not a WARC of this recovery: move it away, and the same command goes on"
            raise ArchiveFileError(f"{self._folder.path / name}: {message}") from None

    def _damaged_error(self, name: str, place: int) -> InputError:
        return ArchiveFileError(
            f"{self._folder.path / name}: damaged at byte {place}: put back the whole file, or move it away and delete "
            "state.sqlite: what it had is then asked for again"
        )

    def store(self, copy: FetchedCapture, listed: Capture | None) -> RecoveryRecord:
        """Keep a copy, and return where. Its body is read to its end, and left at its beginning.

        listed: what the archive's index says of it.

        Raises UriError for an address and DateError for a date that no record can have: pass over that copy. Any other
        InputError says that nothing can be written now: the file is as before, and takes more once there is room.
        """
        body = Payload(copy.body)
        length = body.length
        told = copy.capture
        head, left_out = format_http_head(told.status, copy.headers, length, told.mime, told.redirect)
        digest, block = payload_and_block_digests(head, body.pieces())
        capture = replace(told, digest=digest, length=length, revisit=False, revisit_of=None)
        record = self._new_record(capture, listed.digest if listed else None, copy.source, copy.truncated)
        number = warc_records.record_id(record)
        begin = warc_records.response_header(record, number, block, len(head) + length) + head
        text = chain([begin], body.pieces(), [RECORD_END])
        about = warc_records.metadata_record(record, number, left_out)
        kept = self._append(record, text, len(begin) + length, compression_level(capture.mime), about)
        copy.body.seek(0)
        return kept

    def store_revisit(self, capture: Capture, original_record: RecoveryRecord) -> RecoveryRecord:
        """Keep a capture whose body is known, from an index, to be that of a record here; return where.

        What the index does not tell of it is taken to be as in that record. Raises as `store` does, and
        ArchiveFileError if the record is not there any more.
        """
        before = original_record.capture
        original = find_original(self._folder, original_record)
        status = before.status if capture.status is None else capture.status
        same = replace(
            capture,
            status=status,
            mime=before.mime if capture.mime is None else capture.mime,
            redirect=before.redirect if capture.redirect is None and status == before.status else capture.redirect,
            digest=before.digest,
            length=before.length,
            revisit=True,
            revisit_of=before.revisit_of or (before.uri, before.datetime),
        )
        record = self._new_record(same, capture.digest, original_record.source, original_record.truncated)
        # A head of its own only where the index knows better: that of the original has all headers.
        is_as_before = (status, same.mime, same.redirect) == (before.status, before.mime, before.redirect)
        head = b"" if is_as_before else format_http_head(status, (), None, same.mime, same.redirect)[0]
        number = warc_records.record_id(record)
        text = warc_records.revisit_header(record, number, original, payload_and_block_digests(head, ())[1], len(head))
        text += head + RECORD_END
        return self._append(
            record, [text], len(text), TEXT_COMPRESSION_LEVEL, warc_records.metadata_record(record, number, 0)
        )

    def _new_record(
        self, capture: Capture, listed_digest: str | None, source: str | None, truncated: str | None
    ) -> RecoveryRecord:
        """Return a record that has no place yet."""
        return RecoveryRecord(capture, listed_digest, source, truncated, self._volumes.now(), "", 0, 0)

    def _append(
        self, record: RecoveryRecord, text: Iterable[bytes], size: int, level: int, about: bytes
    ) -> RecoveryRecord:
        """Append a record of so many bytes, and the one about it, as one; return it with its place."""
        if not self._is_ready:
            raise RuntimeError("exhaust `adopt` before anything is stored")
        members = chain(compress_member(text, size, level), compress_member([about], len(about)))
        file, offset, kept = self._volumes.append(members, size + len(about))
        return replace(record, file=file, offset=offset, size=kept)

    def open(self, record: RecoveryRecord) -> FetchedCapture:
        """Return what was stored; of a revisit, with the body of the record that it refers to.

        Its headers come as they are kept: docs/recovery-files.md says what cannot be. Raises ArchiveFileError, or
        another InputError, if the record is not there any more, or not as it was.
        """
        return open_capture(self._folder, record)

    def file_size(self, name: str) -> int:
        """Return how many bytes a file has, by its final name. Raises InputError if it is not there."""
        with self._folder.open_to_read(name) as file:
            return os.fstat(file).st_size

    def sync(self) -> None:
        """Return when everything that was stored is on the disk: after that, a loss of power takes none of it."""
        self._volumes.sync()

    def close(self) -> None:
        """End the open file: it gets its final name. The next copy would begin another one."""
        self._volumes.close()


_MAX_READ = 32 << 20  # bytes: more are not read for links anyway
_CODING_HEADERS = tuple(
    prefix + name for prefix in ("", "x-archive-orig-") for name in ("content-encoding", "transfer-encoding")
)
_MAX_CLASSIFIED = 512 << 10  # bytes: longer pages are judged by their beginning
_HTML = re.compile(rb"\s*<(!doctype\s+html|html)", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StoredCapture:
    """What became of a copy.

    size: of its body, in bytes. links: those in it, resolved.
    is_as_listed: whether it has the digest that its archive's index gives; None if nobody can tell.
    page: what it says, to be judged, if it is HTML; None if it is not.
    candidates: URLs that scripts in it may request.
    """

    record: RecoveryRecord
    size: int
    links: list[Link]
    matches_listed_digest: bool | None
    page: PageResponse | None
    script_urls: list[str]


def store_capture(warcs: WarcStore, copy: FetchedCapture, listed: Capture | None) -> StoredCapture:
    """Store a copy and read its links. It waits for the disk: call it in a thread, one at a time. Raises OSError."""
    size = copy.body.seek(0, os.SEEK_END)
    copy.body.seek(0)
    record = warcs.store(copy, listed)
    return _read_stored(record, size, copy)


def store_revisit(warcs: WarcStore, capture: Capture, of: RecoveryRecord) -> StoredCapture:
    """Store that a capture has the same bytes as a record, and read the links in them. As `keep`."""
    record = warcs.store_revisit(capture, of)
    return load_stored(warcs, record)


def load_stored(warcs: WarcStore, record: RecoveryRecord) -> StoredCapture:
    """Read the links of a record that was stored before."""
    copy = warcs.open(record)
    with copy.body:
        size = copy.body.seek(0, os.SEEK_END)
        return _read_stored(record, size, copy)


def stored_redirect(record: RecoveryRecord) -> StoredCapture:
    """Return a record that was stored before, without what is in it: a redirect."""
    return StoredCapture(record, 0, [], None, None, [])


def _matches_listed_digest(copy: FetchedCapture, record: RecoveryRecord) -> bool | None:
    """Indexes have the digest of what was sent, in whatever codings; a body of another digest was cut, most likely."""
    listed = record.listed_digest
    if listed is None or record.capture.revisit or any(copy.header(name) for name in _CODING_HEADERS):
        return None
    # That of the record is SHA-1, as nearly every index has it: then it need not be computed again.
    return listed == record.capture.digest or matches_digest(copy.body, listed)


def _read_stored(record: RecoveryRecord, size: int, copy: FetchedCapture) -> StoredCapture:
    is_as_listed = _matches_listed_digest(copy, record)
    copy.body.seek(0)
    body, capture = copy.body.read(_MAX_READ), copy.capture
    if capture.migrated:  # what is kept stays as it came; what it says, and where it leads, is the page's own
        body = remove_archive_toolbar(body, copy.source or capture.urim or "").body
    told = _CHARSET.search(copy.header("content-type") or "")
    charset = told[1] if told else None
    found = extract_links(body, capture.mime, capture.uri, charset)
    page = None
    is_html = _is_html(capture.mime, body)
    if is_html:
        shown = body[:_MAX_CLASSIFIED]
        page = PageResponse(capture.uri, capture.datetime, capture.status, "text/html", shown, copy.headers, charset)
    guesses = find_script_urls(body, capture.mime, capture.uri, is_html=is_html, charset=charset)
    return StoredCapture(record, size, found, is_as_listed, page, guesses)


def _is_html(mime: str | None, body: bytes) -> bool:
    """Return whether a body is a page: also one that stands in the place of an image or a style sheet."""
    return "html" in (mime or "").lower() or _HTML.match(body, 0, 512) is not None
