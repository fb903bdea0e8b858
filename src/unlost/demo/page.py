"""The HTML page of the demonstration with its timeline, and the same data as JSON."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from math import sqrt
from pathlib import Path

from unlost import dates
from unlost.atomic import atomic_file
from unlost.comparison.breakdown import breakdowns
from unlost.comparison.report import (
    comparison_headline,
    comparison_remarks,
    describe_diagram,
    reconstruction_diagram,
    render_comparison_page,
)
from unlost.demo.story import RECOVER_COMMAND, DemoStory
from unlost.report import charts
from unlost.report.format import ReportTable, escape_unprintable, format_share
from unlost.report.html_templates import make_template_environment
from unlost.report.recovery.serializers import recovery_summary_json
from unlost.report.recovery.text import format_day, report_strings

ORIGINAL_FOLDER, RECOVERED_FOLDER, PAIRS_FOLDER = "original", "recovered", "pairs"
"""Subfolders of the page: the two sites, and the pages that show both in frames."""
_GONE_PAGE = "gone.html"
_WIDTH, _ROW = 620, 58  # SVG units: width of the timeline, height of an archive's row
_LEFT, _RIGHT, _TOP, _BOTTOM = 150, 30, 26, 30
_MIN_RADIUS, _RADIUS_GROWTH = 4.0, 5.5  # of discs, whose area grows with the captures
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
"""CSS for pages that show the timeline."""


@dataclass(frozen=True, slots=True)
class CrawlVisit:
    """The captures of the site that an archive made on one date.

    Attributes:
        date: 14 digits.
        held: Captures in the archive.
        taken: Captures that the recovery uses.
        rejected: Captures that the recovery rejected.
    """

    archive: str
    date: str
    held: int
    taken: int
    rejected: int

    def describe(self, name: str) -> str:
        """Return a one-line description.

        Args:
            name: Display name of the archive.

        >>> CrawlVisit("a", "20120304000000", 3, 2, 1).describe("A")
        'A, 2012-03-04: 3 captures, 2 used, 1 rejected'
        """
        parts = [f"{self.held} {'capture' if self.held == 1 else 'captures'}", f"{self.taken} used"]
        parts += [f"{self.rejected} rejected"] if self.rejected else []
        return f"{name}, {format_day(self.date)}: {', '.join(parts)}"


def crawl_visits(
    held: Iterable[tuple[str, str]], taken: Iterable[tuple[str, str]], rejected: Iterable[tuple[str, str]]
) -> list[CrawlVisit]:
    """Group captures, given as pairs of archive id and date, into visits sorted by date."""
    held_counts, taken_counts, rejected_counts = Counter(held), Counter(taken), Counter(rejected)
    by_date = sorted(held_counts, key=lambda each: (each[1], each[0]))
    return [CrawlVisit(*each, held_counts[each], taken_counts[each], rejected_counts[each]) for each in by_date]


def render_crawl_timeline(visits: list[CrawlVisit], names: Mapping[str, str], ended: str) -> str:
    """Render the visits as an SVG element. The output is deterministic.

    Args:
        visits: Visits to show.
        names: Display names of archives by id, from top to bottom.
        ended: Date on which the site went offline, 14 digits.
    """
    years = [_fractional_year(each.date) for each in visits] + [_fractional_year(ended)]
    scale = _TimeScale(int(min(years)), int(max(years)) + 1)
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
            f'<path class="lane" d="M{_LEFT} {rows[archive]}H{_WIDTH - _RIGHT}"/>'
        )
    end = scale.at(_fractional_year(ended))
    shapes.append(f'<path class="end" d="M{end} {_TOP - 4}V{bottom}"/>')
    shapes.append(f'<text x="{end}" y="14" text-anchor="middle" {_FONT}>site offline</text>')
    shapes += [
        _visit_disc(each, scale.at(_fractional_year(each.date)), rows[each.archive], names[each.archive])
        for each in visits
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + _BOTTOM}" role="img" '
        f'aria-labelledby="times-title times-text"><title id="times-title">Timeline</title>'
        f'<desc id="times-text">{escape("; ".join(each.describe(names[each.archive]) for each in visits))}</desc>'
        f"{''.join(shapes)}</svg>"
    )


@dataclass(frozen=True, slots=True)
class _TimeScale:
    first: int
    last: int

    def at(self, years: float) -> float:
        """Return the x coordinate of a fractional year."""
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * (years - self.first) / (self.last - self.first), 1)


def _visit_disc(visit: CrawlVisit, left: float, top: int, name: str) -> str:
    radius = _MIN_RADIUS + _RADIUS_GROWTH * sqrt(visit.held) - _RADIUS_GROWTH / 2
    inner = radius * sqrt(visit.taken / visit.held)
    center = f'cx="{left}" cy="{top}"'
    shapes = f'<circle class="held" {center} r="{radius:.1f}"/>'
    shapes += f'<circle class="taken" {center} r="{inner:.1f}"/>' if visit.taken else ""
    shapes += f'<circle class="rejected" {center} r="{radius + 3:.1f}"/>' if visit.rejected else ""
    return f"<g><title>{escape(escape_unprintable(visit.describe(name)))}</title>{shapes}</g>"


def _fractional_year(date: str) -> float:
    """Return a date of 14 digits as a fractional year."""
    parsed = dates.to_datetime(date)
    year_start = parsed.replace(month=1, day=1, hour=0, minute=0, second=0)
    return parsed.year + min((parsed - year_start).total_seconds() / _YEAR_SECONDS, 0.999)


def story_json(story: DemoStory) -> dict[str, object]:
    """Return the JSON document of the demonstration, with the same numbers as the page."""
    routing, counts = story.routing, story.comparison.counts
    return {
        "site": story.site.url,
        "archives_run_by": "pywb" if story.is_pywb else "unlost",
        "archives": {
            each.id: {
                "name": each.name,
                "copies": each.captures,
                "addresses": each.urls,
                "index_bytes": each.index.stat().st_size,
                "map_bytes": each.map.stat().st_size,
                "sent": routing.sent[each.id],
                "not_sent": routing.not_sent[each.id],
            }
            for each in story.holdings
        },
        "routing": {
            "addresses": routing.urls,
            "sent": routing.requests,
            "not_sent": routing.saved,
            "copies": routing.found,
            "copies_if_all_are_asked": routing.found_by_all,
            "failed": routing.failed,
        },
        "recovery": recovery_summary_json(story.stats),
        "missing": [{"uri": each.uri, "reason": each.reason} for each in story.missing],
        "rejected": [
            {"uri": each.uri, "archive": each.archive, "datetime": each.datetime, "verdict": each.kind}
            for each in story.rejected
        ],
        "comparison": {
            "original": counts.original,
            "identical": counts.identical,
            "changed": counts.changed,
            "missing": counts.missing,
            "added": counts.added,
            "share_by_type": {row.label: row.share for row in breakdowns(story.comparison)[0].rows},
        },
        "export": {"files": story.exported.files, "links": dict(story.exported.links)},
        "own_site": RECOVER_COMMAND,
    }


def write_pages(story: DemoStory) -> Path:
    """Write the page and all pages that it links to, and return its path.

    Raises:
        OSError: A file could not be written.
    """
    folder = story.page
    (folder / PAIRS_FOLDER).mkdir()
    environment = make_template_environment("unlost.demo")
    for number, pair in enumerate(story.pairs):
        sides = [(name, f"../{name}/{path}" if path else f"../{_GONE_PAGE}")
                 for name, path in ((ORIGINAL_FOLDER, pair.original), (RECOVERED_FOLDER, pair.recovered))]  # fmt: skip
        _write_html(
            folder / PAIRS_FOLDER / f"{number}.html",
            environment.get_template("pair.html").render(pair=pair, sides=sides),
        )
    _write_html(folder / _GONE_PAGE, environment.get_template("gone.html").render())
    names = "the original site", story.recovery.name
    _write_html(folder / "comparison.html", render_comparison_page(story.comparison, *names))
    _write_html(folder / "index.html", render_demo_page(story))
    return folder / "index.html"


def render_demo_page(story: DemoStory) -> str:
    """Return the HTML of the main page. It has no scripts, is deterministic, and all values in it are escaped."""
    counts = story.comparison.counts
    names = story.site.archives
    strings = report_strings("en")
    visits = crawl_visits(
        ((capture.archive, capture.date) for resource in story.site.resources for capture in resource.captures),
        ((each.archive or "", each.datetime) for each in story.chosen),
        ((each.archive or "", each.datetime) for each in story.rejected),
    )
    return (
        make_template_environment("unlost.demo")
        .get_template("demo.html")
        .render(
            story=story,
            own_site=RECOVER_COMMAND,
            pairs=list(enumerate(story.pairs)),
            first=f"{PAIRS_FOLDER}/0.html",
            counts=counts,
            headline=comparison_headline(counts),
            remarks=comparison_remarks(story.comparison),
            diagram=reconstruction_diagram(counts),
            caption=describe_diagram(counts),
            timeline=render_crawl_timeline(visits, names, story.site.ended),
            timeline_style=TIMELINE_STYLE,
            charts_style=charts.STYLE,
            tables={
                "kinds": _types_table(story),
                "archives": _archives_table(story),
                "visits": _visits_table(story, visits),
            },
            missing=[(each.uri, strings.word("reason", each.reason)) for each in story.missing],
            unknown=_never_requested(story),
            rejected=[
                (
                    each.uri,
                    names[each.archive or ""],
                    format_day(each.datetime),
                    strings.word("verdict", each.kind),
                    each.reason,
                )
                for each in story.rejected
            ],
        )
    )


def _never_requested(story: DemoStory) -> list[str]:
    """Return the missing URLs that the recovery never requested, because no recovered page links to them."""
    requested = {each.uri for each in story.missing}
    return [each.uri for each in story.comparison.different if each.outcome == "missing" and each.uri not in requested]


def _types_table(story: DemoStory) -> ReportTable:
    rows = [
        (row.label, f"{row.original}", f"{row.recovered}", format_share(row.share), f"{row.identical}",
        f"{row.changed}",
         f"{row.missing}")
        for row in breakdowns(story.comparison)[0].rows
    ]  # fmt: skip
    heads = ("type", "original", "recovered", "share", "unchanged", "changed", "missing")
    return ReportTable("Recovered resources by type", heads, rows)


def _archives_table(story: DemoStory) -> ReportTable:
    stats, routing = story.stats, story.routing
    rows = [
        (each.name, f"{each.captures}", f"{each.urls}", f"{each.index.stat().st_size:,}",
         f"{each.map.stat().st_size:,}", f"{routing.sent[each.id]}", f"{routing.not_sent[each.id]}",
         f"{stats.archives[each.id]}", f"{stats.rejected_by[each.id]}",
         f"{stats.requests_by_archive.get(each.id, 0)}")
        for each in story.holdings
    ]  # fmt: skip
    heads = (
        "archive", "captures", "URLs", "index bytes", "map bytes", "aggregator requests", "requests saved",
        "resources recovered", "captures rejected", "recovery requests",
    )  # fmt: skip
    return ReportTable("Holdings and requests by archive", heads, rows)


def _visits_table(story: DemoStory, visits: list[CrawlVisit]) -> ReportTable:
    rows = [
        (format_day(each.date), story.site.archives[each.archive], f"{each.held}", f"{each.taken}", f"{each.rejected}")
        for each in visits
    ]
    return ReportTable(
        "Captures by date", ("date", "archive", "captures", "used", "rejected"), rows, "", frozenset({0, 1})
    )


def _write_html(file: Path, text: str) -> None:
    with atomic_file(file) as target:
        target.write(text.encode())
