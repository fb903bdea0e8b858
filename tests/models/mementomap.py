"""Python model of `unlost.mementomap`: dictionaries and trees in memory, independent of `unlost`.

It accepts only canonical keys, as `tests.models.uri` makes them: no trailing slash except the root's, no empty
segments, `*` only as a wildcard.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.models import uri
from tests.models.frequency import Count, Frequency, total

Place = tuple[str, str]
"""The position of a line: its key, and its further key fields such as a year."""

Lines = dict[Place, Frequency]
"""A map."""

TOTAL = "*"


def read(lines: Iterable[str], width: int = 1) -> Lines:
    """Parse a map from lines of text whose first fields are keys."""
    rows = [line.split(" ") for line in lines]
    return {(row[0], " ".join(row[1:width])): Frequency.parse(row[width]) for row in rows}


def write(lines: Lines) -> list[str]:
    """Format a map as lines of text, sorted by bytes."""
    names = {" ".join(filter(None, place)): frequency for place, frequency in lines.items()}
    return [f"{name} {names[name]}" for name in sorted(names, key=str.encode)]


# Splitting keys.


def is_ip(host: str) -> bool:
    """Return whether a host without port is an IP address."""
    octets = host.split(",")
    return host.startswith("[") or (
        len(octets) == 4 and all(len(octet) <= 3 and octet.isascii() and octet.isdigit() for octet in octets)
    )


def host_labels(host_and_port: str) -> list[str]:
    """Return the labels from the top down; an IP address is one label, a port belongs to the last label."""
    host = re.sub(r":\d+$", "", host_and_port)
    return [host_and_port] if is_ip(host) else host_and_port.split(",")


def split(key: str) -> tuple[list[str], list[str]]:
    """Return the host labels and path segments of a key, without its query."""
    host, _, tail = key.partition("?")[0].partition(")")
    return host_labels(host), [segment for segment in tail.split("/") if segment]


def page(labels: list[str], segments: list[str]) -> str:
    """Return the key of a page."""
    return ",".join(labels) + ")/" + "/".join(segments)


def folder(labels: list[str], segments: list[str]) -> str:
    """Return the wildcard for a page and everything below it."""
    return ",".join(labels) + ")/" + "".join(segment + "/" for segment in segments) + "*"


def domain(labels: list[str]) -> str:
    """Return the wildcard for a host and all hosts below it."""
    return ",".join(labels) + ",*"


def limit_parts(parts: list[str], separator: str, limit: int) -> list[str]:
    """Return the parts, with all parts beyond the limit joined to one."""
    return [*parts[: limit - 1], separator.join(parts[limit - 1 :])] if len(parts) > limit else parts


# Count.


def count(rows: Iterable[tuple[str, str]], *, urir: bool = False, by_year: bool = False) -> Lines:
    """Return the HxPx map of captures, given as keys and timestamps, with a total line or one per year."""
    captures: dict[Place, int] = {}
    pages: dict[Place, set[str]] = {}
    for key, timestamp in rows:
        for name in (TOTAL, key.partition("?")[0]):
            place = (name, timestamp[:4] if by_year else "")
            captures[place] = captures.get(place, 0) + 1
            pages.setdefault(place, set()).add(key)
    return {
        place: Frequency(Count(n), Count(len(pages[place]))) if urir else Frequency(Count(n))
        for place, n in captures.items()
    }


# Compaction.


@dataclass(frozen=True)
class Compaction:
    """How to compact; an infinite weight disables roll-ups. `rollup` names nodes by their wildcards."""

    host_weight: float = 1.0
    path_weight: float = 1.0
    host_a: float = 16.329
    host_k: float = 0.714
    path_a: float = 24.546
    path_k: float = 1.429
    host_depth: int = 8
    path_depth: int = 9
    rollup: tuple[str, ...] = ()

    def host_cutoff(self, depth: int) -> float:
        """Return how many children a host node may have; H1 has depth 1 and is not rolled up automatically."""
        return math.inf if depth == 1 else self.host_a * math.pow(depth, -self.host_k) * self.host_weight

    def path_cutoff(self, depth: int) -> float:
        """Return how many children a path node may have; the host's root, P0, has depth 0."""
        return self.path_a * math.pow(depth + 1, -self.path_k) * self.path_weight


@dataclass
class Node:
    """A host label or path segment: its own lines, exact and wildcard, and its children.

    children: by label or segment.
    root: the root page of a host node.
    """

    wildcard: str
    cutoff: float
    lines: Lines = field(default_factory=dict)
    children: dict[str, "Node"] = field(default_factory=dict)
    root: "Node | None" = None

    def parts(self) -> list["Node"]:
        """Return the children and the root."""
        return [*([self.root] if self.root else []), *self.children.values()]

    def everything(self) -> Lines:
        """Return all lines of the subtree."""
        found = dict(self.lines)
        for part in self.parts():
            found.update(part.everything())
        return found

    def is_held(self) -> bool:
        """Return whether at least one line of the subtree is held."""
        return any(frequency.is_held for frequency in self.lines.values()) or any(p.is_held() for p in self.parts())

    def compact(self, forced: tuple[str, ...]) -> Lines:
        """Return the lines of the subtree, rolled up where there are too many children; the shallowest node wins."""
        too_many = sum(child.is_held() for child in self.children.values()) > self.cutoff
        if (too_many or self.wildcard in forced) and self.is_held():
            return rolled_up(self.wildcard, self.everything())
        found = dict(self.lines)
        for part in self.parts():
            found.update(part.compact(forced))
        return found


def rolled_up(wildcard: str, lines: Lines) -> Lines:
    """Return one line for all, or one per value of the further fields; none for exclusions only."""
    extras = dict.fromkeys(extra for _, extra in lines)
    sums = {extra: total(frequency for (_, other), frequency in lines.items() if other == extra) for extra in extras}
    return {(wildcard, extra): frequency for extra, frequency in sums.items() if not frequency.is_exclusion}


def compact(lines: Lines, how: Compaction) -> Lines:
    """Return the lines of the subtree, rolled up where there are too many children; the shallowest node wins."""
    top = Node("", math.inf)
    found = {place: frequency for place, frequency in lines.items() if place[0] == TOTAL}
    for place, frequency in lines.items():
        if place[0] != TOTAL:
            node_of(place[0], top, how).lines[place] = frequency
    return found | top.compact(how.rollup)


def node_of(key: str, top: Node, how: Compaction) -> Node:
    """Return the node of a line, and create missing nodes."""
    is_domain = ")" not in key
    labels, segments = split(key.removesuffix(",*") if is_domain else key.removesuffix("/*"))
    labels = limit_parts(labels, ",", how.host_depth)
    node = top
    for depth, label in enumerate(labels, 1):
        new = Node(domain(labels[:depth]), how.host_cutoff(depth))
        node = node.children.setdefault(label, new)
    if is_domain:
        return node
    node.root = node = node.root or Node(folder(labels, []), how.path_cutoff(0))
    # The limit counts the root as the first segment.
    segments = limit_parts(segments, "/", how.path_depth - 1) if how.path_depth > 1 else []
    for depth, segment in enumerate(segments, 1):
        new = Node(folder(labels, segments[:depth]), how.path_cutoff(depth))
        node = node.children.setdefault(segment, new)
    return node


# Look-up.


class Answer(NamedTuple):
    """Whether a key is held, with the matching line's key and frequency."""

    held: bool
    matched: str | None = None
    frequency: Frequency | None = None


Keyed = Mapping[str, Frequency]


def by_key(lines: Lines) -> Keyed:
    """Return the combined lines of each key; their pages may overlap."""
    found: dict[str, list[Frequency]] = {}
    for (key, _), frequency in sorted(lines.items()):
        found.setdefault(key, []).append(frequency)
    return {key: total(frequencies, overlapping=True) for key, frequencies in found.items()}


def candidates(key: str) -> list[str]:
    """Return the keys of the lines that may match a page, the most specific first."""
    labels, segments = split(key)
    folders = [folder(labels, segments[:n]) for n in range(len(segments), -1, -1)]
    return [page(labels, segments), *folders, *domains(labels)]


def domains(labels: list[str]) -> list[str]:
    """Return the wildcards of a host and of the hosts above it."""
    return [domain(labels[:n]) for n in range(len(labels), 0, -1)]


def lookup(keyed: Keyed, key: str, *, rolled_up: bool = False) -> Answer:
    """Return the result for a page. The total matches only if everything was rolled up."""
    own, *wider = candidates(key)
    for name in [own, *wider, *([TOTAL] if rolled_up else [])]:
        frequency = keyed.get(name)
        if frequency and (frequency.is_held or name != wider[0]):  # `/a/* 0` does not exclude `/a` itself
            return Answer(frequency.is_held, name, frequency)
    return Answer(held=False)


def holds(keyed: Keyed, key: str) -> bool:
    """Return whether a map holds the key of a line: a page, or the whole subtree of a wildcard."""
    if not key.endswith("*"):
        return lookup(keyed, key).held
    wider = candidates(key.removesuffix("*"))[1:] if ")" in key else domains(host_labels(key.removesuffix(",*")))
    return next((keyed[name].is_held for name in wider if name in keyed), False)


# Merge.


def merge(maps: Sequence[Lines]) -> Lines:
    """Return the merged map of several archives; their pages may overlap. Holdings override exclusions."""
    keyed = [by_key(lines) for lines in maps]
    stored: dict[Place, list[Frequency]] = {}
    for i, lines in enumerate(maps):
        others = keyed[:i] + keyed[i + 1 :]
        for place, frequency in with_total(lines).items():
            same = [other[place] for other in maps if place in other]
            beaten = not any(one.is_held for one in same) and any(holds(other, place[0]) for other in others)
            if place[0] == TOTAL or not beaten:
                stored.setdefault(place, []).append(frequency)
    return {place: total(frequencies, overlapping=True) for place, frequencies in stored.items()}


def with_total(lines: Lines) -> Lines:
    """Return the map with its total, or with the sum of its lines."""
    return lines if any(key == TOTAL for key, _ in lines) else sums(lines) | lines


def sums(lines: Lines) -> Lines:
    """Return the sum of all lines except the total, per value of the further fields."""
    extras = dict.fromkeys(extra for key, extra in lines if key != TOTAL)
    return {
        (TOTAL, extra): total(frequency for (key, other), frequency in lines.items() if key != TOTAL and other == extra)
        for extra in extras
    }


# Profiles.


class Tally(NamedTuple):
    """frequency: number of captures. spread: number of merged profiles with this key."""

    frequency: int
    spread: int = 1


Profile = dict[str, Tally]


def profile(rows: Iterable[tuple[str, str]], policy: str, suffixes: set[str] | None = None) -> Profile:
    """Return the profile of captures, given as keys and timestamps; only DLim policies need suffixes."""
    counts: dict[str, int] = {}
    for whole, _ in rows:
        key = uri.key(policy, whole, suffixes or set())
        counts[key] = counts.get(key, 0) + 1
    return {key: Tally(n) for key, n in counts.items()}


def merge_profiles(profiles: Iterable[Profile]) -> Profile:
    """Return the merged profile, with frequency and spread added."""
    merged: Profile = {}
    for one in profiles:
        for key, tally in one.items():
            before = merged.get(key, Tally(0, 0))
            merged[key] = Tally(before.frequency + tally.frequency, before.spread + tally.spread)
    return merged


# Depth tables.


@dataclass(frozen=True)
class Depth:
    """One row of the depth table.

    count: prefixes of this depth. sum: keys of at least this depth. redq: the share of all keys by which the map would
    shrink if cut here. parents: prefixes one level higher with children. mean: children per parent.
    """

    count: int
    sum: int
    redq: float
    parents: int
    mean: float


def redq(keys: int, prefixes: int, all_keys: int) -> float:
    """Return the reduction: keys of at least this depth minus its prefixes, divided by all keys."""
    return (keys - prefixes) / all_keys


def depth_table(keys: Iterable[str]) -> dict[str, Depth]:
    """Return the rows `H1`, `H2`, … and `P0`, `P1`, … of a set of page keys, without a depth limit."""
    distinct = {page(*split(key)) for key in keys}
    prefixes: dict[str, set[str]] = {}
    parents: dict[str, set[str]] = {}
    deep_enough: dict[str, int] = {}
    for key in distinct:
        labels, segments = split(key)
        ways = {f"H{n}": (domain(labels[:n]), domain(labels[: n - 1])) for n in range(1, len(labels) + 1)}
        for n in range(len(segments) + 1):
            ways[f"P{n}"] = (folder(labels, segments[:n]), folder(labels, segments[: n - 1]) if n else "")
        for name, (prefix, parent) in ways.items():
            prefixes.setdefault(name, set()).add(prefix)
            parents.setdefault(name, set()).add(parent)
            deep_enough[name] = deep_enough.get(name, 0) + 1
    return {
        name: Depth(
            len(found),
            deep_enough[name],
            redq(deep_enough[name], len(found), len(distinct)),
            len(parents[name]),
            len(found) / len(parents[name]),
        )
        for name, found in sorted(prefixes.items(), key=lambda item: (item[0][0], int(item[0][1:])))
    }
