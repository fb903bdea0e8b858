"""Which listed URLs are not worth fetching: crawl traps, and duplicates by tracking parameters or session ids."""

import re
from collections.abc import Sequence

from unlost.crawl.calendars import is_endless_calendar
from unlost.crawl.traps import endless_path_reason
from unlost.recover.choice import EMPTY_DIGESTS
from unlost.recover.state.resources import RecoveryResource
from unlost.recover.state.state import RecoveryState

OUT_OF_SCOPE = "out-of-scope"
NOT_LINKED = "not-linked"
"""With a limit on the number of links from the start page, a URL that no link points to has no place."""
TRAP = "trap"
CALENDAR = "calendar"
DUPLICATE = "duplicate"
NO_CONTENT = "no-content"
"""Archives have only error responses, redirects to other sites, or responses without a body."""

SKIP_REASONS = {
    OUT_OF_SCOPE: "out of the scope of this recovery",
    NOT_LINKED: "no link leads to them within --depth",
    TRAP: "crawl traps (--include-left-out fetches them)",
    CALENDAR: "calendar pages of years to come (--include-left-out fetches them)",
    DUPLICATE: "duplicates that differ in tracking parameters or session ids (--include-left-out fetches them)",
    NO_CONTENT: "archives have only errors, redirects to other sites, or responses without a body",
}
"""The reasons, in words."""

# What newsletters, advertisements and social networks append to URLs. The page is the same without it.
_TRACKING = re.compile(
    r"utm_\w+|(?:fb|g|gb|wb|d|y|tw|tt)clid|gclsrc|msclkid|igshid|mc_[ce]id|_ga|_gl|_hsenc|_hsmi|mkt_tok|vero_id"
    r"|oly_(?:anon|enc)_id|fb_(?:action_ids|action_types|ref|source)|ref_src",
    re.IGNORECASE,
)
# Values that a server makes up for each visit: long, and of digits and letters mixed at random.
_TOKEN = re.compile(r"(?=[^=]*\d)(?=[^=]*[A-Za-z])(?:[0-9A-Fa-f]{16,}|[0-9A-Za-z]{24,})")


class ListingFilter:
    """Decides for each listed resource whether it is left out of a recovery, and why.

    this_year: calendars may be captured a little ahead of it.
    """

    def __init__(self, state: RecoveryState, this_year: int) -> None:
        self._state = state
        self._this_year = this_year
        self._first: dict[int, int] = {}

    def skip_reasons(self, resources: Sequence[RecoveryResource]) -> dict[int, str]:
        """Return why some of these resources are left out, by id; the others are to be fetched."""
        found: dict[int, str] = {}
        for each in resources:
            if endless_path_reason(each.name) is not None:
                found[each.id] = TRAP
            elif is_endless_calendar(each.name, self._this_year):
                found[each.id] = CALENDAR
        return found | self._duplicates([each for each in resources if each.id not in found])

    def _duplicates(self, resources: Sequence[RecoveryResource]) -> dict[int, str]:
        """Find resources all of whose successful captures have the bytes of a URL without what changes by the visit."""
        plain = {each.id: strip_tracking(each.name) for each in resources if "?" in each.name}
        suspects = {each.id: plain[each.id] for each in resources if plain.get(each.id, each.name) != each.name}
        known = self._state.resources.find_ids(set(suspects.values()))
        found = {}
        for number, name in suspects.items():
            # Without such a URL, the first that has these parameters stays.
            other = known.get(name) or self._first.setdefault(hash(name), number)
            if other != number and self._has_bytes_of(number, other):
                found[number] = DUPLICATE
        return found

    def _has_bytes_of(self, number: int, other: int) -> bool:
        digests = self._state.captures.digests((number, other))
        return bool(digests[number]) and digests[number] - EMPTY_DIGESTS <= digests[other] - EMPTY_DIGESTS != set()


def strip_tracking(name: str) -> str:
    """Return a resource's name without tracking parameters and without values that look like session ids.

    >>> without_visit("example.com/a?id=7&utm_source=mail"), without_visit("example.com/a?s=9f86d081884c7d65")
    ('example.com/a?id=7', 'example.com/a')
    """
    path, mark, query = name.partition("?")
    if not mark:
        return name
    kept = [each for each in query.split("&") if not _is_tracking_parameter(each)]
    return f"{path}?{'&'.join(kept)}" if kept else path


def _is_tracking_parameter(parameter: str) -> bool:
    field, _, value = parameter.partition("=")
    return _TRACKING.fullmatch(field) is not None or _TOKEN.fullmatch(value) is not None
