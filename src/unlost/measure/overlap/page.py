"""A measurement as a page for people: one file that needs no script and asks for nothing."""

from unlost.measure.overlap.copy_tables import copies_tables
from unlost.measure.overlap.drawings import describe, likeness_drawing, overlap_drawing, years_drawing
from unlost.measure.overlap.figures import Figures
from unlost.measure.overlap.tables import headline, holdings_tables, remarks
from unlost.shown.page import templates


def overlap_page(figures: Figures, name: str) -> str:
    """Return the page: HTML with everything in it, the same for the same figures. Everything in it is escaped.

    name: what the list of pages is called.
    """
    pairs = [(each.archive, likeness_drawing(each.live.points)) for each in figures.archives if each.live.points]
    return (
        templates("unlost.measure")
        .get_template("overlap.html")
        .render(
            name=name,
            headline=headline(figures),
            remarks=remarks(figures),
            membership=figures.membership,
            drawing=overlap_drawing(figures.membership),
            described=describe(figures.membership),
            years=years_drawing(figures.years, figures.size, figures.year_pages) if figures.years else "",
            pairs=pairs,
            holdings=holdings_tables(figures),
            copies=copies_tables(figures),
        )
    )
