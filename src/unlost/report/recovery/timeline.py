"""Timeline of captures: a histogram by month or year, as SVG."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from unlost.report.i18n import Translations

_MAX_BARS = 60  # each is then five pixels wide on a phone
_MAX_MONTHS = 36  # for longer periods, bars are years
_HEIGHT = 100  # of the picture in user units; a bar is 10 wide
_MIN_BAR_HEIGHT = 1.5  # so that a single capture is visible
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # years


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """A period and its number of captures. first: a month or year. last: a year, if the bar spans several years."""

    first: str
    count: int
    last: str | None = None

    @property
    def label(self) -> str:
        """The period, independent of the language."""
        return self.first if self.last is None else f"{self.first} to {self.last}"

    def localized_label(self, t: Translations) -> str:
        """Return the period in a language."""
        return self.first if self.last is None else t("time.years", first=self.first, last=self.last)


def timeline_bars(months: Mapping[str, int]) -> list[TimelineBar]:
    """Return bars without gaps from the first to the last month; of months, years, or several years each.

    Args:
        months: Number of captures by month, 6 digits. An invalid month is moved into its year.

    >>> [(bar.label, bar.count) for bar in timeline_bars({"201104": 2, "201106": 1})]
    [('2011-04', 2), ('2011-05', 0), ('2011-06', 1)]
    >>> [bar.label for bar in timeline_bars({"199601": 1, "201201": 1})][:2], timeline_bars({})
    (['1996', '1997'], [])
    """
    if not months:
        return []
    # Months are numbered from year 0.
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
        index = month // 12 // step
        sums[index] = sums.get(index, 0) + count
    bars = []
    for index in range(first // step, last // step + 1):
        start, end = index * step, index * step + step - 1
        bars.append(TimelineBar(f"{start:04}", sums.get(index, 0), None if step == 1 else f"{end:04}"))
    return bars


def render_timeline(bars: list[TimelineBar], t: Translations) -> str:
    """Return the bars as an SVG element that scales to its container. The same bars yield the same bytes.

    It contains no untrusted text, and no text but titles, because labels would be distorted by scaling.
    """
    maximum = max((bar.count for bar in bars), default=0)
    shapes = []
    for index, bar in enumerate(bars):
        if bar.count:
            height = max(_MIN_BAR_HEIGHT, _HEIGHT * bar.count / maximum)
            attributes = f'x="{10 * index + 1}" y="{_HEIGHT - height:.2f}" width="8" height="{height:.2f}"'
            shapes.append(
                f"<rect {attributes}><title>{escape(bar.localized_label(t))}: {t.number(bar.count)}</title></rect>"
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {10 * max(len(bars), 1)} {_HEIGHT}" '
        f'preserveAspectRatio="none" role="img" aria-labelledby="timeline-title timeline-text">'
        f'<title id="timeline-title">{escape(t("time.line"))}</title>'
        f'<desc id="timeline-text">{escape(describe_timeline(bars, t))}</desc>'
        f"{''.join(shapes)}</svg>"
    )


def describe_timeline(bars: list[TimelineBar], t: Translations) -> str:
    """Return a sentence that describes the bars.

    >>> from unlost.report.recovery.text import report_strings
    >>> bars = [TimelineBar("2011", 3), TimelineBar("2012", 0), TimelineBar("2013", 5)]
    >>> describe_timeline(bars, report_strings("en"))
    '8 copies, from 2011 to 2013; most, 5, from 2013.'
    """
    if not bars:
        return t("time.none")
    copies = t("time.copies", sum(bar.count for bar in bars))
    first = bars[0].localized_label(t)
    if len(bars) == 1:
        return t("time.single", copies=copies, first=first)
    largest = max(bars, key=lambda bar: bar.count)
    return t(
        "time.several",
        copies=copies,
        first=first,
        last=bars[-1].localized_label(t),
        most=t.number(largest.count),
        top=largest.localized_label(t),
    )
