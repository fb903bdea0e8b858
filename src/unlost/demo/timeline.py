"""A time line of what archives have of the site: a disc for each of their visits, with what was taken from it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from math import sqrt

from unlost import dates
from unlost.recover.report.wording import format_day
from unlost.shown.words import escape_unprintable

_WIDE, _ROW = 620, 58  # of the picture, and of each archive, in its own units
_LEFT, _RIGHT, _TOP, _BOTTOM = 150, 30, 26, 30
_SMALLEST, _GROWTH = 4.0, 5.5  # the radius of a disc is grown by the root of how many copies it stands for
_YEAR_SECONDS = 365.25 * 86_400
_FONT = 'font-family="system-ui, sans-serif" font-size="14"'

TIMELINE_STYLE = """
.times svg { display: block; min-width: 36rem; width: 100%; max-width: 54rem; height: auto; }
.times text { fill: var(--ink); }
.times .held { fill: var(--light); } .times .taken { fill: var(--dark); }
.times .rejected { fill: none; stroke: var(--warn); stroke-width: 3; }
.times .lane, .times .year { stroke: color-mix(in srgb, var(--line) 35%, transparent); }
.times .end { stroke: var(--ink); stroke-dasharray: 5 4; }
"""
"""What pages have in their styles that show it."""


@dataclass(frozen=True, slots=True)
class CrawlVisit:
    """One day on which an archive took copies of the site: how many it has, were taken from it, and were rejected.

    date: 14 digits.
    """

    archive: str
    date: str
    held: int
    taken: int
    rejected: int

    def words(self, name: str) -> str:
        """Return it as a sentence. name: of the archive.

        >>> Visit("a", "20120304000000", 3, 2, 1).words("A")
        'A, 2012-03-04: 3 copies, 2 taken, 1 rejected'
        """
        parts = [f"{self.held} {'copy' if self.held == 1 else 'copies'}", f"{self.taken} taken"]
        parts += [f"{self.rejected} rejected"] if self.rejected else []
        return f"{name}, {format_day(self.date)}: {', '.join(parts)}"


def crawl_visits(
    held: Iterable[tuple[str, str]], taken: Iterable[tuple[str, str]], rejected: Iterable[tuple[str, str]]
) -> list[CrawlVisit]:
    """Return all visits, by date. Each of the three has an archive and a date for every copy."""
    every, chosen, refused = Counter(held), Counter(taken), Counter(rejected)
    by_date = sorted(every, key=lambda each: (each[1], each[0]))
    return [CrawlVisit(*each, every[each], chosen[each], refused[each]) for each in by_date]


def render_crawl_timeline(visits: list[CrawlVisit], names: Mapping[str, str], ended: str) -> str:
    """Return it as an SVG element; the same visits give the same bytes.

    names: of archives, by id, from top to bottom. ended: when the site did, 14 digits.
    """
    moments = [_fractional_year(each.date) for each in visits] + [_fractional_year(ended)]
    scale = _TimeScale(int(min(moments)), int(max(moments)) + 1)
    bottom = _TOP + _ROW * len(names)
    shapes = [
        f'<path class="year" d="M{scale.at(year)} {_TOP}V{bottom}"/>'
        f'<text x="{scale.at(year)}" y="{bottom + 20}" text-anchor="middle" {_FONT}>{year}</text>'
        for year in range(scale.first, scale.last + 1)
    ]
    rows = {archive: _TOP + _ROW * number + _ROW // 2 for number, archive in enumerate(names)}
    for archive, name in names.items():
        shapes.append(
            f'<text x="0" y="{rows[archive] + 5}" {_FONT}>{escape(escape_unprintable(name))}</text>'
            f'<path class="lane" d="M{_LEFT} {rows[archive]}H{_WIDE - _RIGHT}"/>'
        )
    end = scale.at(_fractional_year(ended))
    shapes.append(f'<path class="end" d="M{end} {_TOP - 4}V{bottom}"/>')
    shapes.append(f'<text x="{end}" y="14" text-anchor="middle" {_FONT}>the site ended</text>')
    shapes += [
        _visit_disc(each, scale.at(_fractional_year(each.date)), rows[each.archive], names[each.archive])
        for each in visits
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {bottom + _BOTTOM}" role="img" '
        f'aria-labelledby="times-title times-text"><title id="times-title">Time line</title>'
        f'<desc id="times-text">{escape("; ".join(each.words(names[each.archive]) for each in visits))}</desc>'
        f"{''.join(shapes)}</svg>"
    )


@dataclass(frozen=True, slots=True)
class _TimeScale:
    first: int
    last: int

    def at(self, years: float) -> float:
        """Return where a moment is from left to right."""
        return round(_LEFT + (_WIDE - _LEFT - _RIGHT) * (years - self.first) / (self.last - self.first), 1)


def _visit_disc(visit: CrawlVisit, left: float, top: int, name: str) -> str:
    radius = _SMALLEST + _GROWTH * sqrt(visit.held) - _GROWTH / 2
    inner = radius * sqrt(visit.taken / visit.held)
    place = f'cx="{left}" cy="{top}"'
    shapes = f'<circle class="held" {place} r="{radius:.1f}"/>'
    shapes += f'<circle class="taken" {place} r="{inner:.1f}"/>' if visit.taken else ""
    shapes += f'<circle class="rejected" {place} r="{radius + 3:.1f}"/>' if visit.rejected else ""
    return f"<g><title>{escape(escape_unprintable(visit.words(name)))}</title>{shapes}</g>"


def _fractional_year(date: str) -> float:
    """Return a date of 14 digits as years, with a fraction."""
    moment = dates.to_datetime(date)
    begin = moment.replace(month=1, day=1, hour=0, minute=0, second=0)
    return moment.year + min((moment - begin).total_seconds() / _YEAR_SECONDS, 0.999)
