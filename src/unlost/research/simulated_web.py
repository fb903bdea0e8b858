"""A simulated web: servers with known traits, and pages that change at known times.

`simulate_visits` yields the responses to each visit of each page.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import Final

from unlost.dates import from_epoch, to_http
from unlost.errors import UsageError
from unlost.refresh.visit import Visit

TRAITS: Final = {
    "honest": "a strong ETag of the content, the date of the last change, Content-Length",
    "date-only": "the date of the last change, no ETag",
    "tag-only": "an ETag of the content, no date",
    "neither": "neither ETag nor date",
    "inode-tags": "ETags with the inode of one of three back ends; the date is right",
    "date-now": "Last-Modified is always the moment of the answer; no ETag",
    "date-now-tagged": "the same, beside an ETag of the content",
    "date-frozen": "Last-Modified never changes; no ETag",
    "tag-frozen": "ETag and date never change",
    "session-id": "a session id in the links of every body; the date is that of the template, no ETag",
    "counter": "a counter of visits in every body; ETag and date are those of the file",
    "weak-tags": "weak ETags of the content, the date is right",
    "gzip-tags": "ETags that end in -gzip at every other visit, no date",
    "clock-skew": "the clock is off by up to a day, and so is the date, which is right otherwise",
    "malformed-dates": "dates that no standard has, no ETag",
    "flapping": "ETag and date each missing at three of ten visits; right when they are there",
    "never-304": "as honest, but conditional requests get the whole page",
    "always-304": "as honest, but conditional requests get 304, whatever changed",
    "unsolicited-304": "as honest, but one in ten plain requests gets 304",
    "head-differs": "as honest, but HEAD has no ETag and no Content-Length",
    "stale-node": "one in five visits meets a cache with the copy of up to five days ago, and its headers, with Age",
    "variants": "one of two variants of each body, at random; ETag and date know nothing of it",
    "soft-404": "one visit in 25 gets a page of excuses with status 200, without ETag and date",
    "same-second": "ETag of date and size; one change in 50 keeps both",
    "digests": "no ETag, Last-Modified is always now, but Repr-Digest is right",
    "length-only": "Last-Modified never changes and there is no ETag, but Content-Length tells most changes",
    "cached": "max-age of a week, kept by the author: nothing changes before; no date, no ETag",
}
"""Traits of simulated servers, with a description."""

_HONEST_SHARES = {"honest": 500, "date-only": 200, "tag-only": 100, "weak-tags": 100, "gzip-tags": 100}

WEEK = 7 * 86_400
FROZEN_DATE = 1_690_000_000  # seconds since the epoch; before the first visit

_OMITTED_HEADERS: dict[str, tuple[str, ...]] = {
    "date-only": ("tag",),
    "tag-only": ("date",),
    "neither": ("tag", "date"),
    "date-now": ("tag", "length"),
    "date-now-tagged": ("length",),
    "date-frozen": ("tag", "length"),
    "tag-frozen": ("length",),
    "session-id": ("tag", "length"),
    "counter": ("length",),
    "weak-tags": ("length",),  # compressed on the fly
    "gzip-tags": ("date", "length"),
    "malformed-dates": ("tag",),
    "variants": ("length",),
    "digests": ("tag", "length"),
    "length-only": ("tag",),
    "cached": ("tag", "date"),
}

_START_TIME = 1_700_000_000  # seconds since the epoch; arbitrary
_DAY_SECONDS = 86_400
_VISIT_INTERVAL = 2 * _DAY_SECONDS  # as in the study
_JITTER = 3 * 3600  # maximum delay of a visit in seconds
_SIZES = (7.5, 1.2)  # log-normal distribution of body sizes: median 1.8 kB, mean 3.7 kB, as in the study
_SAME_SIZE_SHARE = 0.02  # changes that keep the body size
_UNCHANGING_SHARE = 0.35  # pages that never change
_RATES = (-2.0, 1.2)  # log-normal distribution of changes per visit of the others; as in the study, 1 pair in 9 changed
HEADER_BYTES = 350
"""Size of the headers of a response in bytes."""


@dataclass(frozen=True, slots=True)
class ServerMixture:
    """A mixture of servers.

    Attributes:
        shares: Relative frequency of each trait.
    """

    name: str
    description: str
    shares: dict[str, int]


MIXTURES: Final = {
    one.name: one
    for one in (
        ServerMixture("honest", "every header is right, though not every host sends all of them", _HONEST_SHARES),
        ServerMixture(
            "study",
            "close to the study of Danish front pages: many without ETag and with a date that is always now, few liars",
            {
                "honest": 47_000, "inode-tags": 8_000, "date-only": 2_000, "date-now": 38_500, "neither": 200,
                "flapping": 1_700, "same-second": 2_000, "clock-skew": 200, "date-frozen": 5, "session-id": 13,
                "tag-frozen": 2, "counter": 2,
            },
        ),
        ServerMixture(
            "liars",
            "one host in ten says `same` when pages change",
            {
                **{trait: share * 8 // 10 for trait, share in _HONEST_SHARES.items()}, "date-frozen": 25,
                "tag-frozen": 25,
                "session-id": 25, "counter": 15, "variants": 10, "same-second": 60, "date-now": 40,
            },
        ),
        ServerMixture(
            "modern",
            "content networks and applications: weak tags, coded tags, no dates, digests, caches",
            {
                "honest": 200, "weak-tags": 200, "gzip-tags": 150, "date-now-tagged": 100, "digests": 100,
                "cached": 50, "stale-node": 60, "neither": 100, "head-differs": 20, "soft-404": 20,
            },
        ),
        ServerMixture(
            "everything",
            "every misbehaviour there is",
            {"honest": 270, "date-only": 100, **{
                trait: 26 for trait in TRAITS if trait not in {"honest", "date-only"}
            }},
        ),
    )
}  # fmt: skip
"""Available mixtures.

Their shares follow the study: how many hosts sent an ETag, changed Last-Modified without a change of the page, or sent
wrong validators. docs/refresh.md lists later adjustments.
"""


def get_mixture(name: str) -> ServerMixture:
    """Return a mixture by name.

    Raises:
        UsageError: There is no such mixture.
    """
    if name not in MIXTURES:
        raise UsageError(f"{name[:40]}: no such mixture; there are {', '.join(MIXTURES)}")
    return MIXTURES[name]


@dataclass(slots=True)
class SimulatedResponse:
    """A response, before and after the trait of its server is applied. A header is None if it is not sent.

    Attributes:
        body: Represents the digest of the body.
        text: Represents the digest of the text.
        size: Size of the body in bytes.
        changed: Time of the last change according to the server.
        time: Time of the visit.
        number: Number of the visit to the page, from 0.
    """

    body: str
    text: str
    size: int
    changed: str
    time: int
    number: int
    tag: str | None
    date: str | None
    length: int | None
    repr_digest: str | None = None
    cache: str | None = None


def format_http_date(seconds: float) -> str:
    """Return seconds since the epoch as an HTTP date."""
    return to_http(from_epoch(str(int(seconds))))


def apply_trait(trait: str, response: SimulatedResponse, random: Random) -> None:
    """Modify a correct response according to a trait."""
    for field in _OMITTED_HEADERS.get(trait, ()):
        setattr(response, field, None)
    if trait in _TRAIT_FUNCTIONS:
        _TRAIT_FUNCTIONS[trait](response, random)


def _inode_tags(response: SimulatedResponse, random: Random) -> None:
    response.tag = f'"{random.randint(1, 3):x}{(response.tag or "")[1:]}'


def _date_now(response: SimulatedResponse, random: Random) -> None:
    del random
    response.date = format_http_date(response.time)


def _date_frozen(response: SimulatedResponse, random: Random) -> None:
    del random
    response.date = format_http_date(FROZEN_DATE)


def _tag_frozen(response: SimulatedResponse, random: Random) -> None:
    del random
    response.tag, response.date = '"frozen"', format_http_date(FROZEN_DATE)


def _session_id(response: SimulatedResponse, random: Random) -> None:
    response.body += f" {random.getrandbits(64)}"
    response.date = format_http_date(FROZEN_DATE)


def _counter(response: SimulatedResponse, random: Random) -> None:
    del random
    response.body += f" {response.number}"


def _weak_tags(response: SimulatedResponse, random: Random) -> None:
    del random
    response.tag = f"W/{response.tag}"


def _gzip_tags(response: SimulatedResponse, random: Random) -> None:
    if random.random() < 0.5:
        response.tag = f'{(response.tag or "")[:-1]}-gzip"'


def _malformed_dates(response: SimulatedResponse, random: Random) -> None:
    del random
    response.date = f"{response.changed} o'clock"


def _flapping(response: SimulatedResponse, random: Random) -> None:
    response.tag = None if random.random() < 0.3 else response.tag
    response.date = None if random.random() < 0.3 else response.date


def _variants(response: SimulatedResponse, random: Random) -> None:
    response.body += f" variant {random.randint(0, 1)}"


def _soft_404(response: SimulatedResponse, random: Random) -> None:
    if random.random() < 0.04:
        response.body = response.text = "sorry"
        response.tag = response.date = None
        response.size = response.length = 700


def _digests(response: SimulatedResponse, random: Random) -> None:
    _date_now(response, random)
    response.repr_digest = f"sha-256=:{response.body}:"


def _cached(response: SimulatedResponse, random: Random) -> None:
    del random
    response.cache = f"max-age={WEEK}"


_TRAIT_FUNCTIONS: dict[str, Callable[[SimulatedResponse, Random], None]] = {
    "inode-tags": _inode_tags,
    "date-now": _date_now,
    "date-now-tagged": _date_now,
    "date-frozen": _date_frozen,
    "length-only": _date_frozen,
    "tag-frozen": _tag_frozen,
    "session-id": _session_id,
    "counter": _counter,
    "weak-tags": _weak_tags,
    "gzip-tags": _gzip_tags,
    "malformed-dates": _malformed_dates,
    "flapping": _flapping,
    "variants": _variants,
    "soft-404": _soft_404,
    "digests": _digests,
    "cached": _cached,
}


@dataclass(frozen=True, slots=True)
class SimulatedVisit:
    """Responses to one visit.

    Attributes:
        visit: As logged after a GET.
        head: As logged after a HEAD.
        size: Bytes of body and headers.
        not_modified: Whether a conditional GET with the validators of the previous visit returns 304.
        has_unsolicited_304: Whether a plain GET returned 304 first and had to be repeated.
    """

    visit: Visit
    head: Visit
    size: int
    not_modified: bool
    has_unsolicited_304: bool


@dataclass(frozen=True, slots=True)
class _SimulatedPage:
    """A page with its versions.

    Attributes:
        changes: Time of each version.
        sizes: Body size of each version.
        hidden: Versions with the date and ETag of the previous one, like edits within the same second.
    """

    uri: str
    changes: list[float]
    sizes: list[int]
    hidden: frozenset[int]


def simulate_visits(mixture: ServerMixture, hosts: int, visits: int, seed: int) -> Iterator[list[list[SimulatedVisit]]]:
    """Yield the pages of each host as lists of visits in chronological order. Equal arguments give equal results.

    Args:
        mixture: Mixture of servers.
        hosts: Number of hosts.
        visits: Visits per page.
        seed: Seed of the random numbers.
    """
    random = Random(f"{mixture.name} {seed}")  # noqa: S311  a simulation
    traits = random.choices(list(mixture.shares), list(mixture.shares.values()), k=hosts)
    for number, trait in enumerate(traits):
        yield list(_simulate_host(f"h{number}.example", trait, visits, random))


def _simulate_host(host: str, trait: str, visits: int, random: Random) -> Iterator[list[SimulatedVisit]]:
    skew = random.randint(-_DAY_SECONDS, _DAY_SECONDS) if trait == "clock-skew" else 0
    times = [_START_TIME + at * _VISIT_INTERVAL + random.randint(0, _JITTER) for at in range(visits)]
    for number in range(min(30, 1 + int(random.expovariate(0.3)))):
        page = _simulate_page(f"http://{host}/{number}", trait, times[-1] - _START_TIME, random)
        yield _add_not_modified(
            [_simulate_visit(page, trait, time, skew, at, random) for at, time in enumerate(times)], trait
        )


def _simulate_page(uri: str, trait: str, span: float, random: Random) -> _SimulatedPage:
    changes: list[float] = [_START_TIME - random.expovariate(1 / (100 * _DAY_SECONDS))]
    if random.random() >= _UNCHANGING_SHARE:
        rate = random.lognormvariate(*_RATES) / _VISIT_INTERVAL
        change_time = _START_TIME + random.expovariate(rate)
        while change_time < _START_TIME + span:
            if trait == "cached":
                change_time += WEEK  # the author waits until all caches have expired
            changes.append(change_time)
            change_time += random.expovariate(rate)
    sizes = [int(random.lognormvariate(*_SIZES)) + 200]
    hidden = set()
    for version in range(1, len(changes)):
        is_hidden = trait == "same-second" and random.random() < 0.02
        keeps_size = is_hidden or random.random() < _SAME_SIZE_SHARE
        sizes.append(sizes[-1] if keeps_size else max(200, sizes[-1] + random.randint(-400, 500) or 1))
        if is_hidden:
            hidden.add(version)
    return _SimulatedPage(uri, changes, sizes, frozenset(hidden))


def _simulate_visit(
    page: _SimulatedPage, trait: str, time: int, skew: int, number: int, random: Random
) -> SimulatedVisit:
    effective_time = float(time)
    age = None
    if trait == "stale-node" and random.random() < 0.2:
        age = random.randint(3600, 5 * _DAY_SECONDS)
        effective_time = time - age
    version = max(0, bisect_right(page.changes, effective_time) - 1)
    visible = version
    while visible in page.hidden:
        visible -= 1  # the version that date and ETag indicate
    changed = format_http_date(page.changes[visible] + skew)
    response = SimulatedResponse(
        body=f"{page.uri} {version}",
        text=f"text {page.uri} {version}",
        size=page.sizes[version],
        changed=changed,
        time=time,
        number=number,
        tag=f'"{page.uri[-6:]}-{visible:x}-{page.sizes[visible]:x}"',
        date=changed,
        length=page.sizes[version],
    )
    apply_trait(trait, response, random)
    unsolicited = trait == "unsolicited-304" and random.random() < 0.1
    visit = Visit(
        page.uri,
        digest=response.body,
        text_digest=response.text,
        etag=response.tag,
        last_modified=response.date,
        date=format_http_date(time + skew),
        repr_digest=response.repr_digest,
        cache_control=response.cache,
        time=time * 1000,
        content_length=response.length,
        age=age,
        server=trait,
    )
    head = replace(visit, digest=None, text_digest=None)
    if trait == "head-differs":
        head = replace(head, etag=None, content_length=None)
    return SimulatedVisit(visit, head, response.size + HEADER_BYTES, False, unsolicited)


def _add_not_modified(visits: list[SimulatedVisit], trait: str) -> list[SimulatedVisit]:
    """Add the result of a conditional GET: 304 if the validators match, as most servers decide."""
    compared = visits[:1]
    for last, this in pairwise(visits):
        previous, current = last.visit, this.visit
        if previous.etag is not None:
            matches = current.etag is not None and current.etag.removeprefix("W/") == previous.etag.removeprefix("W/")
        else:
            matches = previous.last_modified is not None and current.last_modified == previous.last_modified
        is_not_modified = trait == "always-304" or (trait != "never-304" and matches)
        compared.append(
            replace(this, not_modified=is_not_modified and (previous.etag or previous.last_modified) is not None)
        )
    return compared
