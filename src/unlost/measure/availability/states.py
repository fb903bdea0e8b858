"""Whether a resource would come back, in a word."""

from enum import StrEnum

from unlost.crawl.resource import LiveResource, CrawlOutcome


class AvailabilityState(StrEnum):
    """What is to be expected of a resource, by where it is: on the web, in an archive, in both, in neither."""

    REPLICATED = "replicated"
    """On the web and in an archive."""
    ENDANGERED = "endangered"
    """In an archive only: it is lost if that loses it."""
    VULNERABLE = "vulnerable"
    """On the web only: it is lost if the site is."""
    UNRECOVERABLE = "unrecoverable"
    """In neither."""
    UNKNOWN = "unknown"
    """No archive is known to have it, and not all of them have said that they do not."""


def derive_state(is_live: bool, is_held: bool | None) -> AvailabilityState:
    """Return the state of a resource. is_held: whether an archive has it; None if nobody can tell.

    >>> [state_of(live, held).value for live in (True, False) for held in (True, False)]
    ['replicated', 'vulnerable', 'endangered', 'unrecoverable']
    >>> state_of(True, None)
    <State.UNKNOWN: 'unknown'>
    """
    if is_held is None:
        return AvailabilityState.UNKNOWN
    if is_live:
        return AvailabilityState.REPLICATED if is_held else AvailabilityState.VULNERABLE
    return AvailabilityState.ENDANGERED if is_held else AvailabilityState.UNRECOVERABLE


def is_live_resource(resource: LiveResource) -> bool:
    """Return whether a resource is on the web: it was fetched with a good status.

    What robots.txt forbids to fetch counts as there: the site leads to it, and nobody may look.

    >>> [is_live(LiveResource("http://a/", "a)/", Outcome.FETCHED, status)) for status in (200, 404)]
    [True, False]
    """
    if resource.outcome is CrawlOutcome.FORBIDDEN:
        return True
    return resource.outcome is CrawlOutcome.FETCHED and 200 <= (resource.status or 0) < 300


def is_countable(resource: LiveResource) -> bool:
    """Return whether an address stands for a resource at all: redirects, and what a crawl left out, do not.

    >>> [is_counted(LiveResource("http://a/", "a)/", Outcome.FETCHED, status)) for status in (301, 404)]
    [False, True]
    """
    if resource.outcome is CrawlOutcome.EXCLUDED:
        return False
    return not (resource.outcome is CrawlOutcome.FETCHED and 300 <= (resource.status or 0) < 400)
