"""The result of a comparison as text, as a reconstruction diagram (SVG), and as an HTML page."""

from collections.abc import Sequence
from itertools import islice
from math import cos, pi, sin, sqrt

import jinja2

from unlost.comparison.breakdown import breakdowns
from unlost.comparison.compare import ComparedResource, Comparison, ComparisonOutcome
from unlost.comparison.difference import ResourceCounts, SiteDifference
from unlost.report.format import format_count, format_share
from unlost.report.html_templates import make_template_environment

LEVEL_TEXTS = {
    "s1": "Counts changed, missing and added resources.",
    "s2": "Ignores added resources.",
    "s3": "Like s2, but almost identical texts count as unchanged.",
    "s4": "Counts only missing resources.",
    "s5": "Like s4, but resources that an archive is known to hold count as recovered even if they were not fetched.",
}
"""Description of each level of success."""
UNREAD_REASONS = {
    "damaged": "damaged document",
    "encrypted": "encrypted document",
    "no-ghostscript": "PostScript requires Ghostscript, which is not installed",
    "no-text": "the recovered resource is not a text",
    "no-words": "neither document contains words (for example, scanned pages)",
    "too-big": "too large",
    "too-long": "reading the document timed out",
    "unreadable": "the file was modified during the comparison, or is compressed in a WACZ: extract it",
}
"""Description of each error code of `TextSimilarity`."""
SKIP_REASONS = {
    "beside-hosts": ("file outside of the host folders", "files outside of the host folders"),
    "cut": ("truncated capture", "truncated captures"),
    "error": ("error response", "error responses"),
    "foreign-scheme": ("record that is not of HTTP", "records that are not of HTTP"),
    "link": ("link to another file", "links to other files"),
    "no-address": ("file or record without a URL", "files or records without a URL"),
    "no-body": ("response without a body", "responses without a body"),
    "no-status": ("response without a status", "responses without a status"),
    "not-modified": ("304 Not Modified response", "304 Not Modified responses"),
    "redirect": ("redirect", "redirects"),
    "revisit-without-body": ("revisit of a missing capture", "revisits of missing captures"),
    "server-file": ("web server configuration file", "web server configuration files"),
    "special-file": ("device or pipe", "devices or pipes"),
    "unreadable": ("unreadable file", "unreadable files"),
}
"""Descriptions of files and records that are not resources of a site, by reason: singular and plural."""


def describe_skipped(reason: str, count: int) -> str:
    """Return a description of skipped files or records of a site.

    Args:
        reason: A key of `SKIP_REASONS`, or the type of other WARC records.
        count: Number of files or records.

    >>> describe_skipped("redirect", 3), describe_skipped("cut", 1), describe_skipped("request", 2)
    ('3 redirects', '1 truncated capture', '2 records of type request')
    """
    if reason not in SKIP_REASONS:
        return f"{format_count(count, 'record')} of type {reason}"
    return f"{count:,} {SKIP_REASONS[reason][count != 1]}"


def comparison_headline(counts: ResourceCounts) -> str:
    """Return the headline: how much of the site was recovered.

    >>> comparison_headline(ResourceCounts(identical=20, changed=48, missing=32, added=1))
    '68 of 100 resources recovered: 20 unchanged, 48 changed. 32 missing. 1 added.'
    >>> comparison_headline(ResourceCounts(identical=1))
    '1 of 1 resource recovered, unchanged.'
    >>> comparison_headline(ResourceCounts(missing=7, added=2))
    '0 of 7 resources recovered. 2 added.'
    """
    text = f"{counts.back:,} of {format_count(counts.original, 'resource')} recovered"
    if not counts.original:
        text = "The original has no resources"
    elif counts.back and not counts.changed:
        text += ", all unchanged" if counts.back > 1 else ", unchanged"
    elif counts.back and not counts.identical:
        text += ", all changed" if counts.back > 1 else ", changed"
    elif counts.back:
        text += f": {counts.identical:,} unchanged, {counts.changed:,} changed"
    if counts.missing and counts.back:
        text += f". {counts.missing:,} missing"
    if counts.added:
        text += f". {counts.added:,} added"
    return text + "."


def comparison_remarks(comparison: Comparison) -> list[str]:
    """Return the sentences after the headline: about texts, holdings, formats and requests, as far as they apply."""
    remarks = []
    percent = f"{comparison.similar_at * 100:.4g}"
    if comparison.changed_texts:
        share = f"{comparison.similar:,} of {format_count(comparison.changed_texts, 'changed text')}"
        verb = "is" if comparison.similar == 1 or comparison.changed_texts == 1 else "are"
        remarks.append(f"{share} {verb} almost identical (at least {percent} % of the text is the same).")
    if comparison.migrated:
        remarks.append(f"{comparison.migrated:,} recovered in another format.")
    if comparison.held:
        remarks.append(f"{comparison.held:,} of the missing resources known to be archived.")
    if comparison.efficiency is not None and comparison.efficiency_without_added is not None:
        remarks.append(
            f"{format_count(comparison.requests or 0, 'request')}: {comparison.efficiency:.2f} resources per request, "
            f"{comparison.efficiency_without_added:.2f} without added ones."
        )
    return remarks


_RADIUS = 100.0  # in units of the viewBox
_MARGIN = 4.0
_COLOURS = {"identical": "#b9d3ea", "changed": "#1f5f99", "added": "#c8871a"}
_LINE = "#77777f"


def describe_diagram(counts: ResourceCounts) -> str:
    """Return the diagram as text, for screen readers.

    >>> describe_diagram(ResourceCounts(2, 2, 2, 1))
    'Identical 2, changed 2, missing 2 (hole), added 1 (outer ring). Areas are ...'
    """
    parts = (
        f"Identical {counts.identical:,}, changed {counts.changed:,}, missing {counts.missing:,} (hole), "
        f"added {counts.added:,} (outer ring)"
    )
    return f"{parts}. Areas are proportional to the number of resources."


def reconstruction_diagram(counts: ResourceCounts) -> str:
    """Return the reconstruction diagram as an SVG element. The same counts give the same bytes.

    A disc stands for the original: its hole for missing resources, the dark sector for changed and the light one for
    identical ones. The ring around the disc stands for added resources. All areas are proportional to the number of
    resources. Shapes have the classes `identical`, `changed`, `added` and `missing`.
    """
    total = counts.original + counts.added
    core = _RADIUS * sqrt(counts.original / total) if total else _RADIUS
    hole = _RADIUS * sqrt(counts.missing / total) if total else _RADIUS
    changed_share = counts.changed / counts.back if counts.back else 0.0
    shapes = []
    if counts.added:
        shapes.append(_shape("added", _ring(core, _RADIUS)))
    if counts.identical:
        shapes.append(_shape("identical", _ring_sector(hole, core, changed_share, 1.0)))
    if counts.changed:
        shapes.append(_shape("changed", _ring_sector(hole, core, 0.0, changed_share)))
    if counts.missing or not total:
        # A thin line marks the hole, even without any other shape.
        line = f'fill="none" stroke="{_LINE}" stroke-width="0.75" stroke-dasharray="3 2"'
        shapes.append(f'<circle class="missing" r="{_format_number(hole)}" {line}/>')
    edge = _format_number(_RADIUS + _MARGIN)
    size = _format_number(2 * (_RADIUS + _MARGIN))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-{edge} -{edge} {size} {size}" role="img" '
        f'aria-labelledby="diagram-title diagram-text">'
        f'<title id="diagram-title">Reconstruction diagram</title>'
        f'<desc id="diagram-text">{describe_diagram(counts)}</desc>'
        f"{''.join(shapes)}</svg>"
    )


def _shape(name: str, path: str) -> str:
    return f'<path class="{name}" fill="{_COLOURS[name]}" fill-rule="evenodd" d="{path}"/>'


def _ring_sector(inner: float, outer: float, begin: float, end: float) -> str:
    """Return the sector of a ring between two angles, in turns from 0 to 1 clockwise from the top."""
    # SVG omits an arc whose ends coincide (SVG 1.1, appendix F.6.2), so a whole ring consists of two circles.
    if begin <= 0.0 and end >= 1.0:
        return _ring(inner, outer)
    middle = (begin + end) / 2
    path = f"M{_point(outer, begin)}{_arc(outer, middle, 1)}{_arc(outer, end, 1)}L{_point(inner, end)}"
    if inner > 0:
        path += f"{_arc(inner, middle, 0)}{_arc(inner, begin, 0)}"
    return path + "Z"


def _arc(radius: float, turn: float, clockwise: int) -> str:
    """Return an arc of at most half a turn. The ends of a longer one might coincide after rounding."""
    return f"A{_format_number(radius)} {_format_number(radius)} 0 0 {clockwise} {_point(radius, turn)}"


def _ring(inner: float, outer: float) -> str:
    return _circle(outer) + (_circle(inner) if inner > 0 else "")


def _circle(radius: float) -> str:
    arc = f"A{_format_number(radius)} {_format_number(radius)} 0 1 1"
    return f"M{_point(radius, 0.0)}{arc} {_point(radius, 0.5)}{arc} {_point(radius, 0.0)}Z"


def _point(radius: float, turn: float) -> str:
    return f"{_format_number(radius * sin(2 * pi * turn))} {_format_number(-radius * cos(2 * pi * turn))}"


def _format_number(value: float) -> str:
    """Format a coordinate with enough digits for one resource in a million, and without `-0`."""
    return f"{round(value, 4) + 0.0:.4f}".rstrip("0").rstrip(".")


MAX_LISTED = 1_000
"""Maximum missing, changed and added resources that the HTML page lists, of each, since a longer page is slow to open.
"""
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
    """Return the HTML page, with everything inline. The same comparison gives the same bytes.

    Args:
        comparison: The comparison.
        original: Name of the original site.
        recovered: Name of the recovered site.
        weighed: The difference vector with the user's penalties, if any.
        damage: Sites with unreadable parts, and the number of these.
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
    resources = (each for each in comparison.different if each.outcome is outcome)
    total = int(getattr(comparison.counts, outcome.value))
    rows = [(each.uri, _describe_resource(each)) for each in islice(resources, MAX_LISTED)]
    return {"word": outcome.value, "title": title, "total": total, "rows": rows, "more": total - len(rows)}


def _describe_resource(each: ComparedResource) -> str:
    """Return a short description of a resource."""
    parts = [each.mime]
    if each.held:
        parts.append("archived, but not fetched")
    if each.migrated:
        parts.append(f"recovered as {(each.recovered and each.recovered.mime) or 'another format'}")
    if each.similarity is not None:
        if each.similarity.share is None:
            parts.append(f"text not compared: {each.similarity.reason}")
        else:
            parts.append(f"{format_share(each.similarity.share)} of the text is the same")
        parts += ["almost identical"] if each.similar else []
    return ", ".join(parts)


def _make_environment() -> jinja2.Environment:
    environment = make_template_environment("unlost.comparison")
    environment.filters["three"] = "{:.3f}".format
    return environment
