"""States of resources, drawn: one bar for a check, a column for each visit of a watch. Areas are true."""

from collections import Counter
from collections.abc import Sequence

from unlost.measure.availability.states import State

ORDER = (State.REPLICATED, State.ENDANGERED, State.VULNERABLE, State.UNRECOVERABLE, State.UNKNOWN)
"""From what is safest on."""

_WIDTH = 1000.0  # of a bar, in its own units
_HEIGHT = 100.0
_MOST_COLUMNS = 400  # more are narrower than a line of the screen: neighbours are added up


def bar(states: Counter[State]) -> str:
    """Return one bar as an SVG element: each state has its share of the width. Nothing of others is in it."""
    total = states.total()
    shapes, at = [], 0.0
    for state in ORDER:
        if states[state]:
            width = _WIDTH * states[state] / total
            place = f'x="{_number(at)}" y="0" width="{_number(width)}" height="{_number(_HEIGHT)}"'
            shapes.append(f'<rect class="{state.value}" {place}><title>{state.value}: {states[state]:,}</title></rect>')
            at += width
    return _svg(
        "states", "States of the resources", describe(states), f"0 0 {_number(_WIDTH)} {_number(_HEIGHT)}", shapes
    )


def columns(visits: Sequence[tuple[str, Counter[State]]]) -> str:
    """Return a column for each visit as an SVG element, the highest for the most resources; labels are titles.

    visits: in their order, each with what it is called.
    """
    shown = _fewer(visits)
    most = max((states.total() for _, states in shown), default=0)
    shapes = []
    for at, (label, states) in enumerate(shown):
        top = _HEIGHT
        for state in ORDER:
            if states[state]:
                height = _HEIGHT * states[state] / most
                top -= height
                place = f'x="{10 * at}" y="{_number(top)}" width="10" height="{_number(height)}"'
                words = f"{label}: {states[state]:,} {state.value}"
                shapes.append(f'<rect class="{state.value}" {place}><title>{words}</title></rect>')
    last = describe(shown[-1][1]) if shown else "No visits."
    text = f"{len(visits):,} visits; at the last: {last}"
    return _svg("visits", "States at each visit", text, f"0 0 {10 * max(1, len(shown))} {_number(_HEIGHT)}", shapes)


def _fewer(visits: Sequence[tuple[str, Counter[State]]]) -> list[tuple[str, Counter[State]]]:
    """Return at most so many visits as can be seen: the last of each run of them."""
    step = -(-len(visits) // _MOST_COLUMNS) or 1
    return [visits[min(at + step, len(visits)) - 1] for at in range(0, len(visits), step)]


def describe(states: Counter[State]) -> str:
    """Return in a sentence what is drawn.

    >>> describe(Counter({State.REPLICATED: 3, State.VULNERABLE: 1}))
    '3 replicated, 1 vulnerable.'
    """
    return (
        ", ".join(f"{states[state]:,} {state.value}" for state in ORDER if states[state]) + "." if states else "None."
    )


def _svg(name: str, title: str, text: str, box: str, shapes: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{name}" viewBox="{box}" preserveAspectRatio="none" role="img" '
        f'aria-labelledby="{name}-title {name}-text"><title id="{name}-title">{title}</title>'
        f'<desc id="{name}-text">{text}</desc>{"".join(shapes)}</svg>'
    )


def _number(value: float) -> str:
    return f"{round(value, 4) + 0.0:.4f}".rstrip("0").rstrip(".")
