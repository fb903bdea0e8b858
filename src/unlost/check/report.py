"""The result of a check as text, JSON, SVG and an HTML page."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice

from unlost.check.availability import STATE_ORDER, AvailabilityScore, AvailabilityState, ResourceAvailability
from unlost.check.summary import DEEP_HOPS, DEEP_PATH, NEW_DAYS, Advice, CheckStats, Hindrance
from unlost.check.visit_store import ListingResult
from unlost.report.format import format_count, format_share
from unlost.report.html_templates import make_template_environment
from unlost.statistics import wilson_interval

_WIDTH = 1000.0  # of a bar, in units of its viewBox
_HEIGHT = 100.0
_MAX_COLUMNS = 400  # further columns would be narrower than a pixel


def draw_state_bar(states: Counter[AvailabilityState]) -> str:
    """Return one stacked bar as an SVG element, with each state's share of the width. It contains no untrusted text."""
    total = states.total()
    shapes, left = [], 0.0
    for state in STATE_ORDER:
        if states[state]:
            width = _WIDTH * states[state] / total
            geometry = (
                f'x="{_format_number(left)}" y="0" width="{_format_number(width)}" height="{_format_number(_HEIGHT)}"'
            )
            shapes.append(
                f'<rect class="{state.value}" {geometry}><title>{state.value}: {states[state]:,}</title></rect>'
            )
            left += width
    return _svg(
        "states",
        "States of the resources",
        describe_states(states),
        f"0 0 {_format_number(_WIDTH)} {_format_number(_HEIGHT)}",
        shapes,
    )


def draw_state_columns(visits: Sequence[tuple[str, Counter[AvailabilityState]]]) -> str:
    """Return one stacked column for each visit as an SVG element. The tallest column has the most resources.

    Args:
        visits: The visits in order, each with the label for its tooltip.
    """
    shown = _thin_out(visits)
    max_total = max((states.total() for _, states in shown), default=0)
    shapes = []
    for index, (label, states) in enumerate(shown):
        top = _HEIGHT
        for state in STATE_ORDER:
            if states[state]:
                height = _HEIGHT * states[state] / max_total
                top -= height
                geometry = f'x="{10 * index}" y="{_format_number(top)}" width="10" height="{_format_number(height)}"'
                label_text = f"{label}: {states[state]:,} {state.value}"
                shapes.append(f'<rect class="{state.value}" {geometry}><title>{label_text}</title></rect>')
    last = describe_states(shown[-1][1]) if shown else "No visits."
    text = f"{len(visits):,} visits; last visit: {last}"
    return _svg(
        "visits", "States at each visit", text, f"0 0 {10 * max(1, len(shown))} {_format_number(_HEIGHT)}", shapes
    )


def _thin_out(visits: Sequence[tuple[str, Counter[AvailabilityState]]]) -> list[tuple[str, Counter[AvailabilityState]]]:
    """Return at most `_MAX_COLUMNS` visits: the last of each run of consecutive ones."""
    step = -(-len(visits) // _MAX_COLUMNS) or 1
    return [visits[min(at + step, len(visits)) - 1] for at in range(0, len(visits), step)]


def describe_states(states: Counter[AvailabilityState]) -> str:
    """Return the states as text, for screen readers.

    >>> describe_states(Counter({AvailabilityState.REPLICATED: 3, AvailabilityState.VULNERABLE: 1}))
    '3 replicated, 1 vulnerable.'
    """
    return (
        ", ".join(f"{states[state]:,} {state.value}" for state in STATE_ORDER if states[state]) + "."
        if states
        else "None."
    )


def _svg(name: str, title: str, text: str, view_box: str, shapes: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{name}" viewBox="{view_box}" preserveAspectRatio="none" '
        f'role="img" aria-labelledby="{name}-title {name}-text"><title id="{name}-title">{title}</title>'
        f'<desc id="{name}-text">{text}</desc>{"".join(shapes)}</svg>'
    )


def _format_number(value: float) -> str:
    return f"{round(value, 4) + 0.0:.4f}".rstrip("0").rstrip(".")


STATE_TEXTS: Mapping[AvailabilityState, str] = {
    AvailabilityState.REPLICATED: "online and archived: recoverable",
    AvailabilityState.VULNERABLE: "online, not archived: would be lost with the site",
    AvailabilityState.ENDANGERED: "offline, archived: recoverable",
    AvailabilityState.UNRECOVERABLE: "offline, not archived: lost",
    AvailabilityState.UNKNOWN: "not queried, or not all archives responded",
}
"""Description of each state."""
_VERDICT_TEXTS = {
    "soft-404": "soft 404",
    "parked": "parked domain",
    "hijacked": "hijacked domain",
    "login-wall": "login required",
    "consent-wall": "consent required",
    "archive-error": "error page of the archive",
    "absent": "capture not available",
    "error": "error page of the site",
}
_ADVICE_TEXTS: Mapping[Hindrance | None, str] = {
    Hindrance.ROBOTS: "Allow archives to fetch what robots.txt disallows",
    Hindrance.NOARCHIVE: "Remove `noarchive` from pages and headers",
    Hindrance.UNLINKED: "Link to unlinked pages, or list them in a sitemap",
    Hindrance.QUERY: "Use URLs without a query string",
    Hindrance.DEEP: (
        f"Link to deep pages from the home page, or list them in a sitemap (deep: at least {DEEP_HOPS} links or "
        f"{DEEP_PATH} path segments)"
    ),
    Hindrance.NEW: f"Do not change URLs: archives need time to find new ones (new: at most {NEW_DAYS} days old)",
    None: "Submit these URLs to archives with the archives' own forms (--save writes the list)",
}


def format_percentage(value: float) -> str:
    """Return a share with one decimal place.

    >>> format_percentage(0.6789), format_percentage(1.0)
    ('67.9 %', '100 %')
    """
    return f"{100 * value:.1f}".removesuffix(".0") + " %"


def check_headline(score: AvailabilityScore) -> str:
    """Return the headline: how much of the site could be recovered.

    >>> check_headline(AvailabilityScore(100, 68, 32, 0, 0))
    'If the site were lost now, 68 of 100 resources could be recovered: 68 %.'
    >>> check_headline(AvailabilityScore(live=100, held=60, absent=10, sampled=20, hits=10))
    'If the site were lost now, about 75 % of 100 resources could be recovered: 66.9 % to 83.1 %, estimated from 20.'
    >>> check_headline(AvailabilityScore(live=10, held=4, absent=5, sampled=0, hits=0))[:70]
    'If the site were lost now, between 40 % and 50 % of 10 resources could'
    >>> check_headline(AvailabilityScore(0, 0, 0, 0, 0))
    'No resource of the site is online.'
    """
    if not score.live:
        return "No resource of the site is online."
    low, high = score.interval or (0.0, 1.0)
    if score.share is None:
        return (
            f"If the site were lost now, between {format_percentage(low)} and {format_percentage(high)} of "
            f"{format_count(score.live, 'resource')} could be recovered. {score.unknown:,} unknown, because not all "
            "archives responded."
        )
    if not score.unknown:
        share_text = (
            f"{score.held:,} of {format_count(score.live, 'resource')}"
            if score.held
            else f"none of {format_count(score.live, 'resource')}"
        )
        return f"If the site were lost now, {share_text} could be recovered: {format_share(score.share)}."
    return (
        f"If the site were lost now, about {format_share(score.share)} of {format_count(score.live, 'resource')} "
        f"could be recovered: {format_percentage(low)} to {format_percentage(high)}, estimated from {score.sampled:,}."
    )


def check_remarks(stats: CheckStats) -> list[str]:
    """Return the sentences after the headline: about resources that are gone, formats, and staleness."""
    remarks = []
    gone = stats.states[AvailabilityState.ENDANGERED], stats.states[AvailabilityState.UNRECOVERABLE]
    if any(gone):
        verb = "is" if sum(gone) == 1 else "are"
        remarks.append(f"{sum(gone):,} more {verb} offline ({gone[0]:,} archived).")
    if stats.migrated:
        remarks.append(f"{stats.migrated:,} could be recovered only in another format.")
    if stats.classified:
        remarks.append(_describe_sample(stats))
    stale = stats.stale
    if stale.known:
        text = f"Captures older than the page: {stale.stale:,} of {stale.known:,} of known age"
        text += f", by {stale.median:.0f} days (median), {stale.most:.0f} days (maximum)." if stale.stale else "."
        remarks.append(text)
    return remarks


def _describe_sample(stats: CheckStats) -> str:
    """Return the result of classifying captures."""
    bad, classified, total = stats.bad.total(), stats.classified, stats.classifiable
    text = f"Captures of {classified:,} of {format_count(total, 'archived page')} were checked: "
    if bad:
        why = ", ".join(f"{_VERDICT_TEXTS.get(word, word)} {count:,}" for word, count in stats.bad.most_common())
        text += f"{bad:,} without a good capture ({why})"
    else:
        text += "all have a good capture"
    low, high = wilson_interval(bad, classified, total)
    if classified >= total:
        return f"{text}."
    return f"{text}. Estimate for all archived pages: {format_percentage(low)} to {format_percentage(high)}."


def describe_advice(advice: Advice) -> str:
    """Return a piece of advice as a sentence, with the number of resources that it would save.

    >>> describe_advice(Advice(Hindrance.ROBOTS, 12, 9))
    'Allow archives to fetch what robots.txt disallows: 12 affected, about 9 would then be archived.'
    """
    action = _ADVICE_TEXTS[advice.hindrance]
    if advice.hindrance is None:
        return f"{action}: {advice.affected:,} not archived."
    return f"{action}: {advice.affected:,} affected, about {advice.saved:,} would then be archived."


def availability_to_json(availability: ResourceAvailability) -> dict[str, object]:
    """Return one resource as a JSON object. Staleness is in days, dates have 14 digits, unknown values are null."""
    live = availability.live
    return {
        "uri": live.uri,
        "state": availability.state.value,
        "outcome": live.outcome.value,
        "status": live.status,
        "mime": live.mime,
        "last_modified": live.last_modified,
        "hops": live.hops,
        "in_sitemap": live.is_in_sitemap,
        "noarchive": live.is_noarchive,
        "captures": availability.captures,
        "last_stored": availability.last_capture,
        "stale_days": availability.stale_days,
        "migrated": availability.is_migrated,
        "same": availability.is_same,
        "verdict": availability.verdict,
        "archives": {
            each.archive: {"captures": each.captures, "first": each.first, "last": each.last, "migrated": each.migrated}
            for each in availability.held
        },
    }


def check_to_json(
    url: str, now: str, stats: CheckStats, listings: Sequence[ListingResult], incomplete: Mapping[str, str]
) -> dict[str, object]:
    """Return the result of a check as a JSON object."""
    score = stats.score
    return {
        "checked": url,
        "at": now,
        "states": _states_to_json(stats.states),
        "score": score.share,
        "interval": None if score.interval is None else list(score.interval),
        "live": score.live,
        "asked_one_by_one": score.sampled,
        "canonical": stats.canonical,
        "migrated": stats.migrated,
        "same": stats.same,
        "staleness": asdict(stats.stale),
        "held_by": {str(number): count for number, count in sorted(stats.by_archives.items())},
        "judged": {
            "count": stats.bad.total(),
            "of": stats.classified,
            "pages": stats.classifiable,
            "interval": list(wilson_interval(stats.bad.total(), stats.classified, stats.classifiable)),
        },
        "bad": dict(stats.bad),
        "archives": [asdict(use) for use in stats.archives],
        "tables": {
            table.name: [{"label": row.label, "share": row.share, **_states_to_json(row.states)} for row in table.rows]
            for table in stats.tables
        },
        "advice": [
            {
                "hindrance": None if each.hindrance is None else each.hindrance.value,
                "affected": each.affected,
                "saved": each.saved,
                "examples": list(each.examples),
                "words": describe_advice(each),
            }
            for each in stats.advice
        ],
        "lists": [asdict(each) for each in listings],
        "left_over": dict(incomplete),
    }


def _states_to_json(states: Counter[AvailabilityState]) -> dict[str, int]:
    return {state.value: states[state] for state in AvailabilityState}


MAX_LISTED = 500
"""Maximum resources of each state that the HTML page lists, since a longer page is slow to open."""
_LISTED_STATES = (AvailabilityState.VULNERABLE, AvailabilityState.ENDANGERED, AvailabilityState.UNRECOVERABLE)


def render_check_page(
    title: str,
    now: str,
    stats: CheckStats,
    availabilities: Iterable[ResourceAvailability],
    incomplete: Mapping[str, str],
) -> str:
    """Return the HTML page, with everything inline. The same check gives the same bytes.

    Args:
        title: The site that was checked.
        now: Start of the visit, 14 digits.
        stats: The statistics.
        availabilities: All resources.
        incomplete: The archives whose queries were not completed, each with the reason.
    """
    listed: dict[AvailabilityState, list[ResourceAvailability]] = {state: [] for state in _LISTED_STATES}
    for availability in availabilities:
        rows = listed.get(availability.state)
        if rows is not None and len(rows) < MAX_LISTED:
            rows.append(availability)
    return (
        make_template_environment("unlost.check")
        .get_template("check.html")
        .render(
            title=title,
            now=now,
            figures=stats,
            headline=check_headline(stats.score),
            remarks=check_remarks(stats),
            bar=draw_state_bar(stats.states),
            described=describe_states(stats.states),
            states=[
                (state.value, stats.states[state], STATE_TEXTS[state]) for state in STATE_ORDER if stats.states[state]
            ],
            columns=[state for state in STATE_ORDER if stats.states[state]],
            advice=[(describe_advice(each), each.examples) for each in stats.advice],
            left_over=dict(incomplete),
            lists=[
                (
                    state.value,
                    STATE_TEXTS[state],
                    stats.states[state],
                    [_describe_resource(each) for each in islice(rows, MAX_LISTED)],
                )
                for state, rows in listed.items()
                if rows
            ],
        )
    )


def _describe_resource(availability: ResourceAvailability) -> tuple[str, str]:
    """Return the URL and a short description."""
    parts = [availability.mime]
    if availability.held:
        parts.append(f"{availability.captures:,} captures, last {(availability.last_capture or '')[:8]}")
    if availability.is_forbidden:
        parts.append("disallowed by robots.txt")
    if availability.live.is_noarchive:
        parts.append("noarchive")
    return availability.live.uri, ", ".join(parts)
