"""What the map and the filters of an archive say together about a page, and why; one archive or many in one call."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum, StrEnum

from unlost import _core
from unlost.dates import to_datetime
from unlost.errors import InputError, UriError, UsageError
from unlost.mementomap.filter import Filter
from unlost.mementomap.map import Answer, Map
from unlost.mementomap.map_file import map_update_date
from unlost.uri import key

REBUILD_AFTER_DAYS = 7
"""Days after which maps and filters are to be made anew; a filter that is older does not deny what a wildcard covers.

Measured by `make bench-ageing` on 362,957 links with real dates, over four days of 2012 and 2013: a week after
it was made, a map with a filter of 8 bits misses 1.8 % of the pages that are held by then and is right 99 times in 100;
after two weeks it is 98 times, after a month 96. That collection grew by 1.8 % in a week. One that grows more slowly
keeps for longer: what counts is the share that is new, since a filter knows none of it. docs/ageing.md has the table.
"""


DEFAULT_MAX_FILTER_AGE = timedelta(days=REBUILD_AFTER_DAYS)
"""After so long, archives have captured enough that a filter does not know of."""
_CLOCK_SKEW = timedelta(days=1)
"""So far clocks and time zones may be apart."""


class RoutingDecision(StrEnum):
    """What an aggregator needs to know."""

    HELD = "held"
    NOT_HELD = "not held"
    PERHAPS_NEWER = "perhaps newer"


class RoutingReason(StrEnum):
    """Why that is."""

    BOTH = "map and filter have it"
    MAP = "the map has it"
    FILTER = "the filter has it"
    LISTED = "the map lists the page itself, the filter does not have it"
    OLD_FILTER = "a wildcard covers it, the filter is too old to deny that"
    UNCOVERED = "nothing in the map covers it"
    EXCLUDED = "the map excludes it"
    FILTERED = "the filter does not have it"


@dataclass(frozen=True, slots=True)
class HoldingsResult:
    """What is said about one page.

    key: the page's, without its query. verdict, reason: what, and why.
    answer: what the map alone says; None if there is no map.
    """

    key: str
    decision: RoutingDecision
    reason: RoutingReason
    map_result: Answer | None = None

    @property
    def should_query(self) -> bool:
        """Whether the archive may have the page, so that it should be asked."""
        return self.decision is not RoutingDecision.NOT_HELD


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


class ArchiveHoldings:
    """What is known about an archive: a map, filters, or both.

    map: what the archive is like, also where it grows; None if there is none.
    filters: what it had on a day. A page that any of them has counts as had: they may be of parts of the archive.
    max_age: how old a filter may be and still deny a page that a wildcard of the map covers. It is as old as it says
        that it was made, or else as its last capture; one that says neither is too old, and so is one from the future.
    now: the clock.
    has_deciding_filters: whether the filters may deny a page that the map lists: those of whole URLs (`urir`), unless
        the map was made later.

    Map and filters must be of the same rows: a filter of pages only denies the pictures that a map of everything has.
    All methods may be called by several threads at once. Raises InputError if they were made by different rules.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from unlost.mementomap import build_filter
    >>> with TemporaryDirectory() as folder:
    ...     urls, rows, pages = Path(folder, "urls"), Path(folder, "a.ukvs"), Path(folder, "a.filter")
    ...     _ = urls.write_text("http://example.com/a")
    ...     _ = rows.write_text("com,example)/* 1")
    ...     _ = build_filter([urls], pages)
    ...     holdings = Holdings(Map.open(rows), [Filter.open(pages)])
    >>> for page in ("http://example.com/a", "http://example.com/b", "http://example.org/"):
    ...     print(holdings.lookup(page).verdict)
    held
    perhaps newer
    not held
    """

    def __init__(
        self,
        map: Map | None,  # noqa: A002  that is its name
        filters: Sequence[Filter] = (),
        max_age: timedelta = DEFAULT_MAX_FILTER_AGE,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        parts: list[Map | Filter] = [*([map] if map else []), *filters]
        if not parts:
            raise UsageError("neither a map nor a filter: nothing is known")
        for other in parts[1:]:
            if other.rules != parts[0].rules:
                raise InputError(
                    f"{other.path}: made by other rules ({other.rules}) than {parts[0].path} ({parts[0].rules})"
                )
        self.map = map
        self.filters = tuple(filters)
        self.rules = parts[0].rules
        self.max_age = max_age
        self._now = now
        made = [each.built_at or each.latest for each in self.filters]
        self._dates = [to_datetime(date) if date else None for date in made]
        self.has_deciding_filters = self._filters_decide()

    def _filters_decide(self) -> bool:
        """Return whether the filters may deny a page that the map lists.

        The keys of a map have no queries: a line stands for a page with all of them, while filters of whole URLs know
        each one. They decide, unless the map was made later and may know of newer captures.
        """
        if self.map is None or not self.filters or any(each.key != "urir" for each in self.filters):
            return False
        date = map_update_date(self.map.header)
        filters_made = [to_datetime(each.built_at) for each in self.filters if each.built_at]
        return date is None or all(to_datetime(date) - made <= _CLOCK_SKEW for made in filters_made)

    def lookup(self, uri: str | bytes) -> HoldingsResult:
        """Return what is said about a page, given by its address or in its place a SURT. Raises UriError.

        Raises InputError if it turns out that a file is damaged.
        """
        ruling = self.lookup_many([uri], 1)[0]
        if isinstance(ruling, UriError):
            raise ruling
        return ruling

    def lookup_key(self, key: str) -> HoldingsResult:
        """Return the same for a normal key, as `unlost.uri.key` makes it by the same rules, with its query.

        Whoever asks many archives about one page makes its key once.
        """
        if self.map is None:
            reason = RoutingReason.FILTER if self._is_key_in_filters(key) else RoutingReason.FILTERED
            verdict = RoutingDecision.HELD if reason is RoutingReason.FILTER else RoutingDecision.NOT_HELD
            return HoldingsResult(key.partition("?")[0], verdict, reason)
        answer = self.map.lookup_key(key)
        had = self._is_key_in_filters(key) if self.filters and answer.held else None
        return self._decide(answer, had, is_old=had is False and self.has_old_filter())

    def _is_key_in_filters(self, key: str) -> bool:
        return any(each.lookup_key(key) for each in self.filters)

    def lookup_many(self, uris: Iterable[str | bytes], threads: int | None = None) -> list[HoldingsResult | UriError]:
        """Return for each address its ruling, or the error that `lookup` would have raised for it.

        threads: how many may work on it; all processors if not given. The rulings do not depend on it.
        """
        asked = list(uris)
        if self.map is None:
            return self._lookup_in_filters(asked, threads)
        answers = self.map.lookup_many(asked, threads)
        covered = [place for place, answer in enumerate(answers) if isinstance(answer, Answer) and answer.held]
        had = dict(zip(covered, self._are_in_filters([asked[place] for place in covered], threads), strict=True))
        is_old = self.has_old_filter()
        return [
            answer if isinstance(answer, UriError) else self._decide(answer, had.get(place), is_old=is_old)
            for place, answer in enumerate(answers)
        ]

    def _lookup_in_filters(self, asked: list[str | bytes], threads: int | None) -> list[HoldingsResult | UriError]:
        rulings: list[HoldingsResult | UriError] = []
        for uri, had in zip(asked, self._are_in_filters(asked, threads), strict=True):
            if isinstance(had, UriError):
                rulings.append(had)
            elif had:
                rulings.append(HoldingsResult(self._page_key(uri), RoutingDecision.HELD, RoutingReason.FILTER))
            else:
                rulings.append(HoldingsResult(self._page_key(uri), RoutingDecision.NOT_HELD, RoutingReason.FILTERED))
        return rulings

    def _page_key(self, uri: str | bytes) -> str:
        return key(uri, self.rules).partition("?")[0]

    def _are_in_filters(self, asked: list[str | bytes], threads: int | None) -> list[bool | UriError | None]:
        """Return for each address whether any filter has it; None if there are no filters."""
        if not self.filters:
            return [None] * len(asked)
        found: list[bool | UriError | None] = [False] * len(asked)
        # The next filter is asked only for what the last one did not have.
        left = list(range(len(asked)))
        for each in self.filters:
            for place, had in zip(left, each.lookup_many([asked[place] for place in left], threads), strict=True):
                found[place] = had
            left = [place for place in left if found[place] is False]
        return found

    def has_old_filter(self) -> bool:
        """Return whether a filter is too old to deny what a wildcard of the map covers."""
        now = self._now()
        # One capture with a date that is still to come, and indexes have such, would keep a filter young for ever.
        return any(date is None or not -_CLOCK_SKEW <= now - date <= self.max_age for date in self._dates)

    def _decide(self, answer: Answer, had: bool | UriError | None, *, is_old: bool) -> HoldingsResult:
        if not answer.held:
            reason = RoutingReason.UNCOVERED if answer.matched is None else RoutingReason.EXCLUDED
            return HoldingsResult(answer.key, RoutingDecision.NOT_HELD, reason, answer)
        if had is None or isinstance(had, UriError):  # what the map could read, filters can
            return HoldingsResult(answer.key, RoutingDecision.HELD, RoutingReason.MAP, answer)
        if had:
            return HoldingsResult(answer.key, RoutingDecision.HELD, RoutingReason.BOTH, answer)
        is_listed = not (answer.matched or "").endswith("*")
        # An archive has what its map lists; a filter of pages that lacks it is of another day, or of other rows.
        if is_listed and not self.has_deciding_filters:
            return HoldingsResult(answer.key, RoutingDecision.PERHAPS_NEWER, RoutingReason.LISTED, answer)
        if is_old and not is_listed:
            return HoldingsResult(answer.key, RoutingDecision.PERHAPS_NEWER, RoutingReason.OLD_FILTER, answer)
        return HoldingsResult(answer.key, RoutingDecision.NOT_HELD, RoutingReason.FILTERED, answer)


class HoldingsMatch(IntEnum):
    """What one archive's map and filters say about a page, apart from how old they are."""

    UNCOVERED = 0
    """Nothing in the map covers it."""
    EXCLUDED = 1
    """The map excludes it."""
    NOT_IN_FILTERS = 2
    """There is no map, and no filter has it."""
    IN_FILTERS = 3
    """There is no map, and a filter has it."""
    LISTED = 4
    """The map lists the page itself, and there are no filters."""
    WILDCARD = 5
    """A wildcard of the map covers it, and there are no filters."""
    IN_BOTH = 6
    """The map covers it, and a filter has it."""
    LISTED_ONLY = 7
    """The map lists the page itself, no filter has it."""
    WILDCARD_ONLY = 8
    """A wildcard covers it, no filter has it: whether it may be held, their age decides."""
    DAMAGED = 9
    """Something turned out to be damaged: `Holdings.lookup_key` says what."""


class MultiLookup:
    """What is known of several archives, made by the same rules.

    rules: by which addresses become keys. size: how many archives there are.

    It is as safe with threads as what it is made of. Raises UsageError if the rules differ, or if there is nobody.
    """

    def __init__(self, holdings: Sequence[ArchiveHoldings]) -> None:
        rules = {each.rules for each in holdings}
        if len(rules) != 1:
            raise UsageError("holdings of one rule set are asked together: expected some, and all of the same")
        self.rules = rules.pop()
        self.size = len(holdings)
        self._core_lookup = _core.Panel(
            [(each.map.rows if each.map else None, [pages.file for pages in each.filters]) for each in holdings]
        )

    def lookup_key(self, key: str) -> bytes:
        """Return for each archive the number of a `Finding`, about a normal key as `unlost.uri.key` makes it."""
        return self._core_lookup.lookup_key(key)
