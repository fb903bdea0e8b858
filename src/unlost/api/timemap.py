"""The copies of a page, as Python has them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, overload

from unlost import dates
from unlost.aggregate.found import AggregateResult
from unlost.aggregate.places import ServiceUrls
from unlost.aggregate.rendering import serialize_timemap
from unlost.api.moments import DateLike, parse_date
from unlost.formats import mementos

_DEFAULT_BASE_URL = "http://localhost:1208"  # where `unlost serve` is by default


class Memento(NamedTuple):
    """One copy of a page. datetime: of its capture, in UTC. archive: who has it. uri: its address there (URI-M)."""

    datetime: datetime
    archive: str
    uri: str


class TimeMap(Sequence[Memento]):
    """The copies of one page, by date, from all archives that were asked: a sequence.

    uri: the page (URI-R).
    failures: the archives that did not say all that they have, and what was wrong: there may be more copies.
    asked: the ids of all archives that were to be asked. passed_over: of those that were not, since they are known to
        have nothing.
    """

    def __init__(self, found: AggregateResult) -> None:
        self._result = found
        self.uri = found.uri
        self.failures: Mapping[str, str] = {each.archive: each.message or each.outcome for each in found.failures}
        self.asked = tuple(each.archive for each in found.reports)
        self.passed_over = found.passed_over

    def __repr__(self) -> str:
        """Return the page and how many copies there are."""
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<TimeMap of {self.uri}: {len(self)} copies{failed}>"

    def __len__(self) -> int:
        """Return how many copies there are."""
        return len(self._result.mementos)

    @overload
    def __getitem__(self, place: int) -> Memento: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Memento]: ...
    def __getitem__(self, place: int | slice) -> Memento | Sequence[Memento]:
        """Return a copy, or some."""
        if isinstance(place, slice):
            return [_memento(each) for each in self._result.mementos[place]]
        return _memento(self._result.mementos[place])

    def __iter__(self) -> Iterator[Memento]:
        """Yield all copies."""
        return map(_memento, self._result.mementos)

    @property
    def is_whole(self) -> bool:
        """Whether every archive said all that it has to say."""
        return not self.failures

    def closest(self, when: DateLike | None = None) -> Memento | None:
        """Return the copy that is closest to a moment, without one the last; None if there are no copies.

        A copy dated in the future is returned only for a moment in the future, or if there are no others.
        Raises DateError.
        """
        place = self._result.closest_index(None if when is None else dates.pad(parse_date(when)))
        return None if place is None else self[place]

    def rendered(self, form: Literal["link", "json", "cdxj", "text"] = "link", base: str = _DEFAULT_BASE_URL) -> bytes:
        """Return it as others read it. base: the address of the aggregator that it says it is from."""
        return serialize_timemap(self._result, ServiceUrls(base), form)


def _memento(copy: mementos.MementoTuple) -> Memento:
    return Memento(dates.to_datetime(copy.datetime), copy.archive, copy.uri)
