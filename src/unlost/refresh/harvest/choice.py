"""How to ask for a page: by what the scheme would decide, and by how its host was measured to answer."""

from dataclasses import replace
from enum import Enum

from unlost.dates import from_epoch, to_http
from unlost.refresh.cells import cell_name, cell_of
from unlost.refresh.harvest.held import Held
from unlost.refresh.harvest.treatment import Treatment
from unlost.refresh.policy import Policy, host_of
from unlost.refresh.visit import Visit

REQUEST_BYTES = 700
"""What a request and the headers of its answer weigh, about: a HEAD in vain costs that."""

UNDER_WAY = 14_600
"""Bytes that are under way when a GET is broken off: ten segments, with which connections begin."""


USUAL_CHANCE = 0.116
"""That a page has changed, of which nothing is known: the share of changed pairs in the study of front pages."""


class Way(Enum):
    """How a page is asked for."""

    SKIP = "skip"
    """Not at all: a cache may keep it still, and the scheme believes that."""
    HEAD = "head"
    """For its headers; then GET if they say so."""
    ABORTED = "aborted"
    """GET, broken off behind the headers unless they say that it changed."""
    CONDITIONAL = "conditional"
    """GET with what the last answer was known by; 304 is believed. Broken off like the one above."""
    GET = "get"
    """The whole page, whatever its headers say."""


def choose(policy: Policy, treatment: Treatment, held: Held | None, now: int, chance: float = USUAL_CHANCE) -> Way:
    """Return how to ask for a page.

    held: what is held of it; None if nothing is. now: milliseconds since 1970. chance: how likely it is that it changed
    meanwhile, as far as its past tells.

    >>> held = Held(Visit("http://a.example/", "sha1:A", etag='"1"'), None, "http://a.example/")
    >>> choose(Policy(), Treatment(), held, 0)
    <Way.GET: 'get'>
    """
    if held is None or held.visit.digest is None:
        return Way.GET
    host = host_of(held.visit.uri)
    if _keeps(policy, host, held.visit, now):
        return Way.SKIP
    as_before = replace(held.visit, time=now, date=_http_date(now), age=None)
    if policy.decide(host, held.visit, as_before).download:
        return Way.GET  # headers that say the same would not be believed
    if held.validators and treatment.equals_scheme:
        return Way.CONDITIONAL
    if treatment.head_differs:
        return Way.ABORTED
    size = UNDER_WAY if held.size is None else held.size
    in_vain = (1 - chance) * min(size, UNDER_WAY)
    return Way.ABORTED if chance * REQUEST_BYTES > in_vain else Way.HEAD


def _keeps(policy: Policy, host: str, last: Visit, now: int) -> bool:
    """Return whether the scheme believes a cache's permission alone: `max-age` or `Expires` that is not over yet."""
    if last.cache_control is None and last.expires is None:
        return False
    permitted = Visit(last.uri, date=last.date, cache_control=last.cache_control, expires=last.expires, time=last.time)
    this = Visit(last.uri, time=now)
    decision = policy.decide_cell(host, cell_of(permitted, this), this)
    return cell_name(decision.cell).endswith(".fresh") and not decision.download and not decision.audit


def _http_date(milliseconds: int) -> str:
    return to_http(from_epoch(str(milliseconds // 1000)))
