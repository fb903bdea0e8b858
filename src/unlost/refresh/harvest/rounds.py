"""Rounds of harvests: which pages are visited in one, and when a page is to be looked at again."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from unlost.archives.asking.addresses import parse
from unlost.archives.spelling import asked
from unlost.errors import UriError
from unlost.formats.row import index_key
from unlost.refresh.harvest.state import HarvestState, Page
from unlost.refresh.policy import host_of
from unlost.refresh.scheduling import chance_of_change, change_rate, expected_rate

_OF_HOST = 500  # pages whose visits tell how often those of a host change
_AT_ONCE = 1000


@dataclass(slots=True)
class Round:
    """What a round has to do.

    is_resumed: whether it was begun before. wanted: pages that are to be visited. not_due: pages that have hardly
    changed since they were looked at.
    """

    is_resumed: bool
    wanted: int = 0
    not_due: int = 0


def visitable(uri: str) -> str:
    """Return an address as requests and their answers have it. Raises UriError for one that nobody can visit.

    >>> visitable("Example.com/a b#c")
    'http://example.com/a%20b'
    """
    try:
        return str(parse(asked(uri)))
    except ValueError as error:
        raise UriError(f"not an address to visit: {error}", "malformed") from error


def add_pages(state: HarvestState, uris: Iterable[str], *, is_given: bool = True) -> None:
    """Take pages, whose addresses are visitable. is_given: whether a person named them."""
    rest = ((uri, index_key(uri), host_of(uri)) for uri in uris)
    while batch := list(islice(rest, _AT_ONCE)):
        state.add(batch, is_given=is_given)


def begin_round(
    state: HarvestState, now: int, *, only_listed: bool, due: float | None = None, anew: bool = False
) -> Round:
    """Begin a round, or go on with the one that is not ended; pages that are new join it.

    only_listed: the pages that were given last, and no others. now: milliseconds since 1970. due: how likely a page
    must have changed to be visited; None for all. anew: do not go on with a round that was begun.
    """
    found = Round(is_resumed=not anew and state.pending() > 0)
    if not found.is_resumed:
        state.begin_round()
    number, schedule = state.round(), _Schedule(state, now, due)
    for page in state.pages(only_listed=only_listed):
        if page.round == number:
            continue  # done already
        if schedule.is_due(page):
            state.want(page.id)
        else:
            found.not_due += 1
    state.commit()
    found.wanted = state.pending()
    return found


class _Schedule:
    """When pages are to be looked at, by their own past and by that of their hosts."""

    def __init__(self, state: HarvestState, now: int, due: float | None) -> None:
        self._state, self._now, self._due = state, now, due
        self._usual: dict[str, float | None] = {}

    def is_due(self, page: Page) -> bool:
        """Return whether a page has likely enough changed; what is not held is always due."""
        if self._due is None or page.held is None or page.looked is None or page.looked > self._now:
            return True  # also what was looked at in the future, as an index may say
        rate = expected_rate(page.intervals, self._usual_of(host_of(page.uri)))
        chance = chance_of_change(rate, (self._now - page.looked) / 1000)
        return chance is None or chance >= self._due

    def _usual_of(self, host: str) -> float | None:
        if host not in self._usual:
            if len(self._usual) > _AT_ONCE:
                self._usual.clear()  # lists are often sorted by host
            found = change_rate(self._state.host_intervals(host, _OF_HOST))
            self._usual[host] = found.per_second if found is not None and found.seen else None
        return self._usual[host]
