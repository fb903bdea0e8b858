"""What to recover: start URLs, policy, scope and limits, and which captures to prefer.

Light: the command line imports it at start-up. Also the type of the callback that receives the events of a run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

EventCallback = Callable[[str, Mapping[str, object]], None]
"""Gets a word for what happened, and what there is to say about it; docs/recover.md lists them."""


class RecoverPolicy(StrEnum):
    """How the resources of a site are found."""

    NAIVE = "naive"
    """No listings: links are followed, and every archive is queried for every page."""
    KNOWLEDGEABLE = "knowledgeable"
    """Archives list what they hold. Links are followed; an archive whose listing lacks a URL is not queried for it."""
    EXHAUSTIVE = "exhaustive"
    """The same, and everything listed is fetched, whether or not a link points to it."""
    COMPLETE = "complete"
    """The default: as exhaustive, but crawl traps and duplicates in listings are left out, and reported."""

    @property
    def uses_listings(self) -> bool:
        """Whether everything listed is fetched."""
        return self in (RecoverPolicy.EXHAUSTIVE, RecoverPolicy.COMPLETE)


SELECTABLE_POLICIES = (RecoverPolicy.NAIVE, RecoverPolicy.KNOWLEDGEABLE, RecoverPolicy.EXHAUSTIVE)
"""The policies of the study, which can be chosen by name. COMPLETE applies where none is."""
CONFIRMATION_THRESHOLD = 20_000
"""Listed resources that are fetched without a confirmation. More take hours at the rates that archives allow."""
MAX_REQUISITE_FILES = 5_000
MAX_REQUISITE_BYTES = 1 << 30
"""How much is fetched from other hosts, unless a plan says otherwise."""


@dataclass(frozen=True, slots=True)
class RecoverOptions:
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
    page_requisites: whether to fetch style sheets, scripts, fonts, images and media that pages need from other hosts.
    requisite_files, requisite_bytes: how many of these to fetch at most, and how many bytes of them.
    requisite_lookups: how many archives to query at most for one of these, until one holds it.
    include_left_out: whether to fetch crawl traps and duplicates in listings, too; only COMPLETE leaves them out.
    at: the date, 1 to 14 digits, to which captures should be close; None for the last ones.
    first, last: the dates, 14 digits, between which captures must be; None for no end.
    most_recent: take the last capture, also where the archive changed its format and another did not.
    all_versions: recover every version, not only the best.
    drop_rejected: whether a page counts as missing if the quality verdict speaks against all its captures. Otherwise
        the best of them is kept and marked as doubtful.
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
    page_requisites: bool = True
    requisite_files: int = MAX_REQUISITE_FILES
    requisite_bytes: int = MAX_REQUISITE_BYTES
    requisite_lookups: int = 1
    include_left_out: bool = False
    policy: RecoverPolicy = RecoverPolicy.COMPLETE
    at: str | None = None
    first: str | None = None
    last: str | None = None
    most_recent: bool = False
    all_versions: bool = False
    drop_rejected: bool = False


_BOOLEAN_OPTIONS = (
    "page", "subdomains", "ignore_case", "page_requisites", "include_left_out", "most_recent", "all_versions",
    "drop_rejected",
)  # fmt: skip


def parse_options(values: object) -> RecoverOptions:
    """Return the plan that was stored as JSON; nothing in it is trusted. Raises ValueError, KeyError, TypeError.

    Version 0.1.0 had other names for two options, and other defaults, which are kept.
    """
    if not isinstance(values, dict) or not isinstance(values["url"], str):
        raise TypeError
    values = _migrate_options(values)
    if any(not isinstance(values.get(name, False), bool) for name in _BOOLEAN_OPTIONS):
        raise TypeError
    texts = {name: tuple(map(str, values[name])) for name in ("urls", "include", "exclude")}
    return RecoverOptions(**{**values, **texts, "policy": RecoverPolicy(values["policy"])})


def has_first_version_options(values: object) -> bool:
    """Return whether a stored plan is one of version 0.1.0, whose defaults were others."""
    return isinstance(values, dict) and "requisites" in values


def _migrate_options(values: dict[str, Any]) -> dict[str, Any]:
    if not has_first_version_options(values):
        return values
    kept, needed = values.get("keep_rejected", False), values["requisites"]
    if not isinstance(kept, bool) or not isinstance(needed, bool):
        raise TypeError
    found = {name: value for name, value in values.items() if name not in ("keep_rejected", "requisites")}
    return {**found, "page_requisites": needed, "drop_rejected": not kept}
