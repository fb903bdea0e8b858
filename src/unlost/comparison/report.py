"""The result of a comparison in sentences, as a reconstruction diagram (SVG), and as an HTML page."""

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
    "s1": "Everything that differs is minded: changed, missing and added alike.",
    "s2": "Changed and missing are minded, added is not.",
    "s3": "The same, but a text that is almost identical counts as unchanged.",
    "s4": "Only what is missing is minded.",
    "s5": "The same, but what an archive is known to hold counts as recovered, though it was not fetched.",
}
"""What each level of success means."""
UNREAD_REASONS = {
    "damaged": "the document is damaged",
    "encrypted": "the document is encrypted",
    "no-ghostscript": "PostScript is read through Ghostscript, which is not installed",
    "no-text": "the copy is of a kind that has no text",
    "no-words": "there is no word in either, as in scanned pages",
    "too-big": "it is too big",
    "too-long": "reading the document took too long",
    "unreadable": "the file was changed meanwhile, or is deflated in a WACZ: take it out of the ZIP",
}
"""Why two texts could not be compared, by the reason."""
SKIP_REASONS = {
    "beside-hosts": ("file beside the folders of hosts", "files beside the folders of hosts"),
    "cut": ("copy that breaks off", "copies that break off"),
    "error": ("error", "errors"),
    "foreign-scheme": ("record of something that is no web page", "records of something that is no web page"),
    "link": ("link to another file", "links to other files"),
    "no-address": ("file or record without an address", "files or records without an address"),
    "no-body": ("answer without a body", "answers without a body"),
    "no-status": ("answer without a status", "answers without a status"),
    "not-modified": ("answer that nothing was modified", "answers that nothing was modified"),
    "redirect": ("redirect", "redirects"),
    "revisit-without-body": ("repetition of a copy that is not there", "repetitions of copies that are not there"),
    "server-file": ("file for web servers", "files for web servers"),
    "special-file": ("device or pipe", "devices or pipes"),
    "unreadable": ("file that cannot be read", "files that cannot be read"),
}
"""What is no resource of a site, by the reason: one, and several."""


def describe_skipped(reason: str, count: int) -> str:
    """Return what was left out of a site, in words; other records of archive files are called by their types.

    >>> describe_skipped("redirect", 3), describe_skipped("cut", 1), describe_skipped("request", 2)
    ('3 redirects', '1 copy that breaks off', '2 records of the type request')
    """
    if reason not in SKIP_REASONS:
        return f"{format_count(count, 'record')} of the type {reason}"
    return f"{count:,} {SKIP_REASONS[reason][count != 1]}"


def comparison_headline(counts: ResourceCounts) -> str:
    """Return what everybody wants to know first.

    >>> comparison_headline(ResourceCounts(identical=20, changed=48, missing=32, added=1))
    '68 of 100 resources came back: 20 unchanged, 48 changed. 32 are missing. 1 more was added.'
    >>> comparison_headline(ResourceCounts(identical=1))
    '1 of 1 resource came back, unchanged.'
    >>> comparison_headline(ResourceCounts(missing=7, added=2))
    'None of 7 resources came back. 2 more were added.'
    """
    text = f"{f'{counts.back:,}' if counts.back else 'None'} of {format_count(counts.original, 'resource')} came back"
    if not counts.original:
        text = "The original has no resources"
    elif counts.back and not counts.changed:
        text += ", all unchanged" if counts.back > 1 else ", unchanged"
    elif counts.back and not counts.identical:
        text += ", all changed" if counts.back > 1 else ", changed"
    elif counts.back:
        text += f": {counts.identical:,} unchanged, {counts.changed:,} changed"
    if counts.missing and counts.back:
        text += f". {counts.missing:,} {'is' if counts.missing == 1 else 'are'} missing"
    if counts.added:
        text += f". {counts.added:,} more {'was' if counts.added == 1 else 'were'} added"
    return text + "."


def comparison_remarks(comparison: Comparison) -> list[str]:
    """Return the sentences that follow: about texts, what is held, formats and requests, as far as there is any."""
    found = []
    percent = f"{comparison.similar_at * 100:.4g}"
    if comparison.changed_texts:
        share = f"{comparison.similar:,} of {format_count(comparison.changed_texts, 'changed text')}"
        are = "is" if comparison.similar == 1 or comparison.changed_texts == 1 else "are"
        found.append(f"{share} {are} almost identical (at least {percent} % of what they say is the same).")
    if comparison.migrated:
        found.append(f"{comparison.migrated:,} came back in another format than they had.")
    if comparison.held:
        count = comparison.held
        found.append(f"{count:,} of the missing {'is' if count == 1 else 'are'} known to be in an archive.")
    if comparison.efficiency is not None and comparison.efficiency_without_added is not None:
        found.append(
            f"{format_count(comparison.requests or 0, 'request')}: {comparison.efficiency:.2f} resources for each, "
            f"{comparison.efficiency_without_added:.2f} without added ones."
        )
    return found


_RADIUS = 100.0  # of the whole picture, in its own units
_MARGIN = 4.0
_COLOURS = {"identical": "#b9d3ea", "changed": "#1f5f99", "added": "#c8871a"}
_LINE = "#77777f"


def describe_diagram(counts: ResourceCounts) -> str:
    """Return in a sentence what the picture shows.

    >>> describe(Counts(2, 2, 2, 1))
    'Identical 2, changed 2, missing 2 (the hole), added 1 (the crust). Equal areas stand for ...'
    """
    parts = (
        f"Identical {counts.identical:,}, changed {counts.changed:,}, missing {counts.missing:,} (the hole), "
        f"added {counts.added:,} (the crust)"
    )
    return f"{parts}. Equal areas stand for equal numbers of resources."


def reconstruction_diagram(counts: ResourceCounts) -> str:
    """Return the diagram as an SVG element that stands alone or in a page; the same counts give the same bytes.

    A disc stands for the original: its hole for what is missing, around it the dark part for what is changed, the light
    one for what is identical. The crust around the disc stands for what was added. All areas are proportional to the
    numbers of resources, hole and crust too. Shapes have the classes `identical`, `changed`, `added`, `missing`.
    """
    all_of = counts.original + counts.added
    core = _RADIUS * sqrt(counts.original / all_of) if all_of else _RADIUS
    hole = _RADIUS * sqrt(counts.missing / all_of) if all_of else _RADIUS
    turn = counts.changed / counts.back if counts.back else 0.0
    shapes = []
    if counts.added:
        shapes.append(_shape("added", _ring(core, _RADIUS)))
    if counts.identical:
        shapes.append(_shape("identical", _ring_sector(hole, core, turn, 1.0)))
    if counts.changed:
        shapes.append(_shape("changed", _ring_sector(hole, core, 0.0, turn)))
    if counts.missing or not all_of:
        # Nothing is drawn in a hole; a thin line shows where it is, also where it is all there is.
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
    """Return the part of a ring between two turns, from 0 to 1 clockwise from the top."""
    # An arc that ends where it begins is none: a whole ring is made of two circles.
    if begin <= 0.0 and end >= 1.0:
        return _ring(inner, outer)
    middle = (begin + end) / 2
    path = f"M{_point(outer, begin)}{_arc(outer, middle, 1)}{_arc(outer, end, 1)}L{_point(inner, end)}"
    if inner > 0:
        path += f"{_arc(inner, middle, 0)}{_arc(inner, begin, 0)}"
    return path + "Z"


def _arc(radius: float, turn: float, clockwise: int) -> str:
    """Return an arc of at most half a turn: of a longer one both ends may be one point, once they are rounded."""
    return f"A{_format_number(radius)} {_format_number(radius)} 0 0 {clockwise} {_point(radius, turn)}"


def _ring(inner: float, outer: float) -> str:
    return _circle(outer) + (_circle(inner) if inner > 0 else "")


def _circle(radius: float) -> str:
    arc = f"A{_format_number(radius)} {_format_number(radius)} 0 1 1"
    return f"M{_point(radius, 0.0)}{arc} {_point(radius, 0.5)}{arc} {_point(radius, 0.0)}Z"


def _point(radius: float, turn: float) -> str:
    return f"{_format_number(radius * sin(2 * pi * turn))} {_format_number(-radius * cos(2 * pi * turn))}"


def _format_number(value: float) -> str:
    """Return it with as many digits as one resource of a million needs, and no `-0`."""
    return f"{round(value, 4) + 0.0:.4f}".rstrip("0").rstrip(".")


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
    made = make_template_environment("unlost.comparison")
    made.filters["three"] = "{:.3f}".format
    return made
