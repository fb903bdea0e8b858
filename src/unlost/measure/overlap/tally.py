"""What is kept of an archive's list of the copies of a page, however long that is."""

from collections import Counter

from unlost.formats.capture import Capture

_REDIRECT = 300


class TimeMapSummary:
    """Counts captures.

    mementos: all of them. good: those that are neither errors nor redirects, as far as the list tells.
    years: all, by year, 4 digits. first, last: dates of 14 digits. last_good: the last that is good.
    is_cut: whether there are more than are listed.
    """

    __slots__ = ("first", "good", "is_cut", "last", "last_good", "mementos", "years")

    def __init__(self) -> None:
        self.mementos = 0
        self.good = 0
        self.years: Counter[str] = Counter()
        self.first: str | None = None
        self.last: str | None = None
        self.last_good: Capture | None = None
        self.is_cut = False

    def add(self, capture: Capture) -> None:
        """Count one."""
        moment = capture.datetime
        self.mementos += 1
        self.years[moment[:4]] += 1
        self.first = moment if self.first is None else min(self.first, moment)
        self.last = moment if self.last is None else max(self.last, moment)
        if capture.status is None or 200 <= capture.status < _REDIRECT:
            self.good += 1
            if self.last_good is None or moment > self.last_good.datetime:
                self.last_good = capture
