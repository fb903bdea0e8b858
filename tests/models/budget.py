"""Python model of budgets in lines: every size that a map can have, with the least loss at that size.

For each node both alternatives are computed: its wildcard, and all ways to list its subtree. The caller decides which
nodes may be rolled up.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.models.mementomap import TOTAL, Compaction, Lines, Node, node_of


@dataclass(frozen=True)
class Prior:
    """Where misses are expected; the field names are those of the core."""

    page_discount: float = 0.9
    host_discount: float = 0.0
    host: float = 0.5
    unknown_host_rate: float = 0.02
    strength: float = 100.0


@dataclass
class WeightedNode:
    """A node with children or a wildcard, and its direct children of this kind.

    own: lines that belong to no child. hosts: the hosts below it, one of n keys counting 1/n.
    """

    wildcard: str
    is_host: bool
    covered: bool | None
    own: int = 0
    keys: int = 0
    hosts: float = 0.0
    host: float = 0.0
    missed_queries: int = 0
    is_held: bool = False
    extras: set[str] = field(default_factory=set)
    parts: list["WeightedNode"] = field(default_factory=list)
    expected: float = 0.0
    mass: float = 0.0


def weigh_nodes(node: Node, level: int, missed_queries: dict[str, int]) -> WeightedNode:
    """Return a weighed node of the tree."""
    wild = [f.is_held for (key, _), f in node.lines.items() if key.endswith("*")]
    is_host = node.wildcard.endswith(",*") or not node.wildcard
    found = WeightedNode(node.wildcard, is_host, any(wild) if wild else None)
    found.own = len(node.lines)
    found.keys = sum(f.is_held for (key, _), f in node.lines.items() if not key.endswith("*"))
    found.is_held = any(f.is_held for f in node.lines.values())
    found.extras = {extra for _, extra in node.lines}
    found.missed_queries = missed_queries.get(node.wildcard, 0)
    for part in node.parts():
        below = weigh_nodes(part, level + 1, missed_queries)
        found.keys += below.keys
        found.missed_queries += below.missed_queries
        found.hosts += below.hosts + below.host
        found.is_held |= below.is_held
        found.extras |= below.extras
        if part is node.root and below.is_held:
            found.host = 1 / max(below.keys, 1)
        if part.parts() or below.covered is not None:
            found.parts.append(below)
        else:
            found.own += below.own
    return found


def hosts_of(node: WeightedNode) -> int:
    """Return how many hosts hold something."""
    return (node.host > 0) + sum(hosts_of(part) for part in node.parts)


def distribute_mass(top: WeightedNode, prior: Prior, keys: int, hosts: int, missed: int) -> None:
    """Set the mass of every node below the root."""
    host = prior.host * keys / max(hosts, 1)

    def expect(node: WeightedNode) -> None:
        unknown = host * max(node.hosts - prior.host_discount, 0) + prior.unknown_host_rate * node.keys
        node.expected = max(node.keys - prior.page_discount, 0) + (unknown if node.is_host else 0)
        for part in node.parts:
            expect(part)

    def share(node: WeightedNode, whole: float, missed_queries: int, mass: float) -> None:
        for part in node.parts:
            share_of_prior = part.expected / whole if whole else 0.0
            part.mass = (
                mass * (part.missed_queries + prior.strength * share_of_prior) / (missed_queries + prior.strength)
            )
            share(part, part.expected, part.missed_queries, part.mass)

    expect(top)
    share(top, sum(part.expected for part in top.parts), missed, 1.0)


Sizes = dict[int, float]
"""The least loss for each number of lines."""


def sizes(node: WeightedNode, is_free: Callable[[WeightedNode], bool], *, covered: bool) -> Sizes:
    """Return all sizes of a subtree, for all choices of roll-ups."""
    covered = covered if node.covered is None else node.covered
    missed_here = max(node.mass - sum(part.mass for part in node.parts), 0.0)
    found: Sizes = {node.own: missed_here if covered else 0.0}
    for part in node.parts:
        below = sizes(part, is_free, covered=covered)
        found = _least((cost + more, loss + other) for cost, loss in found.items() for more, other in below.items())
    if node.is_held and is_free(node):
        found = _least([*found.items(), (len(node.extras), node.mass)])
    return found


def _least(points: Iterable[tuple[int, float]]) -> Sizes:
    found: Sizes = {}
    for cost, loss in points:
        found[cost] = min(loss, found.get(cost, loss))
    return found


def build_tree(lines: Lines, how: Compaction) -> Node:
    """Return the tree of a map."""
    top = Node("", 0.0)
    for place, frequency in lines.items():
        if place[0] != TOTAL:
            node_of(place[0], top, how).lines[place] = frequency
    return top


def deepest(lines: Lines, key: str, how: Compaction) -> str:
    """Return the wildcard of the deepest node above a page that has children or a wildcard; "" if there is none."""
    missed_queries: Lines = {(key, ""): next(iter(lines.values()))}
    node, way = build_tree(lines, how), build_tree(missed_queries, how)
    found = ""
    while True:
        if node.parts() or any(other.endswith("*") for other, _ in node.lines):
            found = node.wildcard
        name = next(iter(way.children), None)
        if name is None and way.root is None:
            return found
        below = node.children.get(name) if name is not None else node.root
        if below is None:
            return found
        node, way = below, way.children[name] if name is not None else way.root or way


def all_sizes(
    lines: Lines,
    missed_queries: dict[str, int],
    is_free: Callable[[WeightedNode], bool],
    prior: Prior,
    depths: tuple[int, int],
) -> Sizes:
    """Return every number of lines that a map can be compacted to, with the least loss.

    missed_queries: missed queries by the wildcard of the deepest node above them; under "" if there is none.
    """
    top = build_tree(lines, Compaction(host_depth=depths[0], path_depth=depths[1]))
    whole = weigh_nodes(top, 0, missed_queries)
    whole.mass = 1.0
    distribute_mass(whole, prior, whole.keys, _held_hosts(top), whole.missed_queries)
    whole.covered = False
    whole.mass = sum(part.mass for part in whole.parts)
    return sizes(whole, is_free, covered=False)


def _held_hosts(node: Node) -> int:
    return (node.root is not None and node.root.is_held()) + sum(_held_hosts(child) for child in node.children.values())
