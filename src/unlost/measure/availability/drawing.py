"""States of resources, drawn: one bar for a check, a column for each visit of a watch. Areas are true."""

from collections import Counter
from collections.abc import Sequence

from unlost.measure.availability.states import AvailabilityState

STATE_ORDER = (
    AvailabilityState.REPLICATED,
    AvailabilityState.ENDANGERED,
    AvailabilityState.VULNERABLE,
    AvailabilityState.UNRECOVERABLE,
    AvailabilityState.UNKNOWN,
)
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

    >>> describe(Counter({State.REPLICATED: 3, State.VULNERABLE: 1}))
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
