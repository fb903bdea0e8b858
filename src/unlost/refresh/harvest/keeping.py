"""Keeps what came of a visit: a record or a revisit that is true, what is held from now on, a line of the log."""

from dataclasses import dataclass, replace

from unlost.crawl.contents import contents_of
from unlost.crawl.visitor import Answer
from unlost.crawl.warcs import CrawlWarcs, Original, Place
from unlost.errors import UriError
from unlost.formats.warc_writing.digests import digests_of
from unlost.formats.warc_writing.payload import Payload
from unlost.refresh.harvest.held import Copy, Held, is_changed
from unlost.refresh.harvest.visiting import Found
from unlost.refresh.page_text import MOST_TEXT, PageText, page_text
from unlost.refresh.visit import Visit


@dataclass(frozen=True, slots=True)
class Kept:
    """What was written of a visit.

    outcome: what became of the page: `new`, `changed`, `unchanged`, `not-modified`, `skipped`, `no-success`, `cut`,
        `noarchive`. visit: with its digests. held: from now on; None to leave it as it is.
    places: of the records. changed: whether it had; None if nobody can tell.
    """

    outcome: str
    visit: Visit
    held: Held | None
    places: tuple[Place, ...]
    changed: bool | None


def keep(found: Found, held: Held | None, warcs: CrawlWarcs, *, by_text: bool, keep_noarchive: bool) -> Kept:
    """Write what came to WARCs. Raises InputError if they cannot be written."""
    if found.outcome == "skipped" or found.reply is None:
        return Kept("skipped", found.visit, None, (), False)
    if found.outcome == "not-modified":
        return _not_modified(found, held, warcs)
    return _answered(found, held, warcs, by_text=by_text, keep_noarchive=keep_noarchive)


def _not_modified(found: Found, held: Held | None, warcs: CrawlWarcs) -> Kept:
    """Keep that a server said 304: of a copy that nobody holds there is nothing to say."""
    reply = found.reply
    places = []
    if reply is not None and held is not None and held.copy is not None:
        original = Original(held.copy.uri, held.copy.moment)
        places = _stored_chain(found, warcs)
        try:
            places.append(warcs.store_revisit(reply.last, original, None))
        except UriError:
            places = []  # no record can have such an address
    return Kept("not-modified", found.visit, None, tuple(places), False)


def _answered(found: Found, held: Held | None, warcs: CrawlWarcs, *, by_text: bool, keep_noarchive: bool) -> Kept:
    reply = found.reply
    if reply is None:
        raise RuntimeError("nothing came")
    answer = reply.last
    contents = contents_of(answer)
    digest = digests_of(b"", Payload(answer.body).pieces())[0]
    answer.body.seek(0)
    is_success = 200 <= answer.status < 300
    text: PageText | None = None
    if is_success and answer.size <= MOST_TEXT:
        text = page_text(answer.body.read(), contents.mime, answer.uri)
        answer.body.seek(0)
        if text is not None and held is not None and held.text is not None and text.is_like(held.text):
            text = held.text  # compared with what it was first, so that many small changes are one at last
    is_cut = answer.truncated is not None
    visit = replace(found.visit, weight=found.weight)
    if is_success and not is_cut:
        visit = replace(visit, digest=digest, text_digest=None if text is None else text.digest)
    is_kept = keep_noarchive or not contents.is_noarchive
    changed = is_changed(held, visit, by_text=by_text) if held is not None and visit.digest else None
    copy = held.copy if held is not None else None
    is_same_copy = copy is not None and copy.digest == digest and not is_cut and is_success
    places: list[Place] = []
    if is_kept:
        places = _stored_chain(found, warcs)
        try:
            if copy is not None and is_same_copy:
                places.append(warcs.store_revisit(answer, Original(copy.uri, copy.moment), digest))
            else:
                place, _ = warcs.store(answer, contents.mime)
                places.append(place)
                copy = _copy(answer, digest, place, contents.mime)
        except UriError:
            is_kept, places = False, []  # no record can have such an address
    if not is_success or is_cut:
        return Kept("cut" if is_success else "no-success", visit, None, tuple(places), None)
    now = Held(visit_without_weight(visit), copy if is_kept else None, answer.uri, answer.size, text=text)
    outcome = _outcome(is_kept=is_kept, is_first=held is None, changed=changed, is_same_copy=is_same_copy)
    return Kept(outcome, visit, now, tuple(places), changed)


def _outcome(*, is_kept: bool, is_first: bool, changed: bool | None, is_same_copy: bool) -> str:
    if not is_kept:
        return "noarchive"
    if is_first:
        return "new"
    return "unchanged" if changed is False or is_same_copy else "changed"


def visit_without_weight(visit: Visit) -> Visit:
    """Return a visit as it is held: how many skips it stood for does not matter then."""
    return replace(visit, weight=None)


def _copy(answer: Answer, digest: str, place: Place, mime: str | None) -> Copy:
    return Copy(answer.uri, answer.moment, digest, place.file, place.offset, place.size, mime, answer.status)


def _stored_chain(found: Found, warcs: CrawlWarcs) -> list[Place]:
    """Keep the redirects that led to an answer."""
    places = []
    for answer in found.reply.chain if found.reply is not None else ():
        if answer.has_body:
            try:
                places.append(warcs.store(answer, contents_of(answer).mime)[0])
            except UriError:
                continue
    return places
