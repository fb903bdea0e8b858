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
    """The log in a folder. The state knows where it ends: what lies behind was written by somebody who was killed.

    Use it as a context manager. Raises OSError, and InputError for a link in its place.
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
        if end < state.log_end():  # a power cut took lines: what is left of the last one goes, too
            end = _last_line_end(self._file.fileno(), end)
        self._file.truncate(end)
        self._file.seek(end)
        self._end = end

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()

    def add(self, visit: Visit, method: str, outcome: str) -> None:
        """Write a visit, with how the page was asked for and what came of it; lasts when the state is committed."""
        line = serialize_visit(visit)
        told = json.dumps({"way": method, "outcome": outcome}, separators=(",", ":")).encode()
        self._file.write(line.removesuffix(b"}\n") + b"," + told.removeprefix(b"{") + b"\n")
        self._file.flush()
        self._end = self._file.tell()
        self._state.store_log_end(self._end)


def _last_line_end(file: int, end: int) -> int:
    """Return where the last whole line ends."""
    step = 1 << 16
    while end > 0:
        begin = max(0, end - step)
        found = os.pread(file, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


@dataclass(frozen=True, slots=True)
class StoredVisit:
    """What was written of a visit.

    outcome: what became of the page: `new`, `changed`, `unchanged`, `not-modified`, `skipped`, `no-success`, `cut`,
        `noarchive`. visit: with its digests. held: from now on; None to leave it as it is.
    places: of the records. changed: whether it had; None if nobody can tell.
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
    """Write what came to WARCs. Raises InputError if they cannot be written."""
    if result.outcome == "skipped" or result.response is None:
        return StoredVisit("skipped", result.visit, None, (), False)
    if result.outcome == "not-modified":
        return _store_not_modified(result, snapshot, warcs)
    return _store_response(result, snapshot, warcs, by_text=by_text, keep_noarchive=keep_noarchive)


def _store_not_modified(result: PageVisitResult, snapshot: PageSnapshot | None, warcs: CrawlWarcStore) -> StoredVisit:
    """Keep that a server said 304: of a copy that nobody holds there is nothing to say."""
    reply = result.response
    places = []
    if reply is not None and snapshot is not None and snapshot.capture is not None:
        original = RevisitedCapture(snapshot.capture.uri, snapshot.capture.timestamp)
        places = _store_redirects(result, warcs)
        try:
            places.append(warcs.store_revisit(reply.last, original, None))
        except UriError:
            places = []  # no record can have such an address
    return StoredVisit("not-modified", result.visit, None, tuple(places), False)


def _store_response(
    result: PageVisitResult,
    snapshot: PageSnapshot | None,
    warcs: CrawlWarcStore,
    *,
    by_text: bool,
    keep_noarchive: bool,
) -> StoredVisit:
    reply = result.response
    if reply is None:
        raise RuntimeError("nothing came")
    answer = reply.last
    contents = extract_contents(answer)
    digest = payload_and_block_digests(b"", Payload(answer.body).pieces())[0]
    answer.body.seek(0)
    is_success = 200 <= answer.status < 300
    text: PageTextSketch | None = None
    if is_success and answer.size <= MAX_TEXT_BYTES:
        text = sketch_page_text(answer.body.read(), contents.mime, answer.uri)
        answer.body.seek(0)
        if text is not None and snapshot is not None and snapshot.text is not None and text.is_similar(snapshot.text):
            text = snapshot.text  # compared with what it was first, so that many small changes are one at last
    is_cut = answer.truncated is not None
    visit = replace(result.visit, weight=result.weight)
    if is_success and not is_cut:
        visit = replace(visit, digest=digest, text_digest=None if text is None else text.digest)
    is_kept = keep_noarchive or not contents.is_noarchive
    changed = has_body_changed(snapshot, visit, by_text=by_text) if snapshot is not None and visit.digest else None
    copy = snapshot.capture if snapshot is not None else None
    is_same_copy = copy is not None and copy.digest == digest and not is_cut and is_success
    places: list[WarcLocation] = []
    if is_kept:
        places = _store_redirects(result, warcs)
        try:
            if copy is not None and is_same_copy:
                places.append(warcs.store_revisit(answer, RevisitedCapture(copy.uri, copy.timestamp), digest))
            else:
                place, _ = warcs.store(answer, contents.mime)
                places.append(place)
                copy = _new_capture(answer, digest, place, contents.mime)
        except UriError:
            is_kept, places = False, []  # no record can have such an address
    if not is_success or is_cut:
        return StoredVisit("cut" if is_success else "no-success", visit, None, tuple(places), None)
    now = PageSnapshot(clear_weight(visit), copy if is_kept else None, answer.uri, answer.size, text=text)
    outcome = _outcome(is_stored=is_kept, is_first=snapshot is None, changed=changed, is_same_capture=is_same_copy)
    return StoredVisit(outcome, visit, now, tuple(places), changed)


def _outcome(*, is_stored: bool, is_first: bool, changed: bool | None, is_same_capture: bool) -> str:
    if not is_stored:
        return "noarchive"
    if is_first:
        return "new"
    return "unchanged" if changed is False or is_same_capture else "changed"


def clear_weight(visit: Visit) -> Visit:
    """Return a visit as it is held: how many skips it stood for does not matter then."""
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
    """Keep the redirects that led to an answer."""
    places = []
    for answer in result.response.redirects if result.response is not None else ():
        if answer.has_body:
            try:
                places.append(warcs.store(answer, extract_contents(answer).mime)[0])
            except UriError:
                continue
    return places
