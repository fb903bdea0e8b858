"""The result of a check in sentences, as JSON, SVG and an HTML page."""

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

"""From what is safest on."""
_WIDTH = 1000.0  # of a bar, in its own units
_HEIGHT = 100.0
_MAX_COLUMNS = 400  # more are narrower than a line of the screen: neighbours are added up


def draw_state_bar(states: Counter[AvailabilityState]) -> str:
    """Return one bar as an SVG element: each state has its share of the width. Nothing of others is in it."""
    total = states.total()
    shapes, at = [], 0.0
    for state in STATE_ORDER:
        if states[state]:
            width = _WIDTH * states[state] / total
            place = f'x="{_format_number(at)}" y="0" width="{_format_number(width)}" height="{_format_number(_HEIGHT)}"'
            shapes.append(f'<rect class="{state.value}" {place}><title>{state.value}: {states[state]:,}</title></rect>')
            at += width
    return _svg(
        "states",
        "States of the resources",
        describe_states(states),
        f"0 0 {_format_number(_WIDTH)} {_format_number(_HEIGHT)}",
        shapes,
    )


def draw_state_columns(visits: Sequence[tuple[str, Counter[AvailabilityState]]]) -> str:
    """Return a column for each visit as an SVG element, the highest for the most resources; labels are titles.

    visits: in their order, each with what it is called.
    """
    shown = _thin_out(visits)
    most = max((states.total() for _, states in shown), default=0)
    shapes = []
    for at, (label, states) in enumerate(shown):
        top = _HEIGHT
        for state in STATE_ORDER:
            if states[state]:
                height = _HEIGHT * states[state] / most
                top -= height
                place = f'x="{10 * at}" y="{_format_number(top)}" width="10" height="{_format_number(height)}"'
                words = f"{label}: {states[state]:,} {state.value}"
                shapes.append(f'<rect class="{state.value}" {place}><title>{words}</title></rect>')
    last = describe_states(shown[-1][1]) if shown else "No visits."
    text = f"{len(visits):,} visits; at the last: {last}"
    return _svg(
        "visits", "States at each visit", text, f"0 0 {10 * max(1, len(shown))} {_format_number(_HEIGHT)}", shapes
    )


def _thin_out(visits: Sequence[tuple[str, Counter[AvailabilityState]]]) -> list[tuple[str, Counter[AvailabilityState]]]:
    """Return at most so many visits as can be seen: the last of each run of them."""
    step = -(-len(visits) // _MAX_COLUMNS) or 1
    return [visits[min(at + step, len(visits)) - 1] for at in range(0, len(visits), step)]


def describe_states(states: Counter[AvailabilityState]) -> str:
    """Return in a sentence what is drawn.

    >>> describe_states(Counter({AvailabilityState.REPLICATED: 3, AvailabilityState.VULNERABLE: 1}))
    '3 replicated, 1 vulnerable.'
    """
    return (
        ", ".join(f"{states[state]:,} {state.value}" for state in STATE_ORDER if states[state]) + "."
        if states
        else "None."
    )


def _svg(name: str, title: str, text: str, box: str, shapes: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{name}" viewBox="{box}" preserveAspectRatio="none" role="img" '
        f'aria-labelledby="{name}-title {name}-text"><title id="{name}-title">{title}</title>'
        f'<desc id="{name}-text">{text}</desc>{"".join(shapes)}</svg>'
    )


def _format_number(value: float) -> str:
    return f"{round(value, 4) + 0.0:.4f}".rstrip("0").rstrip(".")


STATE_TEXTS: Mapping[AvailabilityState, str] = {
    AvailabilityState.REPLICATED: "on the web and in an archive: would come back",
    AvailabilityState.VULNERABLE: "on the web only: would be lost with the site",
    AvailabilityState.ENDANGERED: "gone from the web, still in an archive",
    AvailabilityState.UNRECOVERABLE: "gone from the web, in no archive",
    AvailabilityState.UNKNOWN: "not asked for, or not answered by all archives",
}
"""What each state means."""
_VERDICT_TEXTS = {
    "soft-404": "not found, in words",
    "parked": "parked",
    "hijacked": "hijacked",
    "login-wall": "behind a log-in",
    "consent-wall": "behind something to agree to",
    "archive-error": "an error of the archive",
    "absent": "not there after all",
    "error": "an error of the site",
}
_ADVICE_TEXTS: Mapping[Hindrance | None, tuple[str, str]] = {
    Hindrance.ROBOTS: ("Let archives fetch what robots.txt forbids", "forbidden by robots.txt"),
    Hindrance.NOARCHIVE: ("Take `noarchive` out of these pages or headers", "marked noarchive"),
    Hindrance.UNLINKED: ("Link to these pages, or name them in a sitemap", "linked from no page of the site"),
    Hindrance.QUERY: ("Give these pages addresses without a query", "with a query in their address"),
    Hindrance.DEEP: (
        "Bring these pages nearer to the beginning, or name them in a sitemap",
        f"{DEEP_HOPS} links or {DEEP_PATH} path segments deep, or deeper",
    ),
    Hindrance.NEW: (
        "Keep addresses as they are: new ones need time until archives find them",
        f"new within {NEW_DAYS} days",
    ),
    None: ("Hand these addresses to archives by their own forms (--save writes the list)", "in no archive"),
}


def format_percentage(value: float) -> str:
    """Return a share with as many digits as an interval deserves.

    >>> format_percentage(0.6789), format_percentage(1.0)
    ('67.9 %', '100 %')
    """
    return f"{100 * value:.1f}".removesuffix(".0") + " %"


def check_headline(score: AvailabilityScore) -> str:
    """Return what everybody wants to know first.

    >>> headline(Score(100, 68, 32, 0, 0))
    'If the site were lost now, 68 of 100 resources would come back: 68 %.'
    >>> headline(Score(live=100, held=60, absent=10, drawn=20, hits=10))
    'If the site were lost now, about 75 % of 100 resources would come back: between 66.9 % and 83.1 %, judged by 20.'
    >>> headline(Score(live=10, held=4, absent=5, drawn=0, hits=0))[:70]
    'If the site were lost now, between 40 % and 50 % of 10 resources would'
    >>> headline(Score(0, 0, 0, 0, 0))
    'Nothing of the site is on the web.'
    """
    if not score.live:
        return "Nothing of the site is on the web."
    low, high = score.interval or (0.0, 1.0)
    if score.share is None:
        return (
            f"If the site were lost now, between {format_percentage(low)} and {format_percentage(high)} of "
            f"{format_count(score.live, 'resource')} would come back: of {score.unknown:,} nobody can tell, since "
            "not all "
            "archives answered."
        )
    if not score.unknown:
        many = (
            f"{score.held:,} of {format_count(score.live, 'resource')}"
            if score.held
            else f"none of {format_count(score.live, 'resource')}"
        )
        return f"If the site were lost now, {many} would come back: {format_share(score.share)}."
    return (
        f"If the site were lost now, about {format_share(score.share)} of {format_count(score.live, 'resource')} "
        "would come back: "
        f"between {format_percentage(low)} and {format_percentage(high)}, judged by {score.sampled:,}."
    )


def check_remarks(figures: CheckStats) -> list[str]:
    """Return the sentences that follow: about what is gone already, formats, and how old copies are."""
    found = []
    gone = figures.states[AvailabilityState.ENDANGERED], figures.states[AvailabilityState.UNRECOVERABLE]
    if any(gone):
        are = "is" if sum(gone) == 1 else "are"
        found.append(f"{sum(gone):,} more {are} not on the web any more, of which archives have {gone[0]:,}.")
    if figures.migrated:
        found.append(f"{figures.migrated:,} would come back only in another format than they have.")
    if figures.judged:
        found.append(_describe_sample(figures))
    stale = figures.stale
    if stale.known:
        text = (
            f"Copies that are older than the page, of those whose age can be told: {stale.stale:,} of {stale.known:,}"
        )
        text += f", by {stale.median:.0f} days in the middle and {stale.most:.0f} at most." if stale.stale else "."
        found.append(text)
    return found


def _describe_sample(figures: CheckStats) -> str:
    """Return what came of looking into copies."""
    bad, judged, total = figures.bad.total(), figures.judged, figures.judgeable
    text = f"Copies of {judged:,} of {format_count(total, 'page')} that archives have were looked into: "
    if bad:
        why = ", ".join(f"{_VERDICT_TEXTS.get(word, word)} {count:,}" for word, count in figures.bad.most_common())
        text += f"{bad:,} would not come back, for want of a good one ({why})"
    else:
        text += "all are good"
    low, high = wilson_interval(bad, judged, total)
    if judged >= total:
        return f"{text}."
    return f"{text}; of all, between {format_percentage(low)} and {format_percentage(high)} would not."


def describe_advice(advice: Advice) -> str:
    """Return what to do, and what it would bring.

    >>> describe_advice(Advice(Hindrance.ROBOTS, 12, 9))
    'Let archives fetch what robots.txt forbids: 12 are forbidden by robots.txt, of which 9 would be saved.'
    """
    what, why = _ADVICE_TEXTS[advice.hindrance]
    are = "is" if advice.affected == 1 else "are"
    if advice.hindrance is None:
        return f"{what}: {advice.affected:,} {are} {why}."
    return f"{what}: {advice.affected:,} {are} {why}, of which {advice.saved:,} would be saved."


def availability_to_json(standing: ResourceAvailability) -> dict[str, object]:
    """Return what is known of one resource. Days are numbers, dates 14 digits; null where nobody can tell."""
    live = standing.live
    return {
        "uri": live.uri,
        "state": standing.state.value,
        "outcome": live.outcome.value,
        "status": live.status,
        "mime": live.mime,
        "last_modified": live.last_modified,
        "hops": live.hops,
        "in_sitemap": live.is_in_sitemap,
        "noarchive": live.is_noarchive,
        "captures": standing.copies,
        "last_stored": standing.last_capture,
        "stale_days": standing.stale_days,
        "migrated": standing.is_migrated,
        "same": standing.is_same,
        "verdict": standing.verdict,
        "archives": {
            each.archive: {"captures": each.copies, "first": each.first, "last": each.last, "migrated": each.migrated}
            for each in standing.held
        },
    }


def check_to_json(
    url: str, now: str, figures: CheckStats, lists: Sequence[ListingResult], left_over: Mapping[str, str]
) -> dict[str, object]:
    """Return what is known of all of them together."""
    score = figures.score
    return {
        "checked": url,
        "at": now,
        "states": _states_to_json(figures.states),
        "score": score.share,
        "interval": None if score.interval is None else list(score.interval),
        "live": score.live,
        "asked_one_by_one": score.sampled,
        "canonical": figures.canonical,
        "migrated": figures.migrated,
        "same": figures.same,
        "staleness": asdict(figures.stale),
        "held_by": {str(number): count for number, count in sorted(figures.by_archives.items())},
        "judged": {
            "count": figures.bad.total(),
            "of": figures.judged,
            "pages": figures.judgeable,
            "interval": list(wilson_interval(figures.bad.total(), figures.judged, figures.judgeable)),
        },
        "bad": dict(figures.bad),
        "archives": [asdict(use) for use in figures.archives],
        "tables": {
            table.name: [{"label": row.label, "share": row.share, **_states_to_json(row.states)} for row in table.rows]
            for table in figures.tables
        },
        "advice": [
            {
                "hindrance": None if each.hindrance is None else each.hindrance.value,
                "affected": each.affected,
                "saved": each.saved,
                "examples": list(each.examples),
                "words": describe_advice(each),
            }
            for each in figures.advice
        ],
        "lists": [asdict(each) for each in lists],
        "left_over": dict(left_over),
    }


def _states_to_json(states: Counter[AvailabilityState]) -> dict[str, int]:
    return {state.value: states[state] for state in AvailabilityState}


MAX_LISTED = 500
"""How many resources of a state a page lists; a page of more is slow to open."""
_LISTED_STATES = (AvailabilityState.VULNERABLE, AvailabilityState.ENDANGERED, AvailabilityState.UNRECOVERABLE)


def render_check_page(
    title: str,
    now: str,
    figures: CheckStats,
    availabilities: Iterable[ResourceAvailability],
    incomplete: Mapping[str, str],
) -> str:
    """Return the page: HTML with everything in it, the same for the same check. Everything in it is escaped.

    title: what was checked. now: when, 14 digits. left_over: archives that did not say all, each with why.
    """
    listed: dict[AvailabilityState, list[ResourceAvailability]] = {state: [] for state in _LISTED_STATES}
    for standing in availabilities:
        rows = listed.get(standing.state)
        if rows is not None and len(rows) < MAX_LISTED:
            rows.append(standing)
    return (
        make_template_environment("unlost.check")
        .get_template("check.html")
        .render(
            title=title,
            now=now,
            figures=figures,
            headline=check_headline(figures.score),
            remarks=check_remarks(figures),
            bar=draw_state_bar(figures.states),
            described=describe_states(figures.states),
            states=[
                (state.value, figures.states[state], STATE_TEXTS[state])
                for state in STATE_ORDER
                if figures.states[state]
            ],
            columns=[state for state in STATE_ORDER if figures.states[state]],
            advice=[(describe_advice(each), each.examples) for each in figures.advice],
            left_over=dict(incomplete),
            lists=[
                (
                    state.value,
                    STATE_TEXTS[state],
                    figures.states[state],
                    [_describe_resource(each) for each in islice(rows, MAX_LISTED)],
                )
                for state, rows in listed.items()
                if rows
            ],
        )
    )


def _describe_resource(standing: ResourceAvailability) -> tuple[str, str]:
    """Return an address, and in a few words what else is known of it."""
    parts = [standing.mime]
    if standing.held:
        parts.append(f"{standing.copies:,} copies, the last of {(standing.last_capture or '')[:8]}")
    if standing.is_forbidden:
        parts.append("forbidden by robots.txt")
    if standing.live.is_noarchive:
        parts.append("noarchive")
    return standing.live.uri, ", ".join(parts)
