"""Stores the results of visits: WARC records, revisit records, and the visit log."""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from unlost.crawl.extractor import extract_contents
from unlost.crawl.fetcher import FetchResponse
from unlost.crawl.warc_store import CrawlWarcStore, RevisitedCapture, WarcLocation
from unlost.errors import InputError, UriError
from unlost.refresh.harvest_state import HarvestedCapture, HarvestState, PageSnapshot, has_body_changed
from unlost.refresh.page_text_digest import MAX_TEXT_BYTES, PageTextSketch, sketch_page_text
from unlost.refresh.page_visitor import PageVisitResult
from unlost.refresh.visit import Visit, serialize_visit
from unlost.warc.records import Payload, payload_and_block_digests

LOG_NAME = "visits.ndjson"


class VisitLog:
    """The visit log of a harvest. Use it as a context manager.

    The state records where the log ends. Lines after that end were written by a process that was killed, and are
    removed.

    Raises:
        InputError: The log is a symbolic link.
        OSError: The log cannot be read or written.
    """

    def __init__(self, folder: Path, state: HarvestState) -> None:
        path = folder / LOG_NAME
        if path.is_symlink():
            raise InputError(f"{path}: a link, which is not followed: remove it")
        self._state = state
        self._file = path.open("r+b" if path.exists() else "w+b")
        self._file.seek(0, os.SEEK_END)
        size = self._file.tell()
        end = min(size, state.log_end())
        if end < state.log_end():  # lines were lost in a power failure: remove the incomplete last line
            end = _last_line_end(self._file.fileno(), end)
        self._file.truncate(end)
        self._file.seek(end)
        self._end = end

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()

    def add(self, visit: Visit, method: str, outcome: str) -> None:
        """Write a visit with its fetch method and outcome. It is durable once the state is committed."""
        line = serialize_visit(visit)
        harvest_fields = json.dumps({"way": method, "outcome": outcome}, separators=(",", ":")).encode()
        self._file.write(line.removesuffix(b"}\n") + b"," + harvest_fields.removeprefix(b"{") + b"\n")
        self._file.flush()
        self._end = self._file.tell()
        self._state.store_log_end(self._end)


def _last_line_end(file: int, end: int) -> int:
    """Return the end of the last complete line before `end`."""
    step = 1 << 16
    while end > 0:
        begin = max(0, end - step)
        newline = os.pread(file, end - begin, begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return 0


@dataclass(frozen=True, slots=True)
class StoredVisit:
    """What was stored of a visit.

    Attributes:
        outcome: `new`, `changed`, `unchanged`, `not-modified`, `skipped`, `no-success`, `cut` or `noarchive`.
        visit: The visit with its digests.
        snapshot: The new snapshot; None to retain the previous one.
        locations: Locations of the records.
        changed: Whether the page had changed; None if unknown.
    """

    outcome: str
    visit: Visit
    snapshot: PageSnapshot | None
    locations: tuple[WarcLocation, ...]
    changed: bool | None


def store_visit(
    result: PageVisitResult,
    snapshot: PageSnapshot | None,
    warcs: CrawlWarcStore,
    *,
    by_text: bool,
    keep_noarchive: bool,
) -> StoredVisit:
    """Write a response to WARC files. Raises InputError if they cannot be written."""
    if result.outcome == "skipped" or result.response is None:
        return StoredVisit("skipped", result.visit, None, (), False)
    if result.outcome == "not-modified":
        return _store_not_modified(result, snapshot, warcs)
    return _store_response(result, snapshot, warcs, by_text=by_text, keep_noarchive=keep_noarchive)


def _store_not_modified(result: PageVisitResult, snapshot: PageSnapshot | None, warcs: CrawlWarcStore) -> StoredVisit:
    """Write a revisit record for a 304 response, unless the original body is not stored."""
    response = result.response
    locations = []
    if response is not None and snapshot is not None and snapshot.capture is not None:
        original = RevisitedCapture(snapshot.capture.uri, snapshot.capture.timestamp)
        locations = _store_redirects(result, warcs)
        try:
            locations.append(warcs.store_revisit(response.last, original, None))
        except UriError:
            locations = []  # the URL cannot be written as WARC-Target-URI
    return StoredVisit("not-modified", result.visit, None, tuple(locations), False)


def _store_response(
    result: PageVisitResult,
    snapshot: PageSnapshot | None,
    warcs: CrawlWarcStore,
    *,
    by_text: bool,
    keep_noarchive: bool,
) -> StoredVisit:
    harvest_response = result.response
    if harvest_response is None:
        raise RuntimeError("nothing came")
    response = harvest_response.last
    contents = extract_contents(response)
    digest = payload_and_block_digests(b"", Payload(response.body).pieces())[0]
    response.body.seek(0)
    is_success = 200 <= response.status < 300
    text: PageTextSketch | None = None
    if is_success and response.size <= MAX_TEXT_BYTES:
        text = sketch_page_text(response.body.read(), contents.mime, response.uri)
        response.body.seek(0)
        if text is not None and snapshot is not None and snapshot.text is not None and text.is_similar(snapshot.text):
            text = snapshot.text  # retain the first of similar texts, so that small changes add up to a change
    is_cut = response.truncated is not None
    visit = replace(result.visit, weight=result.weight)
    if is_success and not is_cut:
        visit = replace(visit, digest=digest, text_digest=None if text is None else text.digest)
    may_store = keep_noarchive or not contents.is_noarchive
    changed = has_body_changed(snapshot, visit, by_text=by_text) if snapshot is not None and visit.digest else None
    capture = snapshot.capture if snapshot is not None else None
    is_same_capture = capture is not None and capture.digest == digest and not is_cut and is_success
    locations: list[WarcLocation] = []
    if may_store:
        locations = _store_redirects(result, warcs)
        try:
            if capture is not None and is_same_capture:
                locations.append(
                    warcs.store_revisit(response, RevisitedCapture(capture.uri, capture.timestamp), digest)
                )
            else:
                location, _ = warcs.store(response, contents.mime)
                locations.append(location)
                capture = _new_capture(response, digest, location, contents.mime)
        except UriError:
            may_store, locations = False, []  # the URL cannot be written as WARC-Target-URI
    if not is_success or is_cut:
        return StoredVisit("cut" if is_success else "no-success", visit, None, tuple(locations), None)
    new_snapshot = PageSnapshot(
        clear_weight(visit), capture if may_store else None, response.uri, response.size, text=text
    )
    outcome = _outcome(is_stored=may_store, is_first=snapshot is None, changed=changed, is_same_capture=is_same_capture)
    return StoredVisit(outcome, visit, new_snapshot, tuple(locations), changed)


def _outcome(*, is_stored: bool, is_first: bool, changed: bool | None, is_same_capture: bool) -> str:
    if not is_stored:
        return "noarchive"
    if is_first:
        return "new"
    return "unchanged" if changed is False or is_same_capture else "changed"


def clear_weight(visit: Visit) -> Visit:
    """Return a visit for a snapshot, without the audit weight."""
    return replace(visit, weight=None)


def _new_capture(response: FetchResponse, digest: str, location: WarcLocation, mime: str | None) -> HarvestedCapture:
    return HarvestedCapture(
        response.uri,
        response.requested_at,
        digest,
        location.file,
        location.offset,
        location.size,
        mime,
        response.status,
    )


def _store_redirects(result: PageVisitResult, warcs: CrawlWarcStore) -> list[WarcLocation]:
    """Write the redirects that led to a response."""
    locations = []
    for redirect in result.response.redirects if result.response is not None else ():
        if redirect.has_body:
            try:
                locations.append(warcs.store(redirect, extract_contents(redirect).mime)[0])
            except UriError:
                continue
    return locations
