"""The history as CDXJ: last captures of an existing archive brought in, those of harvests given out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from unlost._core import WarcBody
from unlost.dates import to_datetime
from unlost.errors import ArchiveFileError, InputError, UriError
from unlost.formats.capture import Capture
from unlost.formats.cdxj import write_rows
from unlost.formats.digests import normal_digest
from unlost.formats.index import read_rows
from unlost.formats.problems import Problem, Problems
from unlost.formats.row import Row, RowError, index_key
from unlost.formats.sorting import sorted_lines
from unlost.formats.warc import stored_record
from unlost.formats.warc_writing.digests import digests_of
from unlost.refresh.harvest.held import Copy, Held
from unlost.refresh.harvest.rounds import add_pages, visitable
from unlost.refresh.harvest.state import HarvestState, Page
from unlost.refresh.visit import NUMBER_FIELDS, TEXT_FIELDS, Visit, from_headers, number_of
from unlost.refresh.warc_log import sent_headers

_MOST_BODY = 64 << 20  # bytes: as much as is read of a page
_COMMIT = 1000
_HEADER_FIELDS = (*TEXT_FIELDS[2:], "content_length", "age")  # beside address, digest, time and status
_OURS = "unlost-harvest"  # a field of rows whose digest is of the body without codings


@dataclass(slots=True)
class Imported:
    """What came of an index.

    captures: rows that are captures. taken: those that became the last one of a page, one after the other. older: those
    of which a later one is held. others: of pages that nobody asked for. unusable: no success, no digest, not of the
    web.
    """

    captures: int = 0
    taken: int = 0
    older: int = 0
    others: int = 0
    unusable: int = 0


def import_cdxj(
    state: HarvestState,
    path: str | PathLike[str],
    problems: Problems,
    *,
    warcs: Path | None = None,
    only_known: bool = True,
    on_read: Callable[[int], object] | None = None,
) -> Imported:
    """Make the captures of an index the history of pages: the last one of each is what is held.

    warcs: the folder of the WARCs that it names, from which headers and digests are read; without it, only digests that
    the index has are known, and nothing can be asked by tag or date. only_known: pages that were added before; else all
    are added. Rows and records that cannot be read are counted in problems. Raises InputError, OSError.
    """
    found = Imported()
    for row in read_rows(path, problems, on_read):
        try:
            capture = row.capture()
        except RowError as error:
            problems.add(Problem(error.kind, str(path), row.number, row.place, str(error)))
            continue
        found.captures += 1
        is_success = capture.status is None or 200 <= capture.status < 300
        if capture.key is None or not capture.uri or not capture.digest or not is_success:
            found.unusable += 1
            continue
        pages = state.of_key(index_key(capture.uri))
        if not pages and not only_known:
            pages = _added(state, capture.uri)
        if not pages:
            found.others += 1
            continue
        for page in pages:
            _take(state, page, row, capture, warcs, problems, found)
        if found.captures % _COMMIT == 0:
            state.commit()
    state.commit()
    return found


def _added(state: HarvestState, uri: str) -> list[Page]:
    try:
        address = visitable(uri)
    except UriError:
        return []
    add_pages(state, [address], is_given=False)
    return state.of_key(index_key(address))


def _take(
    state: HarvestState,
    page: Page,
    row: Row,
    capture: Capture,
    warcs: Path | None,
    problems: Problems,
    found: Imported,
) -> None:
    time = int(to_datetime(capture.datetime).timestamp()) * 1000
    if page.looked is not None and time <= page.looked:
        found.older += 1
        return
    before = page.held.copy.digest if page.held is not None and page.held.copy is not None else None
    changed = None if before is None else before != capture.digest
    if capture.revisit:
        if changed is not False:
            found.unusable += 1  # of a copy that is not known
            return
        state.note_look(page, time, False)
        found.taken += 1
        return
    state.note_look(page, time, changed)
    state.hold(page.id, _held(page.uri, row, capture, time, warcs, problems))
    found.taken += 1


def _held(uri: str, row: Row, capture: Capture, time: int, warcs: Path | None, problems: Problems) -> Held:
    copy = Copy(
        capture.uri, capture.datetime, capture.digest, capture.filename, capture.offset, capture.length,
        capture.mime, capture.status,
    )  # fmt: skip
    said = {name: row.fields[name] for name in _HEADER_FIELDS if name in row.fields}
    values = {name: number_of(text) if name in NUMBER_FIELDS else text for name, text in said.items()}
    visit = Visit(uri, capture.digest, time=time, status=capture.status or 200, **values)  # type: ignore[arg-type]
    held = Held(visit, copy, capture.uri, is_ours=_OURS in row.fields)
    if warcs is not None and capture.filename is not None and capture.offset is not None:
        try:
            return _read(held, warcs, capture.filename, capture.offset)
        except (InputError, OSError, ArchiveFileError, ValueError) as error:
            message = f"its record cannot be read, so that its headers are not known: {str(error)[:150]}"
            problems.add(Problem("no-record", capture.filename[:100], None, capture.offset, message))
    return held


def _read(held: Held, warcs: Path, filename: str, offset: int) -> Held:
    """Return the same with what its record says."""
    path = warcs / Path(filename).name  # an index must not lead out of the folder
    body = WarcBody.open(path, offset, 0)
    stored = stored_record(body, str(path), offset)
    visit = from_headers(held.visit.uri, held.visit.time, held.visit.status, sent_headers(stored.http_headers))
    source = WarcBody.open(path, offset, 0)
    if source is None:
        raise InputError("no body")
    data, is_cut, is_broken = source.read_undone(_MOST_BODY)
    return _of_body(held, visit, data, is_whole=not is_cut and not is_broken)


def _of_body(held: Held, visit: Visit, data: bytes, *, is_whole: bool) -> Held:
    digest = digests_of(b"", [data])[0] if is_whole else held.visit.digest
    return replace(held, visit=replace(visit, digest=digest), size=len(data), is_ours=is_whole)


def export_lines(state: HarvestState) -> Iterator[bytes]:
    """Yield a CDXJ line for the copy that is held of each page, sorted, with the headers that it came with."""
    return sorted_lines(line for page in state.pages() for line in _lines(page))


def _lines(page: Page) -> Iterator[bytes]:
    held = page.held
    if held is None or held.copy is None:
        return
    copy, visit = held.copy, held.visit
    fields: dict[str, str | int | None] = {
        "url": copy.uri,
        "mime": copy.mime,
        "status": copy.status,
        "digest": copy.digest and normal_digest(copy.digest).removeprefix("sha1:"),
        "length": copy.size,
        "offset": copy.offset,
        "filename": copy.file,
    }
    fields |= {name: getattr(visit, name) for name in _HEADER_FIELDS}
    if held.is_ours and copy.digest == visit.digest:
        fields[_OURS] = 1
    if page.uri != copy.uri:
        fields["asked"] = page.uri
    texts = {name: str(value) for name, value in fields.items() if value is not None}
    yield from write_rows([Row(index_key(copy.uri), copy.moment, texts)])
