"""What recoveries tell about the factors, as a page for people: one file that needs no script and asks for nothing."""

from unlost.measure.factors.findings import FactorAnalysis
from unlost.measure.factors.tables import factor_tables, factors_headline, factors_remarks
from unlost.shown.page import make_template_environment


def render_factors_page(found: FactorAnalysis) -> str:
    """Return the page: HTML with everything in it, the same for the same findings. Everything in it is escaped."""
    return (
        make_template_environment("unlost.measure")
        .get_template("factors.html")
        .render(headline=factors_headline(found), remarks=factors_remarks(found), tables=factor_tables(found))
    )
