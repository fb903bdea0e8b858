"""The made-up web: hosts with a trait, pages that change at times that are known, and what each visit gets."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

from unlost.refresh.simulation.answers import WEEK, SimulatedResponse, format_http_date, apply_trait
from unlost.refresh.simulation.mixtures import ServerMixture
from unlost.refresh.visit import Visit

_START_TIME = 1_700_000_000  # seconds since 1970; any date would do
_DAY = 86_400
_VISIT_INTERVAL = 2 * _DAY  # between two visits, as in the study
_JITTER = 3 * 3600  # seconds by which visits come late
_SIZES = (7.5, 1.2)  # of the logarithm of bytes: 1.8 kB in the middle, 3.7 kB on average, as in the study
_SAME_SIZE_SHARE = 0.02  # of changes keep the size of the body
_UNCHANGING_SHARE = 0.35  # of pages never change
_RATES = (-2.0, 1.2)  # of the logarithm of changes a visit, of the others: as in the study, one pair in nine changed
_HEADER_BYTES = 350


@dataclass(frozen=True, slots=True)
class SimulatedVisit:
    """What one visit got.

    visit: as a log would have it after a GET. head: as HEAD would have shown it.
    size: bytes of the body. not_modified: what a conditional request gets, if the copy of the visit before is held:
    True for 304. unsolicited: whether a plain GET got 304 first, and had to be sent again.
    """

    visit: Visit
    head: Visit
    size: int
    not_modified: bool
    has_unsolicited_304: bool


@dataclass(frozen=True, slots=True)
class _SimulatedPage:
    """A page: when it changes, and what each version is.

    sizes: of each version. hidden: versions that keep date and tag of the one before, as edits of the same second do.
    """

    uri: str
    changes: list[float]
    sizes: list[int]
    hidden: frozenset[int]


def simulate_visits(mixture: ServerMixture, hosts: int, visits: int, seed: int) -> Iterator[list[list[SimulatedVisit]]]:
    """Yield the pages of one host after the other, each as what its visits got, in the order of time.

    The same arguments make the same web.
    """
    random = Random(f"{mixture.name} {seed}")  # noqa: S311  a simulation
    traits = random.choices(list(mixture.shares), list(mixture.shares.values()), k=hosts)
    for number, trait in enumerate(traits):
        yield list(_simulate_host(f"h{number}.example", trait, visits, random))


def _simulate_host(host: str, trait: str, visits: int, random: Random) -> Iterator[list[SimulatedVisit]]:
    skew = random.randint(-_DAY, _DAY) if trait == "clock-skew" else 0
    times = [_START_TIME + at * _VISIT_INTERVAL + random.randint(0, _JITTER) for at in range(visits)]
    for number in range(min(30, 1 + int(random.expovariate(0.3)))):
        page = _simulate_page(f"http://{host}/{number}", trait, times[-1] - _START_TIME, random)
        yield _add_not_modified(
            [_simulate_visit(page, trait, time, skew, at, random) for at, time in enumerate(times)], trait
        )


def _simulate_page(uri: str, trait: str, span: float, random: Random) -> _SimulatedPage:
    changes: list[float] = [_START_TIME - random.expovariate(1 / (100 * _DAY))]
    if random.random() >= _UNCHANGING_SHARE:
        rate = random.lognormvariate(*_RATES) / _VISIT_INTERVAL
        at = _START_TIME + random.expovariate(rate)
        while at < _START_TIME + span:
            if trait == "cached":
                at += WEEK  # its author waits until no cache has the version before
            changes.append(at)
            at += random.expovariate(rate)
    sizes = [int(random.lognormvariate(*_SIZES)) + 200]
    hidden = set()
    for version in range(1, len(changes)):
        hides = trait == "same-second" and random.random() < 0.02
        same = hides or random.random() < _SAME_SIZE_SHARE
        sizes.append(sizes[-1] if same else max(200, sizes[-1] + random.randint(-400, 500) or 1))
        if hides:
            hidden.add(version)
    return _SimulatedPage(uri, changes, sizes, frozenset(hidden))


def _simulate_visit(
    page: _SimulatedPage, trait: str, time: int, skew: int, number: int, random: Random
) -> SimulatedVisit:
    moment = float(time)
    age = None
    if trait == "stale-node" and random.random() < 0.2:
        age = random.randint(3600, 5 * _DAY)
        moment = time - age
    version = max(0, bisect_right(page.changes, moment) - 1)
    shown = version
    while shown in page.hidden:
        shown -= 1  # what date and tag tell
    changed = format_http_date(page.changes[shown] + skew)
    answer = SimulatedResponse(
        body=f"{page.uri} {version}",
        text=f"text {page.uri} {version}",
        size=page.sizes[version],
        changed=changed,
        time=time,
        number=number,
        tag=f'"{page.uri[-6:]}-{shown:x}-{page.sizes[shown]:x}"',
        date=changed,
        length=page.sizes[version],
    )
    apply_trait(trait, answer, random)
    unsolicited = trait == "unsolicited-304" and random.random() < 0.1
    visit = Visit(
        page.uri,
        digest=answer.body,
        text_digest=answer.text,
        etag=answer.tag,
        last_modified=answer.date,
        date=format_http_date(time + skew),
        repr_digest=answer.repr_digest,
        cache_control=answer.cache,
        time=time * 1000,
        content_length=answer.length,
        age=age,
        server=trait,
    )
    head = replace(visit, digest=None, text_digest=None)
    if trait == "head-differs":
        head = replace(head, etag=None, content_length=None)
    return SimulatedVisit(visit, head, answer.size + _HEADER_BYTES, False, unsolicited)


def _add_not_modified(visits: list[SimulatedVisit], trait: str) -> list[SimulatedVisit]:
    """Add what a conditional request gets: 304 if what is sent back is what the server has, as most servers decide."""
    compared = visits[:1]
    for last, this in pairwise(visits):
        before, now = last.visit, this.visit
        if before.etag is not None:
            same = now.etag is not None and now.etag.removeprefix("W/") == before.etag.removeprefix("W/")
        else:
            same = before.last_modified is not None and now.last_modified == before.last_modified
        answered = trait == "always-304" or (trait != "never-304" and same)
        compared.append(replace(this, not_modified=answered and (before.etag or before.last_modified) is not None))
    return compared


HEADER_BYTES = _HEADER_BYTES
"""Bytes of the headers of an answer."""
