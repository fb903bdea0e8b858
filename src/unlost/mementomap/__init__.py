r"""MementoMaps, filters and URI-Key profiles: what an archive holds, built from its index, and look-ups in them.

Modules in reading order:

- `readers`: Detection and counting of inputs; options and reports common to all builders.
- `map_file`: The MementoMap file format.
- `builder`, `compact`, `budget`, `merge`, `exclude`, `check`: Create, compact, merge, extend and validate maps.
- `map`: Look-ups in a map.
- `filter`, `filter_builder`: Static approximate membership filters.
- `lookup`: Combined look-ups in the map and the filters of one or more archives.
- `profile`, `profile_builder`: URI-Key profiles.
- `query_logs`: Logs of requested pages, for `budget` and `exclude`.

It must not import `archives`, `aggregate`, `recover` or anything else that sends requests.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> from unlost.mementomap import Map
>>> with TemporaryDirectory() as folder:
...     file = Path(folder, "a.ukvs")
...     _ = file.write_text("com,* 10000+\norg,arxiv)/* 2500~/900\norg,arxiv)/pdf/* 0\n")
...     Map.open(file).lookup("https://arxiv.org/pdf/1234")
Answer(key='org,arxiv)/pdf/1234', held=False, matched='org,arxiv)/pdf/*', frequency='0')
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unlost.mementomap.builder import MapOptions, build_map
    from unlost.mementomap.check import MapCheckResult, check_map
    from unlost.mementomap.compact import NO_LIMIT, Compaction, compact_map
    from unlost.mementomap.exclude import ExclusionOptions, ExclusionReport, exclude_map
    from unlost.mementomap.filter import Filter, FilterLayer
    from unlost.mementomap.filter_builder import (
        FilterOptions,
        FilterReport,
        add_to_filter,
        build_filter,
        compact_filter,
    )
    from unlost.mementomap.lookup import ArchiveHoldings, HoldingsResult, RoutingDecision, RoutingReason
    from unlost.mementomap.map import Answer, Answers, Map
    from unlost.mementomap.merge import MapDifference, MapMergeReport, diff_maps, merge_maps
    from unlost.mementomap.readers import InputReport

__all__ = [
    "NO_LIMIT",
    "Answer",
    "Answers",
    "ArchiveHoldings",
    "Compaction",
    "ExclusionOptions",
    "ExclusionReport",
    "Filter",
    "FilterLayer",
    "FilterOptions",
    "FilterReport",
    "HoldingsResult",
    "InputReport",
    "Map",
    "MapCheckResult",
    "MapDifference",
    "MapMergeReport",
    "MapOptions",
    "RoutingDecision",
    "RoutingReason",
    "add_to_filter",
    "build_filter",
    "build_map",
    "check_map",
    "compact_filter",
    "compact_map",
    "diff_maps",
    "exclude_map",
    "merge_maps",
]

_MODULES = {
    "Answer": "map",
    "Answers": "map",
    "ArchiveHoldings": "lookup",
    "Compaction": "compact",
    "ExclusionOptions": "exclude",
    "ExclusionReport": "exclude",
    "Filter": "filter",
    "FilterLayer": "filter",
    "FilterOptions": "filter_builder",
    "FilterReport": "filter_builder",
    "HoldingsResult": "lookup",
    "InputReport": "readers",
    "Map": "map",
    "MapCheckResult": "check",
    "MapDifference": "merge",
    "MapMergeReport": "merge",
    "MapOptions": "builder",
    "NO_LIMIT": "compact",
    "RoutingDecision": "lookup",
    "RoutingReason": "lookup",
    "add_to_filter": "filter_builder",
    "build_filter": "filter_builder",
    "build_map": "builder",
    "check_map": "check",
    "compact_filter": "filter_builder",
    "compact_map": "compact",
    "diff_maps": "merge",
    "exclude_map": "exclude",
    "merge_maps": "merge",
}


def __getattr__(name: str) -> object:
    """Import names on first use, so that a command that builds a map does not import what checks one."""
    if name in _MODULES:
        return getattr(import_module(f"unlost.mementomap.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
