"""Queries the TimeGate of an archive for the memento of a page that is closest to a date (RFC 7089)."""

from dataclasses import dataclass

from unlost import dates
from unlost.archives.archive import Archive, RequestKind
from unlost.archives.asking.question import HttpClient, PartialResponse, HttpRequest, HttpResponse
from unlost.archives.clients.replay import ReplayClient, parse_link_headers
from unlost.archives.clients.statuses import has_content
from unlost.archives.clients.urims import url_host, join_url, parse_memento_url, is_same_page
from unlost.archives.spelling import normalize_input_url
from unlost.errors import DateError, FailedError
from unlost.formats.mementos import MementoTuple, Mementos
from unlost.formats.problems import Problems

_MAX_TIMEGATE_BYTES = 1 << 16  # of a response, which may be the memento itself: its headers are enough


@dataclass(frozen=True, slots=True)
class TimeGateResult:
    """The mementos that a TimeGate named: the one that it selected, and those of its Link header.

    knows_first, knows_last: whether the first and the last memento that the archive has are among them.
    """

    mementos: Mementos
    knows_first: bool = False
    knows_last: bool = False


async def query_timegate(archive: Archive, client: HttpClient, uri: str, date: str | None) -> TimeGateResult | None:
    """Return what the TimeGate of an archive names; None if the archive has no memento of the page.

    date: 14 digits; without one, the TimeGate selects the last memento.
    Raises ExcludedError, NotNowError, FailedError of kind `malformed` if the response does not name a memento.
    """
    headers = {} if date is None else {"Accept-Datetime": dates.to_http(date)}
    reply = await _query(archive, client, f"{archive.timegate}{normalize_input_url(uri)}", headers)
    with reply.body:
        if reply.header("memento-datetime") is None and not 300 <= reply.status < 400:
            if not has_content(archive, reply):
                return None
            raise _malformed_error(archive, "a page without Memento-Datetime")
        links = parse_link_headers(reply)
        if links.original is not None and not is_same_page(join_url(reply.url, links.original), uri):
            raise _malformed_error(archive, "a memento of another page")
    named = {join_url(reply.url, each.uri): each.datetime for each in links.mementos}
    address, moment = await _selected_memento(archive, client, uri, reply, named, headers)
    if url_host(address) is None:
        raise _malformed_error(archive, "a memento without a web URL")
    rows = [
        MementoTuple(when, archive.id, where) for where, when in {**named, address: moment}.items() if url_host(where)
    ]
    return TimeGateResult(
        Mementos(rows),
        any(each.first for each in links.mementos),
        date is None or any(each.last for each in links.mementos),
    )


async def _query(archive: Archive, client: HttpClient, address: str, headers: dict[str, str]) -> HttpResponse:
    """Return the response of a TimeGate. A body that is too large does not matter."""
    partial = PartialResponse()
    question = HttpRequest(address, RequestKind.INDEX, headers, _MAX_TIMEGATE_BYTES, max_redirects=0, partial=partial)
    try:
        return await client.send(archive, question)
    except FailedError as error:
        if error.kind != "too-large" or partial.response is None:
            raise
        return partial.response


async def _selected_memento(
    archive: Archive,
    client: HttpClient,
    uri: str,
    response: HttpResponse,
    named: dict[str, str],
    headers: dict[str, str],
) -> tuple[str, str]:
    """Return the URL and the date of the memento that a TimeGate selected. Raises FailedError."""
    moment = response.header("memento-datetime")
    location = response.header("location") if 300 <= response.status < 400 else None
    if location is None:
        try:
            return join_url(response.url, response.header("content-location") or ""), dates.from_http(moment or "")
        except DateError as error:
            raise _malformed_error(archive, str(error)) from None
    target = join_url(response.url, location)
    if target in named:
        return target, named[target]
    copy = parse_memento_url(target)
    if copy is not None and len(copy.datetime) == 14 and is_same_page(copy.uri, uri):
        return target, copy.datetime
    # It redirects to another TimeGate, or to a memento whose URL has no date.
    try:
        arrival = await ReplayClient(archive, client, Problems()).resolve(uri, target, headers, stop_at_date=True)
    except FailedError as error:  # of that URL: the TimeGate itself has responded
        raise _malformed_error(archive, f"a redirect that cannot be followed ({error})") from None
    if arrival is None:
        raise _malformed_error(archive, "a redirect to a memento that does not exist")
    arrival.response.body.close()
    return arrival.url, arrival.datetime


def _malformed_error(archive: Archive, found: str) -> FailedError:
    return FailedError(f"expected the response of a TimeGate, found {found}", archive.id, "malformed")
