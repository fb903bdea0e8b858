"""Write docs/images/packages.svg: which package imports which, from the imports themselves. Run by `make docs`."""

import ast
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "unlost"
TOP_PACKAGES = {"cli", "api", "demo"}
"""Packages that import nearly all others: drawn on top without arrows, which would hide the others."""

_BOX_WIDTH, _BOX_HEIGHT, _GAP, _ROW_HEIGHT, _MARGIN = 104, 36, 22, 84, 24
_STYLE = """
text { font: 14px system-ui, sans-serif; text-anchor: middle; fill: #1c1c22; }
rect { fill: #eef3f8; stroke: #1f5f99; } .ground rect { fill: #f6f1e6; stroke: #8a3b00; }
path { fill: none; stroke: #55555e; stroke-width: 1.3; marker-end: url(#head); }
"""
_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" role="img" aria-labelledby="title">\n'
    '<title id="title">Packages of unlost; each points at those it imports</title>\n'
    "<style>{style}</style>\n"
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 8 4 0 8z" style="fill:#55555e;stroke:none"/></marker></defs>\n'
    '<rect width="{wide}" height="{tall}" style="fill:#fff;stroke:none"/>\n'
)

Graph = dict[str, set[str]]


def read_imports() -> Graph:
    """Return the packages that each package imports."""
    found: Graph = {}
    for file in sorted(SOURCE.rglob("*.py")):
        name = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        if name != "__init__":
            found.setdefault(name, set()).update({*_imported_packages(ast.parse(file.read_text()))} - {name})
    for name in set().union(*found.values()) - set(found):
        found[name] = set()
    return found


def _imported_packages(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (parts[1] for name in names if (parts := name.split("."))[0] == "unlost" and len(parts) > 1)


def transitive_reduction(graph: Graph) -> Graph:
    """Return the graph without edges that follow from others.

    >>> transitive_reduction({"c": {"a", "b"}, "b": {"a"}, "a": set()})["c"]
    {'b'}
    """
    below = {name: _reachable(graph, name) for name in graph}
    return {name: {to for to in graph[name] if not any(to in below[via] for via in graph[name])} for name in graph}


def _reachable(graph: Graph, name: str) -> set[str]:
    return graph[name].union(*(_reachable(graph, to) for to in graph[name]))


def layer_packages(graph: Graph) -> list[list[str]]:
    """Return the packages in layers from the bottom, each above all that it imports."""
    height: dict[str, int] = {}

    def of(name: str) -> int:
        if name not in height:
            height[name] = 1 + max((of(to) for to in graph[name]), default=-1)
        return height[name]

    rows: list[list[str]] = [[] for _ in range(1 + max(map(of, graph)))]
    for name in sorted(graph):
        rows[height[name]].append(name)
    return rows


def draw_graph(graph: Graph) -> str:
    """Return the SVG: single modules at the bottom, packages above, and packages that import nearly all at the top."""
    ground = sorted(name for name in graph if not (SOURCE / name).is_dir())
    parts = {name: graph[name] - {*ground} - TOP_PACKAGES for name in graph if name not in {*ground, *TOP_PACKAGES}}
    arrows, rows = transitive_reduction(parts), layer_packages(parts)
    wide = max(len(row) for row in rows) * (_BOX_WIDTH + _GAP) - _GAP + 2 * _MARGIN
    wide = max(wide, 720)
    tall = (len(rows) + 2) * _ROW_HEIGHT
    places: dict[str, tuple[float, float]] = {}
    centre = dict.fromkeys(parts, wide / 2)
    for level, row in enumerate(rows):
        # Each package is placed near its imports, so that arrows are short.
        row.sort(key=lambda name: (sum(centre[to] for to in arrows[name]) / max(len(arrows[name]), 1), name))
        left = (wide - len(row) * (_BOX_WIDTH + _GAP) + _GAP) / 2
        for at, name in enumerate(row):
            centre[name] = left + at * (_BOX_WIDTH + _GAP) + _BOX_WIDTH / 2
            places[name] = (centre[name] - _BOX_WIDTH / 2, tall - (level + 2) * _ROW_HEIGHT + _MARGIN)
    lines = [_HEAD.format(wide=round(wide), tall=tall, style=_STYLE)]
    lines += [_arrow(places[name], places[to]) for name in sorted(arrows) for to in sorted(arrows[name])]
    lines += [_box(name, *places[name], _BOX_WIDTH) for name in sorted(places)]
    lines.append(_box(", ".join(sorted(TOP_PACKAGES)), _MARGIN, _MARGIN, wide - 2 * _MARGIN))
    lines.append(
        '<g class="ground">\n' + _box(", ".join(ground), _MARGIN, tall - _ROW_HEIGHT + _MARGIN, wide - 2 * _MARGIN)
    )
    return "".join(lines) + "</g>\n</svg>\n"


def _box(name: str, left: float, top: float, wide: float) -> str:
    return (
        f'<rect x="{left:.0f}" y="{top:.0f}" width="{wide:.0f}" height="{_BOX_HEIGHT}" rx="6"/>'
        f'<text x="{left + wide / 2:.0f}" y="{top + _BOX_HEIGHT / 2 + 5:.0f}">{escape(name)}</text>\n'
    )


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    x, y = start[0] + _BOX_WIDTH / 2, start[1] + _BOX_HEIGHT
    to_x, to_y = end[0] + _BOX_WIDTH / 2, end[1] - 1
    bend = (to_y - y) / 2
    return f'<path d="M{x:.0f} {y:.0f}C{x:.0f} {y + bend:.0f} {to_x:.0f} {to_y - bend:.0f} {to_x:.0f} {to_y:.0f}"/>\n'


if __name__ == "__main__":
    sys.stdout.write(draw_graph(read_imports()))
