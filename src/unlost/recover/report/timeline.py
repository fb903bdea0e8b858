"""A time line: how many copies are from which time, as bars."""

from collections.abc import Mapping
from dataclasses import dataclass

_MOST_BARS = 60  # on the screen of a phone, each is then five dots wide
_MOST_MONTHS = 36  # beyond that, years say more
_HEIGHT = 100  # of the picture, in its own units; a bar's width is 10
_LEAST = 1.5  # so that one copy beside ten thousand is seen
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # years


@dataclass(frozen=True, slots=True)
class Bar:
    """A time, in words, and how many copies are from it."""

    label: str
    count: int


def bars(months: Mapping[str, int]) -> list[Bar]:
    """Return the bars without gaps between the first and the last: months, years, or as many years as needed.

    months: how many copies are from each month, by its 6 digits; a month that no calendar has is one of its year.

    >>> bars({"201104": 2, "201106": 1})
    [Bar(label='2011-04', count=2), Bar(label='2011-05', count=0), Bar(label='2011-06', count=1)]
    >>> [bar.label for bar in bars({"199601": 1, "201201": 1})][:2], bars({})
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
    if last - first < _MOST_MONTHS:
        return [Bar(f"{each // 12:04}-{each % 12 + 1:02}", counts.get(each, 0)) for each in range(first, last + 1)]
    return _by_years(counts, first // 12, last // 12)


def _by_years(counts: Mapping[int, int], first: int, last: int) -> list[Bar]:
    step = next(each for each in _STEPS if last // each - first // each < _MOST_BARS)
    sums: dict[int, int] = {}
    for month, count in counts.items():
        place = month // 12 // step
        sums[place] = sums.get(place, 0) + count
    found = []
    for place in range(first // step, last // step + 1):
        begin, end = place * step, place * step + step - 1
        label = f"{begin:04}" if step == 1 else f"{begin:04} to {end:04}"
        found.append(Bar(label, sums.get(place, 0)))
    return found


def drawing(found: list[Bar]) -> str:
    """Return the bars as an SVG element, which fills whatever place it is given; the same bars give the same bytes.

    Nothing of others is in it. It has no text of its own but titles: labels would grow and shrink with it.
    """
    most = max((bar.count for bar in found), default=0)
    shapes = []
    for at, bar in enumerate(found):
        if bar.count:
            height = max(_LEAST, _HEIGHT * bar.count / most)
            place = f'x="{10 * at + 1}" y="{_HEIGHT - height:.2f}" width="8" height="{height:.2f}"'
            shapes.append(f"<rect {place}><title>{bar.label}: {bar.count:,}</title></rect>")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {10 * max(len(found), 1)} {_HEIGHT}" '
        f'preserveAspectRatio="none" role="img" aria-labelledby="timeline-title timeline-text">'
        f'<title id="timeline-title">Time line of copies</title><desc id="timeline-text">{describe(found)}</desc>'
        f"{''.join(shapes)}</svg>"
    )


def describe(found: list[Bar]) -> str:
    """Return in a sentence what the bars show.

    >>> describe([Bar("2011", 3), Bar("2012", 0), Bar("2013", 5)])
    '8 copies, from 2011 to 2013; most, 5, from 2013.'
    """
    if not found:
        return "No copies."
    count = sum(bar.count for bar in found)
    total = f"{count:,} {'copy' if count == 1 else 'copies'}"
    if len(found) == 1:
        return f"{total}, from {found[0].label}."
    top = max(found, key=lambda bar: bar.count)
    return f"{total}, from {found[0].label} to {found[-1].label}; most, {top.count:,}, from {top.label}."
