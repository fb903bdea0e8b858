"""Stores crawled responses as WARC request, response and revisit records.

`CrawlWarcStore.reconcile` brings files and state into agreement when a crawl is resumed.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Protocol

from unlost.clock import Clock
from unlost.crawl.fetcher import FetchResponse
from unlost.warc.records import (
    HTTP_REQUEST_TYPE,
    HTTP_RESPONSE_TYPE,
    RECORD_END,
    ForeignRecordError,
    Payload,
    TruncatedRecordError,
    WrittenRecord,
    compress_member,
    compression_level,
    escape_target_uri,
    format_http_head,
    format_record_date,
    format_record_header,
    make_record_id,
    payload_and_block_digests,
)
from unlost.warc.writer import WarcFolder, WarcSegments

MAX_WARC_BYTES = 1 << 30
"""Size at which a WARC file is closed and the next one begun."""

NOT_MODIFIED_PROFILE = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
SAME_PAYLOAD_PROFILE = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
"""Values of WARC-Profile in revisit records (WARC 1.1, sections 6.7.2 and 6.7.3): the server responded 304, or the
payload has the digest of the original.
"""


@dataclass(frozen=True, slots=True)
class WarcLocation:
    """Location of a response: the name of the WARC file, and offset and total size of its records in bytes."""

    file: str
    offset: int
    size: int


class RecordedWarcs(Protocol):
    """A state that contains the locations of records in WARC files."""

    def warc_ends(self) -> dict[str, int]:
        """Return the end of the last known record of each WARC file, in bytes."""
        ...

    def files_before_state(self, files: Iterable[str]) -> frozenset[str]:
        """Return the WARC files that were older than this state: `files` on the first call, the same ones later."""
        ...

    def last_record_end(self, file: str, size: int) -> int:
        """Return the end of the last known record of a WARC file within its first `size` bytes."""
        ...

    def requeue_lost_records(self, file: str, end: int) -> int:
        """Enqueue the URLs whose records a WARC file has lost after byte `end`; return their number."""
        ...

    def commit(self) -> None:
        """Make all changes durable."""
        ...


@dataclass(frozen=True, slots=True)
class RevisitedCapture:
    """The original capture of a revisit record: its URL and its date (14 digits, UTC)."""

    uri: str
    datetime: str


class CrawlWarcStore:
    """The WARC files of one crawl: `unlost-00001.warc.gz`, …; one is open at a time.

    The state of the crawl contains the end of the last record of each file. Bytes after it are an incomplete record, or
    one that was not committed; they are cut off, and the URL is fetched again. See docs/crawl.md.

    All methods raise InputError if a file cannot be written. A call that raises has stored nothing.
    """

    def __init__(self, folder: Path, clock: Clock, software: str, *, max_bytes: int = MAX_WARC_BYTES) -> None:
        self._folder = WarcFolder(folder)
        self._segments = WarcSegments(self._folder, clock, software, max_bytes)

    def reconcile(self, state: RecordedWarcs) -> None:
        """Bring files and state into agreement after a kill, a power failure, or removal of a file or of the state."""
        self._folder.create()
        ends = state.warc_ends()
        files = dict(self._folder.list_segments())
        older_files = state.files_before_state(files)
        for name in sorted(ends.keys() - files.keys()):
            state.requeue_lost_records(name, 0)  # the file was removed
        for name, is_open in files.items():
            self._segments.skip_to(name)
            with self._folder.open_to_read(name) as file:
                size = os.fstat(file).st_size
                if name in ends:
                    end, has_captures = ends[name], True
                elif name in older_files:  # the state was removed: complete records are retained
                    end, has_captures = _find_last_record_end(file)
                else:  # killed before the first commit
                    end, has_captures = 0, False
            if end > size:
                end = state.last_record_end(name, size)
                state.requeue_lost_records(name, end)
                has_captures = end > 0
                if not is_open:
                    self._folder.reopen(name)
                    is_open = True  # noqa: PLW2901
            if is_open:
                self._segments.resume(name, end, has_captures=has_captures)
                if name in older_files and name not in ends:
                    self._segments.close()
        state.commit()

    def store(self, response: FetchResponse, mime: str | None) -> tuple[WarcLocation, str]:
        """Write a response with its request; return its location and the digest of its body.

        Raises:
            UriError: The URL cannot be written as WARC-Target-URI.
            InputError: The file cannot be written.
        """
        body = Payload(response.body)
        head, _ = format_http_head(response.status, response.headers, body.length, None, None)
        digest, block_digest = payload_and_block_digests(head, body.pieces())
        record_id = make_record_id(
            "response", response.uri, response.requested_at, digest, response.request.decode("utf-8", "replace")
        )
        target, date = escape_target_uri(response.uri), format_record_date(response.requested_at)
        record_header = format_record_header(
            [
                ("WARC-Type", "response"),
                ("WARC-Record-ID", record_id),
                ("WARC-Target-URI", target),
                ("WARC-Date", date),
                ("WARC-IP-Address", response.peer),
                ("WARC-Payload-Digest", digest),
                ("WARC-Block-Digest", block_digest),
                ("WARC-Truncated", response.truncated),
                ("Content-Type", HTTP_RESPONSE_TYPE),
                ("Content-Length", str(len(head) + body.length)),
            ]
        )
        request = _request_record(response, target, date, record_id)
        record = chain([record_header + head], body.pieces(), [RECORD_END])
        size = len(record_header) + len(head) + body.length
        members = chain(
            compress_member(record, size, compression_level(mime)), compress_member([request], len(request))
        )
        location = self._segments.append(members, size + len(request))
        response.body.seek(0)
        return WarcLocation(*location), digest

    def store_revisit(self, response: FetchResponse, original: RevisitedCapture, digest: str | None) -> WarcLocation:
        """Write a revisit record, without the body; return its location.

        Args:
            response: The response.
            original: The capture that the response is a revisit of.
            digest: Digest of the received body, which equals that of the original; None if the server responded 304.

        Raises:
            UriError, InputError: As `store`.
        """
        head, _ = format_http_head(response.status, response.headers, None, None, None)
        _, block_digest = payload_and_block_digests(head, ())
        profile = NOT_MODIFIED_PROFILE if digest is None else SAME_PAYLOAD_PROFILE
        record_id = make_record_id(
            "revisit", response.uri, response.requested_at, profile, response.request.decode("utf-8", "replace")
        )
        target, date = escape_target_uri(response.uri), format_record_date(response.requested_at)
        record_header = format_record_header(
            [
                ("WARC-Type", "revisit"),
                ("WARC-Record-ID", record_id),
                ("WARC-Target-URI", target),
                ("WARC-Date", date),
                ("WARC-IP-Address", response.peer),
                ("WARC-Profile", profile),
                ("WARC-Refers-To-Target-URI", escape_target_uri(original.uri)),
                ("WARC-Refers-To-Date", format_record_date(original.datetime)),
                ("WARC-Payload-Digest", digest),
                ("WARC-Block-Digest", block_digest),
                ("Content-Type", HTTP_RESPONSE_TYPE),
                ("Content-Length", str(len(head))),
            ]
        )
        record, request = record_header + head + RECORD_END, _request_record(response, target, date, record_id)
        members = chain(compress_member([record], len(record)), compress_member([request], len(request)))
        return WarcLocation(*self._segments.append(members, len(record) + len(request)))

    def sync(self) -> None:
        """Flush all stored records to disk."""
        self._segments.sync()

    def close(self) -> None:
        """Close the open file and give it its final name."""
        self._segments.close()


def _request_record(response: FetchResponse, target: str, date: str, response_id: str) -> bytes:
    block = response.request
    _, digest = payload_and_block_digests(block, ())
    fields = [
        ("WARC-Type", "request"),
        ("WARC-Record-ID", make_record_id("request", response_id)),
        ("WARC-Target-URI", target),
        ("WARC-Date", date),
        ("WARC-Concurrent-To", response_id),
        ("WARC-Block-Digest", digest),
        ("Content-Type", HTTP_REQUEST_TYPE),
        ("Content-Length", str(len(block))),
    ]
    return format_record_header(fields) + block + RECORD_END


def _find_last_record_end(file: int) -> tuple[int, bool]:
    """Return the end of the last complete record of a file, and whether there is any after the first one."""
    end, count, size = 0, 0, os.fstat(file).st_size
    try:
        while end < size:
            end = WrittenRecord(file, end).end()
            count += 1
    except (TruncatedRecordError, ForeignRecordError):
        pass
    return end, count > 1
