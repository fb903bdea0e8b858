"""A comparison as a page for people: one file that needs no script and asks for nothing."""

from collections.abc import Sequence
from itertools import islice

import jinja2

from unlost.measure.breakdown import breakdowns
from unlost.measure.comparison import Compared, Comparison, Outcome
from unlost.measure.diagram import describe, reconstruction_diagram
from unlost.measure.difference import Difference
from unlost.measure.wording import LEVELS, UNREAD, headline, remarks
from unlost.shown.page import templates
from unlost.shown.words import share

MOST_LISTED = 1_000
"""How many missing, changed and added resources a page lists, of each; a page of more is slow to open."""

_SECTIONS = {
    Outcome.MISSING: "Missing",
    Outcome.CHANGED: "Changed",
    Outcome.ADDED: "Added",
}


def comparison_page(
    comparison: Comparison,
    original: str,
    recovered: str,
    weighed: Difference | None = None,
    damage: Sequence[tuple[str, int]] = (),
) -> str:
    """Return the page: HTML with everything in it, the same for the same comparison. Everything in it is escaped.

    original, recovered: what the two sites were called. weighed: the difference with a user's own penalties, if any.
    damage: sites of which something could not be read, and how much.
    """
    counts = comparison.counts
    lists = [_listed(comparison, outcome, title) for outcome, title in _SECTIONS.items()]
    return (
        _templates()
        .get_template("comparison.html")
        .render(
            original=original,
            recovered=recovered,
            counts=counts,
            headline=headline(counts),
            remarks=remarks(comparison),
            diagram=reconstruction_diagram(counts),
            caption=describe(counts),
            difference=comparison.difference,
            weighed=weighed,
            levels=[(level, LEVELS[level.name]) for level in comparison.levels],
            almost_identical=comparison.almost_identical,
            tables=[table for table in breakdowns(comparison) if table.rows],
            unread=[(count, UNREAD.get(reason, reason), first) for reason, (count, first) in comparison.unread.items()],
            partial=comparison.partial,
            damage=damage,
            lists=lists,
        )
    )


def _listed(comparison: Comparison, outcome: Outcome, title: str) -> dict[str, object]:
    every = (each for each in comparison.different if each.outcome is outcome)
    total = int(getattr(comparison.counts, outcome.value))
    rows = [(each.uri, _about(each)) for each in islice(every, MOST_LISTED)]
    return {"word": outcome.value, "title": title, "total": total, "rows": rows, "more": total - len(rows)}


def _about(each: Compared) -> str:
    """Return in a few words what else is known of a resource."""
    parts = [each.mime]
    if each.held:
        parts.append("held by an archive")
    if each.migrated:
        parts.append(f"came back as {(each.recovered and each.recovered.mime) or 'another format'}")
    if each.likeness is not None:
        if each.likeness.share is None:
            parts.append(f"text not compared: {each.likeness.reason}")
        else:
            parts.append(f"{share(each.likeness.share)} of the text is the same")
        parts += ["almost identical"] if each.similar else []
    return ", ".join(parts)


def _templates() -> jinja2.Environment:
    made = templates("unlost.measure")
    made.filters["three"] = "{:.3f}".format
    return made
