"""How to ask for a page: by what the scheme would decide, and by how its host was measured to answer."""

from dataclasses import replace
from enum import Enum

from unlost.dates import from_epoch, to_http
from unlost.refresh.cells import format_cell, compute_cell
from unlost.refresh.harvest.held import PageSnapshot
from unlost.refresh.harvest.treatment import HostBehaviour
from unlost.refresh.policy import Policy, url_host
from unlost.refresh.visit import Visit

REQUEST_COST_BYTES = 700
"""What a request and the headers of its answer weigh, about: a HEAD in vain costs that."""

ABORT_COST_BYTES = 14_600
"""Bytes that are under way when a GET is broken off: ten segments, with which connections begin."""


DEFAULT_CHANGE_PROBABILITY = 0.116
"""That a page has changed, of which nothing is known: the share of changed pairs in the study of front pages."""


class FetchMethod(Enum):
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


def choose_fetch_method(
    policy: Policy,
    behaviour: HostBehaviour,
    snapshot: PageSnapshot | None,
    now: int,
    change_probability: float = DEFAULT_CHANGE_PROBABILITY,
) -> FetchMethod:
    """Return how to ask for a page.

    held: what is held of it; None if nothing is. now: milliseconds since 1970. chance: how likely it is that it changed
    meanwhile, as far as its past tells.

    >>> held = Held(Visit("http://a.example/", "sha1:A", etag='"1"'), None, "http://a.example/")
    >>> choose(Policy(), Treatment(), held, 0)
    <Way.GET: 'get'>
    """
    if snapshot is None or snapshot.visit.digest is None:
        return FetchMethod.GET
    host = url_host(snapshot.visit.uri)
    if _is_fresh(policy, host, snapshot.visit, now):
        return FetchMethod.SKIP
    as_before = replace(snapshot.visit, time=now, date=_http_date(now), age=None)
    if policy.decide(host, snapshot.visit, as_before).download:
        return FetchMethod.GET  # headers that say the same would not be believed
    if snapshot.validators and behaviour.matches_scheme:
        return FetchMethod.CONDITIONAL
    if behaviour.head_differs:
        return FetchMethod.ABORTED
    size = ABORT_COST_BYTES if snapshot.size is None else snapshot.size
    in_vain = (1 - change_probability) * min(size, ABORT_COST_BYTES)
    return FetchMethod.ABORTED if change_probability * REQUEST_COST_BYTES > in_vain else FetchMethod.HEAD


def _is_fresh(policy: Policy, host: str, last: Visit, now: int) -> bool:
    """Return whether the scheme believes a cache's permission alone: `max-age` or `Expires` that is not over yet."""
    if last.cache_control is None and last.expires is None:
        return False
    permitted = Visit(last.uri, date=last.date, cache_control=last.cache_control, expires=last.expires, time=last.time)
    this = Visit(last.uri, time=now)
    decision = policy.decide_cell(host, compute_cell(permitted, this), this)
    return format_cell(decision.cell).endswith(".fresh") and not decision.download and not decision.audit


def _http_date(milliseconds: int) -> str:
    return to_http(from_epoch(str(milliseconds // 1000)))
