"""A check as a page for people: one file that needs no script and asks for nothing."""

from collections.abc import Iterable, Mapping
from itertools import islice

from unlost.measure.availability.drawing import ORDER, bar, describe
from unlost.measure.availability.figures import Figures
from unlost.measure.availability.standing import Standing
from unlost.measure.availability.states import State
from unlost.measure.availability.wording import STATES, change, headline, remarks
from unlost.shown.page import templates

MOST_LISTED = 500
"""How many resources of a state a page lists; a page of more is slow to open."""

_LISTED = (State.VULNERABLE, State.ENDANGERED, State.UNRECOVERABLE)


def check_page(
    title: str, now: str, figures: Figures, standings: Iterable[Standing], left_over: Mapping[str, str]
) -> str:
    """Return the page: HTML with everything in it, the same for the same check. Everything in it is escaped.

    title: what was checked. now: when, 14 digits. left_over: archives that did not say all, each with why.
    """
    listed: dict[State, list[Standing]] = {state: [] for state in _LISTED}
    for standing in standings:
        rows = listed.get(standing.state)
        if rows is not None and len(rows) < MOST_LISTED:
            rows.append(standing)
    return (
        templates("unlost.measure")
        .get_template("check.html")
        .render(
            title=title,
            now=now,
            figures=figures,
            headline=headline(figures.score),
            remarks=remarks(figures),
            bar=bar(figures.states),
            described=describe(figures.states),
            states=[(state.value, figures.states[state], STATES[state]) for state in ORDER if figures.states[state]],
            columns=[state for state in ORDER if figures.states[state]],
            advice=[(change(each), each.examples) for each in figures.advice],
            left_over=dict(left_over),
            lists=[
                (state.value, STATES[state], figures.states[state], [_row(each) for each in islice(rows, MOST_LISTED)])
                for state, rows in listed.items()
                if rows
            ],
        )
    )


def _row(standing: Standing) -> tuple[str, str]:
    """Return an address, and in a few words what else is known of it."""
    parts = [standing.mime]
    if standing.held:
        parts.append(f"{standing.copies:,} copies, the last of {(standing.last or '')[:8]}")
    if standing.is_forbidden:
        parts.append("forbidden by robots.txt")
    if standing.live.is_noarchive:
        parts.append("noarchive")
    return standing.live.uri, ", ".join(parts)
