"""Which servers a made-up web has: traits, and the shares of hosts that have them."""

from dataclasses import dataclass
from typing import Final

from unlost.errors import UsageError

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
                **{trait: share * 8 // 10 for trait, share in _HONEST_SHARES.items()}, "date-frozen": 25, "tag-frozen": 25,
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
