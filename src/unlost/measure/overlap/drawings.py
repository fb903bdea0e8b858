"""Pictures of a measurement: who holds what, copies by year, likeness against staleness. SVG without anything else."""

from collections.abc import Mapping, Sequence
from html import escape
from math import log10

from unlost.measure.overlap.membership import ArchiveMembership
from unlost.shown.words import escape_unprintable, format_share

MAX_SETS = 30
"""Sets of archives that are drawn, those with most pages first."""

_MAX_NAME_LENGTH = 24  # of a name
_CELL_SIZE = 22  # between two columns or rows, in the picture's own units
_MAX_BAR_HEIGHT = 150  # the highest bar of sets
_MAX_BAR_WIDTH = 110  # the longest bar of archives
_CHARACTER_WIDTH = 6.6  # the width of one, at most, at the size that is used
_FONT = 'font-family="system-ui, sans-serif" font-size="11"'
_BAR, _OFF, _ON, _BAND = "#1f5f99", "#c9c9cf", "#1b1b1f", "#f0f0f3"


def draw_overlap(membership: ArchiveMembership) -> str:
    """Return who holds what: a row for each archive, a column for each set of them, dots where an archive is in it.

    The bars above say how many pages exactly this set holds, those at the left how many each archive does. The same
    numbers give the same bytes. Names are escaped; shapes have the classes `set`, `archive`, `in`, `out`.
    """
    sets = list(membership.sets())[:MAX_SETS]
    order = sorted(range(len(membership.archives)), key=lambda place: (-membership.held_by_archive(place), place))
    names = [_escape_name(membership.archives[place]) for place in order]
    label = 12 + _CHARACTER_WIDTH * max((len(name) for name in names), default=0)
    left, top = _MAX_BAR_WIDTH + 46 + label, _MAX_BAR_HEIGHT + 34
    width, height = left + _CELL_SIZE * max(len(sets), 1) + 16, top + _CELL_SIZE * len(order) + 8
    most = max((count for _, count in sets), default=1)
    largest = max((membership.held_by_archive(place) for place in order), default=0) or 1
    shapes = []
    for row, place in enumerate(order):
        y = top + _CELL_SIZE * row
        held = membership.held_by_archive(place)
        length = _MAX_BAR_WIDTH * held / largest
        if row % 2 == 0:
            shapes.append(
                f'<rect class="band" x="0" y="{y:g}" width="{width:g}" height="{_CELL_SIZE}" fill="{_BAND}"/>'
            )
        title = f"<title>{names[row]}: {held:,} pages, {membership.held_only_by(place):,} of them alone</title>"
        shapes.append(
            f'<rect class="archive" x="{_MAX_BAR_WIDTH + 40 - length:.2f}" y="{y + 5:g}" width="{length:.2f}" height="12" '
            f'fill="{_BAR}">{title}</rect>'
            f'<text x="{_MAX_BAR_WIDTH + 36 - length:.2f}" y="{y + 15:g}" text-anchor="end" {_FONT}>{held:,}</text>'
            f'<text x="{left - 10:g}" y="{y + 15:g}" text-anchor="end" {_FONT}>{names[row]}</text>'
        )
    for column, (held_by, count) in enumerate(sets):
        x = left + _CELL_SIZE * column + _CELL_SIZE / 2
        tall = max(1.0, _MAX_BAR_HEIGHT * count / most)
        who = ", ".join(_escape_name(name) for name in membership.archive_ids(held_by))
        shapes.append(
            f'<rect class="set" x="{x - 7:g}" y="{_MAX_BAR_HEIGHT + 24 - tall:.2f}" width="14" height="{tall:.2f}" '
            f'fill="{_BAR}"><title>{count:,} pages: {who}</title></rect>'
            f'<text transform="translate({x + 4:g} {_MAX_BAR_HEIGHT + 20 - tall:.2f}) rotate(-90)" '
            f'class="count" {_FONT}>{count:,}</text>'
        )
        rows = [row for row, place in enumerate(order) if held_by >> place & 1]
        if len(rows) > 1:
            ends = f'y1="{top + _CELL_SIZE * rows[0] + 11:g}" y2="{top + _CELL_SIZE * rows[-1] + 11:g}"'
            shapes.append(f'<line class="joined" x1="{x:g}" x2="{x:g}" {ends} stroke="{_ON}" stroke-width="2"/>')
        for row in range(len(order)):
            kind, colour = ("in", _ON) if row in rows else ("out", _OFF)
            shapes.append(
                f'<circle class="{kind}" cx="{x:g}" cy="{top + _CELL_SIZE * row + 11:g}" r="5" fill="{colour}"/>'
            )
    # Numbers above the bars need room of their own.
    room = 12 + _CHARACTER_WIDTH * len(f"{most:,}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {24 - room:g} {width:g} {height + room - 24:g}" '
        f'width="{width:g}" role="img" aria-labelledby="overlap-title overlap-text">'
        f'<title id="overlap-title">Who holds what</title>'
        f'<desc id="overlap-text">{describe_overlap(membership)}</desc>{"".join(shapes)}</svg>'
    )


def describe_overlap(membership: ArchiveMembership) -> str:
    """Return in a sentence what the picture shows; names are escaped.

    >>> describe(Membership(("a", "b"), {0b01: 5, 0b11: 3, 0: 4}))
    'Of 12 pages 8 are held. Most are held by a: 5 pages; then a, b: 3 pages.'
    """
    sets = list(membership.sets())
    if not sets:
        return f"None of {membership.total:,} pages is held."
    parts = [
        f"{', '.join(_escape_name(name) for name in membership.archive_ids(held))}: {count:,} page{'' if count == 1 else 's'}"
        for held, count in sets[:3]
    ]
    are = "is" if membership.held == 1 else "are"
    return f"Of {membership.total:,} pages {membership.held:,} {are} held. Most are held by {'; then '.join(parts)}."


def draw_years(years: Mapping[str, Mapping[str, tuple[int, int]]], page_count: int, pages: Mapping[str, int]) -> str:
    """Return mementos by year as bars, and as a line the share of pages with any memento of that year.

    years: as `Figures` has them. asked: pages in all. pages: by year, those with any memento of it.
    """
    named = [f"{year:04}" for year in range(int(min(years)), int(max(years)) + 1)][-120:] if years else []
    counts = {year: sum(copies for _, copies in years.get(year, {}).values()) for year in named}
    most = max(counts.values(), default=0) or 1
    step, tall = 30, 120
    shapes, line = [], []
    for at, year in enumerate(named):
        x = 10 + step * at
        height = tall * counts[year] / most
        rate = pages.get(year, 0) / page_count if page_count else 0.0
        title = f"<title>{year}: {counts[year]:,} mementos, {format_share(rate)} of pages</title>"
        shapes.append(
            f'<rect class="set" x="{x}" y="{20 + tall - height:.2f}" width="{step - 8}" height="{height:.2f}" '
            f'fill="{_BAR}">{title}</rect>'
        )
        if len(named) <= 25 or at % 5 == 0:  # more labels would touch each other
            shapes.append(f'<text x="{x + 11}" y="{tall + 36}" text-anchor="middle" {_FONT}>{year}</text>')
        line.append(f"{x + 11},{20 + tall * (1 - rate):.2f}")
    if line:
        points = f'points="{" ".join(line)}"'
        shapes.append(f'<polyline class="rate" {points} fill="none" stroke="#c8871a" stroke-width="2.5"/>')
    width = 20 + step * max(len(named), 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {tall + 44}" width="{width}" role="img" '
        f'aria-labelledby="years-title"><title id="years-title">Mementos by year (bars), and the share of pages with '
        f"a memento of that year (line, from 0 to 100 %)</title>{''.join(shapes)}</svg>"
    )


def draw_similarity(points: Sequence[tuple[float, float]]) -> str:
    """Return likeness (from 0 at the bottom to 1) against staleness in days, on a scale of powers of ten."""
    wide, tall = 360, 160
    last = max(3.0, *(log10(1 + days) for days, _ in points)) if points else 3.0
    shapes = [f'<path d="M40 10V{tall + 10}H{wide + 44}" fill="none" stroke="#77777f"/>']
    for days in (0, 1, 10, 100, 1_000, 10_000):
        if log10(1 + days) <= last:
            x = 40 + wide * log10(1 + days) / last
            shapes.append(f'<text x="{x:.1f}" y="{tall + 26}" text-anchor="middle" {_FONT}>{days:,}</text>')
    shapes += [
        f'<text x="36" y="{tall + 14 - tall * value / 100:g}" text-anchor="end" {_FONT}>{value} %</text>'
        for value in (0, 50, 100)
    ]
    for stale, alike in points:
        x, y = 40 + wide * log10(1 + stale) / last, 10 + tall * (1 - alike)
        shapes.append(f'<circle class="pair" cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{_BAR}" fill-opacity="0.5"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide + 60} {tall + 32}" width="{wide + 60}" role="img" '
        f'aria-labelledby="likeness-title"><title id="likeness-title">Words in common of live page and copy, against '
        f"the days by which the copy is stale</title>{''.join(shapes)}</svg>"
    )


def _escape_name(text: str) -> str:
    """Return a name that cannot be anything else in SVG, nor endless."""
    short = text if len(text) <= _MAX_NAME_LENGTH else text[: _MAX_NAME_LENGTH - 1] + "…"
    return escape(escape_unprintable(short))
