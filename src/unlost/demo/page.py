"""The page that shows it all: both sites side by side, the diagram, the time line, what each archive gave."""

from pathlib import Path

from unlost.demo import timeline
from unlost.demo.story import OWN_SITE, Story
from unlost.formats.output import whole_file
from unlost.measure.breakdown import breakdowns
from unlost.measure.comparison_page import comparison_page
from unlost.measure.diagram import describe, reconstruction_diagram
from unlost.measure.wording import headline, remarks
from unlost.recover.report.retelling import report_strings
from unlost.recover.report.wording import day
from unlost.shown import charts
from unlost.shown.page import templates
from unlost.shown.table import Table
from unlost.shown.words import share

ORIGINAL, RECOVERED, PAIRS = "original", "recovered", "pairs"
"""The folders of the page: the two sites, and the pages that have two frames."""

_GONE = "gone.html"


def write_pages(story: Story) -> Path:
    """Write the page, and all that it leads to, into the folder that is shown; return its path. Raises OSError."""
    folder = story.page
    (folder / PAIRS).mkdir()
    made = templates("unlost.demo")
    for number, pair in enumerate(story.pairs):
        sides = [(name, f"../{name}/{place}" if place else f"../{_GONE}")
                 for name, place in ((ORIGINAL, pair.original), (RECOVERED, pair.recovered))]  # fmt: skip
        _write(folder / PAIRS / f"{number}.html", made.get_template("pair.html").render(pair=pair, sides=sides))
    _write(folder / _GONE, made.get_template("gone.html").render())
    names = "the site as it was", story.recovery.name
    _write(folder / "comparison.html", comparison_page(story.comparison, *names))
    _write(folder / "index.html", demo_page(story))
    return folder / "index.html"


def demo_page(story: Story) -> str:
    """Return the page itself: HTML without any script, the same for the same story. Everything in it is escaped."""
    counts = story.comparison.counts
    names = story.site.archives
    said = report_strings("en")
    visits = timeline.visits_of(
        ((copy.archive, copy.date) for resource in story.site.resources for copy in resource.copies),
        ((each.archive or "", each.datetime) for each in story.chosen),
        ((each.archive or "", each.datetime) for each in story.rejected),
    )
    return (
        templates("unlost.demo")
        .get_template("demo.html")
        .render(
            story=story,
            own_site=OWN_SITE,
            pairs=list(enumerate(story.pairs)),
            first=f"{PAIRS}/0.html",
            counts=counts,
            headline=headline(counts),
            remarks=remarks(story.comparison),
            diagram=reconstruction_diagram(counts),
            caption=describe(counts),
            timeline=timeline.drawing(visits, names, story.site.ended),
            timeline_style=timeline.STYLE,
            charts_style=charts.STYLE,
            tables={"kinds": _kinds(story), "archives": _archives(story), "visits": _visits(story, visits)},
            missing=[(each.uri, said.word("reason", each.reason)) for each in story.missing],
            unknown=_unknown(story),
            rejected=[
                (each.uri, names[each.archive or ""], day(each.datetime), said.word("verdict", each.kind), each.reason)
                for each in story.rejected
            ],
        )
    )


def _unknown(story: Story) -> list[str]:
    """Return what is missing and was never looked for, since nothing that came back leads to it."""
    looked_for = {each.uri for each in story.missing}
    return [each.uri for each in story.comparison.different if each.outcome == "missing" and each.uri not in looked_for]


def _kinds(story: Story) -> Table:
    rows = [
        (row.label, f"{row.original}", f"{row.recovered}", share(row.share), f"{row.identical}", f"{row.changed}",
         f"{row.missing}")
        for row in breakdowns(story.comparison)[0].rows
    ]  # fmt: skip
    heads = ("type", "original", "came back", "share", "unchanged", "changed", "missing")
    return Table("What came back, by type", heads, rows)


def _archives(story: Story) -> Table:
    figures, routed = story.figures, story.routed
    rows = [
        (each.name, f"{each.captures}", f"{each.addresses}", f"{each.index.stat().st_size:,}",
         f"{each.map.stat().st_size:,}", f"{routed.sent[each.id]}", f"{routed.not_sent[each.id]}",
         f"{figures.archives[each.id]}", f"{figures.rejected_by[each.id]}", f"{figures.asked.get(each.id, 0)}")
        for each in story.holdings
    ]  # fmt: skip
    heads = (
        "archive", "copies", "addresses", "index, bytes", "map, bytes", "asked by the aggregator", "not asked",
        "gave to the recovery", "copies rejected", "requests of the recovery",
    )  # fmt: skip
    return Table("What each archive has, was asked and gave", heads, rows)


def _visits(story: Story, visits: list[timeline.Visit]) -> Table:
    rows = [
        (day(each.date), story.site.archives[each.archive], f"{each.held}", f"{each.taken}", f"{each.rejected}")
        for each in visits
    ]
    return Table("The same in numbers", ("day", "archive", "copies", "taken", "rejected"), rows, "", frozenset({0, 1}))


def _write(file: Path, text: str) -> None:
    with whole_file(file) as target:
        target.write(text.encode())
