"""Queries the TimeGate of an archive for the memento of a page that is closest to a date (RFC 7089)."""

from dataclasses import dataclass

from unlost import dates
from unlost.archives.archive import Archive, Work
from unlost.archives.asking.question import Asks, Partial, Question, Reply
from unlost.archives.clients.replay import Replay, links_of
from unlost.archives.clients.statuses import holds_something
from unlost.archives.clients.urims import host_of, joined, read_copy, same_page
from unlost.archives.spelling import asked
from unlost.errors import DateError, FailedError
from unlost.formats.mementos import Memento, Mementos
from unlost.formats.problems import Problems

_MAX_BYTES = 1 << 16  # of a response, which may be the memento itself: its headers are enough


@dataclass(frozen=True, slots=True)
class Selection:
    """The mementos that a TimeGate named: the one that it selected, and those of its Link header.

    knows_first, knows_last: whether the first and the last memento that the archive has are among them.
    """

    mementos: Mementos
    knows_first: bool = False
    knows_last: bool = False


async def select(archive: Archive, courier: Asks, uri: str, date: str | None) -> Selection | None:
    """Return what the TimeGate of an archive names; None if the archive has no memento of the page.

    date: 14 digits; without one, the TimeGate selects the last memento.
    Raises ExcludedError, NotNowError, FailedError of kind `malformed` if the response does not name a memento.
    """
    headers = {} if date is None else {"Accept-Datetime": dates.to_http(date)}
    reply = await _response(archive, courier, f"{archive.timegate}{asked(uri)}", headers)
    with reply.body:
        if reply.header("memento-datetime") is None and not 300 <= reply.status < 400:
            if not holds_something(archive, reply):
                return None
            raise _malformed(archive, "a page without Memento-Datetime")
        links = links_of(reply)
        if links.original is not None and not same_page(joined(reply.url, links.original), uri):
            raise _malformed(archive, "a memento of another page")
    named = {joined(reply.url, each.uri): each.datetime for each in links.mementos}
    address, moment = await _selected(archive, courier, uri, reply, named, headers)
    if host_of(address) is None:
        raise _malformed(archive, "a memento without a web URL")
    rows = [Memento(when, archive.id, where) for where, when in {**named, address: moment}.items() if host_of(where)]
    return Selection(
        Mementos(rows),
        any(each.first for each in links.mementos),
        date is None or any(each.last for each in links.mementos),
    )


async def _response(archive: Archive, courier: Asks, address: str, headers: dict[str, str]) -> Reply:
    """Return the response of a TimeGate. A body that is too large does not matter."""
    partial = Partial()
    question = Question(address, Work.INDEX, headers, _MAX_BYTES, redirects=0, partial=partial)
    try:
        return await courier.ask(archive, question)
    except FailedError as error:
        if error.kind != "too-large" or partial.reply is None:
            raise
        return partial.reply


async def _selected(
    archive: Archive, courier: Asks, uri: str, reply: Reply, named: dict[str, str], headers: dict[str, str]
) -> tuple[str, str]:
    """Return the URL and the date of the memento that a TimeGate selected. Raises FailedError."""
    moment = reply.header("memento-datetime")
    location = reply.header("location") if 300 <= reply.status < 400 else None
    if location is None:
        try:
            return joined(reply.url, reply.header("content-location") or ""), dates.from_http(moment or "")
        except DateError as error:
            raise _malformed(archive, str(error)) from None
    target = joined(reply.url, location)
    if target in named:
        return target, named[target]
    copy = read_copy(target)
    if copy is not None and len(copy.datetime) == 14 and same_page(copy.uri, uri):
        return target, copy.datetime
    # It redirects to another TimeGate, or to a memento whose URL has no date.
    try:
        arrival = await Replay(archive, courier, Problems()).arrive(uri, target, headers, stop_at_date=True)
    except FailedError as error:  # of that URL: the TimeGate itself has responded
        raise _malformed(archive, f"a redirect that cannot be followed ({error})") from None
    if arrival is None:
        raise _malformed(archive, "a redirect to a memento that does not exist")
    arrival.reply.body.close()
    return arrival.address, arrival.datetime


def _malformed(archive: Archive, found: str) -> FailedError:
    return FailedError(f"expected the response of a TimeGate, found {found}", archive.id, "malformed")
