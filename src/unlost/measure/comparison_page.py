"""A comparison as a page for people: one file that needs no script and asks for nothing."""

from collections.abc import Sequence
from itertools import islice

import jinja2

from unlost.measure.breakdown import breakdowns
from unlost.measure.comparison import ComparedResource, Comparison, ComparisonOutcome
from unlost.measure.diagram import describe_diagram, reconstruction_diagram
from unlost.measure.difference import SiteDifference
from unlost.measure.wording import LEVEL_TEXTS, UNREAD_REASONS, comparison_headline, comparison_remarks
from unlost.shown.page import make_template_environment
from unlost.shown.words import format_share

MAX_LISTED = 1_000
"""How many missing, changed and added resources a page lists, of each; a page of more is slow to open."""

_SECTIONS = {
    ComparisonOutcome.MISSING: "Missing",
    ComparisonOutcome.CHANGED: "Changed",
    ComparisonOutcome.ADDED: "Added",
}


def render_comparison_page(
    comparison: Comparison,
    original: str,
    recovered: str,
    weighed: SiteDifference | None = None,
    damage: Sequence[tuple[str, int]] = (),
) -> str:
    """Return the page: HTML with everything in it, the same for the same comparison. Everything in it is escaped.

    original, recovered: what the two sites were called. weighed: the difference with a user's own penalties, if any.
    damage: sites of which something could not be read, and how much.
    """
    counts = comparison.counts
    lists = [_resource_list(comparison, outcome, title) for outcome, title in _SECTIONS.items()]
    return (
        _make_environment()
        .get_template("comparison.html")
        .render(
            original=original,
            recovered=recovered,
            counts=counts,
            headline=comparison_headline(counts),
            remarks=comparison_remarks(comparison),
            diagram=reconstruction_diagram(counts),
            caption=describe_diagram(counts),
            difference=comparison.difference,
            weighed=weighed,
            levels=[(level, LEVEL_TEXTS[level.name]) for level in comparison.levels],
            almost_identical=comparison.almost_identical,
            tables=[table for table in breakdowns(comparison) if table.rows],
            unread=[
                (count, UNREAD_REASONS.get(reason, reason), first)
                for reason, (count, first) in comparison.unread.items()
            ],
            partial=comparison.partial,
            damage=damage,
            lists=lists,
        )
    )


def _resource_list(comparison: Comparison, outcome: ComparisonOutcome, title: str) -> dict[str, object]:
    every = (each for each in comparison.different if each.outcome is outcome)
    total = int(getattr(comparison.counts, outcome.value))
    rows = [(each.uri, _describe_resource(each)) for each in islice(every, MAX_LISTED)]
    return {"word": outcome.value, "title": title, "total": total, "rows": rows, "more": total - len(rows)}


def _describe_resource(each: ComparedResource) -> str:
    """Return in a few words what else is known of a resource."""
    parts = [each.mime]
    if each.held:
        parts.append("held by an archive")
    if each.migrated:
        parts.append(f"came back as {(each.recovered and each.recovered.mime) or 'another format'}")
    if each.similarity is not None:
        if each.similarity.share is None:
            parts.append(f"text not compared: {each.similarity.reason}")
        else:
            parts.append(f"{format_share(each.similarity.share)} of the text is the same")
        parts += ["almost identical"] if each.similar else []
    return ", ".join(parts)


def _make_environment() -> jinja2.Environment:
    made = make_template_environment("unlost.measure")
    made.filters["three"] = "{:.3f}".format
    return made
