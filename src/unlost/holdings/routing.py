"""What the map and the filters of an archive say together about a page, and why."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from unlost.dates import to_datetime
from unlost.errors import InputError, UriError, UsageError
from unlost.holdings.ageing import REBUILD_AFTER_DAYS
from unlost.holdings.filter import Filter
from unlost.holdings.map import Answer, Map
from unlost.holdings.provenance import updated_at
from unlost.uri import key

DEFAULT_MAX_AGE = timedelta(days=REBUILD_AFTER_DAYS)
"""After so long, archives have captured enough that a filter does not know of."""


_CLOCKS = timedelta(days=1)
"""So far clocks and time zones may be apart."""


class Verdict(StrEnum):
    """What an aggregator needs to know."""

    HELD = "held"
    NOT_HELD = "not held"
    PERHAPS_NEWER = "perhaps newer"


class Reason(StrEnum):
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
class Ruling:
    """What is said about one page.

    key: the page's, without its query. verdict, reason: what, and why.
    answer: what the map alone says; None if there is no map.
    """

    key: str
    verdict: Verdict
    reason: Reason
    answer: Answer | None = None

    @property
    def is_worth_asking(self) -> bool:
        """Whether the archive may have the page, so that it should be asked."""
        return self.verdict is not Verdict.NOT_HELD


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


class Holdings:
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
    >>> from unlost.holdings import build_filter
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
        max_age: timedelta = DEFAULT_MAX_AGE,
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
        made = [each.made or each.latest for each in self.filters]
        self._dates = [to_datetime(date) if date else None for date in made]
        self.has_deciding_filters = self._decides()

    def _decides(self) -> bool:
        """Return whether the filters may deny a page that the map lists.

        The keys of a map have no queries: a line stands for a page with all of them, while filters of whole URLs know
        each one. They decide, unless the map was made later and may know of newer captures.
        """
        if self.map is None or not self.filters or any(each.key != "urir" for each in self.filters):
            return False
        date = updated_at(self.map.header)
        filters_made = [to_datetime(each.made) for each in self.filters if each.made]
        return date is None or all(to_datetime(date) - made <= _CLOCKS for made in filters_made)

    def lookup(self, uri: str | bytes) -> Ruling:
        """Return what is said about a page, given by its address or in its place a SURT. Raises UriError.

        Raises InputError if it turns out that a file is damaged.
        """
        ruling = self.lookup_many([uri], 1)[0]
        if isinstance(ruling, UriError):
            raise ruling
        return ruling

    def lookup_key(self, key: str) -> Ruling:
        """Return the same for a normal key, as `unlost.uri.key` makes it by the same rules, with its query.

        Whoever asks many archives about one page makes its key once.
        """
        if self.map is None:
            reason = Reason.FILTER if self._has_key(key) else Reason.FILTERED
            verdict = Verdict.HELD if reason is Reason.FILTER else Verdict.NOT_HELD
            return Ruling(key.partition("?")[0], verdict, reason)
        answer = self.map.lookup_key(key)
        had = self._has_key(key) if self.filters and answer.held else None
        return self._ruling(answer, had, is_old=had is False and self.has_old_filter())

    def _has_key(self, key: str) -> bool:
        return any(each.lookup_key(key) for each in self.filters)

    def lookup_many(self, uris: Iterable[str | bytes], threads: int | None = None) -> list[Ruling | UriError]:
        """Return for each address its ruling, or the error that `lookup` would have raised for it.

        threads: how many may work on it; all processors if not given. The rulings do not depend on it.
        """
        asked = list(uris)
        if self.map is None:
            return self._by_filters(asked, threads)
        answers = self.map.lookup_many(asked, threads)
        covered = [place for place, answer in enumerate(answers) if isinstance(answer, Answer) and answer.held]
        had = dict(zip(covered, self._are_had([asked[place] for place in covered], threads), strict=True))
        is_old = self.has_old_filter()
        return [
            answer if isinstance(answer, UriError) else self._ruling(answer, had.get(place), is_old=is_old)
            for place, answer in enumerate(answers)
        ]

    def _by_filters(self, asked: list[str | bytes], threads: int | None) -> list[Ruling | UriError]:
        rulings: list[Ruling | UriError] = []
        for uri, had in zip(asked, self._are_had(asked, threads), strict=True):
            if isinstance(had, UriError):
                rulings.append(had)
            elif had:
                rulings.append(Ruling(self._page(uri), Verdict.HELD, Reason.FILTER))
            else:
                rulings.append(Ruling(self._page(uri), Verdict.NOT_HELD, Reason.FILTERED))
        return rulings

    def _page(self, uri: str | bytes) -> str:
        return key(uri, self.rules).partition("?")[0]

    def _are_had(self, asked: list[str | bytes], threads: int | None) -> list[bool | UriError | None]:
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
        return any(date is None or not -_CLOCKS <= now - date <= self.max_age for date in self._dates)

    def _ruling(self, answer: Answer, had: bool | UriError | None, *, is_old: bool) -> Ruling:
        if not answer.held:
            reason = Reason.UNCOVERED if answer.matched is None else Reason.EXCLUDED
            return Ruling(answer.key, Verdict.NOT_HELD, reason, answer)
        if had is None or isinstance(had, UriError):  # what the map could read, filters can
            return Ruling(answer.key, Verdict.HELD, Reason.MAP, answer)
        if had:
            return Ruling(answer.key, Verdict.HELD, Reason.BOTH, answer)
        is_listed = not (answer.matched or "").endswith("*")
        # An archive has what its map lists; a filter of pages that lacks it is of another day, or of other rows.
        if is_listed and not self.has_deciding_filters:
            return Ruling(answer.key, Verdict.PERHAPS_NEWER, Reason.LISTED, answer)
        if is_old and not is_listed:
            return Ruling(answer.key, Verdict.PERHAPS_NEWER, Reason.OLD_FILTER, answer)
        return Ruling(answer.key, Verdict.NOT_HELD, Reason.FILTERED, answer)
