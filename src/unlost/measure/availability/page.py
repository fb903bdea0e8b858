"""A check as a page for people: one file that needs no script and asks for nothing."""

from collections.abc import Iterable, Mapping
from itertools import islice

from unlost.measure.availability.drawing import STATE_ORDER, draw_state_bar, describe_states
from unlost.measure.availability.figures import CheckStats
from unlost.measure.availability.standing import ResourceAvailability
from unlost.measure.availability.states import AvailabilityState
from unlost.measure.availability.wording import STATE_TEXTS, describe_advice, check_headline, check_remarks
from unlost.shown.page import make_template_environment

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
        make_template_environment("unlost.measure")
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
