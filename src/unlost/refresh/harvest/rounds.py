"""Rounds of harvests: which pages are visited in one, and when a page is to be looked at again."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from unlost.archives.asking.addresses import parse_url
from unlost.archives.spelling import normalize_input_url
from unlost.errors import UriError
from unlost.formats.row import index_key
from unlost.refresh.harvest.state import HarvestState, HarvestPage
from unlost.refresh.policy import url_host
from unlost.refresh.scheduling import change_probability, estimate_change_rate, estimate_page_rate

_MAX_HOST_INTERVALS = 500  # pages whose visits tell how often those of a host change
_BATCH_SIZE = 1000


@dataclass(slots=True)
class HarvestRound:
    """What a round has to do.

    is_resumed: whether it was begun before. wanted: pages that are to be visited. not_due: pages that have hardly
    changed since they were looked at.
    """

    is_resumed: bool
    pending: int = 0
    not_due: int = 0


def normalize_visit_url(uri: str) -> str:
    """Return an address as requests and their answers have it. Raises UriError for one that nobody can visit.

    >>> visitable("Example.com/a b#c")
    'http://example.com/a%20b'
    """
    try:
        return str(parse_url(normalize_input_url(uri)))
    except ValueError as error:
        raise UriError(f"not an address to visit: {error}", "malformed") from error


def add_pages(state: HarvestState, uris: Iterable[str], *, is_given: bool = True) -> None:
    """Take pages, whose addresses are visitable. is_given: whether a person named them."""
    rest = ((uri, index_key(uri), url_host(uri)) for uri in uris)
    while batch := list(islice(rest, _BATCH_SIZE)):
        state.add_pages(batch, is_given=is_given)


def begin_round(
    state: HarvestState,
    now: int,
    *,
    only_listed: bool,
    min_change_probability: float | None = None,
    restart: bool = False,
) -> HarvestRound:
    """Begin a round, or go on with the one that is not ended; pages that are new join it.

    only_listed: the pages that were given last, and no others. now: milliseconds since 1970. due: how likely a page
    must have changed to be visited; None for all. anew: do not go on with a round that was begun.
    """
    found = HarvestRound(is_resumed=not restart and state.count_pending() > 0)
    if not found.is_resumed:
        state.begin_round()
    number, schedule = state.round(), _RoundSchedule(state, now, min_change_probability)
    for page in state.pages(only_listed=only_listed):
        if page.round == number:
            continue  # done already
        if schedule.is_due(page):
            state.enqueue(page.id)
        else:
            found.not_due += 1
    state.commit()
    found.pending = state.count_pending()
    return found


class _RoundSchedule:
    """When pages are to be looked at, by their own past and by that of their hosts."""

    def __init__(self, state: HarvestState, now: int, min_change_probability: float | None) -> None:
        self._state, self._now, self._min_change_probability = state, now, min_change_probability
        self._host_rates: dict[str, float | None] = {}

    def is_due(self, page: HarvestPage) -> bool:
        """Return whether a page has likely enough changed; what is not held is always due."""
        if (
            self._min_change_probability is None
            or page.snapshot is None
            or page.last_visit is None
            or page.last_visit > self._now
        ):
            return True  # also what was looked at in the future, as an index may say
        rate = estimate_page_rate(page.intervals, self._host_rate(url_host(page.uri)))
        chance = change_probability(rate, (self._now - page.last_visit) / 1000)
        return chance is None or chance >= self._min_change_probability

    def _host_rate(self, host: str) -> float | None:
        if host not in self._host_rates:
            if len(self._host_rates) > _BATCH_SIZE:
                self._host_rates.clear()  # lists are often sorted by host
            found = estimate_change_rate(self._state.host_intervals(host, _MAX_HOST_INTERVALS))
            self._host_rates[host] = found.per_second if found is not None and found.changes else None
        return self._host_rates[host]
