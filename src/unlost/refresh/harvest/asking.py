"""Asks for one page, through its redirects: what a chain ends in stands under the address at its beginning."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from unlost.archives.asking.addresses import parse_url, resolve_redirect
from unlost.crawl.contents import REDIRECT_STATUSES
from unlost.crawl.polite import PoliteFetcher
from unlost.crawl.visitor import FetchResponse, FetchRequest
from unlost.dates import to_datetime
from unlost.errors import SiteError
from unlost.refresh.visit import Visit, visit_from_headers

MAX_REDIRECTS = 5

PageHeaders = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class HarvestResponse:
    """What came for a page.

    last: the answer at the end. chain: the redirects that led there, the first one first.
    had_condition: whether the last request had one.
    """

    last: FetchResponse
    redirects: tuple[FetchResponse, ...]
    had_condition: bool

    def close(self) -> None:
        """Let go of all bodies."""
        for answer in (*self.redirects, self.last):
            answer.body.close()


@dataclass(frozen=True, slots=True)
class HarvestRequest:
    """How to ask for a page.

    condition: what the copy that is held is known by, sent only to the address it came from: `final`.
    wants: whether the body is wanted, of a visit that has the headers; of an answer that is no success it is read.
    """

    uri: str
    method: str = "GET"
    condition: PageHeaders = ()
    final_url: str | None = None
    wants_body: Callable[[Visit], bool] | None = None
    max_bytes: int = 64 << 20
    extra_headers: PageHeaders = ()


async def fetch_page(fetcher: PoliteFetcher, page_request: HarvestRequest) -> HarvestResponse:
    """Return what comes. Raises SiteError and its kinds as `PoliteVisitor.visit`, of kind `redirects` for too many."""
    chain: list[FetchResponse] = []
    address = page_request.uri
    try:
        while True:
            is_final = address == page_request.final_url
            headers = page_request.extra_headers + (page_request.condition if is_final else ())
            request = FetchRequest(
                address, page_request.method, headers, _body_predicate(page_request), page_request.max_bytes
            )
            answer = await fetcher.fetch(request)
            target = _redirect_target(answer)
            if target is None:
                return HarvestResponse(answer, tuple(chain), bool(page_request.condition) and is_final)
            chain.append(answer)
            address = _follow_redirect(chain, target)
    except BaseException:
        for each in chain:
            each.body.close()
        raise


def _follow_redirect(redirects: list[FetchResponse], target: str) -> str:
    if len(redirects) > MAX_REDIRECTS or target in {each.uri for each in redirects}:
        raise SiteError(f"more than {MAX_REDIRECTS} redirects, or in a circle", "redirects")
    return target


def _body_predicate(request: HarvestRequest) -> bool | Callable[[int, PageHeaders], bool]:
    wants = request.wants_body
    if wants is None:
        return True

    def wanting(status: int, headers: PageHeaders) -> bool:
        return not 200 <= status < 300 or wants(visit_from_headers(request.uri, 0, status, lowercase_names(headers)))

    return wanting


def _redirect_target(response: FetchResponse) -> str | None:
    location = response.header("location")
    if response.status not in REDIRECT_STATUSES or not location:
        return None
    with suppress(ValueError):
        return str(resolve_redirect(location, parse_url(response.uri)))
    return None


def lowercase_names(headers: PageHeaders) -> dict[str, str]:
    """Return headers by their names in lower case; of those that came twice the first."""
    return {name.lower(): value for name, value in reversed(headers)}


def visit_from_response(uri: str, response: FetchResponse) -> Visit:
    """Return what an answer says as a visit to a page, without digests."""
    time = int(to_datetime(response.requested_at).timestamp()) * 1000
    return visit_from_headers(uri, time, response.status, lowercase_names(response.headers))
