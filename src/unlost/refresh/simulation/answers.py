"""What a server with a trait makes of an honest answer."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from unlost.dates import from_epoch, to_http

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
