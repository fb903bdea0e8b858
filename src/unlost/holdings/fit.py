"""Fitting the power laws of compaction to an index: how many children nodes of each depth have on average."""

import math
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from unlost._core import MapShape
from unlost.errors import InputError
from unlost.holdings._map_header import read_map_header, header_rules
from unlost.holdings.build import MapOptions, build_map
from unlost.holdings.compaction import NO_LIMIT, Compaction
from unlost.holdings.inputs import detect_input_kind

_SEARCH_ROUNDS = 200


def mean_children(shape: MapShape) -> tuple[list[float], list[float]]:
    """Return how many children nodes that have any have on average: of host nodes, then of path nodes.

    From H1 and P0 on; levels below which nothing lies are left out.
    """
    means = [
        children / parents if parents else 0.0 for parents, children in zip(shape.parents, shape.children, strict=True)
    ]
    return _until_zero(means[: shape.host_levels]), _until_zero(means[shape.host_levels :])


def _until_zero(means: Sequence[float]) -> list[float]:
    return list(means[: means.index(0.0)] if 0.0 in means else means)


def fit_decay_curve(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return a and k of the curve a·x^-k that fits the points best, by unweighted least squares of y; k is not below 0.

    Raises InputError if there are fewer than two points.

    >>> a, k = fit_power_law([(1, 10.0), (2, 5.0), (4, 2.5)])
    >>> round(a, 6), round(k, 6)
    (10.0, 1.0)
    """
    if len(points) < 2:
        raise InputError("too few depths to fit a power law: expected nodes with children at two depths at least")
    # For a given k the best a has a closed form, so only k is searched: the golden section, which needs no slope.
    # Not below 0: cut-offs that grow with the depth would never roll up what is deep.
    low, high = 0.0, 10.0
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(_SEARCH_ROUNDS):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if _squared_error(points, left) < _squared_error(points, right):
            high = right
        else:
            low = left
    k = (low + high) / 2
    return _best_a(points, k), k


def _best_a(points: Sequence[tuple[float, float]], k: float) -> float:
    weights = [math.pow(x, -k) for x, _ in points]
    return sum(w * y for w, (_, y) in zip(weights, points, strict=True)) / sum(w * w for w in weights)


def _squared_error(points: Sequence[tuple[float, float]], k: float) -> float:
    a = _best_a(points, k)
    return sum((y - a * math.pow(x, -k)) ** 2 for x, y in points)


def _tree_options(source: str | PathLike[str], compaction: Compaction) -> MapOptions:
    """Return how to build from an index, or from a map as it was built itself: only its tree matters here."""
    if detect_input_kind(source) != "map":
        return MapOptions(compaction=compaction)
    header = read_map_header(source)
    return MapOptions(compaction=compaction, by_year="datetime" in header.keys, rules=header_rules(header))


def fit_compaction(source: str | PathLike[str], compaction: Compaction) -> Compaction:
    """Return the compaction with power laws that fit this index or map, as the second paper fitted its own.

    Of hosts, the children of second-level domains and deeper nodes are taken, since top-level domains are never rolled
    up; of paths, all. Raises InputError if the tree is too shallow for that.
    """
    nothing = replace(compaction, host_weight=NO_LIMIT, path_weight=NO_LIMIT, rollup=())
    with tempfile.TemporaryDirectory(prefix="unlost-fit-") as folder:
        shape = build_map([source], Path(folder, "map.ukvs"), _tree_options(source, nothing)).shape
    if shape is None:
        raise InputError(f"{source}: nothing to fit to")
    hosts, paths = mean_children(shape)
    # x is the depth of the parent; of paths, one more.
    host_a, host_k = fit_decay_curve([(depth, mean) for depth, mean in enumerate(hosts, 1) if depth > 1])
    path_a, path_k = fit_decay_curve(list(enumerate(paths, 1)))
    return replace(compaction, host_a=host_a, host_k=host_k, path_a=path_a, path_k=path_k)
