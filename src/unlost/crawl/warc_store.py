"""Stores what a crawl fetched.

WARC requests, responses and revisits, brought into agreement with the state at start.
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
"""How large a file may grow."""

NOT_MODIFIED_PROFILE = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
SAME_PAYLOAD_PROFILE = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
"""What revisits say of themselves: the server answered 304, or the body that came has the digest of the copy's."""


@dataclass(frozen=True, slots=True)
class WarcLocation:
    """Where an answer is kept: the name of its WARC, its offset, and the size of all its records, in bytes."""

    file: str
    offset: int
    size: int


class RecordedWarcs(Protocol):
    """What a state knows of the records in WARCs."""

    def warc_ends(self) -> dict[str, int]:
        """Return for each WARC up to which byte its records are known."""
        ...

    def files_before_state(self, files: Iterable[str]) -> frozenset[str]:
        """Return which WARCs were there before this state was: `files`, when it is asked for the first time."""
        ...

    def last_record_end(self, file: str, size: int) -> int:
        """Return where the last record of a WARC ends that lies within so many bytes."""
        ...

    def requeue_lost_records(self, file: str, end: int) -> int:
        """Put those back into the queue whose records a WARC has lost behind a byte; return how many."""
        ...

    def commit(self) -> None:
        """Make all changes last."""
        ...


@dataclass(frozen=True, slots=True)
class RevisitedCapture:
    """The copy that a revisit is one of: its address and its date, 14 digits."""

    uri: str
    datetime: str


class CrawlWarcStore:
    """The WARCs of one crawl: a folder with `unlost-00001.warc.gz`, …; one is open at a time.

    docs/crawl.md says what is in them. The state of the crawl knows where they end: what lies behind was torn by a
    kill, or is not in the state, and is cut off and fetched again.

    Everything it raises is an InputError; a call that raises has kept nothing.
    """

    def __init__(self, folder: Path, clock: Clock, software: str, *, max_bytes: int = MAX_WARC_BYTES) -> None:
        self._folder = WarcFolder(folder)
        self._segments = WarcSegments(self._folder, clock, software, max_bytes)

    def reconcile(self, state: RecordedWarcs) -> None:
        """Bring files and state into agreement: whoever wrote them may have been killed, or lost power, meanwhile."""
        self._folder.create()
        ends = state.warc_ends()
        files = dict(self._folder.list_segments())
        before = state.files_before_state(files)
        for name in sorted(ends.keys() - files.keys()):
            state.requeue_lost_records(name, 0)  # somebody took it away
        for name, is_open in files.items():
            self._segments.skip_to(name)
            with self._folder.open_to_read(name) as file:
                size = os.fstat(file).st_size
                if name in ends:
                    end, has_copies = ends[name], True
                elif name in before:  # somebody took its state away: what is whole stays
                    end, has_copies = _find_last_record_end(file)
                else:  # a kill came before the state knew anything in it
                    end, has_copies = 0, False
            if end > size:
                end = state.last_record_end(name, size)
                state.requeue_lost_records(name, end)
                has_copies = end > 0
                if not is_open:
                    self._folder.reopen(name)
                    is_open = True  # noqa: PLW2901
            if is_open:
                self._segments.resume(name, end, has_captures=has_copies)
                if name in before and name not in ends:
                    self._segments.close()
        state.commit()

    def store(self, response: FetchResponse, mime: str | None) -> tuple[WarcLocation, str]:
        """Keep an answer with its request, and return where, and the digest of its body.

        Raises UriError for an address that no record can have; any other InputError says that nothing can be written.
        """
        body = Payload(response.body)
        head, _ = format_http_head(response.status, response.headers, body.length, None, None)
        digest, block = payload_and_block_digests(head, body.pieces())
        number = make_record_id(
            "response", response.uri, response.requested_at, digest, response.request.decode("utf-8", "replace")
        )
        target, date = escape_target_uri(response.uri), format_record_date(response.requested_at)
        begin = format_record_header(
            [
                ("WARC-Type", "response"),
                ("WARC-Record-ID", number),
                ("WARC-Target-URI", target),
                ("WARC-Date", date),
                ("WARC-IP-Address", response.peer),
                ("WARC-Payload-Digest", digest),
                ("WARC-Block-Digest", block),
                ("WARC-Truncated", response.truncated),
                ("Content-Type", HTTP_RESPONSE_TYPE),
                ("Content-Length", str(len(head) + body.length)),
            ]
        )
        asked = _request_record(response, target, date, number)
        text = chain([begin + head], body.pieces(), [RECORD_END])
        size = len(begin) + len(head) + body.length
        members = chain(compress_member(text, size, compression_level(mime)), compress_member([asked], len(asked)))
        place = self._segments.append(members, size + len(asked))
        response.body.seek(0)
        return WarcLocation(*place), digest

    def store_revisit(self, response: FetchResponse, original: RevisitedCapture, digest: str | None) -> WarcLocation:
        """Keep that a page is still what a copy of it holds, without its body, and return where.

        digest: of the body that came, which must be the copy's; None of an answer 304. Raises as `store`.
        """
        head, _ = format_http_head(response.status, response.headers, None, None, None)
        _, block = payload_and_block_digests(head, ())
        profile = NOT_MODIFIED_PROFILE if digest is None else SAME_PAYLOAD_PROFILE
        number = make_record_id(
            "revisit", response.uri, response.requested_at, profile, response.request.decode("utf-8", "replace")
        )
        target, date = escape_target_uri(response.uri), format_record_date(response.requested_at)
        begin = format_record_header(
            [
                ("WARC-Type", "revisit"),
                ("WARC-Record-ID", number),
                ("WARC-Target-URI", target),
                ("WARC-Date", date),
                ("WARC-IP-Address", response.peer),
                ("WARC-Profile", profile),
                ("WARC-Refers-To-Target-URI", escape_target_uri(original.uri)),
                ("WARC-Refers-To-Date", format_record_date(original.datetime)),
                ("WARC-Payload-Digest", digest),
                ("WARC-Block-Digest", block),
                ("Content-Type", HTTP_RESPONSE_TYPE),
                ("Content-Length", str(len(head))),
            ]
        )
        text, asked = begin + head + RECORD_END, _request_record(response, target, date, number)
        members = chain(compress_member([text], len(text)), compress_member([asked], len(asked)))
        return WarcLocation(*self._segments.append(members, len(text) + len(asked)))

    def sync(self) -> None:
        """Return when everything that was stored is on the disk."""
        self._segments.sync()

    def close(self) -> None:
        """End the open file: it gets its final name."""
        self._segments.close()


def _request_record(fetched: FetchResponse, target: str, date: str, response: str) -> bytes:
    """Return the record of what was asked."""
    block = fetched.request
    _, digest = payload_and_block_digests(block, ())
    fields = [
        ("WARC-Type", "request"),
        ("WARC-Record-ID", make_record_id("request", response)),
        ("WARC-Target-URI", target),
        ("WARC-Date", date),
        ("WARC-Concurrent-To", response),
        ("WARC-Block-Digest", digest),
        ("Content-Type", HTTP_REQUEST_TYPE),
        ("Content-Length", str(len(block))),
    ]
    return format_record_header(fields) + block + RECORD_END


def _find_last_record_end(file: int) -> tuple[int, bool]:
    """Return where the last whole record of a file ends, and whether there is any behind the first one."""
    end, count, size = 0, 0, os.fstat(file).st_size
    try:
        while end < size:
            end = WrittenRecord(file, end).end()
            count += 1
    except (TruncatedRecordError, ForeignRecordError):
        pass
    return end, count > 1
