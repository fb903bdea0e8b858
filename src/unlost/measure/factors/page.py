"""What recoveries tell about the factors, as a page for people: one file that needs no script and asks for nothing."""

from unlost.measure.factors.findings import Findings
from unlost.measure.factors.tables import factor_tables, headline, remarks
from unlost.shown.page import templates


def factors_page(found: Findings) -> str:
    """Return the page: HTML with everything in it, the same for the same findings. Everything in it is escaped."""
    return (
        templates("unlost.measure")
        .get_template("factors.html")
        .render(headline=headline(found), remarks=remarks(found), tables=factor_tables(found))
    )
