"""The visits that archive files hold, revisits and redirects among them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from urllib.parse import urljoin

from unlost._core import WarcBody, WarcRecord, WarcScanner
from unlost.dates import from_iso, pad, to_datetime
from unlost.errors import DateError
from unlost.formats.digests import normalize_digest
from unlost.formats.problems import Problem, Problems
from unlost.formats.warc import CAPTURE_RECORD_TYPES, wrap_record
from unlost.formats.warc_writing.http_head import ORIGINAL_HEADER_PREFIX
from unlost.refresh.page_text import MAX_TEXT_BYTES, TextDigestCache, sketch_page_text
from unlost.refresh.visit import VisitRow, Visit, visit_from_headers

_MAX_REDIRECT_SECONDS = 600  # a redirect and its target are asked for one after the other, politely
_MAX_PENDING_REDIRECTS = (
    10_000  # redirects whose target did not come: those of a crawl of one site at a time are far fewer
)
_REDIRECT_STATUSES = range(300, 400)


@dataclass(frozen=True, slots=True)
class _PendingRedirect:
    """A page that redirected, and has no answer yet."""

    first: str
    since: int


def iter_warc_rows(
    path: str | PathLike[str],
    problems: Problems,
    *,
    texts: TextDigestCache | None = None,
    on_read: Callable[[int], object] | None = None,
) -> Iterator[VisitRow]:
    """Yield the visits of a WARC or ARC file.

    A redirect is not a visit of its own: the answer at its end stands under the address at its beginning, if it follows
    within ten minutes in the same file; else it is a visit that failed. A revisit has the digest and the headers that
    it says; one that the server answered with 304 has no body and counts as that. Records that are cut short
    have `failed`: their digest would be that of half a page. texts: those of pages so far; None to
    look at none.

    problems: what could not be read; reading goes on behind it. Raises OSError.
    """
    waiting: dict[str, _PendingRedirect] = {}
    for visit, target in _iter_visits(path, problems, texts, on_read):
        came_from = waiting.pop(visit.uri, None)
        late = came_from is not None and visit.time - came_from.since > _MAX_REDIRECT_SECONDS * 1000
        first = came_from.first if came_from is not None and not late else visit.uri
        if came_from is not None and late:
            yield Visit(came_from.first, time=came_from.since, status=302).row
        if target is not None and target != visit.uri:
            while len(waiting) >= _MAX_PENDING_REDIRECTS:
                lost = waiting.pop(next(iter(waiting)))
                yield Visit(lost.first, time=lost.since, status=302).row
            waiting[target] = _PendingRedirect(first, visit.time)
        else:
            yield replace(visit, uri=first).row
    for lost in waiting.values():
        yield Visit(lost.first, time=lost.since, status=302).row


def original_headers(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return headers by their names in lower case, as the server sent them; of those that came twice the first.

    Records that were written here have the length of the body without codings, and that which was sent under another
    name.

    >>> sent_headers([("X-Archive-Orig-Content-Length", "90"), ("Content-Length", "300")])["content-length"]
    '90'
    """
    named = {name.lower(): value for name, value in reversed(headers)}
    original = ORIGINAL_HEADER_PREFIX.lower()
    return named | {name.removeprefix(original): named[name] for name in named if name.startswith(original)}


def _iter_visits(
    path: str | PathLike[str],
    problems: Problems,
    texts: TextDigestCache | None,
    on_read: Callable[[int], object] | None,
) -> Iterator[tuple[Visit, str | None]]:
    """Yield visits, each with where it redirects to."""
    name = fspath(path)
    scanner = WarcScanner(path, True, list(CAPTURE_RECORD_TYPES), bodies=True)
    while (batch := scanner.next_batch()) is not None:
        records, found = batch
        for kind, offset, message in found:
            problems.add(Problem(kind, name, None, offset, message))
        damaged = {offset for _, offset, _ in found}
        for record in records:
            if record.type == "resource":
                continue  # no headers of a server
            try:
                yield _record_visit(path, record, texts, damaged=record.offset in damaged)
            except DateError as error:
                problems.add(Problem("bad-date", name, None, record.offset, str(error)))
        if on_read is not None:
            on_read(scanner.position)


def _record_visit(
    path: str | PathLike[str], record: WarcRecord, texts: TextDigestCache | None, *, damaged: bool
) -> tuple[Visit, str | None]:
    date = record.date or ""
    digits = pad(date) if record.is_arc else from_iso(date)
    time = int(to_datetime(digits).timestamp()) * 1000
    uri, status = record.uri or "", record.status or 0
    stored = wrap_record(WarcBody.open(path, record.offset, record.skip), fspath(path), record.offset)
    headers = original_headers(stored.http_headers)
    is_revisit = record.type == "revisit"
    if is_revisit and "not-modified" in (stored.header("WARC-Profile") or ""):
        status = 304
    visit = visit_from_headers(uri, time, status, headers)
    if status in _REDIRECT_STATUSES and status != 304 and record.location:
        return visit, urljoin(uri, record.location)
    is_cut = damaged or record.is_short or record.is_truncated
    if is_revisit:
        digest = record.digest
        return replace(visit, digest=digest and normalize_digest(digest)), None
    body = record.body
    if body is None or body[2] or is_cut:
        return replace(visit, status=0), None
    digest = record.digest
    # One notation for both: what a revisit repeats is the digest that its record says.
    known = normalize_digest(digest) if digest else f"body-sha1:{body[0].hex()}"
    text = None
    if texts is not None and 200 <= status < 300 and body[1] <= MAX_TEXT_BYTES:
        # The source again: its body is read only once.
        source = WarcBody.open(path, record.offset, record.skip)
        if source is not None:
            found = sketch_page_text(source.read_undone(MAX_TEXT_BYTES)[0], record.mime, uri)
            text = None if found is None else texts.digest(uri, found)
    return replace(visit, digest=known, text_digest=text), None
