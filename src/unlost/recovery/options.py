"""Options of a recovery: start URLs, policy, scope, limits, and preferred captures."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from unlost.errors import UsageError


class RecoverPolicy(StrEnum):
    """How the resources of a site are found."""

    NAIVE = "naive"
    """No listings: links are followed, and every archive is queried for every page."""
    KNOWLEDGEABLE = "knowledgeable"
    """Archives list what they hold. Links are followed; an archive whose listing lacks a URL is not queried for it."""
    EXHAUSTIVE = "exhaustive"
    """The same, and everything listed is fetched, whether or not a link points to it."""
    COMPLETE = "complete"
    """The default: like exhaustive, but crawl traps and duplicates in listings are left out and reported."""

    @property
    def uses_listings(self) -> bool:
        """Whether everything listed is fetched."""
        return self in (RecoverPolicy.EXHAUSTIVE, RecoverPolicy.COMPLETE)


SELECTABLE_POLICIES = (RecoverPolicy.NAIVE, RecoverPolicy.KNOWLEDGEABLE, RecoverPolicy.EXHAUSTIVE)
"""The policies of the original study, selectable by name. COMPLETE is the default."""
CONFIRMATION_THRESHOLD = 20_000
"""Number of listed resources fetched without confirmation. More take hours at the rates that archives allow."""
MAX_REQUISITE_FILES = 5_000
MAX_REQUISITE_BYTES = 1 << 30
"""Default limits on page requisites from other hosts."""


@dataclass(frozen=True, slots=True)
class RecoverOptions:
    """What to recover.

    Attributes:
        url: The start URL. Its folder is the scope, unless other options change it.
        urls: Further start URLs, which are recovered whether or not they are in scope.
        page: Recover only the start URLs and their page requisites; follow no links.
        subdomains: Whether the subdomains of the host belong to the site.
        depth: Maximum number of links between a start URL and a page; None for no limit.
        limit: Maximum number of resources to recover; None for no limit.
        include: Regular expressions searched for in URLs; unless empty, one must match.
        exclude: Regular expressions searched for in URLs; none may match.
        ignore_case: Whether URLs that differ only in letter case are the same resource.
        page_requisites: Whether to fetch style sheets, scripts, fonts, images and media that pages need from other
            hosts.
        requisite_files: Maximum number of page requisites from other hosts.
        requisite_bytes: Maximum total size of page requisites from other hosts.
        requisite_lookups: Maximum number of archives queried for a page requisite on another host.
        include_left_out: Whether to fetch crawl traps and duplicates in listings, which COMPLETE leaves out.
        policy: How resources are found.
        at: Preferred date of captures, 1 to 14 digits; None for the latest.
        first: Earliest date of captures, 14 digits; None for no limit.
        last: Latest date of captures, 14 digits; None for no limit.
        most_recent: Prefer the latest capture even if the archive migrated it to another format.
        all_versions: Recover every version instead of the best.
        drop_rejected: Whether a page is missing if the quality classifier rejects all its captures. Otherwise the best
            of them is stored and marked as doubtful.
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

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            UsageError: A number is too small, or options contradict each other.
        """
        for name, minimum in _MINIMA.items():
            number = getattr(self, name)
            if number is not None and number < minimum:
                raise UsageError(f"{name}: expected a number from {minimum} on, found {number}")
        if self.most_recent and self.at:
            raise UsageError("`most_recent` and `at` exclude each other: give one of them")
        if self.first and self.last and self.first > self.last:
            raise UsageError("`first` is later than `last`: nothing lies between")


_MINIMA = {"depth": 0, "limit": 1, "requisite_files": 0, "requisite_bytes": 0, "requisite_lookups": 1}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How one run of a recovery behaves. Unlike `RecoverOptions`, they are not stored.

    Attributes:
        connections: Maximum number of concurrent requests to one archive, within its rate limits.
        wait: Mean pause in seconds, randomized by half, between a response of an archive and the next request to it.
            If it is not 0, requests to an archive are sent one at a time.
        until_done: Whether to wait for archives that may not be queried now, however long.
        delay: Seconds between two requests to one host of the live site.
        contact: Email address or URL that is sent to the live site. Without one, the delay is doubled.
        proxies: Whether requests to the live site use the proxies that the environment names.
    """

    connections: int = 6
    wait: float = 0.0
    until_done: bool = False
    delay: float = 1.0
    contact: str | None = None
    proxies: bool = False

    def __post_init__(self) -> None:
        """Check the values. Raises UsageError."""
        if self.connections < 1:
            raise UsageError(f"connections: expected a number from 1 on, found {self.connections}")
        for name in ("wait", "delay"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name}: expected a number of seconds from 0 on, found {getattr(self, name)}")


_BOOLEAN_OPTIONS = (
    "page", "subdomains", "ignore_case", "page_requisites", "include_left_out", "most_recent", "all_versions",
    "drop_rejected",
)  # fmt: skip


def parse_options(values: object) -> RecoverOptions:
    """Parse options stored as JSON; the input is not trusted.

    Version 0.1.0 used other names and other defaults for two options. They are converted.

    Raises:
        ValueError, KeyError, TypeError: The input is invalid.
    """
    if not isinstance(values, dict) or not isinstance(values["url"], str):
        raise TypeError
    values = _migrate_options(values)
    if any(not isinstance(values.get(name, False), bool) for name in _BOOLEAN_OPTIONS):
        raise TypeError
    texts = {name: tuple(map(str, values[name])) for name in ("urls", "include", "exclude")}
    try:
        return RecoverOptions(**{**values, **texts, "policy": RecoverPolicy(values["policy"])})
    except UsageError as error:
        raise ValueError(str(error)) from error


def has_first_version_options(values: object) -> bool:
    """Return whether stored options were written by version 0.1.0, which had other defaults."""
    return isinstance(values, dict) and "requisites" in values


def _migrate_options(values: dict[str, Any]) -> dict[str, Any]:
    if not has_first_version_options(values):
        return values
    keep_rejected, requisites = values.get("keep_rejected", False), values["requisites"]
    if not isinstance(keep_rejected, bool) or not isinstance(requisites, bool):
        raise TypeError
    others = {name: value for name, value in values.items() if name not in ("keep_rejected", "requisites")}
    return {**others, "page_requisites": requisites, "drop_rejected": not keep_rejected}
