"""A measurement as a page for people: one file that needs no script and asks for nothing."""

from unlost.measure.overlap.copy_tables import capture_tables
from unlost.measure.overlap.drawings import describe_overlap, draw_similarity, draw_overlap, draw_years
from unlost.measure.overlap.figures import OverlapStats
from unlost.measure.overlap.tables import overlap_headline, holdings_tables, overlap_remarks
from unlost.shown.page import make_template_environment


def render_overlap_page(figures: OverlapStats, name: str) -> str:
    """Return the page: HTML with everything in it, the same for the same figures. Everything in it is escaped.

    name: what the list of pages is called.
    """
    pairs = [(each.archive, draw_similarity(each.live.points)) for each in figures.archives if each.live.points]
    return (
        make_template_environment("unlost.measure")
        .get_template("overlap.html")
        .render(
            name=name,
            headline=overlap_headline(figures),
            remarks=overlap_remarks(figures),
            membership=figures.membership,
            drawing=draw_overlap(figures.membership),
            described=describe_overlap(figures.membership),
            years=draw_years(figures.years, figures.size, figures.year_pages) if figures.years else "",
            pairs=pairs,
            holdings=holdings_tables(figures),
            copies=capture_tables(figures),
        )
    )
