"""The page that shows it all: both sites side by side, the diagram, the time line, what each archive gave."""

from pathlib import Path

from unlost.demo import timeline
from unlost.demo.story import RECOVER_COMMAND, DemoStory
from unlost.formats.output import atomic_file
from unlost.measure.breakdown import breakdowns
from unlost.measure.comparison_page import render_comparison_page
from unlost.measure.diagram import describe_diagram, reconstruction_diagram
from unlost.measure.wording import comparison_headline, comparison_remarks
from unlost.recover.report.retelling import report_strings
from unlost.recover.report.wording import format_day
from unlost.shown import charts
from unlost.shown.page import make_template_environment
from unlost.shown.table import ReportTable
from unlost.shown.words import format_share

ORIGINAL_FOLDER, RECOVERED_FOLDER, PAIRS_FOLDER = "original", "recovered", "pairs"
"""The folders of the page: the two sites, and the pages that have two frames."""

_GONE_PAGE = "gone.html"


def write_pages(story: DemoStory) -> Path:
    """Write the page, and all that it leads to, into the folder that is shown; return its path. Raises OSError."""
    folder = story.page
    (folder / PAIRS_FOLDER).mkdir()
    made = make_template_environment("unlost.demo")
    for number, pair in enumerate(story.pairs):
        sides = [(name, f"../{name}/{place}" if place else f"../{_GONE_PAGE}")
                 for name, place in ((ORIGINAL_FOLDER, pair.original), (RECOVERED_FOLDER, pair.recovered))]  # fmt: skip
        _write_html(
            folder / PAIRS_FOLDER / f"{number}.html", made.get_template("pair.html").render(pair=pair, sides=sides)
        )
    _write_html(folder / _GONE_PAGE, made.get_template("gone.html").render())
    names = "the site as it was", story.recovery.name
    _write_html(folder / "comparison.html", render_comparison_page(story.comparison, *names))
    _write_html(folder / "index.html", render_demo_page(story))
    return folder / "index.html"


def render_demo_page(story: DemoStory) -> str:
    """Return the page itself: HTML without any script, the same for the same story. Everything in it is escaped."""
    counts = story.comparison.counts
    names = story.site.archives
    said = report_strings("en")
    visits = timeline.crawl_visits(
        ((copy.archive, copy.date) for resource in story.site.resources for copy in resource.captures),
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
            timeline=timeline.render_crawl_timeline(visits, names, story.site.ended),
            timeline_style=timeline.TIMELINE_STYLE,
            charts_style=charts.STYLE,
            tables={
                "kinds": _types_table(story),
                "archives": _archives_table(story),
                "visits": _visits_table(story, visits),
            },
            missing=[(each.uri, said.word("reason", each.reason)) for each in story.missing],
            unknown=_never_requested(story),
            rejected=[
                (
                    each.uri,
                    names[each.archive or ""],
                    format_day(each.datetime),
                    said.word("verdict", each.kind),
                    each.reason,
                )
                for each in story.rejected
            ],
        )
    )


def _never_requested(story: DemoStory) -> list[str]:
    """Return what is missing and was never looked for, since nothing that came back leads to it."""
    looked_for = {each.uri for each in story.missing}
    return [each.uri for each in story.comparison.different if each.outcome == "missing" and each.uri not in looked_for]


def _types_table(story: DemoStory) -> ReportTable:
    rows = [
        (row.label, f"{row.original}", f"{row.recovered}", format_share(row.share), f"{row.identical}", f"{row.changed}",
         f"{row.missing}")
        for row in breakdowns(story.comparison)[0].rows
    ]  # fmt: skip
    heads = ("type", "original", "came back", "share", "unchanged", "changed", "missing")
    return ReportTable("What came back, by type", heads, rows)


def _archives_table(story: DemoStory) -> ReportTable:
    figures, routed = story.stats, story.routing
    rows = [
        (each.name, f"{each.captures}", f"{each.urls}", f"{each.index.stat().st_size:,}",
         f"{each.map.stat().st_size:,}", f"{routed.sent[each.id]}", f"{routed.not_sent[each.id]}",
         f"{figures.archives[each.id]}", f"{figures.rejected_by[each.id]}", f"{figures.requests_by_archive.get(each.id, 0)}")
        for each in story.holdings
    ]  # fmt: skip
    heads = (
        "archive", "copies", "addresses", "index, bytes", "map, bytes", "asked by the aggregator", "not asked",
        "gave to the recovery", "copies rejected", "requests of the recovery",
    )  # fmt: skip
    return ReportTable("What each archive has, was asked and gave", heads, rows)


def _visits_table(story: DemoStory, visits: list[timeline.CrawlVisit]) -> ReportTable:
    rows = [
        (format_day(each.date), story.site.archives[each.archive], f"{each.held}", f"{each.taken}", f"{each.rejected}")
        for each in visits
    ]
    return ReportTable(
        "The same in numbers", ("day", "archive", "copies", "taken", "rejected"), rows, "", frozenset({0, 1})
    )


def _write_html(file: Path, text: str) -> None:
    with atomic_file(file) as target:
        target.write(text.encode())
