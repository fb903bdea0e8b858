"""Import of the latest captures of an archive from CDXJ, and export of a harvest's captures."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from unlost._core import WarcBody
from unlost.capture import Capture, normalize_digest
from unlost.dates import to_datetime
from unlost.errors import ArchiveFileError, InputError, UriError
from unlost.index.cdx import IndexRow, RowError, index_key, write_cdxj
from unlost.index.external_sort import sort_lines
from unlost.index.reader import read_index_rows
from unlost.problems import Problem, Problems
from unlost.refresh.harvest_state import HarvestedCapture, HarvestPage, HarvestState, PageSnapshot
from unlost.refresh.harvester import add_pages, normalize_visit_url
from unlost.refresh.log_reader import original_headers
from unlost.refresh.visit import NUMBER_FIELDS, TEXT_FIELDS, Visit, parse_header_number, visit_from_headers
from unlost.warc.reader import wrap_record
from unlost.warc.records import payload_and_block_digests

_MAX_BODY_BYTES = 64 << 20  # the limit of harvested pages
_COMMIT_INTERVAL = 1000
_HEADER_FIELDS = (*TEXT_FIELDS[2:], "content_length", "age")  # fields of a visit that are response headers
_HARVEST_FIELD = "unlost-harvest"  # marks rows whose digest is of the body without content codings


@dataclass(slots=True)
class CdxjImportResult:
    """Result of an import.

    Attributes:
        captures: Number of rows that are captures.
        imported: Captures that became the latest one of a page, including those replaced later in the same import.
        outdated: Captures older than the page's latest one.
        unlisted: Captures of unknown pages.
        unusable: Captures with an error status, without digest or URL, or revisits of unknown captures.
    """

    captures: int = 0
    imported: int = 0
    outdated: int = 0
    unlisted: int = 0
    unusable: int = 0


def import_cdxj(
    state: HarvestState,
    path: str | PathLike[str],
    problems: Problems,
    *,
    warcs: Path | None = None,
    only_known: bool = True,
    on_read: Callable[[int], object] | None = None,
) -> CdxjImportResult:
    """Import the latest capture of each page from an index.

    Args:
        state: The state of the harvest.
        path: The index.
        problems: Collects rows and records that cannot be read.
        warcs: Folder of the WARC files named by the index, for headers and digests. Without it, only digests are known,
            and no conditional requests are possible.
        only_known: Whether to ignore captures of pages that were not added before.
        on_read: Called with the number of bytes read.

    Raises:
        InputError: The index cannot be read.
        OSError: A file cannot be read.
    """
    result = CdxjImportResult()
    for row in read_index_rows(path, problems, on_read):
        try:
            capture = row.to_capture()
        except RowError as error:
            problems.add(Problem(error.kind, str(path), row.number, row.offset, str(error)))
            continue
        result.captures += 1
        is_success = capture.status is None or 200 <= capture.status < 300
        if capture.key is None or not capture.uri or not capture.digest or not is_success:
            result.unusable += 1
            continue
        pages = state.pages_by_key(index_key(capture.uri))
        if not pages and not only_known:
            pages = _add_page(state, capture.uri)
        if not pages:
            result.unlisted += 1
            continue
        for page in pages:
            _import_capture(state, page, row, capture, warcs, problems, result)
        if result.captures % _COMMIT_INTERVAL == 0:
            state.commit()
    state.commit()
    return result


def _add_page(state: HarvestState, uri: str) -> list[HarvestPage]:
    try:
        url = normalize_visit_url(uri)
    except UriError:
        return []
    add_pages(state, [url], is_given=False)
    return state.pages_by_key(index_key(url))


def _import_capture(
    state: HarvestState,
    page: HarvestPage,
    row: IndexRow,
    capture: Capture,
    warcs: Path | None,
    problems: Problems,
    result: CdxjImportResult,
) -> None:
    time = int(to_datetime(capture.datetime).timestamp()) * 1000
    if page.last_visit is not None and time <= page.last_visit:
        result.outdated += 1
        return
    previous_digest = (
        page.snapshot.capture.digest if page.snapshot is not None and page.snapshot.capture is not None else None
    )
    changed = None if previous_digest is None else previous_digest != capture.digest
    if capture.revisit:
        if changed is not False:
            result.unusable += 1  # its original is unknown
            return
        state.record_visit(page, time, False)
        result.imported += 1
        return
    state.record_visit(page, time, changed)
    state.store_snapshot(page.id, _build_snapshot(page.uri, row, capture, time, warcs, problems))
    result.imported += 1


def _build_snapshot(
    uri: str, row: IndexRow, capture: Capture, time: int, warcs: Path | None, problems: Problems
) -> PageSnapshot:
    harvested = HarvestedCapture(
        capture.uri, capture.datetime, capture.digest, capture.filename, capture.offset, capture.length,
        capture.mime, capture.status,
    )  # fmt: skip
    headers = {name: row.fields[name] for name in _HEADER_FIELDS if name in row.fields}
    values = {name: parse_header_number(text) if name in NUMBER_FIELDS else text for name, text in headers.items()}
    visit = Visit(uri, capture.digest, time=time, status=capture.status or 200, **values)  # type: ignore[arg-type]
    snapshot = PageSnapshot(visit, harvested, capture.uri, is_ours=_HARVEST_FIELD in row.fields)
    if warcs is not None and capture.filename is not None and capture.offset is not None:
        try:
            return _read_record(snapshot, warcs, capture.filename, capture.offset)
        except (InputError, OSError, ArchiveFileError, ValueError) as error:
            message = f"its record cannot be read, so that its headers are not known: {str(error)[:150]}"
            problems.add(Problem("no-record", capture.filename[:100], None, capture.offset, message))
    return snapshot


def _read_record(snapshot: PageSnapshot, warcs: Path, filename: str, offset: int) -> PageSnapshot:
    """Return the snapshot with headers and digest of the WARC record."""
    path = warcs / Path(filename).name  # ignore folders: an index must not refer to files outside
    body = WarcBody.open(path, offset, 0)
    stored = wrap_record(body, str(path), offset)
    visit = visit_from_headers(
        snapshot.visit.uri, snapshot.visit.time, snapshot.visit.status, original_headers(stored.http_headers)
    )
    source = WarcBody.open(path, offset, 0)
    if source is None:
        raise InputError("no body")
    data, is_cut, is_broken = source.read_decoded(_MAX_BODY_BYTES)
    return _add_digest(snapshot, visit, data, is_whole=not is_cut and not is_broken)


def _add_digest(snapshot: PageSnapshot, visit: Visit, data: bytes, *, is_whole: bool) -> PageSnapshot:
    digest = payload_and_block_digests(b"", [data])[0] if is_whole else snapshot.visit.digest
    return replace(snapshot, visit=replace(visit, digest=digest), size=len(data), is_ours=is_whole)


def export_cdxj(state: HarvestState) -> Iterator[bytes]:
    """Yield a sorted CDXJ line for the stored capture of each page, with its response headers as further fields."""
    return sort_lines(line for page in state.pages() for line in _page_lines(page))


def _page_lines(page: HarvestPage) -> Iterator[bytes]:
    snapshot = page.snapshot
    if snapshot is None or snapshot.capture is None:
        return
    capture, visit = snapshot.capture, snapshot.visit
    fields: dict[str, str | int | None] = {
        "url": capture.uri,
        "mime": capture.mime,
        "status": capture.status,
        "digest": capture.digest and normalize_digest(capture.digest).removeprefix("sha1:"),
        "length": capture.size,
        "offset": capture.offset,
        "filename": capture.file,
    }
    fields |= {name: getattr(visit, name) for name in _HEADER_FIELDS}
    if snapshot.is_ours and capture.digest == visit.digest:
        fields[_HARVEST_FIELD] = 1
    if page.uri != capture.uri:
        fields["asked"] = page.uri
    texts = {name: str(value) for name, value in fields.items() if value is not None}
    yield from write_cdxj([IndexRow(index_key(capture.uri), capture.timestamp, texts)])
