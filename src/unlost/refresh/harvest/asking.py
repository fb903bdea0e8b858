"""Asks for one page, through its redirects: what a chain ends in stands under the address at its beginning."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from unlost.archives.asking.addresses import parse, target_of
from unlost.crawl.contents import REDIRECTS
from unlost.crawl.polite import PoliteVisitor
from unlost.crawl.visitor import Answer, Request
from unlost.dates import to_datetime
from unlost.errors import SiteError
from unlost.refresh.visit import Visit, from_headers

MAX_REDIRECTS = 5

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came for a page.

    last: the answer at the end. chain: the redirects that led there, the first one first.
    had_condition: whether the last request had one.
    """

    last: Answer
    chain: tuple[Answer, ...]
    had_condition: bool

    def close(self) -> None:
        """Let go of all bodies."""
        for answer in (*self.chain, self.last):
            answer.body.close()


@dataclass(frozen=True, slots=True)
class Question:
    """How to ask for a page.

    condition: what the copy that is held is known by, sent only to the address it came from: `final`.
    wants: whether the body is wanted, of a visit that has the headers; of an answer that is no success it is read.
    """

    uri: str
    method: str = "GET"
    condition: Headers = ()
    final: str | None = None
    wants: Callable[[Visit], bool] | None = None
    max_bytes: int = 64 << 20
    others: Headers = ()


async def ask(polite: PoliteVisitor, question: Question) -> Reply:
    """Return what comes. Raises SiteError and its kinds as `PoliteVisitor.visit`, of kind `redirects` for too many."""
    chain: list[Answer] = []
    address = question.uri
    try:
        while True:
            is_final = address == question.final
            headers = question.others + (question.condition if is_final else ())
            request = Request(address, question.method, headers, _wanting(question), question.max_bytes)
            answer = await polite.visit(request)
            target = _target(answer)
            if target is None:
                return Reply(answer, tuple(chain), bool(question.condition) and is_final)
            chain.append(answer)
            address = _next(chain, target)
    except BaseException:
        for each in chain:
            each.body.close()
        raise


def _next(chain: list[Answer], target: str) -> str:
    if len(chain) > MAX_REDIRECTS or target in {each.uri for each in chain}:
        raise SiteError(f"more than {MAX_REDIRECTS} redirects, or in a circle", "redirects")
    return target


def _wanting(question: Question) -> bool | Callable[[int, Headers], bool]:
    wants = question.wants
    if wants is None:
        return True

    def wanting(status: int, headers: Headers) -> bool:
        return not 200 <= status < 300 or wants(from_headers(question.uri, 0, status, lowered(headers)))

    return wanting


def _target(answer: Answer) -> str | None:
    location = answer.header("location")
    if answer.status not in REDIRECTS or not location:
        return None
    with suppress(ValueError):
        return str(target_of(location, parse(answer.uri)))
    return None


def lowered(headers: Headers) -> dict[str, str]:
    """Return headers by their names in lower case; of those that came twice the first."""
    return {name.lower(): value for name, value in reversed(headers)}


def visit_of(uri: str, answer: Answer) -> Visit:
    """Return what an answer says as a visit to a page, without digests."""
    time = int(to_datetime(answer.moment).timestamp()) * 1000
    return from_headers(uri, time, answer.status, lowered(answer.headers))
