"""Timeline of captures: a histogram by month or year, as SVG."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from unlost.report.i18n import Translations

_MAX_BARS = 60  # on the screen of a phone, each is then five dots wide
_MAX_MONTHS = 36  # beyond that, years say more
_HEIGHT = 100  # of the picture, in its own units; a bar's width is 10
_MIN_BAR_HEIGHT = 1.5  # so that one copy beside ten thousand is seen
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # years


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """A time, and how many copies are from it. first: a month or a year. last: a year, where it is several."""

    first: str
    count: int
    last: str | None = None

    @property
    def label(self) -> str:
        """The time for programs, whatever is spoken."""
        return self.first if self.last is None else f"{self.first} to {self.last}"

    def localized_label(self, t: Translations) -> str:
        """Return the time for people."""
        return self.first if self.last is None else t("time.years", first=self.first, last=self.last)


def timeline_bars(months: Mapping[str, int]) -> list[TimelineBar]:
    """Return the bars without gaps between the first and the last: months, years, or as many years as needed.

    months: how many copies are from each month, by its 6 digits; a month that no calendar has is one of its year.

    >>> [(bar.label, bar.count) for bar in timeline_bars({"201104": 2, "201106": 1})]
    [('2011-04', 2), ('2011-05', 0), ('2011-06', 1)]
    >>> [bar.label for bar in timeline_bars({"199601": 1, "201201": 1})][:2], timeline_bars({})
    (['1996', '1997'], [])
    """
    if not months:
        return []
    # Months counted from the year 0.
    counts: dict[int, int] = {}
    for digits, count in months.items():
        month = min(max(int(digits[4:6]), 1), 12)
        number = 12 * int(digits[:4]) + month - 1
        counts[number] = counts.get(number, 0) + count
    first, last = min(counts), max(counts)
    if last - first < _MAX_MONTHS:
        return [
            TimelineBar(f"{each // 12:04}-{each % 12 + 1:02}", counts.get(each, 0)) for each in range(first, last + 1)
        ]
    return _by_years(counts, first // 12, last // 12)


def _by_years(counts: Mapping[int, int], first: int, last: int) -> list[TimelineBar]:
    step = next(each for each in _STEPS if last // each - first // each < _MAX_BARS)
    sums: dict[int, int] = {}
    for month, count in counts.items():
        place = month // 12 // step
        sums[place] = sums.get(place, 0) + count
    found = []
    for place in range(first // step, last // step + 1):
        begin, end = place * step, place * step + step - 1
        found.append(TimelineBar(f"{begin:04}", sums.get(place, 0), None if step == 1 else f"{end:04}"))
    return found


def render_timeline(found: list[TimelineBar], t: Translations) -> str:
    """Return the bars as an SVG element, which fills whatever place it is given; the same bars give the same bytes.

    Nothing of others is in it. It has no text of its own but titles: labels would grow and shrink with it.
    """
    most = max((bar.count for bar in found), default=0)
    shapes = []
    for at, bar in enumerate(found):
        if bar.count:
            height = max(_MIN_BAR_HEIGHT, _HEIGHT * bar.count / most)
            place = f'x="{10 * at + 1}" y="{_HEIGHT - height:.2f}" width="8" height="{height:.2f}"'
            shapes.append(
                f"<rect {place}><title>{escape(bar.localized_label(t))}: {t.number(bar.count)}</title></rect>"
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {10 * max(len(found), 1)} {_HEIGHT}" '
        f'preserveAspectRatio="none" role="img" aria-labelledby="timeline-title timeline-text">'
        f'<title id="timeline-title">{escape(t("time.line"))}</title>'
        f'<desc id="timeline-text">{escape(describe_timeline(found, t))}</desc>'
        f"{''.join(shapes)}</svg>"
    )


def describe_timeline(found: list[TimelineBar], t: Translations) -> str:
    """Return in a sentence what the bars show.

    >>> from unlost.report.recovery.text import report_strings
    >>> describe_timeline([TimelineBar("2011", 3), TimelineBar("2012", 0), TimelineBar("2013", 5)], report_strings("en"))
    '8 copies, from 2011 to 2013; most, 5, from 2013.'
    """
    if not found:
        return t("time.none")
    copies = t("time.copies", sum(bar.count for bar in found))
    first = found[0].localized_label(t)
    if len(found) == 1:
        return t("time.single", copies=copies, first=first)
    top = max(found, key=lambda bar: bar.count)
    return t(
        "time.several",
        copies=copies,
        first=first,
        last=found[-1].localized_label(t),
        most=t.number(top.count),
        top=top.localized_label(t),
    )
