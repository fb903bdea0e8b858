"""What is to be recovered, and which captures of it are wanted."""

from dataclasses import dataclass
from enum import StrEnum


class Policy(StrEnum):
    """How the resources of a site are found."""

    NAIVE = "naive"
    """No lister queries: links are followed, and every archive is asked for every page."""
    KNOWLEDGEABLE = "knowledgeable"
    """Archives are asked what they hold; links are followed, and who is known to have nothing is not asked."""
    EXHAUSTIVE = "exhaustive"
    """The same, and everything that is listed is wanted, whether or not a link leads to it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What somebody wants back.

    url: where to begin; its folder is the scope, unless something else is said.
    urls: further addresses to begin from; they are wanted whatever the scope.
    page: only what was named, with what is needed to show it; no links are followed.
    subdomains: whether the other hosts of the domain belong to the site.
    depth: how many links away from a beginning a page may be; None for any number.
    limit: how many resources to recover at most.
    include, exclude: regular expressions, searched for in addresses: one of `include` must be found, if there are any,
        and none of `exclude`.
    ignore_case: whether addresses that differ only in letter case are one.
    requisites: whether images, style sheets, scripts and fonts on other hosts are wanted, too.
    at: the date, 1 to 14 digits, to which captures should be close; None for the last ones.
    first, last: the dates, 14 digits, between which captures must be; None for no end.
    most_recent: take the last capture, also where the archive changed its format and another did not.
    all_versions: recover every version, not only the best.
    keep_rejected: take pages for what their status says, whatever they say themselves.
    """

    url: str
    urls: tuple[str, ...] = ()
    page: bool = False
    subdomains: bool = False
    depth: int | None = None
    limit: int | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    ignore_case: bool = False
    requisites: bool = False
    policy: Policy = Policy.KNOWLEDGEABLE
    at: str | None = None
    first: str | None = None
    last: str | None = None
    most_recent: bool = False
    all_versions: bool = False
    keep_rejected: bool = False


_SWITCHES = ("page", "subdomains", "ignore_case", "requisites", "most_recent", "all_versions", "keep_rejected")


def plan_of(values: object) -> Plan:
    """Return the plan that was kept as JSON, of which nothing is believed. Raises ValueError, KeyError, TypeError."""
    if not isinstance(values, dict) or not isinstance(values["url"], str):
        raise TypeError
    if any(not isinstance(values.get(name, False), bool) for name in _SWITCHES):
        raise TypeError
    texts = {name: tuple(map(str, values[name])) for name in ("urls", "include", "exclude")}
    return Plan(**{**values, **texts, "policy": Policy(values["policy"])})
