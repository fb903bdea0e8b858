"""Import of the last captures of an existing archive from CDXJ, and export of a harvest's captures."""

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

_MAX_BODY_BYTES = 64 << 20  # bytes: as much as is read of a page
_COMMIT_INTERVAL = 1000
_HEADER_FIELDS = (*TEXT_FIELDS[2:], "content_length", "age")  # beside address, digest, time and status
_HARVEST_FIELD = "unlost-harvest"  # a field of rows whose digest is of the body without codings


@dataclass(slots=True)
class CdxjImportResult:
    """What came of an index.

    captures: rows that are captures. taken: those that became the last one of a page, one after the other. older: those
    of which a later one is held. others: of pages that nobody asked for. unusable: no success, no digest, not of the
    web.
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
    """Make the captures of an index the history of pages: the last one of each is what is held.

    warcs: the folder of the WARCs that it names, from which headers and digests are read; without it, only digests that
    the index has are known, and nothing can be asked by tag or date. only_known: pages that were added before; else all
    are added. Rows and records that cannot be read are counted in problems. Raises InputError, OSError.
    """
    found = CdxjImportResult()
    for row in read_index_rows(path, problems, on_read):
        try:
            capture = row.to_capture()
        except RowError as error:
            problems.add(Problem(error.kind, str(path), row.number, row.offset, str(error)))
            continue
        found.captures += 1
        is_success = capture.status is None or 200 <= capture.status < 300
        if capture.key is None or not capture.uri or not capture.digest or not is_success:
            found.unusable += 1
            continue
        pages = state.pages_by_key(index_key(capture.uri))
        if not pages and not only_known:
            pages = _add_page(state, capture.uri)
        if not pages:
            found.unlisted += 1
            continue
        for page in pages:
            _import_capture(state, page, row, capture, warcs, problems, found)
        if found.captures % _COMMIT_INTERVAL == 0:
            state.commit()
    state.commit()
    return found


def _add_page(state: HarvestState, uri: str) -> list[HarvestPage]:
    try:
        address = normalize_visit_url(uri)
    except UriError:
        return []
    add_pages(state, [address], is_given=False)
    return state.pages_by_key(index_key(address))


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
    before = page.snapshot.capture.digest if page.snapshot is not None and page.snapshot.capture is not None else None
    changed = None if before is None else before != capture.digest
    if capture.revisit:
        if changed is not False:
            result.unusable += 1  # of a copy that is not known
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
    copy = HarvestedCapture(
        capture.uri, capture.datetime, capture.digest, capture.filename, capture.offset, capture.length,
        capture.mime, capture.status,
    )  # fmt: skip
    said = {name: row.fields[name] for name in _HEADER_FIELDS if name in row.fields}
    values = {name: parse_header_number(text) if name in NUMBER_FIELDS else text for name, text in said.items()}
    visit = Visit(uri, capture.digest, time=time, status=capture.status or 200, **values)  # type: ignore[arg-type]
    held = PageSnapshot(visit, copy, capture.uri, is_ours=_HARVEST_FIELD in row.fields)
    if warcs is not None and capture.filename is not None and capture.offset is not None:
        try:
            return _read_record(held, warcs, capture.filename, capture.offset)
        except (InputError, OSError, ArchiveFileError, ValueError) as error:
            message = f"its record cannot be read, so that its headers are not known: {str(error)[:150]}"
            problems.add(Problem("no-record", capture.filename[:100], None, capture.offset, message))
    return held


def _read_record(snapshot: PageSnapshot, warcs: Path, filename: str, offset: int) -> PageSnapshot:
    """Return the same with what its record says."""
    path = warcs / Path(filename).name  # an index must not lead out of the folder
    body = WarcBody.open(path, offset, 0)
    stored = wrap_record(body, str(path), offset)
    visit = visit_from_headers(
        snapshot.visit.uri, snapshot.visit.time, snapshot.visit.status, original_headers(stored.http_headers)
    )
    source = WarcBody.open(path, offset, 0)
    if source is None:
        raise InputError("no body")
    data, is_cut, is_broken = source.read_undone(_MAX_BODY_BYTES)
    return _add_digest(snapshot, visit, data, is_whole=not is_cut and not is_broken)


def _add_digest(snapshot: PageSnapshot, visit: Visit, data: bytes, *, is_whole: bool) -> PageSnapshot:
    digest = payload_and_block_digests(b"", [data])[0] if is_whole else snapshot.visit.digest
    return replace(snapshot, visit=replace(visit, digest=digest), size=len(data), is_ours=is_whole)


def export_cdxj(state: HarvestState) -> Iterator[bytes]:
    """Yield a CDXJ line for the copy that is held of each page, sorted, with the headers that it came with."""
    return sort_lines(line for page in state.pages() for line in _page_lines(page))


def _page_lines(page: HarvestPage) -> Iterator[bytes]:
    held = page.snapshot
    if held is None or held.capture is None:
        return
    copy, visit = held.capture, held.visit
    fields: dict[str, str | int | None] = {
        "url": copy.uri,
        "mime": copy.mime,
        "status": copy.status,
        "digest": copy.digest and normalize_digest(copy.digest).removeprefix("sha1:"),
        "length": copy.size,
        "offset": copy.offset,
        "filename": copy.file,
    }
    fields |= {name: getattr(visit, name) for name in _HEADER_FIELDS}
    if held.is_ours and copy.digest == visit.digest:
        fields[_HARVEST_FIELD] = 1
    if page.uri != copy.uri:
        fields["asked"] = page.uri
    texts = {name: str(value) for name, value in fields.items() if value is not None}
    yield from write_cdxj([IndexRow(index_key(copy.uri), copy.timestamp, texts)])
