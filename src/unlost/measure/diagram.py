"""The reconstruction diagram: a comparison as one picture whose areas are true."""

from math import cos, pi, sin, sqrt

from unlost.measure.difference import ResourceCounts

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
        f'<title id="diagram-title">Reconstruction diagram</title><desc id="diagram-text">{describe_diagram(counts)}</desc>'
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
