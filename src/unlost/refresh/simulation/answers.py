"""What a server with a trait makes of an honest answer."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from unlost.dates import from_epoch, to_http

WEEK = 7 * 86_400
LONG_AGO = 1_690_000_000  # seconds since 1970, before the first visit


@dataclass(slots=True)
class Answer:
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


def http_date(seconds: float) -> str:
    """Return seconds since 1970 as an HTTP date."""
    return to_http(from_epoch(str(int(seconds))))


def misbehave(trait: str, answer: Answer, random: Random) -> None:
    """Change an honest answer to what a server with a trait sends."""
    for field in _NOT_SENT.get(trait, ()):
        setattr(answer, field, None)
    if trait in _TRICKS:
        _TRICKS[trait](answer, random)


_NOT_SENT: dict[str, tuple[str, ...]] = {
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


def _inode_tags(answer: Answer, random: Random) -> None:
    answer.tag = f'"{random.randint(1, 3):x}{(answer.tag or "")[1:]}'


def _date_now(answer: Answer, random: Random) -> None:
    del random
    answer.date = http_date(answer.time)


def _date_frozen(answer: Answer, random: Random) -> None:
    del random
    answer.date = http_date(LONG_AGO)


def _tag_frozen(answer: Answer, random: Random) -> None:
    del random
    answer.tag, answer.date = '"frozen"', http_date(LONG_AGO)


def _session_id(answer: Answer, random: Random) -> None:
    answer.body += f" {random.getrandbits(64)}"
    answer.date = http_date(LONG_AGO)


def _counter(answer: Answer, random: Random) -> None:
    del random
    answer.body += f" {answer.number}"


def _weak_tags(answer: Answer, random: Random) -> None:
    del random
    answer.tag = f"W/{answer.tag}"


def _gzip_tags(answer: Answer, random: Random) -> None:
    if random.random() < 0.5:
        answer.tag = f'{(answer.tag or "")[:-1]}-gzip"'


def _malformed_dates(answer: Answer, random: Random) -> None:
    del random
    answer.date = f"{answer.changed} o'clock"


def _flapping(answer: Answer, random: Random) -> None:
    answer.tag = None if random.random() < 0.3 else answer.tag
    answer.date = None if random.random() < 0.3 else answer.date


def _variants(answer: Answer, random: Random) -> None:
    answer.body += f" variant {random.randint(0, 1)}"


def _soft_404(answer: Answer, random: Random) -> None:
    if random.random() < 0.04:
        answer.body = answer.text = "sorry"
        answer.tag = answer.date = None
        answer.size = answer.length = 700


def _digests(answer: Answer, random: Random) -> None:
    _date_now(answer, random)
    answer.repr_digest = f"sha-256=:{answer.body}:"


def _cached(answer: Answer, random: Random) -> None:
    del random
    answer.cache = f"max-age={WEEK}"


_TRICKS: dict[str, Callable[[Answer, Random], None]] = {
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
