"""A simulated web: servers with known traits, and pages that change at known times.

`simulate_visits` yields what each visit to each page receives.
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
"""Everything that a made-up server may be, in words."""


@dataclass(frozen=True, slots=True)
class ServerMixture:
    """A made-up web.

    shares: how many hosts have each trait, against each other.
    """

    name: str
    description: str
    shares: dict[str, int]


_HONEST_SHARES = {"honest": 500, "date-only": 200, "tag-only": 100, "weak-tags": 100, "gzip-tags": 100}
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
"""The webs that can be made up. Their shares follow what is known of real servers: of the study, how many hosts sent an
ETag, how many dates changed without need, and how many hosts lied. docs/refresh.md says what was set later."""


def get_mixture(name: str) -> ServerMixture:
    """Return a mixture by its name. Raises UsageError."""
    if name not in MIXTURES:
        raise UsageError(f"{name[:40]}: no such mixture; there are {', '.join(MIXTURES)}")
    return MIXTURES[name]


WEEK = 7 * 86_400
FROZEN_DATE = 1_690_000_000  # seconds since 1970, before the first visit


@dataclass(slots=True)
class SimulatedResponse:
    """An answer before and after its server's trait.

    body, text: what stands for their digests. size: bytes of the body. changed: when, by what its server can tell.
    time: of the visit. number: which visit to the page it is, from 0. Headers: None if they are not sent.
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
    """Return seconds since 1970 as an HTTP date."""
    return to_http(from_epoch(str(int(seconds))))


def apply_trait(trait: str, response: SimulatedResponse, random: Random) -> None:
    """Change an honest answer to what a server with a trait sends."""
    for field in _OMITTED_HEADERS.get(trait, ()):
        setattr(response, field, None)
    if trait in _TRAIT_FUNCTIONS:
        _TRAIT_FUNCTIONS[trait](response, random)


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


def _inode_tags(answer: SimulatedResponse, random: Random) -> None:
    answer.tag = f'"{random.randint(1, 3):x}{(answer.tag or "")[1:]}'


def _date_now(answer: SimulatedResponse, random: Random) -> None:
    del random
    answer.date = format_http_date(answer.time)


def _date_frozen(answer: SimulatedResponse, random: Random) -> None:
    del random
    answer.date = format_http_date(FROZEN_DATE)


def _tag_frozen(answer: SimulatedResponse, random: Random) -> None:
    del random
    answer.tag, answer.date = '"frozen"', format_http_date(FROZEN_DATE)


def _session_id(answer: SimulatedResponse, random: Random) -> None:
    answer.body += f" {random.getrandbits(64)}"
    answer.date = format_http_date(FROZEN_DATE)


def _counter(answer: SimulatedResponse, random: Random) -> None:
    del random
    answer.body += f" {answer.number}"


def _weak_tags(answer: SimulatedResponse, random: Random) -> None:
    del random
    answer.tag = f"W/{answer.tag}"


def _gzip_tags(answer: SimulatedResponse, random: Random) -> None:
    if random.random() < 0.5:
        answer.tag = f'{(answer.tag or "")[:-1]}-gzip"'


def _malformed_dates(answer: SimulatedResponse, random: Random) -> None:
    del random
    answer.date = f"{answer.changed} o'clock"


def _flapping(answer: SimulatedResponse, random: Random) -> None:
    answer.tag = None if random.random() < 0.3 else answer.tag
    answer.date = None if random.random() < 0.3 else answer.date


def _variants(answer: SimulatedResponse, random: Random) -> None:
    answer.body += f" variant {random.randint(0, 1)}"


def _soft_404(answer: SimulatedResponse, random: Random) -> None:
    if random.random() < 0.04:
        answer.body = answer.text = "sorry"
        answer.tag = answer.date = None
        answer.size = answer.length = 700


def _digests(answer: SimulatedResponse, random: Random) -> None:
    _date_now(answer, random)
    answer.repr_digest = f"sha-256=:{answer.body}:"


def _cached(answer: SimulatedResponse, random: Random) -> None:
    del random
    answer.cache = f"max-age={WEEK}"


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
